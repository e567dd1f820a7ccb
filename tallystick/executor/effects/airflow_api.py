"""Starts a run of somebody's DAG once, through Airflow's REST API, and finds it again. Decides nothing about the plan.

How it works. The run's id is the action's, for ever, and Airflow takes an id once per DAG. So a start whose answer was
lost finds its run. Where it finds none, or one of that id with another conf, nobody here knows whether the DAG has
repaired anything: that is a doubt, and no refusal. An answer that cannot be read tells nothing either, nor does a 5xx:
a proxy gives it for an answer that it lost. A 429 is whoever counts requests, and does not pass this one on: RFC 6585.
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
    """Airflow does not answer, not now, or not what was asked. A retry may cure it, and finds what was started."""

    retryable = True


class AirflowNotReached(AirflowUnreachable):
    """No connection to Airflow came about: nothing was asked."""


class AirflowRefused(PlanRefused):
    """Airflow does not let this account do it, or is no Airflow with REST API v2. Nothing was started by this call."""


@dataclass(frozen=True, kw_only=True)
class DagRun:
    """One run, as Airflow has it. state: queued, running, success or failed."""

    conf: Mapping[str, Any]
    state: str

    @property
    def has_ended(self) -> bool:
        return self.state in ("success", "failed")


@dataclass(frozen=True, kw_only=True)
class Started:
    """The result of one action: its run exists, started now or (already) before, or there is a reason why not.

    refused: nothing was started. doubt: what was found, where nobody here knows whether the DAG repaired anything.
    """

    already: bool = False
    refused: str = ""
    doubt: str = ""


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
        return _run_of(answer, f"look for a run of {dag_id}", run_id)

    def start_once(
        self,
        dag_id: str,
        run_id: str,
        conf: Mapping[str, Any],
        *,
        asked_before: bool = False,
        may_start: Callable[[], str | None] = lambda: None,
    ) -> Started:
        """Start a run, or find that this action has. Raises AirflowUnreachable, AirflowRefused.

        asked_before: an earlier start may have asked for it, so that a run that is not there may have been.
        may_start: asked right before, where none stands; gives why not.
        """
        if run := self.find_run(dag_id, run_id):
            return _found(run, dag_id, run_id, conf)
        if asked_before:
            return _none_left(dag_id, run_id)
        if reason := self.why_not_startable(dag_id) or may_start():
            return Started(refused=reason)
        return self._start(dag_id, run_id, conf)

    def _start(self, dag_id: str, run_id: str, conf: Mapping[str, Any]) -> Started:
        body = {"dag_run_id": run_id, "logical_date": None, "conf": dict(conf)}
        try:
            answer = _ask(self._client, "POST", _runs(dag_id), self._headers, body)
        except AirflowNotReached as error:
            return Started(refused=str(error))
        if answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
            return Started(refused=f"{_said(answer, f'start {dag_id}')}: a limit of requests turned it away")
        if answer.status_code in _NOT_OF_THIS_DAG:
            return Started(
                refused=f"Airflow answered {answer.status_code} to a start of {dag_id}; expected a DAG that allows "
                "manual runs, and takes the plan as conf"
            )
        if answer.status_code != httpx.codes.CONFLICT:
            run = _run_of(answer, f"start {dag_id}", run_id)
            if run.conf != conf:
                raise AirflowUnreachable(f"{_said(answer, f'start {dag_id}')}, with another conf than was sent")
            return Started()
        try:
            found = self.find_run(dag_id, run_id)
        except AirflowRefused as error:  # a run of this id exists, whosever it is
            raise AirflowUnreachable(str(error)) from None
        return _found(found, dag_id, run_id, conf) if found else _none_left(dag_id, run_id)

    def why_not_startable(self, dag_id: str) -> str | None:
        """Return why a run would not begin; None: it would. Raises AirflowUnreachable, AirflowRefused."""
        answer = _ask(self._client, "GET", f"/api/v2/dags/{quote(dag_id, safe='')}", self._headers)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return f"Airflow has no DAG {dag_id}, or does not show it to this account"
        dag = _accepted(answer, f"look at {dag_id}", "is_paused", "is_stale", "has_import_errors")
        if dag["is_paused"]:
            return f"the DAG {dag_id} is paused: its run would wait until somebody forgets why"
        if dag["is_stale"] or dag["has_import_errors"]:
            return f"the DAG {dag_id} is gone from its file, or the file does not load"
        return None


@contextmanager
def open_airflow(account: HttpAccount) -> Iterator[AirflowApi]:
    """Log in. Raises AirflowUnreachable, AirflowRefused."""
    with silent_logs(), _client_of(account) as client:
        body = {"username": account.login, "password": account.secret}
        answer = _ask(client, "POST", "/auth/token", {}, body)
        token = _accepted(answer, "log in", "access_token", unreadable=AirflowRefused)["access_token"]
        yield AirflowApi(client, str(token))


def _client_of(account: HttpAccount) -> httpx.Client:
    try:
        return httpx.Client(base_url=account.address, timeout=_TIMEOUT_SECONDS)
    except httpx.InvalidURL as error:
        raise _no_address(error) from None


def _found(run: DagRun, dag_id: str, run_id: str, conf: Mapping[str, Any]) -> Started:
    if run.conf == conf:
        return Started(already=True)
    return Started(
        doubt=f"Airflow has a run {run_id} of {dag_id} with another conf: an earlier plan's, or not ours; Airflow "
        "starts no second run of that id before that one is deleted there"
    )


def _none_left(dag_id: str, run_id: str) -> Started:
    return Started(
        doubt=f"an earlier start may have asked Airflow for run {run_id} of {dag_id}, and Airflow has none: it was "
        "deleted, or never began"
    )


def _runs(dag_id: str) -> str:
    return f"/api/v2/dags/{quote(dag_id, safe='')}/dagRuns"


def _ask(
    client: httpx.Client, method: str, path: str, headers: Mapping[str, str], body: Mapping[str, Any] | None = None
) -> httpx.Response:
    try:
        return client.request(method, path, headers=dict(headers), json=body)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError) as error:
        raise _no_address(error) from None
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise AirflowNotReached(f"Airflow: no connection, so nothing was asked: {type(error).__name__}") from None
    except httpx.HTTPError as error:
        raise AirflowUnreachable(f"Airflow: no answer: {type(error).__name__}") from None


def _no_address(error: Exception) -> AirflowRefused:
    return AirflowRefused(f"Airflow's connection has no usable address: {type(error).__name__}")


def _said(answer: httpx.Response, what: str) -> str:
    """Its words are not repeated: they may quote what was sent."""
    return f"Airflow answered {answer.status_code} when asked to {what}"


def _run_of(answer: httpx.Response, what: str, run_id: str) -> DagRun:
    found = _accepted(answer, what, "dag_run_id", "conf", "state")
    if found["dag_run_id"] != run_id:
        raise AirflowUnreachable(f"{_said(answer, what)}, and told of another run than {run_id}")
    return DagRun(conf=found["conf"] or {}, state=str(found["state"]))


def _accepted(
    answer: httpx.Response, what: str, *fields: str, unreadable: type[Exception] = AirflowUnreachable
) -> dict[str, Any]:
    """Return the answer's document, which has these fields. unreadable: what is raised where it has not."""
    said = _said(answer, what)
    if answer.status_code in _NO_RETRY_CURES:
        raise AirflowRefused(f"{said}; expected an account that may do that")
    if not answer.is_success:
        raise AirflowUnreachable(said)
    try:
        document = answer.json()
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise unreadable(f"{said}, and it is no JSON object; expected Airflow's REST API v2")
    if missing := [field for field in fields if field not in document]:
        raise unreadable(f"{said}, without {', '.join(missing)}; expected Airflow's REST API v2")
    return document
