"""Compensation plans, the state of each action, and the audit trail."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter
from sqlalchemy import Connection, Engine, Row, Text, Update, cast, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import OperationalError

from tallystick.abort_plan import AbortItem
from tallystick.compensation_plan import Plan, PlanItem, PlanStale, Spent
from tallystick.run_result import total_money
from tallystick.store.schema import audit as audit_table
from tallystick.store.schema import compensation_action, compensation_plan

_PLAN = TypeAdapter(Plan)
_PATIENCE = "set local lock_timeout = '60s'; set local idle_in_transaction_session_timeout = '10min'"
"""An executor that is stopped while it ends a transaction must not keep the next one from it for ever."""
ASKED = "planned"
"""The audit event of a plan that somebody asked for."""


class ActionState(StrEnum):
    """executing: it may have been published. refused: it was not, and another plan may take the break."""

    EXECUTING = "executing"
    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True)
class StoredAction:
    """One break's repair, or (break_id None) the end of a hanging transaction.

    outcome: JSON; where the event or the marker stands, or why it was refused.
    """

    action_id: UUID
    break_id: UUID | None
    plan_id: UUID
    state: ActionState
    outcome: Mapping[str, Any]
    recorded_at: datetime


@dataclass(frozen=True, kw_only=True)
class Claims:
    """Actions as they are once a start has claimed them. begun: those that no start had begun before, or that are begun
    again after a refusal; of the others nobody can say without a look whether they were done.
    """

    actions: Mapping[UUID, StoredAction]
    begun: frozenset[UUID]


class EndingHeld(ConnectionError):
    """Another executor ends transactions of the contract, and did not make room. A retry may cure it."""


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """Who did what, and what came of it."""

    contract: str
    plan_id: UUID | None
    actor: str
    event: str
    detail: Mapping[str, Any]
    recorded_at: datetime


def save_plan(engine: Engine, plan: Plan, *, requested_by: str, scheduler_run_id: str = "") -> None:
    """Keep a plan, and who asked for it. The same plan again stays as it is; that it was asked for again is kept.

    scheduler_run_id: the scheduler's run that waits for the approval; "" where no scheduler does.
    """
    row = {
        "plan_id": plan.plan_id,
        "contract": plan.contract,
        "cut_n": plan.cut_n,
        "plan_hash": plan.plan_hash,
        "body": _PLAN.dump_python(plan, mode="json"),
        "requested_by": requested_by,
    }
    with engine.begin() as connection:
        connection.execute(upsert(compensation_plan).on_conflict_do_nothing(), row)
        asked = {
            "plan_hash": plan.plan_hash,
            "cut_n": plan.cut_n,
            "items": len(plan.actions),
            "money": plan.money_minor,
        }
        if scheduler_run_id:
            asked["scheduler_run_id"] = scheduler_run_id
        connection.execute(insert(audit_table), _audit_row(plan.contract, plan.plan_id, requested_by, ASKED, asked))


def requesters(engine: Engine, plan_id: UUID) -> frozenset[str]:
    """Everybody who asked for this plan."""
    first = select(compensation_plan.c.requested_by).where(compensation_plan.c.plan_id == plan_id)
    again = select(audit_table.c.actor).where(audit_table.c.plan_id == plan_id, audit_table.c.event == ASKED)
    with engine.connect() as connection:
        return frozenset(connection.scalars(first.union(again)))


def read_plan(engine: Engine, plan_id: UUID) -> Plan | None:
    """One stored plan."""
    with engine.connect() as connection:
        body = connection.scalar(select(compensation_plan.c.body).where(compensation_plan.c.plan_id == plan_id))
    return None if body is None else _PLAN.validate_python(body)


def open_actions(engine: Engine, contract_name: str) -> dict[UUID, StoredAction]:
    """Actions of the contract's plans that hold their break: being executed, or done for good."""
    statement = (
        select(compensation_action)
        .join(compensation_plan, compensation_plan.c.plan_id == compensation_action.c.plan_id)
        .where(
            compensation_plan.c.contract == contract_name,
            compensation_action.c.state.in_([ActionState.EXECUTING, ActionState.DONE]),
        )
    )
    with engine.connect() as connection:
        return {row.action_id: _action_of(row) for row in connection.execute(statement)}


