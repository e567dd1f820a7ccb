"""Each sink against a real receiver: what it sends, what it calls taken, failed or refused, and what it never shows."""

import base64
import hashlib
import hmac
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from lab.servers.ports import free_port
from tallystick.alerting.alert import Alert, AlertAction
from tallystick.alerting.message import SinkFailed, SinkRefused
from tallystick.alerting.sinks.alertmanager import AlertmanagerSink
from tallystick.alerting.sinks.apprise import AppriseSink
from tallystick.alerting.sinks.connection import SinkConnection, sink_connection
from tallystick.alerting.sinks.email import EmailSink
from tallystick.alerting.sinks.http_post import retry_after_seconds
from tallystick.alerting.sinks.pagerduty import PagerDutySink
from tallystick.alerting.sinks.registry import Sink, StatelessSink, fires_until, sinks_for
from tallystick.alerting.sinks.slack import SlackSink
from tallystick.alerting.sinks.webhook import WebhookSink, signed
from tallystick.contract.alerts import Severity
from tallystick.contract.contract import Contract
from tests.alert_receiver import Receiver, receiving

PATIENT = 60
"""Seconds: a busy machine is no receiver that is down."""

NOON, HOUR = datetime(2026, 3, 1, 12, tzinfo=UTC), timedelta(hours=1)
SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes....").decode()
ALERT = Alert(
    contract="payouts",
    cut_n=5,
    topic="phantom_in_topic",
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


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as told:
        yield told


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


BY_HTTP = pytest.mark.parametrize("make", [webhook, pagerduty, slack, alertmanager])


@BY_HTTP
def test_what_is_answered_with_2xx_is_taken(receiver: Receiver, make: Any) -> None:
    receiver.answer = 202
    assert make(receiver).deliver(ALERT) == "202"
    assert receiver.asked == 1


@BY_HTTP
@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_a_later_try_may_cure_is_a_failure(receiver: Receiver, make: Any, status: int) -> None:
    receiver.answer = status
    with pytest.raises(SinkFailed, match=f"^the receiver answered {status}$") as raised:
        make(receiver).deliver(ALERT)
    assert not isinstance(raised.value, SinkRefused)
    assert receiver.asked == 1


@BY_HTTP
@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 410, 413])
def test_what_no_later_try_cures_is_a_refusal(receiver: Receiver, make: Any, status: int) -> None:
    receiver.answer = status
    with pytest.raises(SinkRefused, match=f"^the receiver answered {status}$"):
        make(receiver).deliver(ALERT)


def test_a_receiver_that_sends_elsewhere_is_not_followed(receiver: Receiver) -> None:
    receiver.answer, receiver.answer_headers = 307, {"location": f"{receiver.base}/elsewhere"}
    with pytest.raises(SinkRefused):
        webhook(receiver, secret=SECRET).deliver(ALERT)
    assert [path for path, _, _ in receiver.requests] == ["/hook?token=s3cret"]


@pytest.mark.parametrize("answer", ["silence", "dribble"])
def test_an_answer_that_does_not_end_is_a_failure_within_the_time_limit(receiver: Receiver, answer: str) -> None:
    receiver.answer = answer
    with pytest.raises(SinkFailed, match=r"^no answer within 0\.2 s$"):
        webhook(receiver, timeout_seconds=0.2).deliver(ALERT)


