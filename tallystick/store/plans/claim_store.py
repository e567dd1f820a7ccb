"""The claims: which repairs may begin, asked of the store and marked there, under locks that verdicts and write-offs
take too.

An action begins only while its break is outstanding, and only where no other action has begun to do the same, in
whatever contract: two contracts over one topic give one break two ids.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, case, cast, func, select, tuple_, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert

from tallystick.compensation.abort_plan import AbortItem
from tallystick.compensation.effect_words import Effect, effect_of
from tallystick.compensation.plan import DailyUsage, Plan, PlanItem, PlanStale
from tallystick.model.cut import JudgedPart
from tallystick.model.finding_names import Doubt
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemState
from tallystick.store.break_lock import hold_breaks
from tallystick.store.plans.plan_store import (
    PROGRESS_FROM,
    PROGRESS_TOPIC_ID,
    ActionState,
    StoredAction,
    action_of,
    spent_by,
    taken_over,
)
from tallystick.store.plans.same_effect_store import OtherAction, done_elsewhere, same_effect, taken_back_beside
from tallystick.store.runs.cut_store import LEDGER
from tallystick.store.schema import compensation_action, cut_slice, open_item, verdict
from tallystick.store.statement_parts import in_parts

STARTING = "starting"
"""Key of the outcome of an action whose DAG has been asked for."""
NOT_OUTSTANDING = "its break is not outstanding any more"

Allow = Callable[[Sequence[AbortItem | PlanItem], DailyUsage], None]
"""Raises where these actions may not be done beside what the day has spent on others already."""


@dataclass(frozen=True, kw_only=True)
class Claims:
    """Actions as they are once a start has claimed them.

    begun: those that no start had begun before, or that are begun again after a refusal; of the others nobody can say
    without a look whether they were done. unclaimed: those that may not begin, and why. taken_back: of a reversal, the
    item ids of the other copies of its key that actions of whatever contract take back, or may have by now.
    """

    actions: Mapping[UUID, StoredAction]
    begun: frozenset[UUID]
    unclaimed: Mapping[UUID, str]
    taken_back: Mapping[UUID, frozenset[str]]


def claim_actions(
    engine: Engine,
    plan: Plan,
    actions: Sequence[AbortItem | PlanItem],
    *,
    executor: str,
    outcome: Mapping[str, Any],
    allow: Allow,
    ledger: str = "",
    table: str = "",
    stopped: Mapping[UUID, str] | None = None,
) -> Claims:
    """Mark these actions of the plan as executing; one that this plan has begun or done stays as it is.

    executor: this start's own word; from now on no earlier start may refuse one of them. outcome: kept with those that
    begin now. ledger, table: the one that rows are written into, and the one that they are read from, each in the same
    words whatever the contract. stopped: actions that may not begin, and why. Claims are made one after the other, over
    all contracts. Raises what `allow` raises, and PlanStale where another plan holds an action.
    """
    stopped = stopped or {}
    ids = [action.action_id for action in actions]
    with engine.begin() as connection:
        hold_claims(connection)
        hold_breaks(connection, plan.contract)
        stored = _stored(connection, ids)
        effects = _effects(connection, plan.contract, actions, ledger, table)
        same = same_effect(connection, effects)
        held = {one for one, row in stored.items() if row.state is not ActionState.REFUSED}
        fresh = [action for action in actions if action.action_id not in held]
        why_not = _why_not(connection, plan.contract, fresh, same, stopped)
        unclaimed = {one: reason for one, reason in why_not.items() if reason}
        begin = [action for action in fresh if action.action_id not in unclaimed]
        again = [one for one in actions if _is_executing(stored.get(one.action_id)) and one.action_id not in stopped]
        spent = spent_by(connection, plan.contract, but={one.action_id for one in again})
        if begin or again:
            allow([*begin, *again], spent)
        _begin(connection, plan, begin, effects, outcome)
        connection.execute(taken_over(ids, plan.plan_id, executor))
        claimed = _stored(connection, ids)
        for one in claimed.values():
            if one.plan_id != plan.plan_id and one.action_id not in {*unclaimed, *stopped}:
                raise PlanStale(f"{plan.contract}: action {one.action_id} belongs to plan {one.plan_id}")
    return Claims(
        actions=claimed,
        begun=frozenset(action.action_id for action in begin),
        unclaimed={**stopped, **unclaimed},
        taken_back=taken_back_beside(same),
    )


def hold_claims(connection: Connection) -> None:
    """Lock the claims until the transaction ends: nobody else claims or reopens an action, of whatever contract. Before
    hold_breaks.
    """
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended("tallystick claims", 0))))


def outstanding_among(engine: Engine, contract_name: str, break_ids: Collection[UUID]) -> frozenset[UUID]:
    """Return those of these breaks that nobody has cleared or written off."""
    with engine.connect() as connection:
        return _outstanding(connection, contract_name, break_ids)


def judged_parts(engine: Engine, contract_name: str, *, planned_at: int) -> dict[TopicPartition, JudgedPart]:
    """Return where the newest cut with a verdict ended on each partition, or the first one began that was closed unread
    since.

    planned_at: the plan's cut. A plan leaves out what may stand in a cut that was closed before.
    """
    newest = select(func.max(verdict.c.cut_n)).where(verdict.c.contract == contract_name).scalar_subquery()
    unread = cut_slice.alias("unread")
    first_unread = (
        select(func.min(unread.c.starts_at))
        .join(verdict, (verdict.c.contract == unread.c.contract) & (verdict.c.cut_n == unread.c.cut_n))
        .where(
            unread.c.contract == cut_slice.c.contract,
            unread.c.side == cut_slice.c.side,
            unread.c.starts_at < unread.c.ends_at,
            unread.c.cut_n > planned_at,
            verdict.c.doubts.contains([{"doubt": Doubt.CUT_CLOSED}]),
        )
        .correlate(cut_slice)
        .scalar_subquery()
    )
    read_up_to = func.least(cut_slice.c.ends_at, first_unread).label("ends_at")
    statement = select(cut_slice.c.details, read_up_to).where(
        cut_slice.c.contract == contract_name, cut_slice.c.cut_n == newest, cut_slice.c.side != LEDGER
    )
    with engine.connect() as connection:
        rows = connection.execute(statement).all()
    return {
        TopicPartition(
            topic=row.details["offsets"]["topic"], partition=row.details["offsets"]["partition"]
        ): JudgedPart(
            topic_id=row.details["snapshot"]["topic_id"],
            leader_epoch=row.details["snapshot"]["leader_epoch"],
            log_start=row.details["snapshot"]["log_start"],
            kafka_offset_end=row.ends_at,
        )
        for row in rows
    }


def held_among(engine: Engine, action_ids: Collection[UUID], executor: str) -> frozenset[UUID]:
    """Return those of these actions that this start claimed last and that nobody has ended."""
    statement = select(compensation_action.c.action_id).where(
        compensation_action.c.action_id.in_(action_ids),
        compensation_action.c.state == ActionState.EXECUTING,
        compensation_action.c.outcome["executor"].as_string() == executor,
    )
    with engine.connect() as connection:
        return frozenset(connection.scalars(statement))


def note_starting(engine: Engine, action_id: UUID, *, executor: str) -> bool:
    """Keep that this start asks for a run of somebody's DAG now. False where a later start has claimed the action."""
    c = compensation_action.c
    statement = (
        update(compensation_action)
        .where(
            c.action_id == action_id, c.state == ActionState.EXECUTING, c.outcome["executor"].as_string() == executor
        )
        .values(outcome=c.outcome.concat(cast({STARTING: True}, JSONB)))
    )
    with engine.begin() as connection:
        return connection.execute(statement).rowcount > 0


