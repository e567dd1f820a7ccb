"""Compensation plans, the state of each action, and the audit trail."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, Row, Text, Update, Uuid, cast, func, insert, or_, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import OperationalError

from tallystick.compensation.plan import PLAN_JSON, DailyUsage, Plan, PlanItem, RepairKind
from tallystick.host.terminal_user import Terminal, at_terminal
from tallystick.model.break_history import ExecutedRepair, KnownRepair
from tallystick.model.errors import TallystickError
from tallystick.model.findings import total_money
from tallystick.store.runs.contract_store import contract_begun_under, newest_readable_contract
from tallystick.store.schema import audit as audit_table
from tallystick.store.schema import compensation_action, compensation_plan

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PATIENCE = "set local lock_timeout = '80s'; set local idle_in_transaction_session_timeout = '10min'"
"""An executor that is stopped while it ends a transaction must not keep the next one from it for ever."""
ASKED = "planned"
"""The audit event of a plan that somebody asked for."""
REOPENED = "reopened"
"""The audit event of an action that a person gave back to the next plan."""
PUBLISHING = "publishing"
"""The audit event of a producer transaction that is about to begin."""


class ActionState(StrEnum):
    """executing: it may have been published. refused: it was not, and another plan may take the break.

    waiting: a person has to look whether it was, and may reopen it.
    """

    EXECUTING = "executing"
    DONE = "done"
    REFUSED = "refused"
    WAITING = "waiting"


HOLDING = (ActionState.EXECUTING, ActionState.DONE, ActionState.WAITING)
"""States of an action whose effect stands, or may stand: no other plan or contract may bring it about as well."""
PROGRESS_TOPIC_ID, PROGRESS_FROM, PROGRESS_END = "progress_topic_id", "progress_from", "progress_end"
"""Keys of an outcome: the progress topic; where it ended when the action was begun, so that no record of it stands
before; how far the start had read that says that a person has to look."""


@dataclass(frozen=True, kw_only=True)
class StoredAction:
    """One break's repair, or (break_id None) the end of a hanging transaction.

    outcome: JSON; where the event or the marker stands, or why it was refused or waits. reopened: how often a person
    has reopened it. void_progress: JSON; up to where records of a progress topic prove nothing of it; None: all may.
    """

    action_id: UUID
    break_id: UUID | None
    plan_id: UUID
    state: ActionState
    outcome: Mapping[str, Any]
    recorded_at: datetime
    reopened: int = 0
    void_progress: Mapping[str, Any] | None = None

    def void_before(self, topic_id: str) -> int:
        """Records of this progress topic below this offset are what a person looked at who reopened the action."""
        void = self.void_progress or {}
        return int(void["before"]) if void.get(PROGRESS_TOPIC_ID) == topic_id else 0


class EndingHeld(TallystickError, ConnectionError):
    """Another executor ends transactions of the contract, and did not make room. A retry may cure it."""

    retryable = True


@dataclass(frozen=True, kw_only=True)
class AuditEntry:
    """An act on a plan: who did it, and the result."""

    contract: str
    plan_id: UUID | None
    actor: str
    event: str
    detail: Mapping[str, Any]
    recorded_at: datetime


def save_plan(
    engine: Engine, plan: Plan, *, requested_by: str, scheduler_run_id: str = "", terminal: Terminal | None = None
) -> None:
    """Keep a plan, and who asked for it. The same plan again stays as it is; that it was asked for again is kept.

    scheduler_run_id: the scheduler's run that waits for the approval; "" where no scheduler does. terminal: where a
    person asked for it on the command line.
    """
    row = {
        "plan_id": plan.plan_id,
        "contract": plan.contract,
        "cut_n": plan.cut_n,
        "plan_hash": plan.plan_hash,
        "body": PLAN_JSON.dump_python(plan, mode="json"),
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
        asked |= at_terminal(terminal)
        connection.execute(insert(audit_table), _audit_row(plan.contract, plan.plan_id, requested_by, ASKED, asked))


def read_plan(engine: Engine, plan_id: UUID) -> Plan | None:
    """One stored plan."""
    with engine.connect() as connection:
        body = connection.scalar(select(compensation_plan.c.body).where(compensation_plan.c.plan_id == plan_id))
    return None if body is None else PLAN_JSON.validate_python(body)


def open_actions(engine: Engine, contract_name: str) -> dict[UUID, StoredAction]:
    """Actions of the contract's plans that hold their break: being executed, done for good, or waiting for a person."""
    statement = (
        select(compensation_action)
        .join(compensation_plan, compensation_plan.c.plan_id == compensation_action.c.plan_id)
        .where(
            compensation_plan.c.contract == contract_name,
            compensation_action.c.state.in_(HOLDING),
        )
    )
    with engine.connect() as connection:
        return {row.action_id: action_of(row) for row in connection.execute(statement)}