@pytest.mark.parametrize("address", ["", "pager.example.org/hook", "ftp://pager/hook", "http://[::1/s3cret"])
def test_an_address_that_is_none_is_a_refusal_that_does_not_name_it(address: str) -> None:
    with pytest.raises(SinkRefused, match=r"^its connection has no usable address") as raised:
        WebhookSink(name="webhook:pager", address=address).deliver(ALERT)
    assert not address or address not in str(raised.value)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
        ("999999999", 3600),
        ("Mon, 01 Mar 2027 12:00:00 GMT", 3600),
        ("soon", None),
        ("-5", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date_and_has_a_limit(header: str | None, seconds: int | None) -> None:
    assert retry_after_seconds(header, now_utc=NOON) == seconds


@BY_HTTP
def test_a_receiver_that_asks_for_time_is_heard(receiver: Receiver, make: Any) -> None:
    receiver.answer, receiver.answer_headers = 429, {"Retry-After": "120"}
    with pytest.raises(SinkFailed) as raised:
        make(receiver).deliver(ALERT)
    assert raised.value.retry_after_seconds == 120


def test_a_webhook_with_a_secret_is_signed_over_id_time_and_body(receiver: Receiver) -> None:
    webhook(receiver, secret=SECRET, now_seconds=lambda: 1772366400.9).deliver(ALERT)
    ((_, headers, body),) = receiver.requests
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == (ALERT.delivery_key, "1772366400")
    signed_text = f"{ALERT.delivery_key}.1772366400.".encode() + body
    expected = hmac.new(b"a secret of thirty-two bytes....", signed_text, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(expected).decode()


def test_the_signature_is_that_of_the_published_example() -> None:
    """The test vector that the authors of Standard Webhooks give their own libraries."""
    headers = signed(
        b'{"test": 2432232314}',
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_webhook_without_a_secret_is_not_signed(receiver: Receiver) -> None:
    webhook(receiver).deliver(ALERT)
    ((_, headers, _),) = receiver.requests
    assert "webhook-signature" not in headers
    assert headers["webhook-id"] == ALERT.delivery_key


@pytest.mark.parametrize("secret", ["plain", "whsec_", "whsec_not base64"])
def test_a_secret_that_cannot_sign_is_refused_and_nothing_is_sent(receiver: Receiver, secret: str) -> None:
    with pytest.raises(SinkRefused, match="is none that signs") as raised:
        webhook(receiver, secret=secret).deliver(ALERT)
    assert receiver.asked == 0
    assert "plain" not in str(raised.value)


def test_a_message_has_one_delivery_key_however_often_it_is_sent_and_no_other_has_it() -> None:
    again = replace(ALERT, details={**ALERT.details, "links": {}})
    assert again.delivery_key == ALERT.delivery_key
    others = {ALERT.delivery_key, RESOLVED.delivery_key, replace(ALERT, outbox_id=70).delivery_key}
    assert len(others) == 3
    assert ALERT.dedup_key == RESOLVED.dedup_key


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


def test_what_fires_may_miss_one_run_before_alertmanager_forgets_it(contract: Contract) -> None:
    """Every hour: sent at noon, next at one, at the latest with the verdict of two o'clock."""
    assert fires_until(contract, NOON) == NOON + 2 * HOUR + contract.verdict_timeout


def test_slack_shows_strangers_texts_without_mentions_or_links(receiver: Receiver) -> None:
    slack(receiver).deliver(replace(ALERT, summary="held by <!channel> & <https://evil|here>"))
    (message,) = receiver.taken
    assert "<" not in json.dumps(message)
    assert "&lt;!channel&gt; &amp;" in message["text"]
    assert all(len(block["text"]["text"]) <= 3000 for block in message["blocks"] if block["type"] == "section")


def test_slack_makes_links_of_our_own_addresses_only(receiver: Receiver) -> None:
    """Without `verbatim` Slack makes one of whatever looks like an address, or like a channel."""
    text = "https://evil.example/pay #general @here"
    slack(receiver).deliver(replace(ALERT, summary=text, details=ALERT.details | {"sentences": [text]}))
    (message,) = receiver.taken
    texts = [part for block in message["blocks"] for part in (block.get("text"), *block.get("elements", ())) if part]
    shown = [one for one in texts if "evil" in one["text"] or ALERT.dedup_key in one["text"]]
    assert len(shown) == 3
    assert all(one.get("verbatim") is True for one in shown)
    assert [one["text"].partition(":")[0] for one in texts if one["type"] == "mrkdwn" and "verbatim" not in one] == [
        "Runbook"
    ]
    assert not message["unfurl_links"] and not message["unfurl_media"]


def test_slack_says_what_is_over(receiver: Receiver) -> None:
    slack(receiver).deliver(RESOLVED)
    assert receiver.taken[0]["blocks"][0]["text"]["text"] == "Resolved: Phantom in topic"


def test_apprise_that_succeeds_is_taken_and_one_that_fails_is_not(receiver: Receiver) -> None:
    assert by_apprise(receiver).deliver(ALERT) == "taken by Apprise"
    receiver.answer = 500
    with pytest.raises(SinkFailed, match="Apprise could not deliver it"):
        by_apprise(receiver).deliver(ALERT)
    assert receiver.taken[0]["title"] == "[payouts] error: Phantom in topic"


@pytest.mark.parametrize("url", ["nosuchservice://s3cret", "s3cret"])
def test_an_address_that_apprise_does_not_know_is_refused(url: str) -> None:
    with pytest.raises(SinkRefused, match="no address that Apprise knows") as raised:
        AppriseSink(name="apprise:chat", url=url).deliver(ALERT)
    assert "s3cret" not in str(raised.value)


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


@dataclass
class Mailbox:
    """A real SMTP server. refuses: the answer to a recipient, or to the content."""

    port: int = 0
    recipient_answer: str = "250 OK"
    content_answer: str = "250 OK"
    mails: list[Any] = field(default_factory=list)

    async def handle_RCPT(self, _: Any, __: Any, envelope: Any, address: str, ___: Any) -> str:
        answer = self.recipient_answer if address == "second@example.org" else "250 OK"
        if answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, _: Any, __: Any, envelope: Any) -> str:
        if self.content_answer.startswith("250"):
            self.mails.append((envelope.rcpt_tos, message_from_bytes(envelope.content, policy=policy.default)))
        return self.content_answer

    def sink(self, **given: Any) -> EmailSink:
        told = {
            "encryption": "none",
            "recipients": ("first@example.org", "second@example.org"),
            "timeout_seconds": PATIENT,
        }
        return EmailSink(
            name="email:mail", host="127.0.0.1", port=self.port, sender="tally@example.org", **told | given
        )


@contextmanager
def mailbox(**options: Any) -> Iterator[Mailbox]:
    handler = Mailbox(port=free_port())
    controller = Controller(handler, hostname="127.0.0.1", port=handler.port, ready_timeout=60, **options)
    controller.start()
    try:
        yield handler
    finally:
        controller.stop()


def test_a_mail_says_it_to_every_recipient() -> None:
    with mailbox() as box:
        assert box.sink().deliver(ALERT) == "taken for 2 of 2 recipients"
        ((recipients, mail),) = box.mails
    assert recipients == ["first@example.org", "second@example.org"]
    assert mail["subject"] == "[payouts] error: Phantom in topic"
    assert mail["message-id"] == f"<{ALERT.delivery_key}@tallystick.invalid>"
    assert ALERT.summary in mail.get_content()
    assert "Runbook: docs/runbooks/x.md" in mail.get_content()


def test_the_mails_of_one_incident_are_one_thread_and_those_of_the_next_are_another() -> None:
    with mailbox() as box:
        for alert in (ALERT, RESOLVED, replace(ALERT, began_utc=NOON + HOUR)):
            box.sink().deliver(alert)
        first, second, third = (mail["references"] for _, mail in box.mails)
    assert first == second != third


def test_a_mail_that_one_recipient_takes_is_taken() -> None:
    with mailbox() as box:
        box.recipient_answer = "550 no such user"
        assert box.sink().deliver(ALERT) == "taken for 1 of 2 recipients"


@pytest.mark.parametrize(("answer", "error"), [("450 later", SinkFailed), ("550 no such user", SinkRefused)])
def test_a_mail_that_no_recipient_takes_is_not(answer: str, error: type[SinkFailed]) -> None:
    with mailbox() as box:
        box.recipient_answer = answer
        with pytest.raises(SinkFailed, match=f"the server answered {answer[:3]} to every recipient") as raised:
            box.sink(recipients=("second@example.org",)).deliver(ALERT)
    assert type(raised.value) is error


@pytest.mark.parametrize(("answer", "error"), [("451 later", SinkFailed), ("554 never", SinkRefused)])
def test_a_mail_whose_content_is_not_taken_is_not_delivered(answer: str, error: type[SinkFailed]) -> None:
    with mailbox() as box:
        box.content_answer = answer
        with pytest.raises(SinkFailed, match=f"^the server answered {answer[:3]}$") as raised:
            box.sink().deliver(ALERT)
    assert type(raised.value) is error


def test_a_login_goes_to_the_server_and_a_wrong_one_is_refused() -> None:
    def knows(_: Any, __: Any, ___: Any, ____: Any, given: Any) -> AuthResult:
        return AuthResult(success=given.password == b"s3cret", handled=False)

    with mailbox(authenticator=knows, auth_require_tls=False, auth_required=True) as box:
        assert "2 of 2" in box.sink(login="tally", secret="s3cret").deliver(ALERT)
        with pytest.raises(SinkRefused, match=r"^the server answered 535$"):
            box.sink(login="tally", secret="wrong").deliver(ALERT)


def test_a_server_without_encryption_gets_no_login() -> None:
    asked: list[Any] = []

    def listens(_: Any, __: Any, ___: Any, ____: Any, given: Any) -> AuthResult:
        asked.append(given)
        return AuthResult(success=True)

    with mailbox(authenticator=listens, auth_require_tls=False) as box:
        with pytest.raises(SinkRefused, match="offers no encryption"):
            box.sink(encryption="starttls", login="tally", secret="s3cret").deliver(ALERT)
        assert (box.mails, asked) == ([], [])


def test_a_mail_server_that_is_not_there_is_a_failure() -> None:
    with pytest.raises(SinkFailed, match=r"^no answer: ConnectionRefusedError$"):
        Mailbox(port=free_port()).sink().deliver(ALERT)


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
    (sink,) = sinks_for(Contract.model_validate(document), connections={"c": given}, artifacts_folder=folder)
    return sink


def test_only_alertmanager_must_be_told_again(receiver: Receiver) -> None:
    made_of = [make(receiver) for make in (webhook, pagerduty, slack, by_apprise, alertmanager)]
    assert [type(sink) for sink in made_of if isinstance(sink, StatelessSink)] == [AlertmanagerSink]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://h/x", SinkConnection(address="https://h/x")),
        (
            '{"address": "smtp://h", "login": "l", "secret": "s", "to": "a@b"}',
            SinkConnection(address="smtp://h", login="l", secret="s", settings={"to": "a@b"}),
        ),
    ],
)
def test_a_connection_is_read_from_the_environment(text: str, expected: SinkConnection) -> None:
    assert sink_connection("pager", {"TALLYSTICK_CONN_PAGER": text}) == expected


@pytest.mark.parametrize("text", ["", "{s3cret", '{"secret": 7}'])
def test_a_connection_that_cannot_be_read_says_so_without_its_text(text: str) -> None:
    found = sink_connection("pager", {"TALLYSTICK_CONN_PAGER": text})
    assert "connection pager: expected" in found.fault
    assert "s3cret" not in found.fault + repr(found)
