"""Who asked for a plan, which one was shown to a person in a run of a scheduler, and what was answered.

All of it stands in the audit trail, where no right on a scheduler's own data reaches: an answer that anybody could
have rewritten since is not read from anywhere else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import DateTime, Engine, cast, func, select

from tallystick.store.plan_store import ASKED
from tallystick.store.schema import audit as audit_table
from tallystick.store.schema import compensation_plan

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
    """What came last in a run: a plan was shown, or answered in whatever way. None: none was shown."""
    return _newest(engine, contract_name, scheduler_run_id, _SINCE_SHOWN)


def requesters(engine: Engine, plan_id: UUID) -> frozenset[str]:
    """Everybody who asked for this plan."""
    first = select(compensation_plan.c.requested_by).where(compensation_plan.c.plan_id == plan_id)
    again = select(audit_table.c.actor).where(audit_table.c.plan_id == plan_id, audit_table.c.event == ASKED)
    with engine.connect() as connection:
        return frozenset(connection.scalars(first.union(again)))


def age_of_approval(engine: Engine, plan_id: UUID, *, scheduler_run_id: str) -> timedelta | None:
    """How long ago a person agreed to the plan in a run of the scheduler, by the store's clock; None: nobody has.

    A line is written once the scheduler has resumed its task, maybe long after the answer; so it says when that was.
    """
    answered_at = cast(audit_table.c.detail[ANSWERED_AT].as_string(), DateTime(timezone=True))
    agreed_at = func.least(audit_table.c.recorded_at, answered_at)
    statement = select(func.clock_timestamp() - func.max(agreed_at)).where(
        audit_table.c.plan_id == plan_id,
        audit_table.c.event == AGREED,
        audit_table.c.detail["scheduler_run_id"].as_string() == scheduler_run_id,
    )
    with engine.connect() as connection:
        age: timedelta | None = connection.scalar(statement)
    return age


def _newest(engine: Engine, contract_name: str, scheduler_run_id: str, events: Sequence[str]) -> ApprovalStep | None:
    statement = (
        select(audit_table)
        .where(
            audit_table.c.contract == contract_name,
            audit_table.c.event.in_(events),
            audit_table.c.detail["scheduler_run_id"].as_string() == scheduler_run_id,
        )
        .order_by(audit_table.c.audit_id.desc())
        .limit(1)
    )
    with engine.connect() as connection:
        row = connection.execute(statement).one_or_none()
    if row is None:
        return None
    return ApprovalStep(
        plan_id=row.plan_id,
        plan_hash=row.detail["plan_hash"],
        event=row.event,
        actor=row.actor,
        recorded_at=row.recorded_at,
    )
