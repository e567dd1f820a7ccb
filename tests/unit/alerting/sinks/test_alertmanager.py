"""Alertmanager is told until when an alert fires, once however it escalates."""

import base64
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tallystick.contract.alerts import Severity
from tests.alert_receiver import Receiver
from tests.unit.alerting.sinks.receivers import ACKNOWLEDGED, ALERT, HOUR, NOON, RESOLVED, alertmanager


def firing(documents: list[dict[str, Any]]) -> list[str]:
    """Severities of what has not ended an hour after noon."""
    ends = {one["labels"]["severity"]: datetime.fromisoformat(one["endsAt"]) for one in documents}
    return [severity for severity, end in ends.items() if end > NOON + HOUR]


def test_alertmanager_is_told_until_when_an_alert_fires(receiver: Receiver) -> None:
    sink = alertmanager(receiver)
    sink.deliver(ALERT)
    sink.deliver(RESOLVED)
    assert [path for path, _, _ in receiver.requests] == ["/api/v2/alerts"] * 2
    fires, over = receiver.taken
    (one,) = [document for document in fires if document["labels"]["severity"] == "error"]
    assert one["labels"] == {
        "alertname": "phantom_in_topic",
        "service": "tallystick",
        "contract": "payouts",
        "owner": "payouts-team",
        "severity": "error",
    }
    assert (one["startsAt"], one["endsAt"]) == ("2026-03-01T12:00:00+00:00", "2026-03-01T16:00:00+00:00")
    assert (firing(fires), firing(over)) == (["error"], [])


def test_alertmanager_counts_an_acknowledged_alert_as_firing(receiver: Receiver) -> None:
    alertmanager(receiver).deliver(ACKNOWLEDGED)
    assert firing(receiver.taken[0]) == ["error"]


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(minutes=4)], ids=["as Alertmanager's", "4 minutes ahead"])
def test_what_has_ended_has_ended_for_alertmanager_too_where_this_hosts_clock_is_ahead(
    receiver: Receiver, ahead: timedelta
) -> None:
    began_utc = NOON - HOUR
    sink = replace(alertmanager(receiver), now=lambda: NOON + ahead)
    sink.deliver(replace(RESOLVED, began_utc=began_utc))
    (documents,) = receiver.taken
    assert all(began_utc < datetime.fromisoformat(one["endsAt"]) < NOON for one in documents)


def test_an_alert_that_escalates_fires_once_in_alertmanager(receiver: Receiver) -> None:
    alertmanager(receiver).deliver(replace(ALERT, severity=Severity.CRITICAL))
    (documents,) = receiver.taken
    assert firing(documents) == ["critical"]
    assert {document["labels"]["severity"] for document in documents} == set(Severity)
    assert len({document["startsAt"] for document in documents}) == 1


@pytest.mark.parametrize(
    ("given", "header"),
    [
        ({"login": "tally", "secret": "s3cret"}, "Basic " + base64.b64encode(b"tally:s3cret").decode()),
        ({"secret": "s3cret"}, "Bearer s3cret"),
        ({}, None),
    ],
)
def test_alertmanager_gets_the_connections_credentials(
    receiver: Receiver, given: dict[str, str], header: str | None
) -> None:
    alertmanager(receiver, **given).deliver(ALERT)
    assert receiver.requests[0][1].get("authorization") == header
