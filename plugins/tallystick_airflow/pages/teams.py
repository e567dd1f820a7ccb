"""The teams that share an Airflow: whose verdict store a page reads, and which DAG's right opens it.

Pages of a team lie below `/team/<prefix>`; those of the team without a prefix lie at the top. Decides nothing about a
user: auth.py does, by the DAG's id that stands here.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from starlette.routing import Match, Mount
from starlette.types import Receive, Scope, Send

from tallystick.connections.connections import ConnectionNotGiven
from tallystick_airflow.connections import STORE_CONNECTION
from tallystick_airflow.dags.settings import PREFIX

VARIABLE = "TALLYSTICK_TEAMS"
RECONCILE, COMPENSATE = "reconcile_", "compensate_"


@dataclass(frozen=True, kw_only=True)
class Team:
    """prefix: of its DAGs' ids. dags: contract to the DAG that has it as a task group, where that is not
    `reconcile_<contract>`.
    """

    prefix: str = ""
    store_conn_id: str = STORE_CONNECTION
    dags: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The part of an address that names it."""
        return f"/team/{self.prefix}" if self.prefix else ""

    def dag_of(self, contract_name: str) -> str:
        """The DAG whose right decides who may read."""
        return self.dags.get(contract_name, f"{self.prefix}{RECONCILE}{contract_name}")

    def compensation_of(self, contract_name: str) -> str:
        """The DAG whose right to be triggered lets a person act."""
        return f"{self.prefix}{COMPENSATE}{contract_name}"

    def contracts_of(self, dag_id: str) -> tuple[str, ...]:
        """The contracts that a DAG reconciles."""
        named = [contract for contract, own in self.dags.items() if own == dag_id]
        by_id = _behind(f"{self.prefix}{RECONCILE}", dag_id)
        return tuple(named + [one for one in by_id if one not in self.dags])

    def repaired_by(self, dag_id: str) -> str | None:
        """The contract that a DAG repairs."""
        return next(iter(_behind(f"{self.prefix}{COMPENSATE}", dag_id)), None)

    def has(self, dag_id: str) -> bool:
        """Tell whether a DAG is one of this team's."""
        return bool(self.contracts_of(dag_id) or self.repaired_by(dag_id))


def read_teams(environment: Mapping[str, str] = os.environ) -> tuple[Team, ...]:
    """Read a JSON object of prefix to `store` and `dags`; the team without a prefix is always there, and is the first.

    Raises ConnectionNotGiven for what is no such object.
    """
    text = environment.get(VARIABLE) or "{}"
    try:
        given = json.loads(text)
        teams = {prefix: _team(prefix, settings) for prefix, settings in given.items()}
    except (json.JSONDecodeError, AttributeError, TypeError, ValueError):
        raise ConnectionNotGiven(
            f'{VARIABLE}: expected a JSON object such as {{"payments_": {{"store": "payments_store", '
            '"dags": {"orders": "nightly"}}}, whose keys are the prefixes of DAG files'
        ) from None
    return (teams.pop("", Team()), *teams.values())


def team() -> Team:
    """The team whose page is asked for."""
    return _current.get() or read_teams()[0]


def team_elsewhere(dag_id: str) -> Team | None:
    """The team of a DAG, where it is another's than this page's."""
    if team().has(dag_id):
        return None
    return next((one for one in read_teams() if one.has(dag_id)), None)


@contextmanager
def page_of_team(scope: Scope) -> Iterator[Scope]:
    """Find the team in a request's address, and yield the request as below it. An unknown team is no page."""
    match, found = _BELOW.matches(scope)
    chosen = _of_prefix(found["path_params"]["prefix"]) if match is Match.FULL else None
    token = _current.set(chosen)
    try:
        yield {**scope, **found} if chosen else scope
    finally:
        _current.reset(token)


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve nothing: only the address is matched."""


_BELOW = Mount("/team/{prefix}", app=_nothing)
_current: ContextVar[Team | None] = ContextVar("team", default=None)


def _of_prefix(prefix: str) -> Team | None:
    """None also where the setting cannot be read: each page says so."""
    with suppress(ConnectionNotGiven):
        return next((one for one in read_teams() if one.prefix and one.prefix == prefix), None)
    return None


def _team(prefix: str, settings: Mapping[str, Any]) -> Team:
    if not re.fullmatch(PREFIX, prefix) or set(settings) - {"store", "dags"}:
        raise ValueError(prefix)
    dags = settings.get("dags", {})
    if not all(isinstance(dag_id, str) for dag_id in dags.values()):
        raise TypeError(dags)
    return Team(prefix=prefix, store_conn_id=str(settings.get("store", STORE_CONNECTION)), dags=dags)


def _behind(prefix: str, dag_id: str) -> list[str]:
    return [dag_id.removeprefix(prefix)] if dag_id.startswith(prefix) else []
