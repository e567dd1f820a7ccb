"""The history of one break outside of the runs: who was alerted about it, and which plans meant to repair it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Engine, func, select

from tallystick.alerting.alert import AlertAction, dedup_key
from tallystick.model.finding_names import BreakClass
from tallystick.store.plans.plan_store import ActionState
from tallystick.store.schema import alert as alert_table
from tallystick.store.schema import alert_delivery, compensation_action, compensation_plan

_ALERTS_MAX = 50
"""Of one incident; a page shows no more."""


@dataclass(frozen=True, kw_only=True)
class AlertTold:
    """An alert of the break's class, told while the break stood. delivered_at: per sink that has got it.

    acknowledged_by: who took the incident on; "" where nobody has.
    """

    action: AlertAction
    recorded_at: datetime
    delivered_at: dict[str, datetime]
    sinks: tuple[str, ...]
    acknowledged_by: str = ""


@dataclass(frozen=True, kw_only=True)
class RepairTold:
    """An action of a plan that was to repair the break. dag_id: of the DAG that is known to have a run for it; "" for
    any other.
    """

    plan_id: UUID
    planned_at: datetime
    requested_by: str
    action_id: UUID
    state: ActionState
    begun_at: datetime
    dag_id: str = ""


def alerts_of_break(engine: Engine, contract_name: str, n: int, break_class: BreakClass) -> tuple[AlertTold, ...]:
    """Read the alerts of this class since the run of cut n, until it was resolved; oldest first, the first few."""
    c = alert_table.c
    told = (
        select(c.alert_id, c.action, c.recorded_at, c.sinks, c.body)
        .where(c.contract == contract_name, c.dedup_key == dedup_key(contract_name, break_class), c.cut_n >= n)
        .order_by(c.alert_id)
        .limit(_ALERTS_MAX)
    )
    with engine.connect() as connection:
        rows = _until_resolved(connection.execute(told).all())
        got = (
            select(alert_delivery.c.alert_id, alert_delivery.c.sink, func.min(alert_delivery.c.recorded_at).label("at"))
            .where(alert_delivery.c.delivered, alert_delivery.c.alert_id.in_([row.alert_id for row in rows]))
            .group_by(alert_delivery.c.alert_id, alert_delivery.c.sink)
        )
        deliveries = connection.execute(got).all()
    return tuple(
        AlertTold(
            action=AlertAction(row.action),
            recorded_at=row.recorded_at,
            delivered_at={one.sink: one.at for one in deliveries if one.alert_id == row.alert_id},
            sinks=tuple(row.sinks),
            acknowledged_by=row.body["details"].get("acknowledged_by", ""),
        )
        for row in rows
    )


def _until_resolved(rows: Iterable[Any]) -> list[Any]:
    """Up to the first resolve: what comes after it is told of other breaks of the class."""
    told: list[Any] = []
    for row in rows:
        told.append(row)
        if row.action == AlertAction.RESOLVE:
            break
    return told


def repairs_of_break(engine: Engine, break_id: UUID) -> tuple[RepairTold, ...]:
    """Every action that ever took the break, oldest first."""
    action, plan = compensation_action.c, compensation_plan.c
    statement = (
        select(
            plan.plan_id,
            plan.recorded_at.label("planned_at"),
            plan.requested_by,
            action.action_id,
            action.state,
            action.recorded_at.label("begun_at"),
            func.coalesce(action.outcome["dag_id"].as_string(), "").label("dag_id"),
        )
        .join(compensation_plan, plan.plan_id == action.plan_id)
        .where(action.break_id == break_id)
        .order_by(action.recorded_at)
    )
    with engine.connect() as connection:
        return tuple(
            RepairTold(
                plan_id=row.plan_id,
                planned_at=row.planned_at,
                requested_by=row.requested_by,
                action_id=row.action_id,
                state=ActionState(row.state),
                begun_at=row.begun_at,
                dag_id=row.dag_id,
            )
            for row in connection.execute(statement)
        )
