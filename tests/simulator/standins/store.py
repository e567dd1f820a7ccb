"""The verdict store in memory: the tables as Python values, one object for all contracts, passed where an Engine goes.

Each write is all or nothing, and keeps the constraints of the real schema that a rule may run into. Before a write the
process may be killed, and after it: then the answer is lost and what was written stands.
"""

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from tallystick.alerting.alert import Alert
from tallystick.compensation.kill_switch import SwitchSetting
from tallystick.compensation.plan import Plan
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.state import CursorPosition
from tallystick.model.cut import Cut, Sample
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import Break
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import OpenItem
from tallystick.model.run_result import RunResult
from tallystick.model.stored_run import StoredRun
from tallystick.store.plans.plan_store import AuditEntry, StoredAction
from tests.simulator.world.clock import Clock
from tests.simulator.world.interleaving import Interleaving


class ConstraintViolated(RuntimeError):
    """The real store would refuse this row. No rule of the product expects that."""


@dataclass
class CutRow:
    """A stored cut, with what changes about it."""

    cut: Cut
    contract: Contract
    scheduler_run_id: str
    attempt: int = 0
    open: bool = True
    cursors: dict[TopicPartition | None, CursorPosition | None] = field(default_factory=dict)
    """Where it ended, on the sides of which somebody has asked."""


@dataclass
class VerdictRow:
    """A committed run."""

    result: RunResult
    attempt: int
    recorded_at: datetime
    doubts: frozenset[Doubt] = field(init=False)
    run: StoredRun | None = None
    """All of it, once somebody has read it."""

    def __post_init__(self) -> None:
        self.doubts = frozenset(found.doubt for found in self.result.doubts)


@dataclass
class Chapter:
    """One row of an item. step 0: of the run of cut_n; from 1 on: of a person."""

    cut_n: int
    step: int
    item: OpenItem


@dataclass
class Books:
    """All that one contract has."""

    cuts: list[CutRow] = field(default_factory=list)
    verdicts: dict[int, VerdictRow] = field(default_factory=dict)
    items: dict[str, list[Chapter]] = field(default_factory=dict)
    samples: dict[datetime, Sample] = field(default_factory=dict)
    ids_in_order: list[str] = field(default_factory=list)
    """Of the items."""
    known: dict[int | None, tuple[OpenItem, ...]] = field(default_factory=dict)
    """Answers since the last item was stored."""

    def chapters_of(self, item_id: str) -> list[Chapter]:
        """Of an item, which may be new."""
        if item_id not in self.items:
            self.items[item_id] = []
            insort(self.ids_in_order, item_id)
        return self.items[item_id]

    def newest_before(self, n: int) -> tuple[OpenItem, ...]:
        """Each item as the cuts before n left it, by id."""
        if n not in self.known:
            every = (self.items[item_id] for item_id in self.ids_in_order)
            newest = (next((one for one in reversed(some) if one.cut_n < n), None) for some in every)
            self.known[n] = tuple(one.item for one in newest if one is not None)
        return self.known[n]

    def newest(self) -> tuple[OpenItem, ...]:
        """Each item as it stands, by id."""
        if None not in self.known:
            self.known[None] = tuple(self.items[item_id][-1].item for item_id in self.ids_in_order)
        return self.known[None]


@dataclass
class ActionRow:
    """An action of a plan; effect: what it does to a side. source: the same, by which row or event."""

    stored: StoredAction
    effect: str | None
    source: str | None


class Writing:
    """The time of one transaction. No generator: several of a window's would take longer than what they do."""

    __slots__ = ("_point", "_what")

    def __init__(self, point: Interleaving, what: str) -> None:
        self._point, self._what = point, what

    def __enter__(self) -> None:
        self._point.reached(f"store.{self._what}")

    def __exit__(self, raised: type[BaseException] | None, *others: object) -> None:
        if raised is None:
            self._point.reached(f"store.{self._what} answered")


