"""Everything, running here until `python -m lab.demo.down`: broker, databases, billing traffic, Airflow with all
contracts.

    python -m lab.demo.up

Returns once Airflow is healthy and says where it is; the rest is a process of its own (`--serve`), which holds the lock
on build/up/ as long as it lives and stops its parts in order when it ends. Traffic is exactly-once and harmless: the
books agree, window after window. `python -m lab.demo.main` is where things get broken. Contracts that somebody has put
beside the two of the lab are scheduled too, with the connections that the environment names for them.
"""

import argparse
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

from lab.product.command_line import CommandLine
from lab.rounds.delivery_mode_round import Round, prepare, run_traffic
from lab.rounds.own_contracts import OwnContracts, copy_contracts
from lab.servers.airflow import AirflowStack, start_airflow
from lab.servers.airflow_connections import OwnConnections, read_connections
from lab.servers.airflow_environment import LAB_CONNECTIONS, AirflowSettings, write_secret
from lab.servers.alert_receiver import start_pager
from lab.servers.ports import free_port
from lab.servers.process import REPOSITORY, port_answers
from lab.servers.stack import start_stack
from lab.services.delivery_mode import DeliveryMode

CONTRACTS = REPOSITORY / "dags" / "contracts"
FOLDER = REPOSITORY / "build" / "up"
LOG = FOLDER / "up.log"
SESSION_FILE = FOLDER / "session.json"
_LOCK_FILE = FOLDER / ".lock"

STOPPED = "stopped: "
"""What the log says when a part has ended; `lab.demo.down` passes it on."""

_PORT_WANTED = 8080
_SECONDS_TO_START_MAX = 180
_SECONDS_BETWEEN_TRAFFIC = 20
_MINUTES_PER_WINDOW = 2
_SCHEDULES = {"billing_payments": "*/2 * * * *", "billing_payouts": "1-59/2 * * * *"}
"""Each contract every two minutes, in turn: two Spark jobs at once take three times as long on two cores."""


class UpFailed(RuntimeError):
    """Something did not start; the message carries the end of the log."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """What runs, for people and for `lab.demo.down`."""

    pid: int
    address: str
    passwords: dict[str, str]
    reports: str
    pages: str
    contracts: list[str]
    faults: list[str]
    started_at_utc: str


def main() -> None:
    """Start everything, or say that it runs already."""
    parser = argparse.ArgumentParser(description="Start broker, ledger, traffic and Airflow here; stop: lab.demo.down")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    if parser.parse_args().serve:
        _serve()
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    if is_running():
        print("It is already running, with the contracts and connections that were there when it began.")
        print(_describe(_wait_for_session(None)))
        return
    print("Starting broker, databases, traffic and Airflow; this takes about half a minute ...", flush=True)
    server = _launch()
    try:
        print(_describe(_wait_for_session(server)))
    except BaseException:  # Ctrl-C too: what is half started stops again
        server.terminate()
        server.wait(_SECONDS_TO_START_MAX)
        raise


def is_running() -> bool:
    """Tell whether some process serves: it holds the lock as long as it lives."""
    if not _LOCK_FILE.exists():
        return False
    with open(_LOCK_FILE) as lock:
        return not _take(lock)


def serving_pid() -> int:
    """Give the process that holds the lock."""
    return int(_LOCK_FILE.read_text())


def _launch() -> subprocess.Popen[bytes]:
    SESSION_FILE.unlink(missing_ok=True)
    with open(LOG, "wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "lab.demo.up", "--serve"],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait_for_session(server: subprocess.Popen[bytes] | None) -> Session:
    """Return once the serving process has written what runs. Raises UpFailed."""
    end = time.monotonic() + _SECONDS_TO_START_MAX
    while not SESSION_FILE.exists():
        ended = server is not None and server.poll() is not None
        if ended or time.monotonic() > end:
            raise UpFailed(f"it did not start; the end of {LOG}:\n{LOG.read_text(errors='replace')[-3000:]}")
        time.sleep(0.2)
    return Session(**json.loads(SESSION_FILE.read_text()))


def _serve() -> None:
    """Run all parts until SIGTERM or SIGINT, then stop them in reverse order."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with open(_LOCK_FILE, "a") as lock, ExitStack() as parts:
        if not _take(lock):
            sys.exit("another one runs")
        lock.truncate(0)
        print(os.getpid(), file=lock, flush=True)
        parts.callback(_say_stopped, "broker, ledger and verdict store")
        stack = parts.enter_context(start_stack(FOLDER / "lab"))
        round_ = prepare(stack, DeliveryMode.EXACTLY_ONCE, seed=0)
        CommandLine(addresses=stack, folder=Path(stack.folder)).migrate_store()
        pager = parts.enter_context(start_pager(FOLDER / "pages.jsonl"))
        parts.callback(_say_stopped, "Airflow")
        brought = _bring(now_utc=datetime.now(UTC))
        airflow = parts.enter_context(start_airflow(_settings(brought, webhook=pager.address), stack))
        _write_session(airflow, brought, pages=pager.file)
        parts.callback(SESSION_FILE.unlink)
        parts.callback(_say_stopped, "traffic")
        _trickle(round_, stop)


