"""The verdict store in memory: the tables as Python values, one object for all contracts, passed where an Engine goes.

Each write is all or nothing, and keeps the constraints of the real schema that a rule may run into. Before a write the
process may be killed, and after it: then the answer is lost and what was written stands.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from tallystick.alerting.alert import Alert
from tallystick.compensation.kill_switch import SwitchSetting
from tallystick.compensation.plan import Plan
from tallystick.contract.contract import Contract
from tallystick.model.cut import Cut, Sample
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import Break
from tallystick.model.open_item import OpenItem
from tallystick.model.run_result import RunResult
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


@dataclass
class VerdictRow:
    """A committed run."""

    result: RunResult
    attempt: int
    recorded_at: datetime


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

    def newest_before(self, n: int) -> Iterator[OpenItem]:
        """Each item as the cuts before n left it, by id."""
        for item_id in sorted(self.items):
            known = [one for one in self.items[item_id] if one.cut_n < n]
            if known:
                yield known[-1].item

    def newest(self) -> Iterator[OpenItem]:
        """Each item as it stands, by id."""
        for item_id in sorted(self.items):
            yield self.items[item_id][-1].item


@dataclass
class StoredAlert:
    """A row of the outbox. taken: by which sinks."""

    alert: Alert
    taken: set[str] = field(default_factory=set)


@dataclass
class ActionRow:
    """An action of a plan; effect: what it does to a side."""

    stored: StoredAction
    effect: str | None


@dataclass
class Store:
    """Everything. What is stored is never changed in place, so that a copy of a list is a snapshot."""

    clock: Clock
    point: Interleaving
    books: dict[str, Books] = field(default_factory=dict)
    breaks: dict[UUID, tuple[str, int, Break]] = field(default_factory=dict)
    """By id: contract, cut, break."""
    alerts: list[StoredAlert] = field(default_factory=list)
    plans: dict[UUID, tuple[Plan, str]] = field(default_factory=dict)
    """By id: the plan, and who asked for it."""
    actions: dict[UUID, ActionRow] = field(default_factory=dict)
    audit: list[AuditEntry] = field(default_factory=list)
    switches: list[SwitchSetting] = field(default_factory=list)
    indexes: dict[str, Any] = field(default_factory=dict)
    """Index folders, by path."""

    def closed_unread(self) -> int:
        """So many cuts were closed by a person."""
        results = [row.result for books in self.books.values() for row in books.verdicts.values()]
        return sum(one.doubt is Doubt.CUT_CLOSED for result in results for one in result.doubts)

    def of(self, contract_name: str) -> Books:
        return self.books.setdefault(contract_name, Books())

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """One transaction: nothing of it stands where the process is killed before it, all of it where it is after."""
        self.point.reached(f"store.{what}")
        yield
        self.point.reached(f"store.{what} answered")

    def cut_row(self, contract_name: str, n: int) -> CutRow | None:
        rows = self.of(contract_name).cuts
        return rows[n] if 0 <= n < len(rows) else None

    def insert_alerts(self, alerts: Sequence[Alert]) -> None:
        told = {(one.alert.contract, one.alert.cut_n, one.alert.dedup_key, one.alert.action) for one in self.alerts}
        for alert in alerts:
            name = (alert.contract, alert.cut_n, alert.dedup_key, alert.action)
            if alert.cut_n is not None and name in told:
                raise ConstraintViolated(f"alert_once_a_run: {name}")
            told.add(name)
            number, now = len(self.alerts) + 1, self.clock.now
            began = self._began(alert) or now
            self.alerts.append(StoredAlert(replace(alert, outbox_id=number, at_utc=now, began_utc=began)))

    def _began(self, alert: Alert) -> datetime | None:
        same = [one.alert for one in self.alerts if one.alert.dedup_key == alert.dedup_key]
        return same[-1].began_utc if same and same[-1].action != "resolve" else None

    def insert_items(self, contract_name: str, cut_n: int, step: int, items: Sequence[OpenItem]) -> None:
        of_contract = self.of(contract_name).items
        for item in items:
            chapters = of_contract.setdefault(item.item_id, [])
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
