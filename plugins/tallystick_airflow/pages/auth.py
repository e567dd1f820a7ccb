"""The right to see a page: a user of Airflow who may read the contract's reconcile DAG; and the addresses of Airflow's
own pages. Decides nothing else.

Airflow mounts a plugin's app as it is, open to everybody; these dependencies are its only door.
"""

from typing import Annotated
from urllib.parse import quote
from uuid import UUID

from airflow.configuration import conf
from fastapi import HTTPException, Request
from fastapi import Path as PathParameter
from sqlalchemy import Engine

from tallystick.contract.field_types import PATTERNS
from tallystick.model.break_history import ToldBreak
from tallystick.store.breaks.break_store import BreakNotFound, find_break
from tallystick_airflow.internals.access import (
    DagAccessEntity,
    GetUserDep,
    get_auth_manager,
    get_user,
    requires_access_dag,
)
from tallystick_airflow.pages.teams import Team, read_teams, team

__all__ = ["GetUserDep", "get_user"]

MOUNTED_AT = "/tallystick"
"""The path below which Airflow serves the pages."""
_NAME, *_ = PATTERNS
ContractName = Annotated[str, PathParameter(pattern=_NAME)]
"""A contract's, in an address."""


def require_read(request: Request, user: GetUserDep, contract_name: str) -> None:
    """Let the user pass who may read the DAG's runs. Raises HTTPException 403."""
    requires_access_dag("GET", DagAccessEntity.RUN, team().dag_of(contract_name))(request, user)


def may_read(request: Request, user: GetUserDep, contract_name: str) -> bool:
    """The same as a question."""
    try:
        require_read(request, user, contract_name)
    except HTTPException:
        return False
    return True


def readable_break(engine: Engine, request: Request, user: GetUserDep, break_id: UUID) -> ToldBreak:
    """One break. Raises HTTPException 404, also for who may not read its contract: they learn no more than that."""
    try:
        told = find_break(engine, str(break_id))
    except BreakNotFound:
        told = None
    if told is None or not may_read(request, user, told.contract):
        raise HTTPException(404, f"{break_id}: no such break is stored")
    return told


def base_of(request: Request) -> str:
    """The path below which Airflow has mounted the pages."""
    return str(request.scope["root_path"]).rstrip("/")


def top_of(request: Request) -> str:
    """The same of all teams' pages."""
    return base_of(request).removesuffix(team().path)


def told_base_of(request: Request) -> str:
    """The same as an address that people hand on: as Airflow's settings name it, never as a request's Host does."""
    airflow = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{airflow}{MOUNTED_AT}{team().path}" if airflow else base_of(request)


def approval_address(request: Request, contract_name: str, run_id: str) -> str:
    """Return the address where Airflow asks for the approval of a compensation's run."""
    airflow = top_of(request).removesuffix(MOUNTED_AT)
    dag_id = team().compensation_of(contract_name)
    return f"{airflow}/dags/{dag_id}/runs/{quote(run_id, safe='')}/tasks/approve/required_actions"


def readable_contracts(user: GetUserDep) -> frozenset[str]:
    """The team's contracts whose DAGs Airflow knows and the user may read."""
    dag_ids = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    return frozenset(name for dag_id in dag_ids for name in team().contracts_of(dag_id))


def readable_teams(user: GetUserDep) -> tuple[Team, ...]:
    """The teams of which the user may read a DAG."""
    dag_ids = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    return tuple(one for one in read_teams() if any(one.contracts_of(dag_id) for dag_id in dag_ids))
