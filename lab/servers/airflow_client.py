"""Airflow's REST interface, as far as the lab, the demo and the tests need it.

Every wait has a deadline and raises when it passes. Nothing here decides what a run means.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx

from lab.servers.process import NotReadyInTime

TLS = httpx.create_ssl_context()
"""Made once: to read the machine's certificates takes longer than most answers, and httpx does so for each call."""

_ENDED = ("success", "failed")
_ANSWER_SECONDS = 120.0  # an API server under load takes its time
_SECONDS_PARKED_MIN = 3.0
"""An answer that comes sooner can meet a scheduler that has not seen the task park, which then fails the task."""


class AirflowSaidNo(RuntimeError):
    """A call was refused; the message has method, path, status and the answer's beginning."""

    def __init__(self, response: httpx.Response) -> None:
        request = response.request
        super().__init__(f"{request.method} {request.url.path}: {response.status_code} {response.text[:500]}")
        self.status = response.status_code


@dataclass(frozen=True, kw_only=True)
class AirflowClient:
    """One Airflow and its users; calls are made as `user`, by default as admin."""

    base_url: str
    passwords: Mapping[str, str] = field(repr=False)
    _tokens: dict[str, str] = field(default_factory=dict, repr=False)

    def trigger(
        self,
        dag_id: str,
        *,
        logical_date: datetime | None = None,
        interval: tuple[datetime, datetime] | None = None,
        conf: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        user: str = "admin",
    ) -> str:
        """Start a run; returns its id. With `interval` the window is exactly that, and its end is the logical date."""
        body: dict[str, Any] = {"logical_date": _iso(logical_date), "conf": dict(conf or {})}
        if interval is not None:
            start, end = interval
            body |= {"data_interval_start": _iso(start), "data_interval_end": _iso(end)}
            body["logical_date"] = _iso(logical_date or end)
        if run_id is not None:
            body["dag_run_id"] = run_id
        started: dict[str, Any] = self.call("POST", f"/api/v2/dags/{dag_id}/dagRuns", json=body, user=user)
        return str(started["dag_run_id"])

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """List the newest hundred runs, oldest first."""
        found = self.call("GET", f"/api/v2/dags/{dag_id}/dagRuns?order_by=-run_after&limit=100")["dag_runs"]
        return list(reversed(found))

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """Describe one run."""
        found: dict[str, Any] = self.call("GET", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")
        return found

    def wait_run(self, dag_id: str, run_id: str, *, deadline_seconds: float = 180) -> str:
        """Return "success" or "failed" once the run has ended. Raises NotReadyInTime."""
        return str(
            self._wait(
                lambda: state if (state := self.run(dag_id, run_id)["state"]) in _ENDED else None,
                what=f"the end of {dag_id} {run_id}",
                deadline_seconds=deadline_seconds,
            )
        )

    def wait_run_where(
        self, dag_id: str, condition: Callable[[dict[str, Any]], bool], *, what: str, deadline_seconds: float = 180
    ) -> dict[str, Any]:
        """Return the first run for which the condition holds, oldest first. Raises NotReadyInTime."""
        found: dict[str, Any] = self._wait(
            lambda: next((run for run in self.runs(dag_id) if condition(run)), None),
            what=f"{dag_id}: {what}",
            deadline_seconds=deadline_seconds,
        )
        return found

    def wait_dag(self, dag_id: str, *, deadline_seconds: float = 60) -> None:
        """Return once Airflow knows the DAG and may schedule it. Raises NotReadyInTime."""
        self._wait(lambda: self._is_active(dag_id) or None, what=f"DAG {dag_id}", deadline_seconds=deadline_seconds)

    def clear_run(self, dag_id: str, run_id: str) -> None:
        """Have all tasks of a run done again."""
        body = {"dry_run": False, "only_failed": False}
        self.call("POST", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/clear", json=body)

    def clear_tasks(self, dag_id: str, run_id: str, *task_ids: str) -> None:
        """Have some tasks of a run done again, and all that follow them."""
        body = {
            "dag_run_id": run_id,
            "task_ids": list(task_ids),
            "include_downstream": True,
            "reset_dag_runs": True,
            "only_failed": False,
            "dry_run": False,
        }
        self.call("POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", json=body)

    def task_states(self, dag_id: str, run_id: str) -> dict[str, str | None]:
        """Task id to state."""
        found = self.call("GET", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances?limit=100")
        return {task["task_id"]: task["state"] for task in found["task_instances"]}

    def wait_task(self, dag_id: str, run_id: str, task_id: str, *states: str, deadline_seconds: float = 120) -> str:
        """Return the task's state once it is one of `states`. Raises NotReadyInTime."""
        return str(
            self._wait(
                lambda: state if (state := self.task_states(dag_id, run_id).get(task_id)) in states else None,
                what=f"{dag_id} {run_id} {task_id}: {' or '.join(states)}",
                deadline_seconds=deadline_seconds,
            )
        )

    def approval(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """Read what a parked task asks: subject, body, options, and the answer if there is one."""
        found: dict[str, Any] = self.call("GET", f"{_task(dag_id, run_id, task_id)}/-1/hitlDetails")
        return found

    def approve(
        self,
        dag_id: str,
        run_id: str,
        task_id: str = "approve",
        *,
        chosen: str = "Approve",
        user: str = "approver",
        deadline_seconds: float = 120,
    ) -> None:
        """Answer a task that waits for a person; waits until it has been parked for long enough."""
        self.wait_parked(dag_id, run_id, task_id, deadline_seconds=deadline_seconds)
        self.answer(dag_id, run_id, task_id, chosen=chosen, user=user)

    def wait_parked(self, dag_id: str, run_id: str, task_id: str = "approve", *, deadline_seconds: float = 120) -> None:
        """Return once a task waits for a person, and has waited for long enough to be answered."""
        self.wait_task(dag_id, run_id, task_id, "awaiting_input", deadline_seconds=deadline_seconds)
        asked_at = datetime.fromisoformat(self.approval(dag_id, run_id, task_id)["created_at"])
        time.sleep(max(0.0, _SECONDS_PARKED_MIN - (datetime.now(UTC) - asked_at).total_seconds()))

    def answer(self, dag_id: str, run_id: str, task_id: str, *, chosen: str, user: str = "approver") -> None:
        """Answer at once. Raises AirflowSaidNo where an answer was given before."""
        body = {"chosen_options": [chosen], "params_input": {}}
        self.call("PATCH", f"{_task(dag_id, run_id, task_id)}/-1/hitlDetails", json=body, user=user)

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> Any:
        """Read what a task returned; None where it returned nothing."""
        try:
            answer = self.call("GET", f"{_task(dag_id, run_id, task_id)}/xcomEntries/{key}?deserialize=true")
        except AirflowSaidNo as refusal:
            if refusal.status == 404:
                return None
            raise
        return answer["value"]

    def task_log(self, dag_id: str, run_id: str, task_id: str, *, try_number: int = 1) -> str:
        """Read a task's log as text, one line per event."""
        path = f"{_task(dag_id, run_id, task_id)}/logs/{try_number}?full_content=true"
        content = self.call("GET", path)["content"]
        return "\n".join(_log_line(line) for line in content)

    def make_pool(self, name: str, *, slots: int) -> None:
        """Make a pool; tasks that name one that does not exist wait."""
        body = {"name": name, "slots": slots, "description": "made by the lab", "include_deferred": False}
        self.call("POST", "/api/v2/pools", json=body)

    def import_errors(self) -> dict[str, str]:
        """File to message, for DAG files and plugins."""
        dags = self.call("GET", "/api/v2/importErrors")["import_errors"]
        plugins = self.call("GET", "/api/v2/plugins/importErrors")["import_errors"]
        return {error["filename"]: error["stack_trace"] for error in dags} | {
            error["source"]: error["error"] for error in plugins
        }

    def call(self, method: str, path: str, *, json: Any = None, user: str = "admin") -> Any:
        """Make one call as a user. Raises AirflowSaidNo."""
        headers = {"Authorization": f"Bearer {self.token(user)}"}
        response = httpx.request(
            method, f"{self.base_url}{path}", json=json, headers=headers, timeout=_ANSWER_SECONDS, verify=TLS
        )
        if response.status_code >= 400:
            raise AirflowSaidNo(response)
        return response.json() if response.content else None

    def token(self, user: str) -> str:
        """Log a user in, once."""
        if user not in self._tokens:
            body = {"username": user, "password": self.passwords[user]}
            response = httpx.post(f"{self.base_url}/auth/token", json=body, timeout=_ANSWER_SECONDS, verify=TLS)
            if response.status_code >= 400:
                raise AirflowSaidNo(response)
            self._tokens[user] = response.json()["access_token"]
        return self._tokens[user]

    def _is_active(self, dag_id: str) -> bool:
        try:
            dag = self.call("GET", f"/api/v2/dags/{dag_id}")
        except AirflowSaidNo as refusal:
            if refusal.status == 404:
                return False
            raise
        return not dag["is_stale"] and not dag["has_import_errors"]

    def _wait(self, look: Callable[[], Any], *, what: str, deadline_seconds: float) -> Any:
        end = time.monotonic() + deadline_seconds
        while (found := look()) is None:
            if time.monotonic() > end:
                raise NotReadyInTime(f"{what}: not within {deadline_seconds:.0f} s")
            time.sleep(0.3)
        return found


def _task(dag_id: str, run_id: str, task_id: str) -> str:
    return f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"


def _log_line(line: Any) -> str:
    """An event, and what was raised if something was."""
    if not isinstance(line, dict):
        return str(line)
    raised = [f"{error['exc_type']}: {error['exc_value']}" for error in line.get("error_detail") or []]
    return "\n".join([line["event"], *raised])


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()
