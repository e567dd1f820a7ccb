"""The lab's side of a service: a slot that holds one process at a time, and does the planned faults to it.

A thread per slot reads the process's reports. When an armed barrier is reached the process waits, and the thread does
to it what the plan says: really SIGKILL it, really SIGSTOP it. A successor in the slot goes on where the mode lets it.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lab.servers import process
from lab.services.service_protocol import FENCED_EXIT, STUCK_EXIT, ServiceSettings

_PATIENCE_SECONDS = 120.0  # of a busy machine; a coordinator that died takes its time too
_STOP_SECONDS = 15.0

Armed = tuple[str, str]  # (barrier, subject)
Report = dict[str, Any]


class ServiceFailed(RuntimeError):
    """A service ended or spoke out of turn; the message carries the end of its log."""


@dataclass
class Running:
    """One process of a service."""

    child: "subprocess.Popen[bytes]"

    def tell(self, **command: object) -> None:
        """Send a command; a process that has just died is noticed by its silence instead."""
        assert self.child.stdin is not None
        try:
            self.child.stdin.write(json.dumps(command).encode() + b"\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            return

    def next_report(self) -> Report | None:
        """Wait for the next report; None at the process's end."""
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        return json.loads(line) if line else None


@dataclass
class Slot:
    """One place in the pipeline, such as billing-0, and the process that fills it now."""

    module: str
    settings: ServiceSettings
    log: Path
    on_barrier: dict[Armed, Callable[["Slot"], None]] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    failure: Exception | None = None
    _now: Running | None = None
    _zombies: list[Running] = field(default_factory=list)
    _thread: threading.Thread | None = None
    _sync_number: int = 0
    _stopping: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def name(self) -> str:
        return self.settings.name

    def start(self) -> None:
        """Start the first process and the thread that follows it."""
        self._start_process()
        self._thread = threading.Thread(target=self._follow, name=self.name, daemon=True)
        self._thread.start()

    def tell(self, **command: object) -> None:
        assert self._now is not None
        self._now.tell(**command)

    def ask_sync(self) -> int:
        """Ask the service to say when it has handled all there is; a successor is asked again."""
        with self._changed:
            self._sync_number += 1
            self.tell(do="sync", number=self._sync_number)
            return self._sync_number

    def wait_for(self, kind: str, *, deadline_seconds: float = _PATIENCE_SECONDS, **facts: object) -> None:
        """Wait for a report. Raises ServiceFailed as soon as the service fails, NotReadyInTime at the deadline."""

        def reported() -> bool:
            wanted = {"kind": kind, **facts}
            return self.failure is not None or any(wanted.items() <= report.items() for report in self.reports)

        with self._changed:
            if not self._changed.wait_for(reported, deadline_seconds):
                raise process.NotReadyInTime(f"{self.name}: no {kind} {facts} within {deadline_seconds:.0f} s")
        if self.failure is not None:
            raise self.failure

    def count(self, kind: str) -> int:
        with self._changed:
            return sum(report["kind"] == kind for report in self.reports)

    def stop(self) -> None:
        """End the service in order; zombies and what does not listen are killed. Safe to call again."""
        self._stopping = True
        for zombie in self._zombies:
            process.kill_tree(zombie.child)
        if self._thread is None or self._now is None:
            return
        end = time.monotonic() + (_STOP_SECONDS if self.failure is None else 0)
        while self._thread.is_alive() and time.monotonic() < end:
            self.tell(do="stop")  # again and again: a fault may just now put a successor into the slot
            self._thread.join(0.2)
        process.kill_tree(self._now.child)
        self._thread.join(_STOP_SECONDS)

    # What a fault does; called in the slot's own thread while the process waits at a barrier.

    def let_go(self) -> None:
        self.tell(do="go")

    def kill_and_replace(self) -> None:
        """SIGKILL the process; a successor starts where the saved progress says."""
        assert self._now is not None
        process.kill_tree(self._now.child)
        self._start_process()

    def freeze(self) -> Running:
        """Freeze the process: it keeps its connections and knows nothing of what follows."""
        assert self._now is not None
        process.freeze(self._now.child)
        self._zombies.append(self._now)
        return self._now

    def succeed(self, *, until: Armed | None) -> None:
        """Start a successor beside the zombie; return once it is ready, or waits at the given barrier."""
        if until is not None:
            self.settings = replace(self.settings, armed=(*self.settings.armed, until))
        self._start_process()
        self._read_until("ready")
        if until is not None:
            self._read_until("barrier", barrier=str(until[0]), subject=until[1])
            self._disarm(until)

    def wake(self, zombie: Running) -> int:
        """SIGCONT the zombie and let it finish what it was at; give its exit status."""
        zombie.child.send_signal(signal.SIGCONT)
        zombie.tell(do="stop")  # one command: between a "go" and a "stop" it could take up its next message
        status = zombie.child.wait(_PATIENCE_SECONDS)
        self._zombies.remove(zombie)
        if status not in (0, FENCED_EXIT):
            raise ServiceFailed(self._explain(f"zombie exit status {status}"))
        return status

    def _start_process(self) -> None:
        with self._changed:
            child = process.spawn(
                [sys.executable, "-m", self.module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, log=self.log
            )
            assert child.stdin is not None
            self._now = Running(child)
            child.stdin.write(self.settings.to_json().encode() + b"\n")
            child.stdin.flush()
            if self._sync_number:
                self.tell(do="sync", number=self._sync_number)

    def _follow(self) -> None:
        try:
            while (status := self._follow_process()) == STUCK_EXIT:
                self._start_process()
            if status != 0 or not self._stopping:
                raise ServiceFailed(self._explain(f"exit status {status}"))
        except Exception as failure:  # handed to whoever waits for this slot
            with self._changed:
                self.failure = failure
                self._changed.notify_all()

    def _follow_process(self) -> int:
        """Read and do what is planned until the process that fills the slot ends; its exit status."""
        while (report := self._read()) is not None:
            if report["kind"] == "barrier":
                armed = (report["barrier"], report["subject"])
                self._disarm(armed)
                self.on_barrier[armed](self)
        assert self._now is not None
        return self._now.child.wait(_STOP_SECONDS)

    def _read(self) -> Report | None:
        assert self._now is not None
        report = self._now.next_report()
        if report is not None:
            with self._changed:
                self.reports.append(report)
                self._changed.notify_all()
        return report

    def _read_until(self, kind: str, **facts: object) -> None:
        wanted = {"kind": kind, **facts}
        while (report := self._read()) is not None:
            if wanted.items() <= report.items():
                return
            if report["kind"] == "barrier":
                raise ServiceFailed(f"{self.name}: {report} while waiting for {wanted}")
        raise ServiceFailed(self._explain(f"ended while {wanted} was expected"))

    def _disarm(self, armed: Armed) -> None:
        remaining = tuple(item for item in self.settings.armed if item != armed)
        self.settings = replace(self.settings, armed=remaining)

    def _explain(self, what: str) -> str:
        log = self.log.read_text(errors="replace")[-2000:] if self.log.exists() else ""
        return f"{self.name}: {what}\n{log}"