def executed_actions(engine: Engine, contract_name: str) -> dict[UUID, ExecutedRepair]:
    """Return the actions by the break that they repaired."""
    action_id = audit_table.c.detail["action_id"].as_string()
    line = audit_table.alias("line")
    last_reopened = (
        select(func.max(line.c.audit_id))
        .where(
            line.c.event == REOPENED,
            line.c.detail["action_id"].as_string() == cast(compensation_action.c.action_id, Text),
        )
        .correlate(compensation_action)
        .scalar_subquery()
    )
    statement = (
        select(
            compensation_action.c.break_id,
            compensation_action.c.action_id,
            compensation_plan.c.cut_n,
            func.min(audit_table.c.recorded_at),
        )
        .join(compensation_plan, compensation_plan.c.plan_id == compensation_action.c.plan_id)
        .join(audit_table, action_id == cast(compensation_action.c.action_id, Text))
        .where(
            audit_table.c.contract == contract_name,
            audit_table.c.event.in_(["published", "already_published"]),
            compensation_action.c.state == ActionState.DONE,
            or_(compensation_action.c.reopened == 0, audit_table.c.audit_id > last_reopened),
        )
        .group_by(compensation_action.c.break_id, compensation_action.c.action_id, compensation_plan.c.cut_n)
    )
    with engine.connect() as connection:
        return {break_id: ExecutedRepair(*action) for break_id, *action in connection.execute(statement)}


def known_repairs(engine: Engine, action_ids: Collection[str]) -> tuple[KnownRepair, ...]:
    """Return those of these actions that a plan of any contract has begun or done, and what they were to do."""
    wanted = {UUID(one) for one in action_ids if _UUID.fullmatch(one)}
    if not wanted:
        return ()
    action = compensation_action.c
    bodies = (
        select(action.action_id, compensation_plan.c.plan_id, compensation_plan.c.body)
        .join(compensation_plan, compensation_plan.c.plan_id == action.plan_id)
        .where(action.action_id.in_(wanted), action.state.in_(HOLDING))
    )
    with engine.connect() as connection:
        rows = connection.execute(bodies).all()
    begun = {row.action_id: row.plan_id for row in rows}
    plans = {row.plan_id: PLAN_JSON.validate_python(row.body) for row in rows}
    return tuple(
        KnownRepair(
            action_id=str(item.action_id),
            kind=item.kind,
            match_key=item.match_key,
            topic=item.topic,
            reverses=item.reverses,
            amounts_minor=_amounts_taking_back(engine, plan, item) if item.kind is RepairKind.REVERSE else None,
        )
        for plan_id, plan in plans.items()
        for item in plan.items
        if begun.get(item.action_id) == plan_id
    )


def _amounts_taking_back(engine: Engine, plan: Plan, item: PlanItem) -> tuple[int, ...]:
    """By the contract that its plan began under, where it is readable, and by the newest, as earlier releases went."""
    then = contract_begun_under(engine, plan.contract, plan.contract_fingerprint, cut_n=plan.cut_n)
    contracts = then, newest_readable_contract(engine, plan.contract)
    rules = [contract.compensation for contract in contracts if contract and contract.compensation]
    signs = {-1 if one.reversal == "negated" else 1 for one in rules if then} or {-1, 1}
    return tuple(sorted(sign * item.amount_minor for sign in signs))


def spent_today(engine: Engine, contract_name: str, *, but: Collection[UUID] = ()) -> DailyUsage:
    """Return what plans of the contract began to move since midnight, UTC, by the store's clock, without
    these actions.
    """
    with engine.connect() as connection:
        return spent_by(connection, contract_name, but=but)


