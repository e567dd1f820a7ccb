"""The content of a plan, in short, and its results; at a cost that does not grow with the plan.

A plan may have 100,000 items, and leave out more: the store keeps the first of them, and the sums, beside the body.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter
from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.dialects.postgresql import array

from tallystick.compensation.abort_plan import AbortItem
from tallystick.compensation.plan import PlanItem, RepairKind
from tallystick.store.plans.approval_store import AGREED, FAILED, REJECTED, UNANSWERED
from tallystick.store.plans.plan_store import ASKED, ActionState, AuditEntry, audit_entry
from tallystick.store.schema import audit, compensation_action, compensation_plan

PLAN_EVENTS = (ASKED, AGREED, REJECTED, UNANSWERED, FAILED, "approved", "stopped", "finished")
"""Audit events that say how a plan stands, one after the other."""
VERIFIED, RUNS_ENDED = "verified", "runs_ended"
"""The audit event of a look at what a plan did; the key of its detail for the actions whose DAG's run was over then."""
_TRAIL_MAX = 200
_LONG = ["actions", "places", "ends"]
"""Keys of an audit line's detail that name each event of a producer transaction."""


@dataclass(frozen=True, kw_only=True)
class PlanSum:
    """Items of one kind and currency, in integer minor units."""

    kind: RepairKind
    currency: str
    items: int
    amount_minor: int


@dataclass(frozen=True, kw_only=True)
class LeftOutSum:
    """Breaks that the plan leaves alone for one reason; the match keys of a few of them."""

    reason: str
    breaks: int
    match_keys: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PlanInShort:
    """items: the first ones, in the plan's order. aborts: all hanging transactions that it ends."""

    aborts: tuple[AbortItem, ...] = ()
    items: tuple[PlanItem, ...]
    sums: tuple[PlanSum, ...]
    left_out: tuple[LeftOutSum, ...]


@dataclass(frozen=True, kw_only=True)
class ActionTold:
    """The state of the repair of one break. outcome: the place of its event, or why it was refused."""

    state: ActionState
    outcome: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class PlanTold:
    """A stored plan. actions: by action id, of the items in short that were begun; counts: of all that were.

    trail: oldest first, without a line per item.
    """

    plan_id: UUID
    contract: str
    cut_n: int
    plan_hash: str
    planned_at: datetime
    in_short: PlanInShort
    actions: Mapping[UUID, ActionTold]
    counts: Mapping[ActionState, int]
    trail: tuple[AuditEntry, ...]


@dataclass(frozen=True, kw_only=True)
class PlanHead:
    """One line of a list of plans. last: the newest of its PLAN_EVENTS; "" where the trail has none."""

    plan_id: UUID
    cut_n: int
    planned_at: datetime
    requested_by: str
    sums: tuple[PlanSum, ...]
    last: str


_IN_SHORT = TypeAdapter(PlanInShort)
_SUMS = TypeAdapter(tuple[PlanSum, ...])


def find_plan(engine: Engine, plan_id: UUID) -> PlanTold | None:
    """One plan, or None where none is stored under this id."""
    c = compensation_plan.c
    statement = select(c.plan_id, c.contract, c.cut_n, c.plan_hash, c.recorded_at, c.in_short)
    with engine.connect() as connection:
        row = connection.execute(statement.where(c.plan_id == plan_id)).first()
        if row is None:
            return None
        in_short = _IN_SHORT.validate_python(row.in_short)
        told: tuple[AbortItem | PlanItem, ...] = (*in_short.aborts, *in_short.items)
        return PlanTold(
            plan_id=plan_id,
            contract=row.contract,
            cut_n=row.cut_n,
            plan_hash=row.plan_hash,
            planned_at=row.recorded_at,
            in_short=in_short,
            actions=_actions(connection, plan_id, [one.action_id for one in told]),
            counts=_counts(connection, plan_id),
            trail=_trail(connection, plan_id),
        )


def plan_of_scheduler_run(engine: Engine, contract_name: str, run_id: str) -> UUID | None:
    """The plan that a run of the scheduler asked for; None where it asked for none."""
    asked = (
        select(audit.c.plan_id)
        .where(
            audit.c.contract == contract_name,
            audit.c.event == ASKED,
            audit.c.detail["scheduler_run_id"].as_string() == run_id,
        )
        .order_by(audit.c.audit_id.desc())
        .limit(1)
    )
    with engine.connect() as connection:
        found: UUID | None = connection.scalar(asked)
    return found


def list_plans(engine: Engine, contract_name: str, *, limit: int) -> tuple[PlanHead, ...]:
    """The newest plans of a contract, newest first."""
    c = compensation_plan.c
    last = (
        select(audit.c.event)
        .where(audit.c.plan_id == c.plan_id, audit.c.event.in_(PLAN_EVENTS))
        .order_by(audit.c.audit_id.desc())
        .limit(1)
        .scalar_subquery()
    )
    statement = (
        select(c.plan_id, c.cut_n, c.recorded_at, c.requested_by, c.in_short["sums"].label("sums"), last.label("last"))
        .where(c.contract == contract_name)
        .order_by(c.recorded_at.desc())
        .limit(limit)
    )
    with engine.connect() as connection:
        return tuple(
            PlanHead(
                plan_id=row.plan_id,
                cut_n=row.cut_n,
                planned_at=row.recorded_at,
                requested_by=row.requested_by,
                sums=_SUMS.validate_python(row.sums),
                last=row.last or "",
            )
            for row in connection.execute(statement)
        )


def _actions(connection: Connection, plan_id: UUID, action_ids: list[UUID]) -> dict[UUID, ActionTold]:
    c = compensation_action.c
    statement = select(c.action_id, c.state, c.outcome).where(c.plan_id == plan_id, c.action_id.in_(action_ids))
    return {
        row.action_id: ActionTold(state=ActionState(row.state), outcome=row.outcome)
        for row in connection.execute(statement)
    }


def _counts(connection: Connection, plan_id: UUID) -> dict[ActionState, int]:
    c = compensation_action.c
    statement = select(c.state, func.count()).where(c.plan_id == plan_id).group_by(c.state)
    return {ActionState(state): count for state, count in connection.execute(statement)}


def _trail(connection: Connection, plan_id: UUID) -> tuple[AuditEntry, ...]:
    c = audit.c
    newest = (
        select(
            c.audit_id,
            c.contract,
            c.plan_id,
            c.actor,
            c.event,
            c.detail.op("-")(array(_LONG)).label("detail"),
            c.recorded_at,
        )
        .where(c.plan_id == plan_id, ~c.detail.has_key("action_id"))
        .order_by(c.audit_id.desc())
        .limit(_TRAIL_MAX)
    )
    rows = connection.execute(newest).all()
    return tuple(audit_entry(row) for row in reversed(rows))
