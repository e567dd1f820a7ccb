"""Starts a run of somebody's DAG once, through Airflow's REST API, and finds it again. Decides nothing about the plan.

How it works. The run's id is the action's, for ever, and Airflow takes an id once per DAG. So a start whose answer was
lost finds its run; one of that id with another conf is not ours and is refused.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from tallystick.alerting.sinks.http_post import silent_logs
from tallystick.compensation.plan import PlanRefused
from tallystick.connections.connections import HttpAccount
from tallystick.model.errors import TallystickError

_TIMEOUT_SECONDS = 30
_NO_RETRY_CURES = (400, 401, 403, 404, 405, 422)
_NOT_OF_THIS_DAG = (400, 404, 422)
"""What Airflow answers to a start that this DAG does not take; nothing was started then."""


class AirflowUnreachable(TallystickError, ConnectionError):
    """Airflow does not answer, or not now. A retry may cure it, and finds what an earlier one has started."""

    retryable = True


class AirflowRefused(PlanRefused):
    """Airflow does not let this account do it, or is no Airflow with REST API v2."""


@dataclass(frozen=True, kw_only=True)
class DagRun:
    """One run, as Airflow has it. state: queued, running, success or failed."""

    conf: Mapping[str, Any]
    state: str


@dataclass(frozen=True, kw_only=True)
class Started:
    """The result of one action. refused: why not; "" where the run exists, started now or (already) before."""

    already: bool = False
    refused: str = ""


class AirflowApi:
    """Airflow as one account sees it."""

    def __init__(self, client: httpx.Client, token: str) -> None:
        self._client = client
        self._headers = {"authorization": f"Bearer {token}"}

    def find_run(self, dag_id: str, run_id: str) -> DagRun | None:
        """One run; None where there is none. Raises AirflowUnreachable, AirflowRefused."""
        answer = _ask(self._client, "GET", f"{_runs(dag_id)}/{quote(run_id, safe='')}", self._headers)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        found = _accepted(answer, f"look for a run of {dag_id}")
        return DagRun(conf=found["conf"] or {}, state=str(found["state"]))

    def start_once(
        self,
        dag_id: str,
        run_id: str,
        conf: Mapping[str, Any],
        *,
        may_start: Callable[[], str | None] = lambda: None,
    ) -> Started:
        """Start a run, or find that this action has. Raises AirflowUnreachable, AirflowRefused.

        may_start: asked right before, where none stands; gives why not.
        """
        if run := self.find_run(dag_id, run_id):
            return _found(run, run_id, conf)
        if reason := self.why_not_startable(dag_id) or may_start():
            return Started(refused=reason)
        body = {"dag_run_id": run_id, "logical_date": None, "conf": dict(conf)}
        answer = _ask(self._client, "POST", _runs(dag_id), self._headers, body)
        if answer.status_code in _NOT_OF_THIS_DAG:
            return Started(
                refused=f"Airflow answered {answer.status_code} to a start of {dag_id}; expected a DAG that allows "
                "manual runs, and takes the plan as conf"
            )
        if answer.status_code != httpx.codes.CONFLICT:
            _accepted(answer, f"start {dag_id}")
            return Started()
        run = self.find_run(dag_id, run_id)
        return (
            _found(run, run_id, conf) if run else Started(refused=f"Airflow took {run_id} for a conflict of {dag_id}")
        )

    def why_not_startable(self, dag_id: str) -> str | None:
        """Return why a run would not begin; None: it would. Raises AirflowUnreachable, AirflowRefused."""
        answer = _ask(self._client, "GET", f"/api/v2/dags/{quote(dag_id, safe='')}", self._headers)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return f"Airflow has no DAG {dag_id}, or does not show it to this account"
        dag = _accepted(answer, f"look at {dag_id}")
        if dag["is_paused"]:
            return f"the DAG {dag_id} is paused: its run would wait until somebody forgets why"
        if dag["is_stale"] or dag["has_import_errors"]:
            return f"the DAG {dag_id} is gone from its file, or the file does not load"
        return None


@contextmanager
def open_airflow(account: HttpAccount) -> Iterator[AirflowApi]:
    """Log in. Raises AirflowUnreachable, AirflowRefused."""
    with silent_logs(), httpx.Client(base_url=account.address, timeout=_TIMEOUT_SECONDS) as client:
        body = {"username": account.login, "password": account.secret}
        token = _accepted(_ask(client, "POST", "/auth/token", {}, body), "log in")["access_token"]
        yield AirflowApi(client, str(token))


def _found(run: DagRun, run_id: str, conf: Mapping[str, Any]) -> Started:
    if run.conf == conf:
        return Started(already=True)
    return Started(refused=f"a run {run_id} stands there with another conf: it is not of this plan")


def _runs(dag_id: str) -> str:
    return f"/api/v2/dags/{quote(dag_id, safe='')}/dagRuns"


def _ask(
    client: httpx.Client, method: str, path: str, headers: Mapping[str, str], body: Mapping[str, Any] | None = None
) -> httpx.Response:
    try:
        return client.request(method, path, headers=dict(headers), json=body)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise AirflowRefused(f"Airflow's connection has no usable address: {type(error).__name__}") from None
    except httpx.HTTPError as error:
        raise AirflowUnreachable(f"Airflow: no answer: {type(error).__name__}") from None


def _accepted(answer: httpx.Response, what: str) -> dict[str, Any]:
    """The answer's document. Its words are not repeated: they may quote what was sent."""
    said = f"Airflow answered {answer.status_code} when asked to {what}"
    if answer.status_code in _NO_RETRY_CURES:
        raise AirflowRefused(f"{said}; expected an account that may do that")
    if not answer.is_success:
        raise AirflowUnreachable(said)
    try:
        document: dict[str, Any] = answer.json()
    except ValueError:
        raise AirflowRefused(f"{said}, and it is no JSON; expected Airflow's REST API v2") from None
    return document
