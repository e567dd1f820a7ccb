"""The store's functions about plans, actions, approvals, switch and write-offs, on the store in memory.

One file, since a claim, its outcome and its write-off look at the same rows of actions.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from tallystick.alerting.policy import alerts_of_write_off
from tallystick.compensation.approval_rules import YesVoided, machine_of
from tallystick.compensation.effect_words import Effect, effect_of
from tallystick.compensation.kill_switch import SwitchSetting
from tallystick.compensation.plan import DailyUsage, Plan, PlanItem, PlanStale, RepairKind
from tallystick.compensation.progress_record import ExecutorKey
from tallystick.compensation.write_off import (
    BreakWrittenOff,
    RepairBegun,
    WriteOffRefused,
    items_written_off,
    refuse_while_repaired,
)
from tallystick.host.terminal_user import Terminal
from tallystick.model.break_history import ExecutedRepair, KnownRepair, LifeStep
from tallystick.model.cut import JudgedPart
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import total_money
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemState, WriteOff
from tallystick.store.breaks.write_off_store import done_to_the_topic
from tallystick.store.plans.approval_store import AGREED, ANSWERED_AT, REJECTED
from tallystick.store.plans.claim_store import (
    NOT_OUTSTANDING,
    STARTING,
    Claims,
)
from tallystick.store.plans.plan_life_store import RUNS_ENDED, VERIFIED
from tallystick.store.plans.plan_store import (
    ASKED,
    HOLDING,
    PROGRESS_FROM,
    PROGRESS_TOPIC_ID,
    PUBLISHING,
    REOPENED,
    ActionState,
    AuditEntry,
    StoredAction,
)
from tallystick.store.plans.same_effect_store import (
    OtherAction,
    actions_by_effect,
    done_elsewhere,
    taken_back_beside,
)
from tests.simulator.standins.alert_functions import firing_alerts
from tests.simulator.standins.run_functions import (
    contract_begun_under,
    one_run_at_rest,
    outstanding_classes,
    read_contract,
    sides_read_up_to,
)
from tests.simulator.standins.store import ActionRow, Store


def save_plan(
    engine: Store, plan: Plan, *, requested_by: str, scheduler_run_id: str = "", terminal: Terminal | None = None
) -> None:
    with engine.writing("save_plan"):
        engine.plans.setdefault(plan.plan_id, (plan, requested_by))
        asked: dict[str, Any] = {"plan_hash": plan.plan_hash, "cut_n": plan.cut_n, "items": len(plan.actions)}
        if scheduler_run_id:
            asked["scheduler_run_id"] = scheduler_run_id
        engine.append_audit(plan.contract, plan.plan_id, requested_by, ASKED, asked)


def read_plan(engine: Store, plan_id: UUID) -> Plan | None:
    stored = engine.plans.get(plan_id)
    return stored[0] if stored else None


def open_actions(engine: Store, contract_name: str) -> dict[UUID, StoredAction]:
    return {
        one: row.stored
        for one, row in engine.actions.items()
        if row.stored.state in HOLDING and engine.plans[row.stored.plan_id][0].contract == contract_name
    }


def executed_actions(engine: Store, contract_name: str) -> dict[UUID, ExecutedRepair]:
    found = {}
    for action_id, row in engine.actions.items():
        if row.stored.state is not ActionState.DONE or row.stored.break_id is None:
            continue
        name = str(action_id)
        told = [line for line in engine.audit if line.detail.get("action_id") == name]
        reopened = max((n for n, line in enumerate(told) if line.event == "reopened"), default=-1)
        since = [
            line.recorded_at
            for line in told[reopened + 1 :]
            if line.contract == contract_name and line.event in ("published", "already_published")
        ]
        if since:
            plan, _ = engine.plans[row.stored.plan_id]
            found[row.stored.break_id] = ExecutedRepair(action_id, plan.cut_n, min(since))
    return found


def known_repairs(engine: Store, action_ids: Collection[str]) -> tuple[KnownRepair, ...]:
    found = []
    for action_id, row in engine.actions.items() if action_ids else ():
        if str(action_id) not in action_ids or row.stored.state not in HOLDING:
            continue
        plan, _ = engine.plans[row.stored.plan_id]
        for item in plan.items:
            if item.action_id == action_id:
                reverses = item.kind is RepairKind.REVERSE
                found.append(
                    KnownRepair(
                        action_id=str(action_id),
                        kind=item.kind,
                        match_key=item.match_key,
                        topic=item.topic,
                        reverses=item.reverses,
                        amounts_minor=_amounts_taking_back(engine, plan, item) if reverses else None,
                    )
                )
    return tuple(found)


def _amounts_taking_back(engine: Store, plan: Plan, item: PlanItem) -> tuple[int, ...]:
    rows = engine.of(plan.contract).cuts
    then = contract_begun_under(engine, plan.contract, plan.contract_fingerprint, cut_n=plan.cut_n)
    contracts = (then, rows[-1].contract if rows else None)
    rules = [contract.compensation for contract in contracts if contract and contract.compensation]
    signs = {-1 if one.reversal == "negated" else 1 for one in rules if then} or {-1, 1}
    return tuple(sorted(sign * item.amount_minor for sign in signs))


def spent_today(engine: Store, contract_name: str, *, but: Collection[UUID] = ()) -> DailyUsage:
    midnight = engine.clock.now.replace(hour=0, minute=0, second=0, microsecond=0)
    actions = []
    for action_id, row in engine.actions.items():
        plan, _ = engine.plans[row.stored.plan_id]
        counts = row.stored.state in HOLDING and row.stored.recorded_at >= midnight
        if plan.contract == contract_name and counts and action_id not in but:
            actions += [one for one in plan.actions if one.action_id == action_id]
    moved = total_money(pair for one in actions for pair in one.moved_minor.items())
    return DailyUsage(items=len(actions), moved_minor=moved)


def published_behind(engine: Store, plan_ids: Collection[UUID]) -> dict[UUID, Mapping[str, Any]]:
    lines = [line for line in engine.audit if line.plan_id in plan_ids and line.event == PUBLISHING]
    return {UUID(one): line.detail["ends"] for line in lines for one in line.detail["actions"]}


@contextmanager
def ending_alone(engine: Store, contract_name: str) -> Iterator[None]:
    yield


def claim_actions(
    engine: Store,
    plan: Plan,
    actions: Sequence[Any],
    *,
    executor: str,
    outcome: Mapping[str, Any],
    allow: Callable[..., None],
    ledger: str = "",
    table: str = "",
    stopped: Mapping[UUID, str] | None = None,
) -> Claims:
    with engine.writing("claim_actions"):
        stopped = stopped or {}
        ids = [action.action_id for action in actions]
        stored = _stored(engine, ids)
        effects = _effects(engine, plan.contract, actions, ledger, table)
        same = _same_effect(engine, effects)
        held = {one for one, row in stored.items() if row.state is not ActionState.REFUSED}
        fresh = [action for action in actions if action.action_id not in held]
        unclaimed = _why_not(engine, plan.contract, fresh, same, stopped)
        begin = [action for action in fresh if action.action_id not in unclaimed]
        again = [
            one
            for one in actions
            if one.action_id in stored
            and stored[one.action_id].state is ActionState.EXECUTING
            and one.action_id not in stopped
        ]
        if begin or again:
            allow([*begin, *again], spent_today(engine, plan.contract, but={one.action_id for one in again}))
        for action in begin:
            _begin(engine, plan, action, effects, outcome)
        for one in ids:
            row = engine.actions.get(one)
            if row and row.stored.plan_id == plan.plan_id and row.stored.state is ActionState.EXECUTING:
                told = {**row.stored.outcome, "executor": executor}
                row.stored = replace(row.stored, outcome=told, recorded_at=engine.clock.now)
        claimed = _stored(engine, ids)
        for one in claimed.values():
            if one.plan_id != plan.plan_id and one.action_id not in {*unclaimed, *stopped}:
                raise PlanStale(f"{plan.contract}: action {one.action_id} belongs to plan {one.plan_id}")
        claims = Claims(
            actions=claimed,
            begun=frozenset(action.action_id for action in begin),
            unclaimed={**stopped, **unclaimed},
            taken_back=taken_back_beside(same),
        )
    return claims


def _stored(engine: Store, action_ids: Sequence[UUID]) -> dict[UUID, StoredAction]:
    return {one: engine.actions[one].stored for one in action_ids if one in engine.actions}


def _why_not(
    engine: Store,
    contract_name: str,
    actions: Sequence[Any],
    same: Mapping[UUID, Sequence[OtherAction]],
    stopped: Mapping[UUID, str],
) -> dict[UUID, str]:
    items = [action for action in actions if isinstance(action, PlanItem)]
    outstanding = outstanding_among(engine, contract_name, [item.break_id for item in items])
    elsewhere = done_elsewhere(contract_name, items, same)
    gone = {item.action_id: NOT_OUTSTANDING for item in items if item.break_id not in outstanding}
    told = {one.action_id: stopped[one.action_id] for one in actions if one.action_id in stopped}
    return {one: reason for one, reason in (elsewhere | gone | told).items() if reason}


def _effects(engine: Store, contract_name: str, actions: Sequence[Any], ledger: str, table: str) -> dict[UUID, Effect]:
    rows = engine.of(contract_name).cuts
    ids = {part.snapshot.topic: part.snapshot.topic_id for part in rows[-1].cut.topic_slices} if rows else {}
    return {
        action.action_id: effect_of(action, topic_id=ids.get(action.topic, action.topic), ledger=ledger, table=table)
        for action in actions
        if isinstance(action, PlanItem)
    }


def _same_effect(engine: Store, effects: Mapping[UUID, Effect]) -> dict[UUID, tuple[OtherAction, ...]]:
    by_effect = actions_by_effect(effects)
    found: dict[UUID, tuple[OtherAction, ...]] = {}
    for action_id, row in engine.actions.items():
        for ours in {one for said in (row.effect, row.source) if said for one in by_effect.get(said, ())}:
            if action_id == ours or row.stored.state not in HOLDING:
                continue
            plan, _ = engine.plans[row.stored.plan_id]
            item = next(one for one in plan.items if one.action_id == action_id)
            other = OtherAction(
                plan_id=row.stored.plan_id,
                contract=plan.contract,
                reverses=item.reverses,
                triggers=item.triggers,
                same_effect=row.effect in effects[ours].hashes,
                same_source=row.source is not None and row.source == effects[ours].source,
            )
            found[ours] = (*found.get(ours, ()), other)
    return found


def _begin(engine: Store, plan: Plan, action: Any, effects: Mapping[UUID, Effect], outcome: Mapping[str, Any]) -> None:
    before = engine.actions.get(action.action_id)
    void = before.stored.void_progress if before else None
    reopened = before.stored.reopened if before else 0
    if void is None and reopened and PROGRESS_FROM in outcome:
        void = {PROGRESS_TOPIC_ID: outcome[PROGRESS_TOPIC_ID], "before": outcome[PROGRESS_FROM]}
    engine.actions[action.action_id] = ActionRow(
        stored=StoredAction(
            action_id=action.action_id,
            break_id=action.break_id if isinstance(action, PlanItem) else None,
            plan_id=plan.plan_id,
            state=ActionState.EXECUTING,
            outcome=dict(outcome),
            recorded_at=engine.clock.now,
            reopened=reopened,
            void_progress=void,
        ),
        effect=effects[action.action_id].hashes[0] if action.action_id in effects else None,
        source=effects[action.action_id].source if action.action_id in effects else None,
    )


def outstanding_among(engine: Store, contract_name: str, break_ids: Collection[UUID]) -> frozenset[UUID]:
    engine.point.reached("store.outstanding_among")
    broken = (item.break_id for item in engine.of(contract_name).newest() if item.state is ItemState.BROKEN)
    return frozenset(one for one in broken if one is not None and one in set(break_ids))


def judged_parts(engine: Store, contract_name: str, *, planned_at: int) -> dict[TopicPartition, JudgedPart]:
    books = engine.of(contract_name)
    newest = max(books.verdicts)
    found = {}
    for part in books.cuts[newest].cut.topic_slices:
        name = part.offsets.topic_partition
        unread = [
            closed.offsets.kafka_offset_start
            for n, verdict in books.verdicts.items()
            if n > planned_at and any(one.doubt is Doubt.CUT_CLOSED for one in verdict.result.doubts)
            if (closed := books.cuts[n].cut.slice_of(name)) is not None and len(closed.offsets)
        ]
        end = min([part.offsets.kafka_offset_end, *unread])
        found[name] = JudgedPart(
            topic_id=part.snapshot.topic_id,
            leader_epoch=part.snapshot.leader_epoch,
            log_start=part.snapshot.log_start,
            kafka_offset_end=end,
        )
    return found


def held_among(engine: Store, action_ids: Collection[UUID], executor: str) -> frozenset[UUID]:
    return frozenset(
        one
        for one in action_ids
        if one in engine.actions
        and engine.actions[one].stored.state is ActionState.EXECUTING
        and engine.actions[one].stored.outcome.get("executor") == executor
    )


def note_starting(engine: Store, action_id: UUID, *, executor: str) -> bool:
    return _change(engine, action_id, executor, lambda row: replace(row, outcome={**row.outcome, STARTING: True}))


def record_done(
    engine: Store, action_id: UUID, *, outcome: Mapping[str, Any], by_us: bool = False, reopened: int = 0
) -> None:
    with engine.writing("record_done"):
        row = engine.actions.get(action_id)
        if row and row.stored.state is not ActionState.DONE and row.stored.reopened == reopened:
            at = engine.clock.now if by_us else row.stored.recorded_at
            row.stored = replace(row.stored, state=ActionState.DONE, outcome=dict(outcome), recorded_at=at)


def record_refusal(engine: Store, action_id: UUID, *, executor: str, outcome: Mapping[str, Any]) -> bool:
    with engine.writing("record_refusal"):
        return _change(
            engine,
            action_id,
            executor,
            lambda row: replace(row, state=ActionState.REFUSED, outcome=dict(outcome)),
        )


def record_waiting(engine: Store, action_id: UUID, *, executor: str, outcome: Mapping[str, Any]) -> bool:
    with engine.writing("record_waiting"):
        row = engine.actions.get(action_id)
        if row is not None and row.stored.state is ActionState.WAITING:
            row.stored = replace(row.stored, outcome=dict(outcome))
            return True
        return _change(
            engine,
            action_id,
            executor,
            lambda row: replace(row, state=ActionState.WAITING, outcome=dict(outcome)),
        )


def _change(engine: Store, action_id: UUID, executor: str, to: Callable[[StoredAction], StoredAction]) -> bool:
    """Of one that this start has claimed and nobody has ended."""
    row = engine.actions.get(action_id)
    if row is None or row.stored.state is not ActionState.EXECUTING or row.stored.outcome.get("executor") != executor:
        return False
    row.stored = to(row.stored)
    return True


def append_audit(
    engine: Store, contract_name: str, *, plan_id: UUID | None, actor: str, event: str, detail: Mapping[str, Any]
) -> None:
    with engine.writing("append_audit"):
        engine.append_audit(contract_name, plan_id, actor, event, detail)


def read_audit(engine: Store, contract_name: str, *, plan_id: UUID | None = None) -> tuple[AuditEntry, ...]:
    return tuple(
        line for line in engine.audit if line.contract == contract_name and (plan_id is None or line.plan_id == plan_id)
    )


def requesters(engine: Store, plan: Plan) -> frozenset[str]:
    asked = {line.actor for line in engine.audit if line.plan_id == plan.plan_id and line.event == ASKED}
    first = {engine.plans[plan.plan_id][1]} if plan.plan_id in engine.plans else set()
    return frozenset(asked | first) - {machine_of(plan.contract)}


def last_voided(engine: Store, plan: Plan) -> YesVoided | None:
    ids = {str(action.action_id) for action in plan.actions}
    found = [
        line
        for line in engine.audit
        if (line.plan_id == plan.plan_id and line.event == REJECTED)
        or (line.event == REOPENED and line.detail["action_id"] in ids)
    ]
    newest = max(found, key=lambda line: line.recorded_at, default=None)
    return newest and YesVoided(by=newest.actor, at_utc=newest.recorded_at, reopened=newest.event == REOPENED)


def agreements(
    engine: Store, plan_id: UUID, *, voided: YesVoided | None, scheduler_run_id: str = ""
) -> dict[str, timedelta]:
    lines = [line for line in engine.audit if line.plan_id == plan_id]
    ages: dict[str, timedelta] = {}
    for line in lines:
        in_run = not scheduler_run_id or line.detail.get("scheduler_run_id") == scheduler_run_id
        if line.event != AGREED or not in_run:
            continue
        at = min(line.recorded_at, datetime.fromisoformat(line.detail.get(ANSWERED_AT, line.recorded_at.isoformat())))
        if voided is None or at > voided.at_utc:
            ages[line.actor] = engine.clock.now - at
    return ages


def set_switch(engine: Store, setting: SwitchSetting) -> None:
    engine.switches.append(setting)


def read_switch(engine: Store, contract_name: str) -> tuple[SwitchSetting | None, SwitchSetting | None]:
    of_all = [one for one in engine.switches if one.contract is None]
    own = [one for one in engine.switches if one.contract == contract_name]
    return (of_all[-1] if of_all else None, own[-1] if own else None)


def read_executor_key(engine: Store) -> ExecutorKey:
    return ExecutorKey(b"0123456789abcdef0123456789abcdef")


def write_off_break(
    engine: Store, contract_name: str, break_name: str, write_off: WriteOff, *, terminal: Terminal | None = None
) -> BreakWrittenOff:
    break_id = UUID(break_name)
    of_contract, _, found = engine.breaks[break_id]
    if of_contract != contract_name:
        raise WriteOffRefused(f"break {break_id}: it is one of contract {of_contract}")
    with engine.writing("write_off_break"), one_run_at_rest(engine, contract_name) as cut:
        contract = read_contract(engine, contract_name, cut.n)
        assert contract is not None
        life = _life_of_break(engine, contract_name, break_id)
        items = items_written_off(found, life)
        effects = done_to_the_topic(contract, found, cut)
        begun = [
            _repair_begun(engine, row.stored, own=row.stored.break_id == break_id)
            for row in engine.actions.values()
            if row.stored.state in HOLDING
            and (
                row.stored.break_id == break_id
                or (row.effect in effects and engine.plans[row.stored.plan_id][0].contract != contract_name)
            )
        ]
        for repair in begun:
            sides = repair.sides_changed(cut, contract.legs.get(found.leg, ""))
            refuse_while_repaired(break_id, repair, seen_up_to_utc=sides_read_up_to(engine, contract_name, sides))
        for item in items:
            chapters = engine.of(contract_name).items[item.item_id]
            step = 1 + sum(one.step > 0 and one.cut_n == cut.n for one in chapters)
            engine.insert_items(contract_name, cut.n, step, [item])
        outstanding = outstanding_classes(engine, contract_name)
        alerts = alerts_of_write_off(
            contract,
            found.break_class,
            write_off,
            cut=cut,
            firing=firing_alerts(engine, contract_name),
            outstanding=outstanding,
        )
        engine.insert_alerts(alerts)
        engine.append_audit(contract_name, None, write_off.by, "written_off", {"break_id": str(break_id)})
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


def _repair_begun(engine: Store, stored: StoredAction, *, own: bool) -> RepairBegun:
    plan, _ = engine.plans[stored.plan_id]
    done = stored.state is ActionState.DONE
    kinds = [item.kind for item in plan.items if item.action_id == stored.action_id]
    handed_over = done and kinds == [RepairKind.TRIGGER]
    seen_ended = [
        line.recorded_at
        for line in engine.audit
        if (line.plan_id, line.event) == (stored.plan_id, VERIFIED)
        and line.recorded_at >= stored.recorded_at
        and str(stored.action_id) in line.detail.get(RUNS_ENDED, ())
    ]
    done_at_utc = stored.recorded_at if done else None
    waits = stored.state is ActionState.WAITING
    unknown = waits or (handed_over and not seen_ended)
    return RepairBegun(
        action_id=stored.action_id,
        plan_id=stored.plan_id,
        plan_hash=plan.plan_hash,
        contract="" if own else plan.contract,
        done_at_utc=min(seen_ended, default=None) if handed_over else done_at_utc,
        waits=waits,
        handed_over=handed_over,
        kind=kinds[0],
        over_at_utc=None if own or not unknown else _over_at(engine, plan.contract, stored),
    )


def _over_at(engine: Store, contract_name: str, stored: StoredAction) -> datetime | None:
    assert stored.break_id is not None
    if outstanding_among(engine, contract_name, [stored.break_id]):
        return None
    books = engine.of(contract_name)
    told = [rows for rows in books.items.values() if any(one.item.break_id == stored.break_id for one in rows)]
    return max(books.verdicts[one.cut_n].recorded_at for rows in told for one in rows)


def _life_of_break(engine: Store, contract_name: str, break_id: UUID) -> tuple[LifeStep, ...]:
    books = engine.of(contract_name)
    return tuple(
        LifeStep(
            cut_n=one.cut_n,
            judged_utc=books.cuts[one.cut_n].cut.now_utc,
            item=one.item,
            written_off=WriteOff(by="a person", reason="", at_utc=engine.clock.now) if one.step else None,
        )
        for item_id in sorted(books.items)
        if any(one.item.break_id == break_id for one in books.items[item_id])
        for one in books.items[item_id]
    )
