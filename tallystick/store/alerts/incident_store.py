"""The open incidents of a contract, for people: the newest alert of each."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine, select

from tallystick.alerting.alert import AlertAction
from tallystick.contract.alerts import Severity
from tallystick.store.schema import alert


@dataclass(frozen=True, kw_only=True)
class Incident:
    """An incident that is not resolved. told_at: the newest alert of it. taken_on_by: "" while nobody has."""

    name: str
    severity: Severity
    summary: str
    told_at: datetime
    taken_on_by: str


def read_incidents(engine: Engine, contract_name: str) -> tuple[Incident, ...]:
    """Read those whose newest alert is no resolve, by topic."""
    c = alert.c
    newest = (
        select(c.topic, c.action, c.severity, c.body, c.recorded_at)
        .distinct(c.dedup_key)
        .where(c.contract == contract_name)
        .order_by(c.dedup_key, c.alert_id.desc())
    )
    with engine.connect() as connection:
        rows = connection.execute(newest).all()
    return tuple(
        Incident(
            name=row.topic,
            severity=Severity(row.severity),
            summary=row.body["summary"],
            told_at=row.recorded_at,
            taken_on_by=row.body["details"]["acknowledged_by"] if row.action == AlertAction.ACKNOWLEDGE else "",
        )
        for row in rows
        if row.action != AlertAction.RESOLVE
    )
