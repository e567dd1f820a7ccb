"""One incident per key, with its severity and no more text than PagerDuty takes."""

from dataclasses import replace

from tests.alert_receiver import Receiver
from tests.unit.alerting.sinks.receivers import ACKNOWLEDGED, ALERT, RESOLVED, pagerduty


def test_pagerduty_gets_one_incident_per_key_with_its_severity(receiver: Receiver) -> None:
    sink = pagerduty(receiver)
    for alert in (ALERT, ACKNOWLEDGED, RESOLVED):
        sink.deliver(alert)
    trigger, acknowledge, resolve = receiver.taken
    assert [path for path, _, _ in receiver.requests] == ["/v2/enqueue"] * 3
    assert (trigger["event_action"], trigger["payload"]["severity"]) == ("trigger", "error")
    assert trigger["payload"]["summary"] == ALERT.summary
    key = {"routing_key": "r0uting-s3cret", "dedup_key": "tallystick/payouts/phantom_in_topic"}
    assert acknowledge == key | {"event_action": "acknowledge"}
    assert resolve == key | {"event_action": "resolve"}
    assert {one["dedup_key"] for one in receiver.taken} == {ALERT.dedup_key}


def test_pagerduty_gets_no_longer_summary_than_it_takes(receiver: Receiver) -> None:
    pagerduty(receiver).deliver(replace(ALERT, summary="x" * 1025))
    summary = receiver.taken[0]["payload"]["summary"]
    assert (len(summary), summary[-4:]) == (1024, "x...")


def test_pagerduty_links_a_runbook_that_has_an_address_and_names_one_that_has_not(receiver: Receiver) -> None:
    address = "https://runbooks.example.org/x.md"
    for runbook in ("docs/runbooks/x.md", address):
        pagerduty(receiver).deliver(replace(ALERT, details={**ALERT.details, "links": {"runbook": runbook}}))
    named, linked = receiver.taken
    assert named["links"] == []
    assert named["payload"]["custom_details"]["Runbook"] == "docs/runbooks/x.md"
    assert linked["links"] == [{"href": address, "text": "Runbook"}]