def _is_executing(stored: StoredAction | None) -> bool:
    return stored is not None and stored.state is ActionState.EXECUTING


def _why_not(
    connection: Connection,
    contract_name: str,
    actions: Sequence[AbortItem | PlanItem],
    same: Mapping[UUID, Sequence[OtherAction]],
    stopped: Mapping[UUID, str],
) -> dict[UUID, str]:
    """Those of these actions that may not begin, and why."""
    items = [action for action in actions if isinstance(action, PlanItem)]
    outstanding = _outstanding(connection, contract_name, [item.break_id for item in items])
    elsewhere = done_elsewhere(contract_name, items, same)
    gone = {item.action_id: NOT_OUTSTANDING for item in items if item.break_id not in outstanding}
    return elsewhere | gone | {one.action_id: stopped[one.action_id] for one in actions if one.action_id in stopped}


def _outstanding(connection: Connection, contract_name: str, break_ids: Collection[UUID]) -> frozenset[UUID]:
    """Breaks of which an item's newest row says broken, by that break."""
    broken, newer = open_item.alias("broken"), open_item.alias("newer")
    superseded = (
        select(newer.c.item_id)
        .where(
            newer.c.contract == broken.c.contract,
            newer.c.item_id == broken.c.item_id,
            tuple_(newer.c.cut_n, newer.c.step) > tuple_(broken.c.cut_n, broken.c.step),
        )
        .exists()
    )
    found: set[UUID] = set()
    for some in in_parts(sorted(set(break_ids))):
        statement = select(broken.c.break_id).where(
            broken.c.contract == contract_name,
            broken.c.break_id.in_(some),
            broken.c.state == ItemState.BROKEN,
            ~superseded,
        )
        found.update(connection.scalars(statement))
    return frozenset(found)


