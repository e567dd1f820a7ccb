"""The store's functions about the outbox of alerts, on the store in memory."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.store.alerts.alert_store import PendingAlert
from tests.simulator.standins.store import Store


def store_now(engine: Store) -> datetime:
    return engine.clock.now


def append_alerts(engine: Store, alerts: Sequence[Alert]) -> None:
    with engine.writing("append_alerts"):
        engine.insert_alerts(alerts)


def newest_alert(engine: Store, contract_name: str, alert_name: str) -> Alert | None:
    return engine.newest_alerts.get(contract_name, {}).get(alert_name)


def newest_trigger(engine: Store, contract_name: str, alert_name: str) -> Alert | None:
    told = [one for one in engine.alerts if (one.contract, one.name) == (contract_name, alert_name)]
    return next((one for one in reversed(told) if one.action is AlertAction.TRIGGER), None)


def firing_alerts(engine: Store, contract_name: str) -> dict[str, Alert]:
    newest = engine.newest_alerts.get(contract_name, {})
    return {name: alert for name, alert in newest.items() if alert.action != AlertAction.RESOLVE}


def firing_names(engine: Store, contract_name: str) -> frozenset[str]:
    return frozenset(firing_alerts(engine, contract_name))


def pending_alerts(engine: Store, contract_name: str) -> tuple[PendingAlert, ...]:
    return tuple(PendingAlert(alert=alert, owed_to=sinks) for alert, sinks in engine.still_owed(contract_name))


def sinks_that_took(engine: Store, outbox_ids: Collection[int]) -> frozenset[tuple[int, str]]:
    """As the real one, of the newest alert of each key."""
    return frozenset((number, sink) for (_, sink), number in engine.taken.items() if number in set(outbox_ids))


def resting_sinks(engine: Store) -> dict[str, int]:
    return {}


def record_delivery(
    engine: Store, alert: Alert, *, sink: str, delivered: bool, detail: str, retry_after_seconds: int | None = None
) -> None:
    with engine.writing("record_delivery"):
        if delivered and alert.outbox_id is not None:
            key = (alert.dedup_key, sink)
            engine.taken[key] = max(engine.taken.get(key, 0), alert.outbox_id)


@contextmanager
def one_deliverer(engine: Store, contract_name: str) -> Iterator[None]:
    yield
