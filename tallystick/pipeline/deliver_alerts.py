"""Delivers what the outbox holds: in order per alert key, at least once, each attempt on record.

Decides nothing about who is told what: the alerts were addressed when their run was committed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import Engine

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.alerting.alert_json import Attempt, SinkFailed
from tallystick.alerting.sinks.registry import Sink, is_stateless
from tallystick.connections.connections import filled_link
from tallystick.model.errors import TallystickError
from tallystick.store.alerts.alert_store import (
    PendingAlert,
    firing_alerts,
    newest_trigger,
    one_deliverer,
    pending_alerts,
    record_delivery,
    resting_sinks,
    sinks_that_took,
)


@dataclass(frozen=True, kw_only=True)
class DeliverySummary:
    """The results of one call, in (alert, sink) pairs.

    held_back: waits for an earlier alert of its key at that sink, or for the sink, which asked to be left alone.
    """

    delivered: int
    failed: int
    held_back: int


class DeliveryFailed(TallystickError):
    """Some alerts are still owed; call again. The message has a line per failure, without addresses.

    retryable: may another call succeed by itself? Otherwise a person must change a connection or a receiver first.
    """

    def __init__(self, summary: DeliverySummary, failures: Sequence[str], *, retryable: bool) -> None:
        super().__init__("\n".join([str(summary), *failures]))
        self.summary = summary
        self.retryable = retryable


def deliver_pending(
    engine: Engine,
    contract_name: str,
    sinks: Sequence[Sink],
    *,
    links: Mapping[str, str] | None = None,
    only: Collection[str] | None = None,
) -> DeliverySummary:
    """Send every alert to each of these sinks that it is owed to. One failure stops neither other sinks nor other keys.

    links: name to address, in which {contract}, {cut_n} and {alert} are filled in; sent with each alert. only: names of
    the alerts to send; None sends all.
    What a sink refused holds back no later alert of its key. What fires is sent again to sinks that forget it, and once
    to those that the contract did not name yet when it was made: what is acknowledged after its trigger, since an
    acknowledgement opens nothing.
    Raises DeliveryFailed at the end.
    """
    with one_deliverer(engine, contract_name):
        done = _Done(resting=resting_sinks(engine))
        by_name = {sink.name: sink for sink in sinks}
        pending = _owed([one for one in pending_alerts(engine, contract_name) if _is_asked(one.alert, only)], by_name)
        for owed, sink in pending:
            if done.may_send(owed.alert, sink):
                done.note(owed.alert, sink, _attempt(engine, _with_links(owed.alert, links or {}), sink))
        told = {(owed.alert.dedup_key, sink.name) for owed, sink in pending}
        firing = [one for one in firing_alerts(engine, contract_name).values() if _is_asked(one, only)]
        unnamed = [one for one in firing if any(sink.name not in one.sinks for sink in sinks)]
        opened = {one.name: trigger for one in unnamed if (trigger := _trigger_of(engine, one)) is not None}
        asked = (*unnamed, *opened.values())
        taken = sinks_that_took(engine, [one.outbox_id for one in asked if one.outbox_id is not None])
        for alert in firing:
            for sink in sinks:
                is_new = sink.name not in alert.sinks and (alert.outbox_id, sink.name) not in taken
                if (alert.dedup_key, sink.name) in told or not (is_new or is_stateless(sink)):
                    continue
                trigger = opened.get(alert.name, alert)
                opens = is_new and trigger is not alert and (trigger.outbox_id, sink.name) not in taken
                for message in (trigger, alert) if opens else (alert,):
                    if not done.may_send(message, sink):
                        break
                    attempt = _attempt(engine, _with_links(message, links or {}), sink)
                    done.note(message, sink, attempt)
                    if not attempt.delivered:
                        break
    return done.summary()


@dataclass(kw_only=True)
class _Done:
    """What one call has done so far. resting: sinks that asked to be left alone, and for how many seconds more."""

    resting: dict[str, int]
    delivered: int = 0
    held_back: int = 0
    is_curable: bool = False
    failures: list[str] = field(default_factory=list)
    waiting: set[str] = field(default_factory=set)
    blocked: set[tuple[str, str]] = field(default_factory=set)

    def may_send(self, alert: Alert, sink: Sink) -> bool:
        if sink.name in self.resting:
            self.waiting.add(sink.name)
        may = sink.name not in self.resting and (alert.dedup_key, sink.name) not in self.blocked
        self.held_back += not may
        return may

    def note(self, alert: Alert, sink: Sink, attempt: Attempt) -> None:
        if attempt.delivered:
            self.delivered += 1
            return
        self.failures.append(f"{sink.name}: {alert.action} {alert.dedup_key}: {attempt.detail}")
        self.is_curable |= attempt.is_curable
        if attempt.is_curable:
            self.blocked.add((alert.dedup_key, sink.name))
        if attempt.retry_after_seconds:
            self.resting[sink.name] = attempt.retry_after_seconds

    def summary(self) -> DeliverySummary:
        """Raises DeliveryFailed."""
        summary = DeliverySummary(delivered=self.delivered, failed=len(self.failures), held_back=self.held_back)
        waiting = [
            f"{name}: it asked to be left alone for {self.resting[name]} s more" for name in sorted(self.waiting)
        ]
        if self.failures or waiting:
            raise DeliveryFailed(summary, [*self.failures, *waiting], retryable=self.is_curable or bool(waiting))
        return summary


def send_unrecorded(alert: Alert, sinks: Sequence[Sink]) -> tuple[tuple[str, Attempt], ...]:
    """Send one alert to each sink without the outbox; gives each sink's name and what came of it.

    Nothing remembers that it was sent, so it may be sent again.
    """
    return tuple((sink.name, _send(alert, sink)) for sink in sinks)


def _trigger_of(engine: Engine, alert: Alert) -> Alert | None:
    """The trigger of what somebody has taken on; None of another alert."""
    is_acknowledged = alert.action is AlertAction.ACKNOWLEDGE
    return newest_trigger(engine, alert.contract, alert.name) if is_acknowledged else None


def _is_asked(alert: Alert, only: Collection[str] | None) -> bool:
    return only is None or alert.name in only


def _owed(alerts: Sequence[PendingAlert], sinks: Mapping[str, Sink]) -> list[tuple[PendingAlert, Sink]]:
    return [(pending, sinks[name]) for pending in alerts for name in pending.owed_to if name in sinks]


def _attempt(engine: Engine, alert: Alert, sink: Sink) -> Attempt:
    """Send once and record it."""
    attempt = _send(alert, sink)
    record_delivery(
        engine,
        alert,
        sink=sink.name,
        delivered=attempt.delivered,
        detail=attempt.detail,
        retry_after_seconds=attempt.retry_after_seconds,
    )
    return attempt


def _send(alert: Alert, sink: Sink) -> Attempt:
    try:
        return Attempt(delivered=True, detail=sink.deliver(alert))
    except SinkFailed as error:
        return Attempt(
            delivered=False,
            detail=str(error),
            is_curable=error.retryable,
            retry_after_seconds=error.retry_after_seconds,
        )
    except Exception as error:  # one failed sink must not stop the next; its text may hold an address, so the type only
        return Attempt(delivered=False, detail=type(error).__name__)


def _with_links(alert: Alert, links: Mapping[str, str]) -> Alert:
    """An alert that belongs to no cut has no link to one."""
    filled = {
        name: filled_link(text, contract=alert.contract, cut_n=alert.cut_n, alert=alert.name)
        for name, text in links.items()
        if alert.cut_n is not None or "{cut_n}" not in text
    }
    return replace(alert, details={**alert.details, "links": filled})
