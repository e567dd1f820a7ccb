"""The client of a Spark Connect server, forked from the run before its cuts are made.

To load what it needs takes it longer than a small cut takes Spark. Half of that the run needs too, and has loaded; the
rest it loads on another core while the sides settle. It is told its cuts by its standard input, so nothing of them is
in its argv.
"""

import importlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import IO

from tallystick.host.gc_tuning import relaxed_gc
from tallystick.host.private_files import private_file, private_folder
from tallystick.spark.spark_job import (
    APP,
    REMOTE_VARIABLE,
    Observer,
    SparkJob,
    child_environment,
    end_session,
    listen,
)

_ORDERS = "/dev/stdin"


class ClientAhead:
    """A client that waits for its cuts and judges once. log: where its words are until it is known whose they are."""

    def __init__(self, job: SparkJob, errors: IO[str], log: Path) -> None:
        self.is_free = True
        self._job, self._errors, self._log = job, errors, log

    def judge(self, cuts: Iterable[tuple[Path, int]], *, log: Path, observe: Observer) -> None:
        """Hand it the cuts, each a contract's file and a number, and listen to its end; its log is `log` from now on.

        Raises SparkAppFailed, also where it had ended before.
        """
        self.is_free = False
        private_folder(log.parent)
        self._log.replace(log)
        orders = [json.dumps({"contract": str(contract_file), "cut": n}) + "\n" for contract_file, n in cuts]
        assert self._job.stdin is not None
        with suppress(BrokenPipeError), self._job.stdin as stdin:
            stdin.writelines(orders)
        listen(self._job, self._errors, log=log, observe=observe)


@contextmanager
def client_ahead(environment: Mapping[str, str], folder: Path) -> Iterator[ClientAhead | None]:
    """Start it, where the environment names a server: None otherwise. It has ended once the block has, used or not.

    folder: of this machine, where logs are written. This process has no other thread yet: a fork has none of them.
    """
    if not environment.get(REMOTE_VARIABLE):
        yield None
        return
    log = folder / "logs" / f"client_{os.getpid()}.log"
    private_folder(log.parent)
    try:
        with (
            private_file(log).open("w", encoding="utf-8") as errors,
            _forked(environment, errors) as job,
        ):
            ahead = ClientAhead(job, errors, log)
            yield ahead
    finally:
        log.unlink(missing_ok=True)


class _Forked:
    """A forked process, as `subprocess` has one that it started."""

    def __init__(self, process: ForkProcess, stdin: IO[str], stdout: IO[str]) -> None:
        assert process.pid is not None
        self.pid, self.stdin, self.stdout, self._process = process.pid, stdin, stdout, process

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("the client of the Spark server", timeout or 0)
        return self._process.exitcode


@contextmanager
def _forked(environment: Mapping[str, str], errors: IO[str]) -> Iterator[_Forked]:
    """Fork the client, in a session of its own as `spark_job.child` starts one."""
    orders, told = os.pipe(), os.pipe()
    process = multiprocessing.get_context("fork").Process(
        target=_follow_orders, args=(orders, told, errors.fileno(), environment)
    )
    process.start()
    os.close(orders[0])
    os.close(told[1])
    with (
        open(orders[1], "w", encoding="utf-8") as stdin,
        open(told[0], encoding="utf-8", errors="replace") as stdout,
    ):
        job = _Forked(process, stdin, stdout)
        try:
            yield job
        finally:
            end_session(job)


def _follow_orders(orders: tuple[int, int], told: tuple[int, int], errors: int, environment: Mapping[str, str]) -> None:
    """Be the app, in the forked process. orders, told: both ends of its standard input and output."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number, descriptor in enumerate((orders[0], told[1], errors)):
        os.dup2(descriptor, number)
    for descriptor in (*orders, *told):
        os.close(descriptor)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False, buffering=1)
    os.environ.clear()
    os.environ.update(child_environment(environment))
    sys.argv[1:] = ["--follow", _ORDERS]
    with relaxed_gc():
        app = importlib.import_module(APP)
    app.run_submitted()
