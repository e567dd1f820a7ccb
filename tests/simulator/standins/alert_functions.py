"""The store's functions about the outbox of alerts, on the store in memory."""

from collections.abc import Iterator, Sequence
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
    same = [one.alert for one in engine.alerts if (one.alert.contract, one.alert.name) == (contract_name, alert_name)]
    return same[-1] if same else None


def firing_alerts(engine: Store, contract_name: str) -> dict[str, Alert]:
    newest = {one.alert.name: one.alert for one in engine.alerts if one.alert.contract == contract_name}
    return {name: alert for name, alert in newest.items() if alert.action != AlertAction.RESOLVE}


def firing_names(engine: Store, contract_name: str) -> frozenset[str]:
    return frozenset(firing_alerts(engine, contract_name))


def pending_alerts(engine: Store, contract_name: str) -> tuple[PendingAlert, ...]:
    """An alert is owed to a sink until that sink has taken it, or a later one of its key."""
    found: list[PendingAlert] = []
    taken: dict[str, set[str]] = {}
    for one in reversed([one for one in engine.alerts if one.alert.contract == contract_name]):
        known = taken.setdefault(one.alert.dedup_key, set())
        known |= one.taken
        owed = tuple(sink for sink in one.alert.sinks if sink not in known)
        if owed:
            found.append(PendingAlert(alert=one.alert, owed_to=owed))
    return tuple(reversed(found))


def resting_sinks(engine: Store) -> dict[str, int]:
    return {}


def record_delivery(
    engine: Store, alert: Alert, *, sink: str, delivered: bool, detail: str, retry_after_seconds: int | None = None
) -> None:
    with engine.writing("record_delivery"):
        if delivered and alert.outbox_id is not None:
            engine.alerts[alert.outbox_id - 1].taken.add(sink)


@contextmanager
def one_deliverer(engine: Store, contract_name: str) -> Iterator[None]:
    yield
