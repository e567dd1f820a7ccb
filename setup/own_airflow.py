"""An Airflow of its own for `make adopt`: `airflow standalone`, and the calls of its REST interface.

`airflow dags test` would be simpler, but that of Airflow 3.2 fails for a DAG that has a deadline. The adopter so uses
what a company uses: scheduler, DAG processor, triggerer and API server, which start a run when its window has ended.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

SECONDS_TO_START = 300
SECONDS_A_RUN = 900
"""On two cores that others use too; the three runs take a minute each where nobody does."""
_SECONDS_TO_STOP = 30
_ENDED = ("success", "failed")
_LAST_LINES = 12


class AirflowFailed(Exception):
    """It did not start, did not know the DAG or did not end a run in time; the message has the end of its log."""


class OwnAirflow:
    """Calls one Airflow as its admin. home: its AIRFLOW_HOME, where standalone writes the admin's password."""

    def __init__(self, *, home: Path, port: int, log: Path, alive: Callable[[], bool]) -> None:
        self.home, self.log, self.alive = home, log, alive
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120)

    def log_in(self) -> None:
        """Wait for the API server, and take a token. Raises AirflowFailed."""
        passwords = self.home / "simple_auth_manager_passwords.json.generated"

        def token() -> str | None:
            if not passwords.is_file():
                return None
            asked = {"username": "admin", "password": json.loads(passwords.read_text())["admin"]}
            answer = self.client.post("/auth/token", json=asked)
            return str(answer.json()["access_token"]) if answer.is_success else None

        self.client.headers["Authorization"] = f"Bearer {self._wait(token, 'a token', SECONDS_TO_START)}"

    def wait_dag(self, dag_id: str) -> None:
        """Return when Airflow has read the DAG. Raises AirflowFailed."""
        self._wait(lambda: self._asked(f"/api/v2/dags/{dag_id}"), f"the DAG {dag_id}", SECONDS_TO_START)

    def unpause(self, dag_id: str) -> None:
        """Let the scheduler start the DAG's runs."""
        self.client.patch(f"/api/v2/dags/{dag_id}", json={"is_paused": False}).raise_for_status()

    def scheduled(self, dag_id: str) -> str:
        """Return the id of the first run that the scheduler has started. Raises AirflowFailed."""

        def first() -> str | None:
            runs = (self._asked(f"/api/v2/dags/{dag_id}/dagRuns") or {}).get("dag_runs", [])
            return next((str(one["dag_run_id"]) for one in runs if one["run_type"] == "scheduled"), None)

        return str(self._wait(first, "a scheduled run", SECONDS_TO_START))

    def trigger(self, dag_id: str, start_utc: datetime, end_utc: datetime) -> str:
        """Start a run by hand for the window from start to end; returns its id. Raises AirflowFailed."""
        start, end = start_utc.isoformat(), end_utc.isoformat()
        window = {"logical_date": end, "data_interval_start": start, "data_interval_end": end}
        answer = self.client.post(f"/api/v2/dags/{dag_id}/dagRuns", json=window)
        if not answer.is_success:
            raise AirflowFailed(f"{dag_id} could not be triggered: {answer.status_code} {answer.text[:300]}")
        return str(answer.json()["dag_run_id"])

    def state(self, dag_id: str, run_id: str) -> str:
        """Return `success` or `failed` when a run has ended. Raises AirflowFailed."""
        address = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}"

        def ended() -> str | None:
            found = (self._asked(address) or {}).get("state")
            return found if found in _ENDED else None

        return str(self._wait(ended, f"the end of {run_id}", SECONDS_A_RUN))

    def failed_logs(self, dag_id: str, run_id: str) -> str:
        """Return the last lines of each task of a run that has failed."""
        tasks = (self._asked(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances") or {}).get("task_instances", [])
        failed = [str(one["task_id"]) for one in tasks if one["state"] == "failed"]
        folder = self.home / "logs" / f"dag_id={dag_id}" / f"run_id={run_id}"
        last = ((task, sorted(folder.glob(f"task_id={task}/attempt=*.log"))) for task in failed)
        return "\n".join(f"{task}: {end_of(logs[-1])}" if logs else f"{task}: it has no log" for task, logs in last)

    def page(self, path: str) -> int:
        """Return the status of a page for the admin."""
        return self.client.get(path, follow_redirects=True).status_code

    def _asked(self, path: str) -> dict[str, Any] | None:
        """Return what is there, or None where nothing is yet."""
        answer = self.client.get(path)
        return dict(answer.json()) if answer.is_success else None

    def _wait(self, look: Callable[[], Any], what: str, seconds: float) -> Any:
        """Look again until there is something. Raises AirflowFailed."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.alive():
            try:
                if found := look():
                    return found
            except httpx.TransportError:  # it is starting
                pass
            time.sleep(0.5)
        reason = f"none within {seconds:.0f} s" if self.alive() else "Airflow has ended"
        raise AirflowFailed(f"{what}: {reason}: {end_of(self.log)}")


@contextmanager
def own_airflow(airflow: str, folder: Path, environment: Mapping[str, str]) -> Iterator[OwnAirflow]:
    """Run `airflow standalone` on free ports; gives it logged in. Raises AirflowFailed.

    airflow: the command. environment: the adopter's, with AIRFLOW_HOME and the address of Airflow's database.
    """
    api, worker_logs, trigger_logs = free_ports(3)
    settings = {
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(api),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{api}",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{api}/execution/",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(worker_logs),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_logs),
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
    }
    log = folder / "standalone.log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            [airflow, "standalone"],
            cwd=folder,
            env={**environment, **settings},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    own = OwnAirflow(home=Path(environment["AIRFLOW_HOME"]), port=api, log=log, alive=lambda: child.poll() is None)
    try:
        own.log_in()
        yield own
    finally:
        own.client.close()
        _stop(child)


def end_of(log: Path) -> str:
    """Return the last lines of a file."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LAST_LINES:])


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nothing listens on."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End it with all that it has started."""
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
            child.wait(_SECONDS_TO_STOP)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
