"""The wire between a service and the lab: settings, barriers, syncs. One JSON object a line, on stdin and stdout.

A service that reaches an armed barrier says so and waits; the lab may then kill it, stop it, or let it go. So every
fault hits the same step of the same payment in every run. This is the service's end; `lab.services.service_slot` is
the lab's.
"""

import json
import queue
import sys
import threading
import uuid
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from lab.services.delivery_mode import DeliveryMode
from lab.services.namespace import Namespace

FENCED_EXIT = 3  # the exit status of a zombie that found its successor in charge
STUCK_EXIT = 4  # the client hangs in a call; a successor goes on


class Barrier(StrEnum):
    """A named step of a service. What comes before it is done and acknowledged."""

    BEFORE_OUTPUT = "before_output"  # progress is saved where the mode saves it first; nothing is written
    AFTER_FIRST_LEG = "after_first_leg"  # the broker has the payment leg, and no invoice leg yet
    AFTER_OUTPUT = "after_output"  # the output is written; progress not yet saved where the mode saves it last
    BEFORE_LEDGER_COMMIT = "before_ledger_commit"  # the rows are inserted in a database transaction still open
    AFTER_PROGRESS = "after_progress"  # all is done for this item


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """What a service is told at its start; passed over stdin, since the dsn carries a password."""

    name: str  # such as billing-0
    index: int  # the partition it serves
    mode: DeliveryMode
    namespace: str
    bootstrap_servers: str
    output_bootstrap_servers: str
    ledger_dsn: str = field(repr=False)  # carries a password
    armed: tuple[tuple[str, str], ...] = ()  # (barrier, subject): where to stop and ask
    abort_first: tuple[str, ...] = ()  # payment ids whose first producer transaction is aborted and redone
    savepoints: tuple[str, ...] = ()  # event ids posted under a savepoint, after one that is rolled back
    work: tuple[tuple[dict[str, Any], ...], ...] = ()  # for the writers: what to write, batch by batch

    @property
    def names(self) -> Namespace:
        return Namespace(self.namespace)

    @property
    def client_id(self) -> str:
        """Name this service to the broker; the proxy and the transactional id know it by this name too."""
        return self.names.group(self.name)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "ServiceSettings":
        fields: dict[str, Any] = json.loads(text)
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        lists["armed"] = tuple((barrier, subject) for barrier, subject in fields["armed"])
        return cls(**{**fields, **lists, "mode": DeliveryMode(fields["mode"])})


@dataclass
class Control:
    """The service's end of the wire."""

    settings: ServiceSettings
    session: str = field(default_factory=lambda: str(uuid.uuid4()))  # one per process; a header on all it writes
    _commands: "queue.SimpleQueue[dict[str, Any]]" = field(default_factory=queue.SimpleQueue)
    _pending: list[dict[str, Any]] = field(default_factory=list)
    _reported: set[tuple[str, str]] = field(default_factory=set)
    _stopping: bool = False

    @classmethod
    def open(cls) -> "Control":
        """Read the settings and begin to listen."""
        control = cls(ServiceSettings.from_json(sys.stdin.readline()))
        threading.Thread(target=control._listen, daemon=True).start()
        return control

    def report(self, kind: str, **facts: object) -> None:
        """Tell the lab one thing."""
        sys.stdout.write(json.dumps({"kind": kind, **facts}) + "\n")
        sys.stdout.flush()

    def barrier(self, barrier: Barrier, subject: object) -> None:
        """Pass, or, where this barrier is armed for this subject, report it once and wait to be let go, or to stop.

        Told to stop, the service finishes the item it is at, and takes no other.
        """
        here = (str(barrier), str(subject))
        if here not in self.settings.armed or here in self._reported:
            return
        self._reported.add(here)
        self.report("barrier", barrier=barrier, subject=str(subject))
        while (command := self._commands.get())["do"] not in ("go", "stop"):
            self._pending.append(command)
        self._stopping = self._stopping or command["do"] == "stop"

    @property
    def stopping(self) -> bool:
        """Tell whether the lab asked for the end. Never waits."""
        self._collect()
        return self._stopping

    def take(self, kind: str) -> list[dict[str, Any]]:
        """Take the commands of one kind that have come since. Never waits."""
        self._collect()
        taken = [command for command in self._pending if command["do"] == kind]
        self._pending = [command for command in self._pending if command["do"] != kind]
        return taken

    def wait_for_command(self, timeout_seconds: float | None = None) -> None:
        """Wait until the lab says something, or the time is over."""
        if self._pending or self._stopping:
            return
        try:
            self._store(self._commands.get(timeout=timeout_seconds))
        except queue.Empty:
            return

    def _collect(self) -> None:
        while not self._commands.empty():
            self._store(self._commands.get())

    def _store(self, command: dict[str, Any]) -> None:
        if command["do"] == "stop":
            self._stopping = True
        else:
            self._pending.append(command)

    def _listen(self) -> None:
        for line in sys.stdin:
            self._commands.put(json.loads(line))
        self._commands.put({"do": "stop"})  # the lab is gone