def _effects(
    connection: Connection, contract_name: str, actions: Sequence[AbortItem | PlanItem], ledger: str, table: str
) -> dict[UUID, Effect]:
    """Return what each item does to a side. Of the hashes the first one is stored."""
    newest = select(func.max(cut_slice.c.cut_n)).where(cut_slice.c.contract == contract_name).scalar_subquery()
    snapshot = cut_slice.c.details["snapshot"]
    statement = select(
        snapshot["topic"].as_string().label("topic"), snapshot["topic_id"].as_string().label("topic_id")
    ).where(cut_slice.c.contract == contract_name, cut_slice.c.cut_n == newest, cut_slice.c.side != LEDGER)
    ids = {row.topic: row.topic_id for row in connection.execute(statement)}
    return {
        action.action_id: effect_of(action, topic_id=ids.get(action.topic, action.topic), ledger=ledger, table=table)
        for action in actions
        if isinstance(action, PlanItem)
    }


def _begin(
    connection: Connection,
    plan: Plan,
    actions: Sequence[AbortItem | PlanItem],
    effects: Mapping[UUID, Effect],
    outcome: Mapping[str, Any],
) -> None:
    rows = [
        {
            "action_id": action.action_id,
            "break_id": action.break_id if isinstance(action, PlanItem) else None,
            "plan_id": plan.plan_id,
            "state": ActionState.EXECUTING,
            "outcome": dict(outcome),
            "effect": effects[action.action_id].hashes[0] if action.action_id in effects else None,
            "source": effects[action.action_id].source if action.action_id in effects else None,
        }
        for action in actions
    ]
    for some in in_parts(rows):
        statement = upsert(compensation_action).values(some)
        fresh = statement.excluded
        connection.execute(
            statement.on_conflict_do_update(
                index_elements=[compensation_action.c.action_id],
                set_={
                    "plan_id": fresh.plan_id,
                    "state": fresh.state,
                    "outcome": fresh.outcome,
                    "effect": fresh.effect,
                    "source": fresh.source,
                    "void_progress": _void_progress(fresh.outcome),
                    "recorded_at": func.clock_timestamp(),
                },
            )
        )


def _void_progress(outcome: Any) -> Any:
    """Of an action that was reopened when nobody knew where its progress topic ended: here, before it begins again."""
    here = func.jsonb_build_object(PROGRESS_TOPIC_ID, outcome[PROGRESS_TOPIC_ID], "before", outcome[PROGRESS_FROM])
    kept, unknown = compensation_action.c.void_progress, compensation_action.c.void_progress.is_(None)
    reopened = (compensation_action.c.reopened > 0) & outcome.has_key(PROGRESS_FROM)
    return case((unknown & reopened, here), else_=kept)


def _stored(connection: Connection, action_ids: Sequence[UUID]) -> dict[UUID, StoredAction]:
    found: dict[UUID, StoredAction] = {}
    for some in in_parts(action_ids):
        statement = select(compensation_action).where(compensation_action.c.action_id.in_(some))
        found |= {row.action_id: action_of(row) for row in connection.execute(statement)}
    return found
