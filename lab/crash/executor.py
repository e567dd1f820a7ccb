"""The compensating executor as a process: it stands still at each step that it tells, until it is let go."""

import json
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from lab.servers import process, warm_python
from lab.servers.warm_python import PipedChild

_STEP_SECONDS_MAX = 90.0
"""How long it may be silent before it is killed, as a time-out of whoever supervises it would."""
_LOOK_AGAIN_SECONDS = 0.2

_FINAL = ("PlanStale", "CapsExceeded", "CompensationOff", "ProgressLost")
"""Errors by which it refuses a whole plan, so that starting it again is no use."""


@dataclass(frozen=True, kw_only=True)
class StartEnd:
    """How one start ended. outcomes: what it said of each event, where it came so far. error: what stopped it."""

    exit_code: int | None
    outcomes: tuple[Mapping[str, str], ...]
    error: str
    message: str
    verdict: str

    @property
    def finished(self) -> bool:
        return bool(self.verdict)

    @property
    def refused(self) -> bool:
        return self.error in _FINAL


@dataclass
class Executor:
    """One start of `python -m MODULE ...`. A line that it prints is told once; it goes on when asked for the next."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    child: PipedChild = field(init=False)
    told: list[dict[str, Any]] = field(default_factory=list)
    _lines: "queue.SimpleQueue[dict[str, Any] | None]" = field(default_factory=queue.SimpleQueue)
    hung: bool = False
    _held: bool = False
    _ended: bool = False  # it will tell nothing more

    def __post_init__(self) -> None:
        self.child = warm_python.spawn_piped(self.argv, log=self.log, environment=self.environment)
        threading.Thread(target=self._listen, daemon=True).start()

    def run_to(
        self, is_there: Callable[[Mapping[str, Any]], bool], *, unless: Callable[[], bool] = lambda: False
    ) -> bool:
        """Let it go on until it stands at such a step. False where it has ended before, or hung and was killed; or
        where something else holds it by then.
        """
        while (step := self._next_step(unless)) is not None:
            if is_there(step):
                return True
        return False

    def let_go(self) -> None:
        """Let it go on to its next step, without waiting for that."""
        if self._held and self.child.poll() is None:
            self.child.stdin.write(b"go on\n")
            self.child.stdin.flush()
        self._held = False

    def kill(self) -> None:
        process.kill_tree(self.child)

    def freeze(self) -> None:
        process.freeze(self.child)

    def wake(self) -> None:
        self.child.send_signal(signal.SIGCONT)

    @property
    def ports(self) -> list[int]:
        """Its ends of its connections: by these a server's sessions are told to be its own."""
        with suppress(psutil.NoSuchProcess):  # it has ended
            connections = psutil.Process(self.child.pid).net_connections(kind="tcp")
            return [one.laddr.port for one in connections if one.raddr]
        return []

    def end(self) -> StartEnd | None:
        """Let it run to its end; None where it hung and was killed."""
        self.run_to(lambda _: False)
        try:
            self.child.wait(_STEP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            self.hung = True
        if self.hung:
            return None
        stopped = self._last("stopped")
        return StartEnd(
            exit_code=self.child.returncode,
            outcomes=tuple(self._last("finished").get("outcomes", ())),
            error=stopped.get("error", ""),
            message=stopped.get("message", ""),
            verdict=self._last("verified").get("verdict", ""),
        )

    def _last(self, step: str) -> dict[str, Any]:
        return next((one for one in reversed(self.told) if one["step"] == step), {})

    def _next_step(self, unless: Callable[[], bool]) -> dict[str, Any] | None:
        self.let_go()
        deadline = time.monotonic() + _STEP_SECONDS_MAX
        while not self._ended and time.monotonic() < deadline:
            with suppress(queue.Empty):
                step = self._lines.get(timeout=_LOOK_AGAIN_SECONDS)
                self._ended = step is None
                if step is not None:
                    self.told.append(step)
                    self._held = True
                return step
            if unless():
                return None
        if not self._ended:
            self.kill()
            self.hung = True
        return None

    def _listen(self) -> None:
        for line in self.child.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)
