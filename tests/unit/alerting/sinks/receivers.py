"""Alerts, and the sinks that send them to a receiver on this host."""

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.alerting.sinks.alertmanager import AlertmanagerSink
from tallystick.alerting.sinks.apprise import AppriseSink
from tallystick.alerting.sinks.pagerduty import PagerDutySink
from tallystick.alerting.sinks.slack import SlackSink
from tallystick.alerting.sinks.webhook import WebhookSink
from tallystick.contract.alerts import Severity
from tests.alert_receiver import Receiver

PATIENT = 60
"""Seconds: a busy machine is no receiver that is down."""

NOON, HOUR = datetime(2026, 3, 1, 12, tzinfo=UTC), timedelta(hours=1)
SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes....").decode()
ALERT = Alert(
    contract="payouts",
    cut_n=5,
    name="phantom_in_topic",
    action=AlertAction.TRIGGER,
    severity=Severity.ERROR,
    summary="payouts: phantom in topic: 2 new",
    details={"contract": "payouts", "owner": "payouts-team", "cut_n": 5, "links": {"runbook": "docs/runbooks/x.md"}},
    sinks=(),
    outbox_id=7,
    at_utc=NOON + HOUR,
    began_utc=NOON,
)
RESOLVED = replace(ALERT, action=AlertAction.RESOLVE, severity=Severity.INFO, outbox_id=8, at_utc=NOON + 2 * HOUR)
ACKNOWLEDGED = replace(ALERT, action=AlertAction.ACKNOWLEDGE, outbox_id=9)


def webhook(receiver: Receiver, **given: Any) -> WebhookSink:
    return WebhookSink(name="webhook:pager", address=receiver.address, **{"timeout_seconds": PATIENT} | given)


def pagerduty(receiver: Receiver) -> PagerDutySink:
    return PagerDutySink(
        name="pagerduty:pager", address=receiver.base, routing_key="r0uting-s3cret", timeout_seconds=PATIENT
    )


def slack(receiver: Receiver) -> SlackSink:
    return SlackSink(name="slack:chat", address=receiver.address, timeout_seconds=PATIENT)


def alertmanager(receiver: Receiver, **given: Any) -> AlertmanagerSink:
    return AlertmanagerSink(
        name="alertmanager:am",
        address=receiver.base,
        fires_until=lambda now_utc: now_utc + 3 * HOUR,
        now=lambda: NOON + HOUR,
        timeout_seconds=PATIENT,
        **given,
    )


def by_apprise(receiver: Receiver) -> AppriseSink:
    return AppriseSink(name="apprise:chat", url=f"json://user:s3cret@127.0.0.1:{receiver.port}/hook")
