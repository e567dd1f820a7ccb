"""The outbox of alerts, and what became of each attempt to deliver one."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, Row, func, insert, select
from sqlalchemy.dialects.postgresql import distinct_on

from tallystick.alert import Alert, AlertAction
from tallystick.contract import Severity
from tallystick.store.schema import alert as alert_table
from tallystick.store.schema import alert_delivery


@dataclass(frozen=True, kw_only=True)
class PendingAlert:
    """A stored alert and the sinks it is still owed to."""

    alert_id: int
    alert: Alert
    owed_to: tuple[str, ...]


def insert_alerts(connection: Connection, alerts: Sequence[Alert]) -> None:
    """Part of the commit of a run or of a write-off: alerts stand in the outbox exactly when that stands."""
    if alerts:
        connection.execute(insert(alert_table), [_alert_row(alert) for alert in alerts])


def append_alerts(engine: Engine, alerts: Sequence[Alert]) -> None:
    """Put alerts into the outbox that no run commits."""
    with engine.begin() as connection:
        insert_alerts(connection, alerts)


def newest_alert(engine: Engine, contract_name: str, topic: str) -> Alert | None:
    """The newest alert of a topic, delivered or not."""
    statement = (
        select(alert_table)
        .where(alert_table.c.contract == contract_name, alert_table.c.topic == topic)
        .order_by(alert_table.c.alert_id.desc())
        .limit(1)
    )
    with engine.connect() as connection:
        row = connection.execute(statement).first()
    return _alert_of(row) if row else None


def firing_topics(engine: Engine, contract_name: str) -> frozenset[str]:
    """Topics whose newest alert is a trigger, delivered or not."""
    with engine.connect() as connection:
        return firing_seen_by(connection, contract_name)


def firing_seen_by(connection: Connection, contract_name: str) -> frozenset[str]:
    """The same, with what this connection's transaction has written."""
    newest = (
        select(alert_table.c.topic, alert_table.c.action)
        .where(alert_table.c.contract == contract_name)
        .ext(distinct_on(alert_table.c.dedup_key))
        .order_by(alert_table.c.dedup_key, alert_table.c.alert_id.desc())
    )
    return frozenset(topic for topic, action in connection.execute(newest) if action == AlertAction.TRIGGER)


def pending_alerts(engine: Engine, contract_name: str) -> tuple[PendingAlert, ...]:
    """Alerts that some sink has not got yet, oldest first."""
    got = (
        select(alert_delivery.c.alert_id, func.array_agg(alert_delivery.c.sink.distinct()).label("sinks"))
        .where(alert_delivery.c.delivered)
        .group_by(alert_delivery.c.alert_id)
        .subquery()
    )
    statement = (
        select(alert_table, got.c.sinks.label("got"))
        .outerjoin(got, got.c.alert_id == alert_table.c.alert_id)
        .where(
            alert_table.c.contract == contract_name,
            func.jsonb_array_length(alert_table.c.sinks) > func.coalesce(func.cardinality(got.c.sinks), 0),
        )
        .order_by(alert_table.c.alert_id)
    )
    with engine.connect() as connection:
        return tuple(_pending(row.alert_id, _alert_of(row), row.got or ()) for row in connection.execute(statement))


def record_delivery(engine: Engine, alert_id: int, *, sink: str, delivered: bool, detail: str) -> None:
    """Append one attempt."""
    with engine.begin() as connection:
        connection.execute(
            insert(alert_delivery), {"alert_id": alert_id, "sink": sink, "delivered": delivered, "detail": detail}
        )


@contextmanager
def one_deliverer(engine: Engine, contract_name: str) -> Iterator[None]:
    """Wait until no other process delivers this contract's alerts: a late trigger must not follow its resolve."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        key = func.hashtextextended(f"tallystick/deliver/{contract_name}", 0)
        connection.execute(select(func.pg_advisory_lock(key)))
        yield


def _pending(alert_id: int, alert: Alert, got: Collection[str]) -> PendingAlert:
    return PendingAlert(alert_id=alert_id, alert=alert, owed_to=tuple(sink for sink in alert.sinks if sink not in got))


def _alert_row(alert: Alert) -> dict[str, object]:
    return {
        "contract": alert.contract,
        "cut_n": alert.cut_n,
        "topic": alert.topic,
        "dedup_key": alert.dedup_key,
        "action": alert.action,
        "severity": alert.severity,
        "body": {"summary": alert.summary, "details": dict(alert.details)},
        "sinks": list(alert.sinks),
    }


def _alert_of(row: Row[Any]) -> Alert:
    return Alert(
        contract=row.contract,
        cut_n=row.cut_n,
        topic=row.topic,
        action=AlertAction(row.action),
        severity=Severity(row.severity),
        summary=row.body["summary"],
        details=row.body["details"],
        sinks=tuple(row.sinks),
    )