def published_behind(engine: Engine, plan_ids: Collection[UUID]) -> dict[UUID, Mapping[str, Any]]:
    """Return, for each action that these plans meant to publish, where its topics ended before the newest attempt, by
    topic and partition. Not of those that release 0.1.0 began.
    """
    statement = (
        select(audit_table.c.detail["actions"], audit_table.c.detail["ends"])
        .where(
            audit_table.c.plan_id.in_(plan_ids),
            audit_table.c.event == PUBLISHING,
            audit_table.c.detail.has_key("ends"),
        )
        .order_by(audit_table.c.audit_id)
    )
    with engine.connect() as connection:
        return {UUID(one): ends for actions, ends in connection.execute(statement) for one in actions}


@contextmanager
def ending_alone(engine: Engine, contract_name: str) -> Iterator[None]:
    """Keep every other executor from ending transactions of this contract for the length of a block. Waits for one that
    does.

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


def record_done(
    engine: Engine, action_id: UUID, *, outcome: Mapping[str, Any], by_us: bool = False, reopened: int = 0
) -> None:
    """Say that an action is done: for good. It overrides a refusal, whoever has claimed the action since.

    by_us: done just now, so that the day's caps count it on this day, whenever it was claimed. reopened: how often a
    person had reopened it when it was claimed; who has reopened it since knew of this.
    """
    done = {"state": ActionState.DONE, "outcome": dict(outcome)}
    statement = (
        update(compensation_action)
        .where(
            compensation_action.c.action_id == action_id,
            compensation_action.c.state != ActionState.DONE,
            compensation_action.c.reopened == reopened,
        )
        .values(done | ({"recorded_at": func.clock_timestamp()} if by_us else {}))
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


def record_waiting(engine: Engine, action_id: UUID, *, executor: str, outcome: Mapping[str, Any]) -> bool:
    """Say that a person has to look whether an action was done. False where another start has claimed it, or it ended.

    One that waits already does so for the reason that was found last.
    """
    c = compensation_action.c
    ours = (c.state == ActionState.EXECUTING) & (c.outcome["executor"].as_string() == executor)
    statement = (
        update(compensation_action)
        .where(c.action_id == action_id, ours | (c.state == ActionState.WAITING))
        .values(state=ActionState.WAITING, outcome=dict(outcome))
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


def spent_by(connection: Connection, contract_name: str, *, but: Collection[UUID] = ()) -> DailyUsage:
    """The same, with what this connection's transaction has written."""
    statement = (
        select(compensation_action.c.action_id, compensation_action.c.plan_id)
        .join(compensation_plan, compensation_plan.c.plan_id == compensation_action.c.plan_id)
        .where(
            compensation_plan.c.contract == contract_name,
            compensation_action.c.state.in_(HOLDING),
            compensation_action.c.recorded_at >= func.date_trunc("day", func.clock_timestamp(), "UTC"),
        )
    )
    begun = {row.action_id: row.plan_id for row in connection.execute(statement) if row.action_id not in but}
    bodies = select(compensation_plan.c.body).where(compensation_plan.c.plan_id.in_(set(begun.values())))
    plans = [PLAN_JSON.validate_python(body) for body in connection.scalars(bodies)]
    actions = [one for plan in plans for one in plan.actions if begun.get(one.action_id) == plan.plan_id]
    moved = total_money(pair for one in actions for pair in one.moved_minor.items())
    return DailyUsage(items=len(actions), moved_minor=moved)


def taken_over(action_ids: Sequence[UUID], plan_id: UUID, executor: str) -> Update:
    """Let only this start refuse those of these that are executing, from now on; they count as this day's."""
    table = compensation_action.c
    known = table.outcome.concat(cast({"executor": executor}, JSONB))
    return (
        update(compensation_action)
        .where(
            table.action_id == func.any(cast(list(action_ids), ARRAY(Uuid))),
            table.plan_id == plan_id,
            table.state == ActionState.EXECUTING,
        )
        .values(outcome=known, recorded_at=func.clock_timestamp())
    )


def action_of(row: Row[Any]) -> StoredAction:
    """A row of compensation_action."""
    return StoredAction(
        action_id=row.action_id,
        break_id=row.break_id,
        plan_id=row.plan_id,
        state=ActionState(row.state),
        outcome=row.outcome,
        recorded_at=row.recorded_at,
        reopened=row.reopened,
        void_progress=row.void_progress,
    )
