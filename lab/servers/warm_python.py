"""Python processes that are forked from one that has imported already what they need.

A command of ours imports for two seconds before it does anything, and a matrix of crashes starts hundreds of them.
It is as what `process.spawn` starts, a process in a session of its own, which the kernel kills when the lab dies
(Linux), but that it runs nothing at its exit (atexit). The process that they are forked from is the standard library's
fork server: it has no threads.
"""

import ctypes
import multiprocessing.connection
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from threading import Lock, Timer
from typing import IO

from lab.servers.process import REPOSITORY

_IMPORTED = [
    "tallystick.cli.app",
    "tallystick.cli.output",
    "tallystick.compensation.plan_text",
    "tallystick.documents.plan",
    "tallystick.executor.draw_plan",
    "tallystick.executor.execute_plan",
    "tallystick.pipeline.local_run",
    "tallystick.pipeline.make_cut",
]
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(_IMPORTED)
_ASKING = Lock()
"""To start a process, multiprocessing asks each that it knows of for its exit code, which can be read once."""


@dataclass(frozen=True, kw_only=True)
class WarmChild:
    """A process that runs, as far as subprocess.Popen tells of one."""

    _process: ForkServerProcess = field(repr=False)

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        """Its exit code, negative where a signal ended it; None while it runs."""
        with _ASKING:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended. Raises TimeoutExpired."""
        multiprocessing.connection.wait([self._process.sentinel], timeout)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):  # the fork server waits for it, whenever it ends
            if self.poll() is None:
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@dataclass(frozen=True, kw_only=True)
class PipedChild(WarmChild):
    """One with pipes to it."""

    stdin: IO[bytes]
    stdout: IO[bytes]

    def read(self, deadline_seconds: float) -> bytes:
        """All that it writes, without a word to it; one that has not ended by then is killed."""
        self.stdin.close()
        deadline = Timer(deadline_seconds, self.kill)
        deadline.start()
        try:
            return self.stdout.read()
        finally:
            deadline.cancel()


def spawn(
    argv: Sequence[str],
    *,
    log: Path,
    environment: Mapping[str, str],
    death_signal: signal.Signals = signal.SIGKILL,
) -> WarmChild:
    """Start `python -m MODULE ARGUMENTS...`; it gets `death_signal` when the lab dies. What it writes is appended to
    the file `log`.
    """
    return WarmChild(_process=_start(argv, environment, log, death_signal, ()))


def spawn_piped(argv: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> PipedChild:
    """The same, with pipes to it; what it writes to stderr is appended to the file `log`."""
    stdin, to_it = _SERVER.Pipe(duplex=False)
    from_it, stdout = _SERVER.Pipe(duplex=False)
    child = _start(argv, environment, log, signal.SIGKILL, (stdin, stdout))
    for end in (stdin, stdout):
        end.close()
    return PipedChild(stdin=_file(to_it, "wb"), stdout=_file(from_it, "rb"), _process=child)


def _start(
    argv: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    death_signal: signal.Signals,
    pipes: Sequence[Connection],
) -> ForkServerProcess:
    python, switch, *script = argv
    assert (python, switch) == (sys.executable, "-m"), argv
    told = (script, dict(environment), log, death_signal, pipes)
    child = _SERVER.Process(target=_become, args=told, daemon=True)
    with _ASKING:
        child.start()
    return child


def _file(end: Connection, mode: str) -> IO[bytes]:
    file: IO[bytes] = os.fdopen(os.dup(end.fileno()), mode)
    end.close()
    return file


def _become(
    script: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    death_signal: signal.Signals,
    pipes: Sequence[Connection],
) -> None:
    """Be what was asked for, in the child. pipes: its stdin and its stdout, or none."""
    if sys.platform == "linux":  # elsewhere children outlive a lab that is killed, those of `process.spawn`, too
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, death_signal)
    os.setsid()
    with open(os.devnull, "rb") as nothing, open(log, "ab") as output:
        stdin, stdout = pipes or (nothing, output)
        for descriptor, number in enumerate((stdin.fileno(), stdout.fileno(), output.fileno())):
            os.dup2(number, descriptor)
    for end in pipes:
        end.close()
    for descriptor, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        stream = os.fdopen(descriptor, mode, buffering=1)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)  # or the file would be closed as soon as somebody replaces sys.stdout
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(REPOSITORY)
    sys.argv = list(script)
    runpy.run_module(script[0], run_name="__main__", alter_sys=True)
