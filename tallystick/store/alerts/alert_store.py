"""The outbox of alerts, and what became of each attempt to deliver one.

An alert is owed to a sink until that sink has taken it, or a later one of its key: a message that a receiver will not
have is overtaken by the next, and is not sent after it.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, Row, Select, func, insert, select, text

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.contract.alerts import Severity
from tallystick.store.schema import alert as alert_table
from tallystick.store.schema import alert_delivery


@dataclass(frozen=True, kw_only=True)
class PendingAlert:
    """A stored alert and the sinks it is still owed to."""

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


def newest_alert(engine: Engine, contract_name: str, alert_name: str) -> Alert | None:
    """The newest alert of a name, delivered or not."""
    statement = (
        _alerts(contract_name).where(alert_table.c.topic == alert_name).order_by(alert_table.c.alert_id.desc()).limit(1)
    )
    with engine.connect() as connection:
        row = connection.execute(statement).first()
    return _alert_of(row) if row else None


def newest_trigger(engine: Engine, contract_name: str, alert_name: str) -> Alert | None:
    """The newest alert of a name that neither acknowledges nor resolves."""
    is_it = (alert_table.c.topic == alert_name) & (alert_table.c.action == AlertAction.TRIGGER)
    statement = _alerts(contract_name).where(is_it).order_by(alert_table.c.alert_id.desc()).limit(1)
    with engine.connect() as connection:
        row = connection.execute(statement).first()
    return _alert_of(row) if row else None


def firing_names(engine: Engine, contract_name: str) -> frozenset[str]:
    """Names whose newest alert is no resolve, delivered or not."""
    return frozenset(firing_alerts(engine, contract_name))


def firing_alerts(engine: Engine, contract_name: str) -> dict[str, Alert]:
    """The newest alert of each such name: a trigger, or that it was acknowledged."""
    with engine.connect() as connection:
        return firing_seen_by(connection, contract_name)


def firing_seen_by(connection: Connection, contract_name: str) -> dict[str, Alert]:
    """The same, with what this connection's transaction has written."""
    newest = (
        _alerts(contract_name)
        .distinct(alert_table.c.dedup_key)
        .order_by(alert_table.c.dedup_key, alert_table.c.alert_id.desc())
    )
    return {row.topic: _alert_of(row) for row in connection.execute(newest) if row.action != AlertAction.RESOLVE}


def pending_alerts(engine: Engine, contract_name: str) -> tuple[PendingAlert, ...]:
    """Alerts that are owed to some sink, oldest first."""
    with engine.connect() as connection:
        return pending_alerts_seen_by(connection, contract_name)


def pending_alerts_seen_by(connection: Connection, contract_name: str) -> tuple[PendingAlert, ...]:
    """The same, as this connection's transaction sees it."""
    later = alert_table.alias("later")
    sink = func.jsonb_array_elements_text(alert_table.c.sinks).table_valued("value", name="sink")
    taken = (
        select(alert_delivery.c.delivery_id)
        .join(later, later.c.alert_id == alert_delivery.c.alert_id)
        .where(
            alert_delivery.c.delivered,
            alert_delivery.c.sink == sink.c.value,
            later.c.contract == alert_table.c.contract,
            later.c.dedup_key == alert_table.c.dedup_key,
            later.c.alert_id >= alert_table.c.alert_id,
        )
        .correlate(alert_table, sink)
        .exists()
    )
    owed = select(func.array_agg(sink.c.value)).select_from(sink).where(~taken).scalar_subquery()
    found = _alerts(contract_name).add_columns(owed.label("owed")).subquery()
    rows = connection.execute(select(found).where(found.c.owed.is_not(None)).order_by(found.c.alert_id)).all()
    return tuple(_pending(_alert_of(row), row.owed) for row in rows)


def sinks_that_took(engine: Engine, outbox_ids: Collection[int]) -> frozenset[tuple[int, str]]:
    """Return which sinks have taken these alerts: the alert's id in the outbox, and the sink's name."""
    with engine.connect() as connection:
        return sinks_that_took_seen_by(connection, outbox_ids)


