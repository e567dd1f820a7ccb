"""A real Airflow without Docker: api-server, scheduler, DAG processor and triggerer, each a process of its own.

`start_airflow` runs them for the length of a `with`; they stop in the order that loses nothing, and nothing of them is
left, also after Ctrl-C and after a SIGKILL of the lab. Imports nothing of Airflow: it is spoken to over REST.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from lab.servers import process
from lab.servers.airflow_client import TLS, AirflowClient
from lab.servers.airflow_connections import airflow_variable
from lab.servers.airflow_environment import SPARK_POOL, AirflowSettings, build_environment
from lab.servers.orphan_reaper import Guard, kill_sessions, start_guard
from lab.servers.process import REPOSITORY
from lab.servers.stack import LabAddresses

_COMPONENTS = ("api-server", "dag-processor", "triggerer", "scheduler")
"""In the order of their start. The scheduler stops first, and the api-server last: running tasks report to it."""

_SPARK_SECONDS_MAX = 150
_SLOTS_OF_WARM_SPARK = 2
"""Its clients start no Java; with one slot the cut of a window would wait for Spark to be done with another's."""

WHAT_A_READER_NEEDS = ("api-server", "dag-processor")
"""For who looks and runs nothing: no scheduler, so no run is started."""


class AirflowDidNotStart(RuntimeError):
    """A component ended, or was not healthy in time; the message carries the end of its log."""


@dataclass(frozen=True, kw_only=True)
class AirflowStack(AirflowClient):
    """A running Airflow: its settings, the environment for commands beside it, and the REST calls of its client."""

    settings: AirflowSettings
    environment: dict[str, str]

    def run_command(self, *arguments: str, deadline_seconds: float = 120) -> str:
        """Run an `airflow` command in the same environment; returns its output. Raises CalledProcessError."""
        argv = [sys.executable, "-m", "airflow", *arguments]
        done = subprocess.run(
            argv, env=self.environment, capture_output=True, text=True, timeout=deadline_seconds, check=True
        )
        return done.stdout


@contextmanager
def start_airflow(
    settings: AirflowSettings,
    addresses: LabAddresses,
    *,
    components: tuple[str, ...] = _COMPONENTS,
    make_users: Callable[[Mapping[str, str]], None] | None = None,
    deadline_seconds: float = 90,
) -> Iterator[AirflowStack]:
    """Run Airflow on the given database; yields once its components are healthy. Raises AirflowDidNotStart.

    make_users: for a manager of logins that keeps them in Airflow's database, given the environment of its commands.
    """
    environment = build_environment(settings, addresses)
    with ExitStack() as cleanup:
        guard = cleanup.enter_context(start_guard())
        with ThreadPoolExecutor(1) as beside:
            migrated = beside.submit(_migrate, settings, environment)
            spark = cleanup.enter_context(_warm_spark(settings, environment, guard)) if settings.warm_spark else {}
            migrated.result()
        environment |= spark
        if make_users is not None:
            make_users(environment)
        children: dict[str, subprocess.Popen[bytes]] = {}
        cleanup.callback(_stop, children)
        for name in components:
            children[name] = _start(name, settings, environment, guard)
        _wait_healthy(settings, children, deadline_seconds=deadline_seconds)
        airflow = AirflowStack(
            base_url=settings.base_url, passwords=settings.passwords(), settings=settings, environment=environment
        )
        airflow.make_pool(SPARK_POOL, slots=_SLOTS_OF_WARM_SPARK if settings.warm_spark else 1)
        yield airflow


@contextmanager
def start_airflow_beside(settings: AirflowSettings, addresses: LabAddresses) -> Iterator[Future[AirflowStack]]:
    """Run Airflow as `start_airflow` does, in a thread of its own; yields at once, with who waits for it."""
    starting: Future[AirflowStack] = Future()
    ended = threading.Event()

    def serve() -> None:
        try:
            with start_airflow(settings, addresses) as airflow:
                starting.set_result(airflow)
                ended.wait()
        except Exception as error:
            if starting.done():
                raise
            starting.set_exception(error)

    with ThreadPoolExecutor(1) as thread:
        serving = thread.submit(serve)
        try:
            yield starting
        finally:
            ended.set()
            serving.result()


