"""Writes a break off: rows of its items, the alert's resolve and the audit line, all or nothing.

The rows belong to the newest judged cut, as a further step after its run: the next cut carries what they say, and
reading that cut again sees none of them. So no cut may be open meanwhile; its run may have read the items already.

A break that was repaired waits until the sides that this changes are read as far as they had been written at a cut's
sample after it: that run clears it, or a later one that reads what an open transaction, a lagging replica or the
ledger's horizon held up. A cut that people closed has read nothing. The same holds for a break of whose event another
contract has repaired the topic, and where nobody knows whether that one has, once its own break is over: nobody may
reopen it then.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, Text, cast, func, insert, or_, select
from sqlalchemy.dialects.postgresql import JSONPATH

from tallystick.alerting.policy import alerts_of_write_off
from tallystick.compensation.effect_words import effect_hashes
from tallystick.compensation.plan import PlanItem, RepairKind, action_id_of, source_of_break
from tallystick.compensation.write_off import (
    BreakWrittenOff,
    RepairBegun,
    WriteOffRefused,
    items_written_off,
    refuse_while_repaired,
)
from tallystick.contract.contract import Contract
from tallystick.host.terminal_user import Terminal, at_terminal
from tallystick.model.break_history import LifeStep
from tallystick.model.cut import Cut
from tallystick.model.findings import Break
from tallystick.model.open_item import OpenItem, WriteOff
from tallystick.store.alerts.alert_store import firing_seen_by, insert_alerts
from tallystick.store.break_lock import hold_breaks
from tallystick.store.breaks.break_store import find_break, life_of_break
from tallystick.store.breaks.sides_read_store import sides_read_up_to
from tallystick.store.plans.claim_store import outstanding_among
from tallystick.store.plans.plan_life_store import RUNS_ENDED, VERIFIED
from tallystick.store.plans.plan_store import HOLDING, ActionState
from tallystick.store.runs.contract_store import read_contract
from tallystick.store.runs.cut_store import CutNotFound, no_run_under_way
from tallystick.store.runs.open_item_store import item_columns
from tallystick.store.runs.outstanding_store import outstanding_seen_by
from tallystick.store.schema import audit, compensation_action, compensation_plan, open_item, verdict


def write_off_break(
    engine: Engine, contract_name: str, break_name: str, write_off: WriteOff, *, terminal: Terminal | None = None
) -> BreakWrittenOff:
    """Write the break off whose id is, or uniquely begins with, these digits.

    Raises BreakNotFound, BreakAmbiguous, WriteOffRefused, CutAlreadyOpen.
    """
    told = find_break(engine, break_name)
    found = told.item_break
    if told.contract != contract_name:
        raise WriteOffRefused(
            f"break {found.break_id}: it is one of contract {told.contract}; expected one of {contract_name}; "
            f"look at it first: tallystick explain {break_name}"
        )
    with engine.begin() as connection, no_run_under_way(connection, contract_name) as cut:
        contract = read_contract(engine, contract_name, cut.n)
        if contract is None:
            raise CutNotFound(f"{contract_name}: the contract of cut {cut.n} is not stored")
        hold_breaks(connection, contract_name)
        life = life_of_break(connection, contract_name, found.break_id)
        items = items_written_off(found, life)
        repairs = _repairs_begun(connection, contract_name, found.break_id, done_to_the_topic(contract, found, cut))
        for repair in repairs:
            sides = repair.sides_changed(cut, contract.legs.get(found.leg, ""))
            refuse_while_repaired(found.break_id, repair, seen_up_to_utc=sides_read_up_to(engine, contract_name, sides))
        steps = [_next_step(life, item, cut.n) for item in items]
        rows = [_row(contract_name, cut.n, item, n, write_off) for item, n in zip(items, steps, strict=True)]
        connection.execute(insert(open_item), rows)
        outstanding = outstanding_seen_by(connection, contract_name)
        alerts = alerts_of_write_off(
            contract,
            found.break_class,
            write_off,
            cut=cut,
            firing=firing_seen_by(connection, contract_name),
            outstanding=outstanding,
        )
        insert_alerts(connection, alerts)
        audited = _audit_row(contract_name, cut.n, found.break_id, items, write_off)
        audited["detail"] |= at_terminal(terminal)
        connection.execute(insert(audit), audited)
    left = outstanding.get(found.break_class)
    return BreakWrittenOff(
        item_break=found,
        contract=contract_name,
        cut_n=cut.n,
        items=items,
        write_off=write_off,
        outstanding=left.count if left else 0,
        alert_resolved=bool(alerts),
    )


def done_to_the_topic(contract: Contract, found: Break, cut: Cut) -> tuple[str, ...]:
    """Return the words that the store has for what another contract would do there about the same event. None where the
    ledger is the side to be repaired: which database that is, no cut says.
    """
    topic = contract.legs.get(found.leg, "")
    ids = {one.offsets.topic: one.snapshot.topic_id for one in cut.topic_slices}
    item = PlanItem(
        kind=RepairKind.TRIGGER,
        action_id=action_id_of(contract.name, found.break_id),
        break_id=found.break_id,
        break_class=found.break_class,
        topic=topic,
        **vars(source_of_break(found)),
    )
    return effect_hashes(item, topic_id=ids.get(topic, topic), ledger="")


def _repairs_begun(
    connection: Connection, contract_name: str, break_id: UUID, effects: Collection[str]
) -> list[RepairBegun]:
    """Return those of the break, and those of other contracts that have one of these effects."""
    c = compensation_action.c
    own = func.jsonb_build_object("id", cast(c.action_id, Text))
    kind = func.jsonb_path_query_first(
        compensation_plan.c.body, cast("$.items[*] ? (@.action_id == $id).kind", JSONPATH), own
    )
    seen_ended = (
        select(func.min(audit.c.recorded_at))
        .where(
            audit.c.plan_id == c.plan_id,
            audit.c.event == VERIFIED,
            audit.c.recorded_at >= c.recorded_at,
            audit.c.detail[RUNS_ENDED].has_key(cast(c.action_id, Text)),
        )
        .correlate(compensation_action)
        .scalar_subquery()
    )
    begun = (
        select(
            c.action_id,
            c.plan_id,
            compensation_plan.c.plan_hash,
            compensation_plan.c.contract,
            c.break_id,
            c.state,
            c.recorded_at,
            kind.label("kind"),
            seen_ended.label("seen_ended"),
        )
        .join(compensation_plan, compensation_plan.c.plan_id == c.plan_id)
        .where(or_(c.break_id == break_id, c.effect.in_(effects)), c.state.in_(HOLDING))
    )
    found = []
    for row in connection.execute(begun):
        ours = row.break_id == break_id
        if not ours and row.contract == contract_name:
            continue
        done = row.state == ActionState.DONE
        handed_over = done and row.kind == RepairKind.TRIGGER
        done_at_utc = row.recorded_at if done else None
        unknown = row.state == ActionState.WAITING or (handed_over and row.seen_ended is None)
        found.append(
            RepairBegun(
                action_id=row.action_id,
                plan_id=row.plan_id,
                plan_hash=row.plan_hash,
                done_at_utc=row.seen_ended if handed_over else done_at_utc,
                contract="" if ours else row.contract,
                waits=row.state == ActionState.WAITING,
                handed_over=handed_over,
                kind=RepairKind(row.kind or RepairKind.TRIGGER),
                over_at_utc=None
                if ours or not unknown
                else _over_at(connection, row.contract, row.break_id, row.recorded_at),
            )
        )
    return found


def _over_at(connection: Connection, contract_name: str, break_id: UUID, begun_at: datetime) -> datetime | None:
    """Return by when the break of an action was over; None: it is outstanding. Of items that are pruned, which were
    closed long before, it is when the action was begun.
    """
    if outstanding_among(connection.engine, contract_name, [break_id]):
        return None
    i = open_item.c
    items = select(i.item_id).where(i.contract == contract_name, i.break_id == break_id)
    told = (
        select(func.max(verdict.c.recorded_at))
        .join(open_item, (i.contract == verdict.c.contract) & (i.cut_n == verdict.c.cut_n))
        .where(i.contract == contract_name, i.item_id.in_(items))
    )
    over_at: datetime | None = connection.scalar(told)
    return over_at or begun_at


def _next_step(life: Sequence[LifeStep], item: OpenItem, cut_n: int) -> int:
    """Persons' steps are counted from 1, also where the run of this cut wrote no row of the item."""
    return 1 + sum(
        step.written_off is not None for step in life if (step.item.item_id, step.cut_n) == (item.item_id, cut_n)
    )


def _row(contract_name: str, cut_n: int, item: OpenItem, step: int, write_off: WriteOff) -> dict[str, Any]:
    return item_columns(item) | {
        "contract": contract_name,
        "cut_n": cut_n,
        "step": step,
        "written_off_by": write_off.by,
        "written_off_because": write_off.reason,
        "written_off_at": write_off.at_utc,
    }


def _audit_row(
    contract_name: str, cut_n: int, break_id: UUID, items: tuple[OpenItem, ...], write_off: WriteOff
) -> dict[str, Any]:
    return {
        "contract": contract_name,
        "plan_id": None,
        "actor": write_off.by,
        "event": "written_off",
        "detail": {
            "break_id": str(break_id),
            "after_cut": cut_n,
            "item_ids": [item.item_id for item in items],
            "reason": write_off.reason,
        },
    }