def sinks_that_took_seen_by(connection: Connection, outbox_ids: Collection[int]) -> frozenset[tuple[int, str]]:
    """The same, as this connection's transaction sees it."""
    statement = select(alert_delivery.c.alert_id, alert_delivery.c.sink).where(
        alert_delivery.c.delivered, alert_delivery.c.alert_id.in_(outbox_ids)
    )
    return frozenset((row.alert_id, row.sink) for row in connection.execute(statement)) if outbox_ids else frozenset()


def resting_sinks(engine: Engine) -> dict[str, int]:
    """Sinks that asked to be left alone, and for how many seconds more."""
    asked_for = alert_delivery.c.retry_after_seconds * text("interval '1 second'")
    left = func.extract("epoch", func.max(alert_delivery.c.recorded_at + asked_for) - func.clock_timestamp())
    statement = (
        select(alert_delivery.c.sink, func.ceil(left).label("seconds"))
        .where(alert_delivery.c.retry_after_seconds.is_not(None))
        .group_by(alert_delivery.c.sink)
    )
    with engine.connect() as connection:
        return {row.sink: int(row.seconds) for row in connection.execute(statement) if row.seconds > 0}


def record_delivery(
    engine: Engine, alert: Alert, *, sink: str, delivered: bool, detail: str, retry_after_seconds: int | None = None
) -> None:
    """Append one attempt to deliver an alert of the outbox."""
    with engine.begin() as connection:
        connection.execute(
            insert(alert_delivery),
            {
                "alert_id": alert.outbox_id,
                "sink": sink,
                "delivered": delivered,
                "detail": detail,
                "retry_after_seconds": retry_after_seconds,
            },
        )


@contextmanager
def one_deliverer(engine: Engine, contract_name: str) -> Iterator[None]:
    """Wait until no other process delivers this contract's alerts: a late trigger must not follow its resolve."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.detach()  # the lock is the session's: it goes with the connection, not back to the pool
        key = func.hashtextextended(f"tallystick/deliver/{contract_name}", 0)
        connection.execute(select(func.pg_advisory_lock(key)))
        yield


def _alerts(contract_name: str) -> Select[Any]:
    """A contract's alerts, and when the incident of each began."""
    first, over = alert_table.alias("first"), alert_table.alias("over")
    last_over = (
        select(func.coalesce(func.max(over.c.alert_id), 0))
        .where(
            over.c.contract == alert_table.c.contract,
            over.c.dedup_key == alert_table.c.dedup_key,
            over.c.alert_id < alert_table.c.alert_id,
            over.c.action == AlertAction.RESOLVE,
        )
        .correlate(alert_table)
        .scalar_subquery()
    )
    began = (
        select(func.min(first.c.recorded_at))
        .where(
            first.c.contract == alert_table.c.contract,
            first.c.dedup_key == alert_table.c.dedup_key,
            first.c.alert_id.between(last_over + 1, alert_table.c.alert_id),
        )
        .correlate(alert_table)
        .scalar_subquery()
    )
    return select(alert_table, began.label("began_utc")).where(alert_table.c.contract == contract_name)


def _pending(alert: Alert, owed_to: Collection[str]) -> PendingAlert:
    return PendingAlert(alert=alert, owed_to=tuple(sink for sink in alert.sinks if sink in owed_to))


def _alert_row(alert: Alert) -> dict[str, object]:
    return {
        "contract": alert.contract,
        "cut_n": alert.cut_n,
        "topic": alert.name,
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
        name=row.topic,
        action=AlertAction(row.action),
        severity=Severity(row.severity),
        summary=row.body["summary"],
        details=row.body["details"],
        sinks=tuple(row.sinks),
        outbox_id=row.alert_id,
        at_utc=row.recorded_at,
        began_utc=row.began_utc,
    )
