"""Delivers what the outbox holds: in order per alert key, at least once, each attempt on record.

Decides nothing about who is told what: the alerts were addressed when their run was committed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from sqlalchemy import Engine

from tallystick.alert import Alert, sink_name
from tallystick.alert_message import SinkFailed
from tallystick.contract import Contract
from tallystick.file_sink import FileSink
from tallystick.store.alert_store import PendingAlert, one_deliverer, pending_alerts, record_delivery
from tallystick.webhook_sink import WebhookSink


class AlertSink(Protocol):
    """A place that alerts go to."""

    @property
    def name(self) -> str:
        """The name deliveries are recorded under; as `sink_name` gives it."""

    def deliver(self, alert: Alert) -> str:
        """Send one alert; return what the receiver said. Raises SinkFailed."""


@dataclass(frozen=True, kw_only=True)
class DeliverySummary:
    """What one call did, in (alert, sink) pairs. held_back: waits for an earlier alert of its key at that sink."""

    delivered: int
    failed: int
    held_back: int


class DeliveryFailed(RuntimeError):
    """Some alerts are still owed; call again. The message has a line per failure, without addresses."""

    def __init__(self, summary: DeliverySummary, failures: Sequence[str]) -> None:
        super().__init__("\n".join([str(summary), *failures]))
        self.summary = summary


def deliver_pending(
    engine: Engine, contract_name: str, sinks: Sequence[AlertSink], *, links: Mapping[str, str] | None = None
) -> DeliverySummary:
    """Send every alert to each of these sinks that it is owed to. One failure stops neither other sinks nor other keys.

    links: name to address, in which {contract} and {cut_n} are filled in; sent with each alert.
    Raises DeliveryFailed at the end.
    """
    delivered = held_back = 0
    failures: list[str] = []
    blocked: set[tuple[str, str]] = set()
    by_name = {sink.name: sink for sink in sinks}
    with one_deliverer(engine, contract_name):
        for pending, sink in _owed(pending_alerts(engine, contract_name), by_name):
            lane = (pending.alert.dedup_key, sink.name)
            if lane in blocked:
                held_back += 1
                continue
            failure = _attempt(engine, replace(pending, alert=_with_links(pending.alert, links or {})), sink)
            if failure is None:
                delivered += 1
            else:
                failures.append(f"{sink.name}: {pending.alert.action} {pending.alert.dedup_key}: {failure}")
                blocked.add(lane)
    summary = DeliverySummary(delivered=delivered, failed=len(failures), held_back=held_back)
    if failures:
        raise DeliveryFailed(summary, failures)
    return summary


def send_unrecorded(alert: Alert, sinks: Sequence[AlertSink]) -> tuple[str, ...]:
    """Send one alert to each sink when the outbox cannot be reached; gives the failures, a line each.

    Nothing remembers that it was sent, so it may be sent again.
    """
    failures = ((sink.name, _send(alert, sink)[0]) for sink in sinks)
    return tuple(f"{name}: {failure}" for name, failure in failures if failure)


def sinks_for(
    contract: Contract, *, webhook_addresses: Mapping[str, str], artifacts_folder: Path
) -> tuple[AlertSink, ...]:
    """The contract's sinks. webhook_addresses: connection id to address; a missing one fails when it is sent to."""
    return tuple(
        WebhookSink(name=sink_name(sink), address=webhook_addresses.get(sink.connection or "", ""))
        if sink.kind == "webhook"
        else FileSink(name=sink_name(sink), path=artifacts_folder / (sink.path or ""))
        for sink in contract.alert.sinks
    )


def _owed(alerts: Sequence[PendingAlert], sinks: Mapping[str, AlertSink]) -> list[tuple[PendingAlert, AlertSink]]:
    return [(pending, sinks[name]) for pending in alerts for name in pending.owed_to if name in sinks]


def _attempt(engine: Engine, pending: PendingAlert, sink: AlertSink) -> str | None:
    """Send once and record it; return what went wrong."""
    failure, detail = _send(pending.alert, sink)
    record_delivery(engine, pending.alert_id, sink=sink.name, delivered=failure is None, detail=detail)
    return failure


def _send(alert: Alert, sink: AlertSink) -> tuple[str | None, str]:
    """What went wrong, and what the receiver said or did instead."""
    try:
        return None, sink.deliver(alert)
    except SinkFailed as error:
        failure = str(error)
    except Exception as error:  # one failed sink must not stop the next; its text may hold an address, so the type only
        failure = type(error).__name__
    return failure, failure


def _with_links(alert: Alert, links: Mapping[str, str]) -> Alert:
    """An alert that belongs to no cut has no link to one."""
    filled = {
        name: text.format(contract=alert.contract, cut_n=alert.cut_n)
        for name, text in links.items()
        if alert.cut_n is not None or "{cut_n}" not in text
    }
    return replace(alert, details={**alert.details, "links": filled})
