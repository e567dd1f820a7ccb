"""Writing off: what a person may give up, and what becomes of its items. Pure.

A written-off item is not outstanding any more. It stays as pairable as it was: a late partner still clears it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from tallystick.compensation.plan import INTO_LEDGER, RepairKind
from tallystick.model.break_history import LifeStep
from tallystick.model.cut import Cut
from tallystick.model.errors import TallystickError
from tallystick.model.findings import Break
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemState, OpenItem, WriteOff
from tallystick.text.plain import escape_untrusted, format_time, given_text

_LET_ONE_LOOK = (
    "let windows be judged until they have read all that had been written when one of them was marked, then look "
    "again: tallystick explain"
)


class WriteOffRefused(TallystickError):
    """This break cannot be written off so. The message says what was found, what was expected and what to do."""


@dataclass(frozen=True, kw_only=True)
class BreakWrittenOff:
    """The changes of a write-off. outstanding: breaks of its class that still are; cut_n: the newest cut it follows."""

    item_break: Break
    contract: str
    cut_n: int
    items: tuple[OpenItem, ...]
    write_off: WriteOff
    outstanding: int
    alert_resolved: bool


def write_off_of(*, by: str, reason: str, at_utc: datetime) -> WriteOff:
    """Refuse an empty name or reason: what nobody answers for is a break dropped. Raises WriteOffRefused."""
    return WriteOff(
        by=given_text("--by", by, expected="the name of who decided it", refused=WriteOffRefused),
        reason=given_text(
            "--reason", reason, expected="why the money is given up, for whoever audits it", refused=WriteOffRefused
        ),
        at_utc=at_utc,
    )


@dataclass(frozen=True, kw_only=True)
class RepairBegun:
    """The action that a plan has begun for the break. done_at_utc: None while it is not known whether it is done.

    contract: another one whose plan it is, which does to the topic what would repair the break; "" where it is the
    break's own. waits: until a person has looked whether it is. handed_over: it is a DAG's run; done is not that it was
    started, but that somebody has seen it ended, whatever came of it. over_at_utc: of another contract's, by when its
    own break was over there, so that nobody may reopen it any more; None: that break stands, or it was not asked.
    kind: what it does; of what a DAG does, nobody knows which side it changes.
    """

    action_id: UUID
    plan_id: UUID
    plan_hash: str
    done_at_utc: datetime | None
    contract: str = ""
    waits: bool = False
    handed_over: bool = False
    over_at_utc: datetime | None = None
    kind: RepairKind = RepairKind.TRIGGER

    @property
    def plan(self) -> str:
        return f"plan {self.plan_id}" + (f" of contract {self.contract}" if self.contract else "")

    def sides_changed(self, cut: Cut, topic: str) -> tuple[TopicPartition | None, ...]:
        """Return the sides of the cut on which what it does may stand; None is the ledger. topic: of the break's leg;
        where the cut does not have it, it may be any.
        """
        if self.kind in INTO_LEDGER:
            return (None,)
        parts = tuple(part.offsets.topic_partition for part in cut.topic_slices)
        on_topic = tuple(part for part in parts if part.topic == topic)
        return (*parts, None) if self.kind is RepairKind.TRIGGER or not on_topic else on_topic


def refuse_while_repaired(break_id: UUID, repair: RepairBegun, *, seen_up_to_utc: datetime) -> None:
    """Money that is given up must not be paid by a repair as well. seen_up_to_utc: by when all of what had come to the
    sides that it changes has been read.

    Raises WriteOffRefused while the repair is under way, and until a run has looked what one that is done came to.
    What another contract may have done about a break that is over counts as done by then.
    """
    if repair.over_at_utc is not None and repair.over_at_utc > seen_up_to_utc:
        raise WriteOffRefused(
            f"break {break_id}: {repair.plan} may have repaired it by {format_time(repair.over_at_utc)}, when its "
            "own break was over, and no cut made since has read all of what that changes; expected a run that has "
            f"looked; {_LET_ONE_LOOK}"
        )
    if repair.over_at_utc is not None:
        return
    if repair.waits:
        raise WriteOffRefused(
            f"break {break_id}: {repair.plan} may have repaired it, and a person has to look; expected "
            f"that somebody has; only if it was not: tallystick compensation reopen CONTRACT_FILE "
            f"{repair.action_id} --by NAME --reason TEXT; then write it off"
        )
    if repair.done_at_utc is None and repair.handed_over:
        raise WriteOffRefused(
            f"break {break_id}: {repair.plan} has handed it to a DAG, and nobody has seen its run "
            f"{repair.action_id} ended; expected one that is over; let it end, then tallystick compensation "
            f"execute CONTRACT_FILE {repair.plan_hash} --by NAME looks at it and starts nothing again; where "
            "Airflow has no such run any more, and it repaired nothing: tallystick compensation reopen "
            f"CONTRACT_FILE {repair.action_id} --by NAME --reason TEXT"
        )
    if repair.done_at_utc is None:
        raise WriteOffRefused(
            f"break {break_id}: {repair.plan} is repairing it; expected no repair under way; let its "
            f"compensation finish, or: tallystick compensation execute CONTRACT_FILE {repair.plan_hash} --by NAME, "
            "which records what it did, and refuses what the contract does not allow any more; then look again: "
            "tallystick explain"
        )
    if repair.done_at_utc > seen_up_to_utc:
        raise WriteOffRefused(
            f"break {break_id}: {repair.plan} repaired it at {format_time(repair.done_at_utc)}, and no cut "
            f"made since has read all of what that changes; expected a run that has looked; {_LET_ONE_LOOK}"
        )


def items_written_off(found: Break, life: Sequence[LifeStep]) -> tuple[OpenItem, ...]:
    """The break's broken items as they will be. life: every row of its items, each item's in order.

    Raises WriteOffRefused where none is broken.
    """
    newest = {step.item.item_id: step for step in life}
    mine = [step for step in newest.values() if step.item.break_id == found.break_id]
    broken = [step.item for step in mine if step.item.state is ItemState.BROKEN]
    if not broken:
        raise WriteOffRefused(f"break {found.break_id}: {_why_not(found, life, list(newest.values()), mine)}")
    return tuple(replace(item, state=ItemState.WRITTEN_OFF) for item in broken)


def _why_not(found: Break, life: Sequence[LifeStep], newest: Sequence[LifeStep], mine: Sequence[LifeStep]) -> str:
    if any(step.item.state is ItemState.WRITTEN_OFF for step in mine):
        for step in life:
            if step.written_off is not None and step.item.break_id == found.break_id:
                who, when = escape_untrusted(step.written_off.by), format_time(step.written_off.at_utc)
                return f"already written off, by {who} at {when}; expected one that is outstanding"
        return "already written off; expected one that is outstanding"
    for step in newest:
        if step.item.state is ItemState.BROKEN:
            return f"its item answers for break {step.item.break_id} now; write that one off"
    if not newest:
        return "it was told once and left no item open; expected one that is outstanding; there is nothing to write off"
    cleared = max(newest, key=lambda step: step.cut_n)
    return f"already cleared, by cut {cleared.cut_n}; expected one that is outstanding; there is nothing to write off"
