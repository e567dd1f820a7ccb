"""A mail per recipient, a thread per incident; what no server takes is a failure or a refusal."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email import message_from_bytes, policy
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from lab.servers.ports import free_port
from tallystick.alerting.alert_json import SinkFailed, SinkRefused
from tallystick.alerting.sinks.email import EmailSink
from tests.unit.alerting.sinks.receivers import ALERT, HOUR, NOON, PATIENT, RESOLVED


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