def executed_actions(engine: Engine, contract_name: str) -> dict[UUID, tuple[UUID, datetime]]:
    """Break id to the action that repaired it for good, and since when its event is known to stand."""
    action_id = audit_table.c.detail["action_id"].as_string()
    statement = (
        select(compensation_action.c.break_id, compensation_action.c.action_id, func.min(audit_table.c.recorded_at))
        .join(audit_table, action_id == cast(compensation_action.c.action_id, Text))
        .where(
            audit_table.c.contract == contract_name,
            audit_table.c.event.in_(["published", "already_published"]),
            compensation_action.c.state == ActionState.DONE,
        )
        .group_by(compensation_action.c.break_id, compensation_action.c.action_id)
    )
    with engine.connect() as connection:
        return {break_id: (one, since) for break_id, one, since in connection.execute(statement)}


def spent_today(engine: Engine, contract_name: str) -> Spent:
    """What plans of the contract began to move since midnight, UTC, by the store's clock."""
    with engine.connect() as connection:
        return _spent_today(connection, contract_name)


def claim_actions(
    engine: Engine,
    plan: Plan,
    actions: Sequence[AbortItem | PlanItem],
    *,
    executor: str,
    outcome: Mapping[str, Any],
    allow: Callable[[Spent], None],
) -> Claims:
    """Mark these actions of the plan as executing, all or none; one that this plan has begun or done stays as it is.

    executor: this start's own word; from now on no earlier start may refuse one of them. outcome: kept with those that
    begin now. allow: raises where the plan may not begin beside what the day has spent
    already; plans of one contract are claimed one after the other, so that two cannot take the same room. Gives them
    all as they are now. Raises PlanStale where another plan holds one.
    """
    with engine.begin() as connection:
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"acting {plan.contract}", 0))))
        if not _has_begun(connection, plan):
            allow(_spent_today(connection, plan.contract))
        begun = frozenset(one.action_id for one in actions if _claim(connection, plan, one, outcome))
        ids = [action.action_id for action in actions]
        connection.execute(_taken_over(ids, executor))
        statement = select(compensation_action).where(compensation_action.c.action_id.in_(ids))
        claimed = {row.action_id: _action_of(row) for row in connection.execute(statement)}
        for stored in claimed.values():
            if stored.plan_id != plan.plan_id:
                raise PlanStale(f"{plan.contract}: action {stored.action_id} belongs to plan {stored.plan_id}")
    return Claims(actions=claimed, begun=begun)


@contextmanager
def ending_alone(engine: Engine, contract_name: str) -> Iterator[None]:
    """For the length of a block: no other executor ends transactions of this contract. Waits for one that does.

    Raises EndingHeld where that takes too long.
    """
    with engine.begin() as connection:
        connection.execute(text(_PATIENCE))
        try:
            connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"ending {contract_name}", 0))))
        except OperationalError as error:
            raise EndingHeld(
                f"{contract_name}: another executor ends transactions of it; expected it to be through by now"
            ) from error
        yield


def record_done(engine: Engine, action_id: UUID, *, outcome: Mapping[str, Any]) -> None:
    """Say that an action is done: for good. It overrides a refusal, whoever has claimed the action since."""
    statement = (
        update(compensation_action)
        .where(compensation_action.c.action_id == action_id, compensation_action.c.state != ActionState.DONE)
        .values(state=ActionState.DONE, outcome=dict(outcome))
    )
    with engine.begin() as connection:
        connection.execute(statement)


def record_refusal(engine: Engine, action_id: UUID, *, executor: str, outcome: Mapping[str, Any]) -> bool:
    """Say that an action was not done. False where it is done, or another start has claimed it and may be doing it."""
    statement = (
        update(compensation_action)
        .where(
            compensation_action.c.action_id == action_id,
            compensation_action.c.state == ActionState.EXECUTING,
            compensation_action.c.outcome["executor"].as_string() == executor,
        )
        .values(state=ActionState.REFUSED, outcome=dict(outcome))
    )
    with engine.begin() as connection:
        return connection.execute(statement).rowcount > 0