def _say_stopped(part: str) -> None:
    print(f"{STOPPED}{part}", flush=True)


def _take(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class _Brought:
    """The folder of all contracts, and what came of those that are not the lab's."""

    folder: Path
    own: OwnContracts
    connections: OwnConnections


def _bring(*, now_utc: datetime) -> _Brought:
    folder = _write_contracts(now_utc=now_utc)
    own = copy_contracts(CONTRACTS, folder, without=_SCHEDULES, now_utc=now_utc)
    connections = read_connections(own.contracts, os.environ, without=LAB_CONNECTIONS)
    return _Brought(folder=folder, own=own, connections=connections)


def _settings(brought: _Brought, *, webhook: str) -> AirflowSettings:
    home = FOLDER / "airflow"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    return AirflowSettings(
        home=home,
        contracts=brought.folder,
        connections=brought.connections.given,
        artifacts=FOLDER / "artifacts",
        webhook=webhook,
        warm_spark=True,
        look_every_seconds=0.2,
        port=free_port() if port_answers(_PORT_WANTED) else _PORT_WANTED,
    )


def _write_contracts(*, now_utc: datetime) -> Path:
    """Copy the contracts with short windows; one of each has just ended, so that its baseline is taken at once."""
    folder = FOLDER / "contracts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    start_utc = now_utc.replace(second=0, microsecond=0) - timedelta(minutes=2 * _MINUTES_PER_WINDOW - 1)
    for name, schedule in _SCHEDULES.items():
        text = (CONTRACTS / f"{name}.yaml").read_text()
        for key, value in {
            "schedule": f'"{schedule}"',
            "start_date": f"{start_utc:%Y-%m-%dT%H:%M:%SZ}",
            "settle_timeout_seconds": "30",
        }.items():
            text, count = re.subn(rf"^{key}:.*$", f"{key}: {value}", text, flags=re.MULTILINE)
            assert count == 1, f"{name}: {key} stands {count} times"
        (folder / f"{name}.yaml").write_text(text)
    return folder


def _write_session(airflow: AirflowStack, brought: _Brought, *, pages: Path) -> None:
    session = Session(
        pid=os.getpid(),
        address=airflow.base_url,
        passwords=dict(airflow.passwords),
        reports=str(airflow.settings.artifacts),
        pages=str(pages),
        contracts=[*_SCHEDULES, *(contract["contract"] for contract in brought.own.contracts)],
        faults=[*brought.own.faults, *brought.connections.faults],
        started_at_utc=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    unfinished = SESSION_FILE.with_suffix(".new")
    write_secret(unfinished, json.dumps(asdict(session), indent=2))
    unfinished.rename(SESSION_FILE)  # whoever waits for the file finds all of it


def _trickle(round_: Round, stop: threading.Event) -> None:
    """Write a little traffic again and again. It may fail, where somebody kills the broker to see; Airflow stays."""
    seed = 0
    while not stop.is_set():
        seed += 1
        try:
            with run_traffic(replace(round_, seed=seed), payments=12, payouts=8, holds=False, faults=False) as running:
                running.release()
        except Exception:
            traceback.print_exc()
        stop.wait(_SECONDS_BETWEEN_TRAFFIC)


def _describe(session: Session) -> str:
    passwords = "\n".join(f"             {user} / {password}" for user, password in session.passwords.items())
    faults = "".join(f"\nRefused      {fault}" for fault in session.faults)
    return f"""
Airflow      {session.address}
Log in as{passwords[9:]}
Reports      {session.reports}
Pages        {session.pages}
Log          {LOG}
Contracts    {", ".join(session.contracts)}{faults}

The lab's two contracts are reconciled every {_MINUTES_PER_WINDOW} minutes, others by their own schedule; the first run
of each is its baseline.
Stop it with: make down (python -m lab.demo.down)"""


if __name__ == "__main__":
    main()
