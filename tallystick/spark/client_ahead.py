"""The client of a Spark Connect server, forked from the run before its cuts are made.

To load what it needs takes it longer than a small cut takes Spark. Half of that the run needs too, and has loaded; the
rest it loads on another core while the sides settle. It is told its cuts by its standard input: the command line of a
forked process stays the run's.
"""

import fcntl
import importlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NoReturn

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
_LOOK_EVERY_SECONDS = 0.01


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
    """A forked process, as `subprocess` has one that it started. `multiprocessing` forks none from a daemon's child."""

    def __init__(self, pid: int, stdin: IO[str], stdout: IO[str]) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self._exit_code: int | None = None

    def poll(self) -> int | None:
        return self._exit_code if self._exit_code is not None else self._ended(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        ends = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if ends is None:
                self._ended(0)
            elif time.monotonic() < ends:
                time.sleep(_LOOK_EVERY_SECONDS)
            else:
                raise subprocess.TimeoutExpired("the client of the Spark server", timeout or 0)
        return code

    def _ended(self, options: int) -> int | None:
        try:
            pid, status = os.waitpid(self.pid, options)
        except ChildProcessError:  # where SIGCHLD is ignored nobody learns how it ended; its steps said what it did
            self._exit_code = 0
        else:
            self._exit_code = os.waitstatus_to_exitcode(status) if pid else None
        return self._exit_code


@contextmanager
def _forked(environment: Mapping[str, str], errors: IO[str]) -> Iterator[_Forked]:
    """Fork the client, in a session of its own as `spark_job.child` starts one."""
    orders, told, leads = os.pipe(), os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_the_app(orders, told, leads, errors.fileno(), environment)
    for end in (orders[0], told[1], leads[1]):
        os.close(end)
    os.read(leads[0], 1)
    os.close(leads[0])
    with (
        open(orders[1], "w", encoding="utf-8") as stdin,
        open(told[0], encoding="utf-8", errors="replace") as stdout,
    ):
        job = _Forked(pid, stdin, stdout)
        try:
            yield job
        finally:
            end_session(job)


def _be_the_app(
    orders: tuple[int, int],
    told: tuple[int, int],
    leads: tuple[int, int],
    errors: int,
    environment: Mapping[str, str],
) -> NoReturn:
    """End the forked process as a program ends: none of the run's own `finally` and exit functions are its.

    orders, told, leads: both ends of its standard input, of its output, and of a pipe that closes once it leads its
    session, so that a signal to that finds it.
    """
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        streams = [fcntl.fcntl(one, fcntl.F_DUPFD, 3) for one in (orders[0], told[1], errors)]
        for descriptor in (*orders, *told, *leads):
            os.close(descriptor)
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
            os.close(descriptor)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
        os.environ.clear()
        os.environ.update(child_environment(environment))
        sys.argv[1:] = ["--follow", _ORDERS]
        importlib.import_module(APP).run_submitted()
        code = 0
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)
