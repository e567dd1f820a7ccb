"""Each sink is made of its connection, and no log shows an address or a secret."""

import logging
from pathlib import Path
from typing import Any

import pytest

from tallystick.alerting.alert_json import SinkFailed, SinkRefused
from tallystick.alerting.sinks.alertmanager import AlertmanagerSink
from tallystick.alerting.sinks.apprise import AppriseSink
from tallystick.alerting.sinks.connection import SinkConnection
from tallystick.alerting.sinks.email import EmailSink
from tallystick.alerting.sinks.pagerduty import PagerDutySink
from tallystick.alerting.sinks.registry import Sink, fires_until, is_stateless, sinks_for
from tallystick.alerting.sinks.slack import SlackSink
from tallystick.alerting.sinks.webhook import WebhookSink
from tallystick.contract.contract import Contract
from tests.alert_receiver import Receiver
from tests.unit.alerting.sinks.receivers import (
    ALERT,
    HOUR,
    NOON,
    SECRET,
    alertmanager,
    by_apprise,
    pagerduty,
    slack,
    webhook,
)


def test_what_fires_may_miss_one_run_before_alertmanager_forgets_it(contract: Contract) -> None:
    """Every hour: sent at noon, next at one, at the latest with the verdict of two o'clock."""
    assert fires_until(contract, NOON) == NOON + 2 * HOUR + contract.verdict_timeout


@pytest.mark.parametrize("answer", [200, 400, 500, "reset"])
@pytest.mark.parametrize("make", [webhook, pagerduty, slack, alertmanager, by_apprise])
def test_no_log_shows_an_address_or_a_secret(
    receiver: Receiver, make: Any, answer: int | str, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.answer = answer
    with caplog.at_level(logging.DEBUG):
        sink = make(receiver)
        try:
            sink.deliver(ALERT)
        except SinkFailed as error:
            caplog.messages.append(str(error))
    assert "s3cret" not in caplog.text + repr(sink)
    assert not [record for record in caplog.records if record.name.startswith(("httpx", "apprise", "urllib3"))]


MAIL = {"from": "tally@example.org", "to": "first@example.org, second@example.org"}


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (
            "webhook",
            SinkConnection(address="http://h/x", secret=SECRET),
            WebhookSink(name="webhook:c", address="http://h/x", secret=SECRET),
        ),
        ("pagerduty", SinkConnection(secret="key"), PagerDutySink(name="pagerduty:c", routing_key="key")),
        ("slack", SinkConnection(address="https://h/T/B/x"), SlackSink(name="slack:c", address="https://h/T/B/x")),
        (
            "slack",
            SinkConnection(address="https://h/services", secret="T/B/x"),
            SlackSink(name="slack:c", address="https://h/services/T/B/x"),
        ),
        (
            "email",
            SinkConnection(address="smtp://mail", login="l", secret="s", settings=MAIL),
            EmailSink(
                name="email:c",
                host="mail",
                port=587,
                sender="tally@example.org",
                recipients=("first@example.org", "second@example.org"),
                login="l",
                secret="s",
            ),
        ),
        ("apprise", SinkConnection(secret="json://h"), AppriseSink(name="apprise:c", url="json://h")),
    ],
)
def test_a_sink_is_made_of_its_connection(
    contract: Contract, kind: str, given: SinkConnection, expected: Sink, tmp_path: Path
) -> None:
    assert made(contract, kind, given, tmp_path) == expected


@pytest.mark.parametrize(
    ("kind", "given", "fault"),
    [
        ("webhook", SinkConnection(), "no address was given for its connection"),
        ("alertmanager", SinkConnection(secret="x"), "no address was given for its connection"),
        ("slack", SinkConnection(), "no address was given for its connection"),
        ("pagerduty", SinkConnection(address="https://h"), "its connection has no secret"),
        ("apprise", SinkConnection(), "its connection has no secret"),
        ("email", SinkConnection(address="smtp://mail", settings={"from": "a@b"}), "recipients 'to'"),
        ("email", SinkConnection(address="smtp://mail:p0rt", settings=MAIL), "expected smtp://host:port"),
        ("email", SinkConnection(address="smtp://mail", settings=MAIL | {"encryption": "no"}), "starttls, tls, none"),
        ("webhook", SinkConnection(address="http://h", fault="not defined in Airflow"), "not defined in Airflow"),
    ],
)
def test_a_connection_that_does_not_do_is_said_when_it_is_sent_to(
    contract: Contract, kind: str, given: SinkConnection, fault: str, tmp_path: Path
) -> None:
    with pytest.raises(SinkRefused, match=fault):
        made(contract, kind, given, tmp_path).deliver(ALERT)


def made(contract: Contract, kind: str, given: SinkConnection, folder: Path) -> Sink:
    alert = {"sinks": [{"kind": kind, "connection": "c"}]}
    document = contract.model_dump(mode="json", exclude_unset=True) | {"alert": alert}
    (sink,) = sinks_for(Contract.model_validate(document), connections={"c": given}, artifacts=folder)
    return sink


def test_only_alertmanager_must_be_told_again(receiver: Receiver) -> None:
    made_of = [make(receiver) for make in (webhook, pagerduty, slack, by_apprise, alertmanager)]
    assert [type(sink) for sink in made_of if is_stateless(sink)] == [AlertmanagerSink]