def append_audit(
    engine: Engine, contract_name: str, *, plan_id: UUID | None, actor: str, event: str, detail: Mapping[str, Any]
) -> None:
    """Append one line to the trail; no line is ever changed."""
    with engine.begin() as connection:
        connection.execute(insert(audit_table), _audit_row(contract_name, plan_id, actor, event, detail))


def read_audit(engine: Engine, contract_name: str, *, plan_id: UUID | None = None) -> tuple[AuditEntry, ...]:
    """The trail of a contract, or of one plan of it, oldest first."""
    statement = select(audit_table).where(audit_table.c.contract == contract_name).order_by(audit_table.c.audit_id)
    if plan_id is not None:
        statement = statement.where(audit_table.c.plan_id == plan_id)
    with engine.connect() as connection:
        return tuple(audit_entry(row) for row in connection.execute(statement))


def audit_entry(row: Row[Any]) -> AuditEntry:
    """A line of the trail as it was read."""
    return AuditEntry(
        contract=row.contract,
        plan_id=row.plan_id,
        actor=row.actor,
        event=row.event,
        detail=row.detail,
        recorded_at=row.recorded_at,
    )


def _audit_row(
    contract_name: str, plan_id: UUID | None, actor: str, event: str, detail: Mapping[str, Any]
) -> dict[str, Any]:
    return {"contract": contract_name, "plan_id": plan_id, "actor": actor, "event": event, "detail": dict(detail)}


def _has_begun(connection: Connection, plan: Plan) -> bool:
    begun = compensation_action.c.state.in_([ActionState.EXECUTING, ActionState.DONE])
    statement = select(compensation_action.c.action_id).where(compensation_action.c.plan_id == plan.plan_id, begun)
    return connection.execute(statement.limit(1)).first() is not None


def _spent_today(connection: Connection, contract_name: str) -> Spent:
    statement = (
        select(compensation_action.c.action_id, compensation_action.c.plan_id)
        .join(compensation_plan, compensation_plan.c.plan_id == compensation_action.c.plan_id)
        .where(
            compensation_plan.c.contract == contract_name,
            compensation_action.c.state.in_([ActionState.EXECUTING, ActionState.DONE]),
            compensation_action.c.recorded_at >= func.date_trunc("day", func.clock_timestamp(), "UTC"),
        )
    )
    begun = {row.action_id: row.plan_id for row in connection.execute(statement)}
    bodies = select(compensation_plan.c.body).where(compensation_plan.c.plan_id.in_(set(begun.values())))
    plans = [_PLAN.validate_python(body) for body in connection.scalars(bodies)]
    actions = [one for plan in plans for one in plan.actions if begun.get(one.action_id) == plan.plan_id]
    moved = total_money(pair for one in actions for pair in one.moved_minor.items())
    return Spent(items=len(actions), moved_minor=moved)


def _claim(connection: Connection, plan: Plan, action: AbortItem | PlanItem, outcome: Mapping[str, Any]) -> bool:
    """False where a start has begun it already, or done it."""
    begin = {"plan_id": plan.plan_id, "state": ActionState.EXECUTING, "outcome": dict(outcome)}
    break_id = action.break_id if isinstance(action, PlanItem) else None
    statement = upsert(compensation_action).values(action_id=action.action_id, break_id=break_id, **begin)
    claimed = connection.execute(
        statement.on_conflict_do_update(
            index_elements=[compensation_action.c.action_id],
            set_=begin | {"recorded_at": func.clock_timestamp()},
            where=compensation_action.c.state == ActionState.REFUSED,
        ).returning(compensation_action.c.action_id)
    )
    return claimed.first() is not None


def _taken_over(action_ids: Sequence[UUID], executor: str) -> Update:
    table = compensation_action.c
    known = table.outcome.concat(cast({"executor": executor}, JSONB))
    return (
        update(compensation_action)
        .where(table.action_id.in_(action_ids), table.state == ActionState.EXECUTING)
        .values(outcome=known)
    )


def _action_of(row: Any) -> StoredAction:
    return StoredAction(
        action_id=row.action_id,
        break_id=row.break_id,
        plan_id=row.plan_id,
        state=ActionState(row.state),
        outcome=row.outcome,
        recorded_at=row.recorded_at,
    )