@dataclass
class Store:
    """Everything. What is stored is never changed in place, so that a copy of a list is a snapshot."""

    clock: Clock
    point: Interleaving
    books: dict[str, Books] = field(default_factory=dict)
    breaks: dict[UUID, tuple[str, int, Break]] = field(default_factory=dict)
    """By id: contract, cut, break."""
    alerts: list[Alert] = field(default_factory=list)
    """All that were ever told of, by outbox id from 1 on."""
    newest_alerts: dict[str, dict[str, Alert]] = field(default_factory=dict)
    """By contract and name."""
    owed: dict[str, list[Alert]] = field(default_factory=dict)
    """By contract: those that some sink may not have taken, oldest first."""
    taken: dict[tuple[str, str], int] = field(default_factory=dict)
    """By key of the incident and sink: the newest outbox id that it took."""
    alerts_of_runs: set[tuple[str, int, str, str]] = field(default_factory=set)
    plans: dict[UUID, tuple[Plan, str]] = field(default_factory=dict)
    """By id: the plan, and who asked for it."""
    contracts: dict[tuple[str, str], Contract] = field(default_factory=dict)
    """By name and fingerprint: those that a plan was begun under, and no cut was made."""
    actions: dict[UUID, ActionRow] = field(default_factory=dict)
    audit: list[AuditEntry] = field(default_factory=list)
    switches: list[SwitchSetting] = field(default_factory=list)
    indexes: dict[str, Any] = field(default_factory=dict)
    """Index folders, by path."""

    def closed_unread(self) -> int:
        """So many cuts were closed by a person."""
        verdicts = [row for books in self.books.values() for row in books.verdicts.values()]
        return sum(Doubt.CUT_CLOSED in row.doubts for row in verdicts)

    def of(self, contract_name: str) -> Books:
        books = self.books.get(contract_name)
        if books is None:
            books = self.books[contract_name] = Books()
        return books

    def writing(self, what: str) -> "Writing":
        """One transaction: nothing of it stands where the process is killed before it, all of it where it is after."""
        return Writing(self.point, what)

    def cut_row(self, contract_name: str, n: int) -> CutRow | None:
        rows = self.of(contract_name).cuts
        return rows[n] if 0 <= n < len(rows) else None

    def insert_alerts(self, alerts: Sequence[Alert]) -> None:
        for alert in alerts:
            if alert.cut_n is not None:
                name = (alert.contract, alert.cut_n, alert.dedup_key, str(alert.action))
                if name in self.alerts_of_runs:
                    raise ConstraintViolated(f"alert_once_a_run: {name}")
                self.alerts_of_runs.add(name)
            newest, now = self.newest_alerts.setdefault(alert.contract, {}), self.clock.now
            before = newest.get(alert.name)
            began = before.began_utc if before is not None and before.action != "resolve" else now
            kept = replace(alert, outbox_id=len(self.alerts) + 1, at_utc=now, began_utc=began)
            self.alerts.append(kept)
            newest[alert.name] = kept
            self.owed.setdefault(alert.contract, []).append(kept)

    def still_owed(self, contract_name: str) -> list[tuple[Alert, tuple[str, ...]]]:
        """Alerts with the sinks that have taken neither them nor a later one of their key."""
        found = []
        for alert in self.owed.get(contract_name, ()):
            key, number = alert.dedup_key, alert.outbox_id or 0
            sinks = tuple(sink for sink in alert.sinks if self.taken.get((key, sink), 0) < number)
            if sinks:
                found.append((alert, sinks))
        self.owed[contract_name] = [alert for alert, _ in found]
        return found

    def insert_items(self, contract_name: str, cut_n: int, step: int, items: Sequence[OpenItem]) -> None:
        books = self.of(contract_name)
        books.known.clear()
        for item in items:
            chapters = books.chapters_of(item.item_id)
            if any((one.cut_n, one.step) == (cut_n, step) for one in chapters):
                raise ConstraintViolated(f"open_item_pk: {contract_name} {item.item_id} {cut_n} {step}")
            if item.state == "broken" and item.break_id is None:
                raise ConstraintViolated(f"broken_by: {item.item_id}")
            if item.break_id is not None and item.break_id not in self.breaks:
                raise ConstraintViolated(f"no such break: {item.break_id} of {item.item_id}")
            chapters.append(Chapter(cut_n, step, item))

    def append_audit(self, contract_name: str, plan_id: UUID | None, actor: str, event: str, detail: Any) -> None:
        self.audit.append(
            AuditEntry(
                contract=contract_name,
                plan_id=plan_id,
                actor=actor,
                event=event,
                detail=dict(detail),
                recorded_at=self.clock.now,
            )
        )
