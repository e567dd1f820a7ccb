"""The approvals: who asked for a plan, which one a person was shown in a run of a scheduler, and the answer.

All of it stands in the audit trail, where no right on a scheduler's own data reaches: an answer that anybody could
have rewritten since is not read from anywhere else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, Engine, Row, Select, Text, Uuid, cast, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from tallystick.compensation.approval_rules import YesVoided, machine_of
from tallystick.compensation.plan import Plan
from tallystick.compensation.signed_approval import SignedApproval
from tallystick.host.terminal_user import AT_TERMINAL, Terminal, at_terminal
from tallystick.store.plans.plan_store import ASKED, REOPENED, append_audit
from tallystick.store.schema import audit as audit_table
from tallystick.store.schema import compensation_action, compensation_plan

SHOWN = "shown"
"""The audit event of a plan that was put before a person."""
AGREED, REJECTED, UNANSWERED, FAILED = "agreed", "rejected", "unanswered", "approval_failed"
"""The audit events of what came of it; unanswered: not in time."""
ANSWERED_AT = "answered_at_utc"
"""Key of the detail of an answer: when the person gave it, by the store's clock."""

_SINCE_SHOWN = (SHOWN, AGREED, REJECTED, UNANSWERED, FAILED)


@dataclass(frozen=True, kw_only=True)
class ApprovalStep:
    """One line of the trail about the approval of a plan in one run. actor: the person, or the scheduler's name."""

    plan_id: UUID
    plan_hash: str
    event: str
    actor: str
    recorded_at: datetime


def plan_asked_in(engine: Engine, contract_name: str, *, scheduler_run_id: str) -> ApprovalStep | None:
    """The plan that a run of the scheduler asked for last; None: it asked for none."""
    return _newest(engine, contract_name, scheduler_run_id, (ASKED,))


def last_approval_step(engine: Engine, contract_name: str, *, scheduler_run_id: str) -> ApprovalStep | None:
    """Return the last step of a run: a plan was shown, or answered in whatever way. None: none was shown."""
    return _newest(engine, contract_name, scheduler_run_id, _SINCE_SHOWN)


def agreements_in(engine: Engine, contract_name: str, *, scheduler_run_id: str) -> tuple[ApprovalStep, ...]:
    """Each yes to what was shown in a run, in their order."""
    steps = _steps(contract_name, scheduler_run_id, (AGREED,)).order_by(audit_table.c.audit_id)
    with engine.connect() as connection:
        return tuple(map(_step_of, connection.execute(steps)))


def requesters(engine: Engine, plan: Plan) -> frozenset[str]:
    """Every person who asked for this plan, by the name given and by that of the operating system's user."""
    table = audit_table.c
    first = select(compensation_plan.c.requested_by).where(compensation_plan.c.plan_id == plan.plan_id)
    mine = (table.plan_id == plan.plan_id, table.event == ASKED)
    again = select(table.actor).where(*mine)
    as_user = select(table.detail[AT_TERMINAL, "os_user"].as_string()).where(*mine)
    with engine.connect() as connection:
        names = frozenset(filter(None, connection.scalars(first.union(again, as_user))))
    return names - {machine_of(plan.contract)}


def last_voided(engine: Engine, plan: Plan) -> YesVoided | None:
    """Return the newest rejection of a plan, or reopening of an action that it has in common with whichever plan; None:
    neither.
    """
    table = audit_table.c
    reopened_ids = select(compensation_action.c.action_id).where(
        compensation_action.c.action_id == func.any(cast([one.action_id for one in plan.actions], ARRAY(Uuid))),
        compensation_action.c.reopened > 0,
    )
    no = (table.plan_id == plan.plan_id) & (table.event == REJECTED)
    with engine.connect() as connection:
        if reopened := list(map(str, connection.scalars(reopened_ids))):
            ours = table.detail["action_id"].as_string() == func.any(cast(reopened, ARRAY(Text)))
            no |= (table.contract == plan.contract) & (table.event == REOPENED) & ours
        newest = select(audit_table).where(no).order_by(table.recorded_at.desc()).limit(1)
        row = connection.execute(newest).one_or_none()
    return None if row is None else YesVoided(by=row.actor, at_utc=row.recorded_at, reopened=row.event == REOPENED)


def agreements(
    engine: Engine, plan_id: UUID, *, voided: YesVoided | None, scheduler_run_id: str = ""
) -> dict[str, timedelta]:
    """Return who has agreed to the plan since it was voided last, and how long ago, by the store's clock.

    scheduler_run_id: only what was answered in this run; "": all that was answered and signed.
    A line is written once the scheduler has resumed its task, maybe long after the answer; so it says when that was.
    """
    table = audit_table.c
    answered_at = cast(table.detail[ANSWERED_AT].as_string(), DateTime(timezone=True))
    agreed_at = func.least(table.recorded_at, answered_at)
    statement = (
        select(table.actor, (func.clock_timestamp() - func.max(agreed_at)).label("age"))
        .where(table.plan_id == plan_id, table.event == AGREED)
        .group_by(table.actor)
    )
    if voided:
        statement = statement.where(agreed_at > voided.at_utc)
    if scheduler_run_id:
        statement = statement.where(table.detail["scheduler_run_id"].as_string() == scheduler_run_id)
    with engine.connect() as connection:
        return {row.actor: row.age for row in connection.execute(statement)}


def keep_signed(engine: Engine, plan: Plan, signed: SignedApproval, *, terminal: Terminal) -> None:
    """Append a yes that somebody has signed, with what proves it and where it was presented."""
    detail = {
        "plan_hash": plan.plan_hash,
        ANSWERED_AT: signed.made_at_utc.astimezone(UTC).isoformat(),  # a sheet may name a zone that PostgreSQL refuses
        "key": signed.key_fingerprint,
        "document_sha256": signed.document_sha256,
    } | at_terminal(terminal)
    append_audit(engine, plan.contract, plan_id=plan.plan_id, actor=signed.signer, event=AGREED, detail=detail)


def _newest(engine: Engine, contract_name: str, scheduler_run_id: str, events: Sequence[str]) -> ApprovalStep | None:
    newest = _steps(contract_name, scheduler_run_id, events).order_by(audit_table.c.audit_id.desc()).limit(1)
    with engine.connect() as connection:
        row = connection.execute(newest).one_or_none()
    return None if row is None else _step_of(row)


def _steps(contract_name: str, scheduler_run_id: str, events: Sequence[str]) -> Select[Any]:
    return select(audit_table).where(
        audit_table.c.contract == contract_name,
        audit_table.c.event.in_(events),
        audit_table.c.detail["scheduler_run_id"].as_string() == scheduler_run_id,
    )


def _step_of(row: Row[Any]) -> ApprovalStep:
    return ApprovalStep(
        plan_id=row.plan_id,
        plan_hash=row.detail["plan_hash"],
        event=row.event,
        actor=row.actor,
        recorded_at=row.recorded_at,
    )