@contextmanager
def _warm_spark(settings: AirflowSettings, environment: Mapping[str, str], guard: Guard) -> Iterator[dict[str, str]]:
    """Keep a Spark Connect server by `tallystick spark start`; yields the connection of its clients."""
    own = {**environment, "TALLYSTICK_ARTIFACTS_DIR": str(settings.home), "TALLYSTICK_SPARK_MASTER": "local[2]"}
    _spark("start", settings, own)
    try:
        server = json.loads((settings.home / "spark" / "server.json").read_text())
        guard.watch(server["pid"])
        address = {"conn_type": "spark_connect", "host": "localhost", "port": server["port"]}
        yield {airflow_variable("spark_default"): json.dumps({**address, "password": server["token"]})}
    finally:
        _spark("stop", settings, own)


def _spark(command: str, settings: AirflowSettings, environment: Mapping[str, str]) -> None:
    log = _log(settings, "spark")
    argv = [sys.executable, "-m", "tallystick", "spark", command]
    child = process.spawn(argv, log=log, environment=environment, cwd=REPOSITORY)
    try:
        code = child.wait(_SPARK_SECONDS_MAX)
    finally:
        process.stop(child)
    if code != 0:
        raise AirflowDidNotStart(f"tallystick spark {command} ended with {code}:\n{_tail(log)}")


def _start(name: str, settings: AirflowSettings, environment: dict[str, str], guard: Guard) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "airflow", name]
    child = process.spawn(argv, log=_log(settings, name), environment=environment, cwd=settings.home)
    guard.watch(child.pid)
    return child


def _stop(children: dict[str, subprocess.Popen[bytes]]) -> None:
    """Stop in reverse order; what does not end in time, and what is left of each session, is killed."""
    session_ids = [child.pid for child in children.values()]
    for name in reversed(_COMPONENTS):
        if name in children:
            process.stop(children[name], patience_seconds=20 if name == "scheduler" else 10)
    kill_sessions(session_ids)


def _migrate(settings: AirflowSettings, environment: dict[str, str]) -> None:
    log = _log(settings, "migrate")
    argv = [sys.executable, "-m", "airflow", "db", "migrate"]
    child = process.spawn(argv, log=log, environment=environment, cwd=settings.home)
    try:
        code = child.wait(120)
    finally:
        process.stop(child)
    if code != 0:
        raise AirflowDidNotStart(f"airflow db migrate ended with {code}:\n{_tail(log)}")


def _wait_healthy(
    settings: AirflowSettings, children: dict[str, subprocess.Popen[bytes]], *, deadline_seconds: float
) -> None:
    end = time.monotonic() + deadline_seconds
    while True:
        for name, child in children.items():
            if child.poll() is not None:
                log = _log(settings, name)
                raise AirflowDidNotStart(f"airflow {name} ended with {child.returncode}:\n{_tail(log)}")
        sick = _sick_parts(settings, children)
        if not sick:
            return
        if time.monotonic() > end:
            raise AirflowDidNotStart(f"after {deadline_seconds:.0f} s not healthy: {', '.join(sick)}")
        time.sleep(0.2)


def _sick_parts(settings: AirflowSettings, children: Iterable[str]) -> list[str]:
    """The database, and what was started; the api-server is healthy when it answers."""
    try:
        answer = httpx.get(f"{settings.base_url}/api/v2/monitor/health", timeout=5, verify=TLS).json()
    except (httpx.HTTPError, ValueError):
        return ["api-server"]
    expected = ["metadatabase", *(name.replace("-", "_") for name in children if name != "api-server")]
    return [name for name in expected if (answer.get(name) or {}).get("status") != "healthy"]


def _log(settings: AirflowSettings, name: str) -> Path:
    return settings.home / f"{name}.log"


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:] if log.exists() else "no log"
