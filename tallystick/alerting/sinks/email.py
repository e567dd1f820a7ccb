"""Sends an alert as a plain text e-mail. The mails of one incident are one thread, and a mail that is sent again has
the same Message-ID, by which mail programs and servers know it.
"""

import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from hashlib import sha256
from typing import Literal

from tallystick.alerting.alert import Alert
from tallystick.alerting.alert_json import SinkFailed, SinkRefused
from tallystick.alerting.sinks.http_post import TIMEOUT_SECONDS
from tallystick.alerting.template import render_lines

Encryption = Literal["starttls", "tls", "none"]

ENCRYPTIONS: tuple[Encryption, ...] = ("starttls", "tls", "none")

_DOMAIN = "tallystick.invalid"
"""Of Message-IDs: a name that nobody can own (RFC 2606), so that they are those of no other host."""


@dataclass(frozen=True, kw_only=True)
class EmailSink:
    """encryption: starttls upgrades the connection before the login; none is for a relay on the same machine.

    timeout_seconds: for each answer of the server, of which a mail takes about ten.
    """

    name: str
    host: str = field(repr=False)
    port: int = field(repr=False)
    sender: str = field(repr=False)
    recipients: Sequence[str] = field(repr=False)
    login: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    encryption: Encryption = "starttls"
    timeout_seconds: int | float = TIMEOUT_SECONDS

    def deliver(self, alert: Alert) -> str:
        """Send once; taken where one recipient is, since to send it again would tell that one again.

        Raises SinkFailed, SinkRefused.
        """
        try:
            with self._connect() as server:
                if self.encryption == "starttls":
                    server.starttls(context=ssl.create_default_context())
                if self.login:
                    server.login(self.login, self.secret)
                refused = server.send_message(self._mail(alert), self.sender, list(self.recipients))
        except smtplib.SMTPRecipientsRefused as error:
            codes = sorted({code for code, _ in error.recipients.values()})
            raise _failure(codes[0], f"the server answered {codes[0]} to every recipient") from None
        except smtplib.SMTPResponseException as error:
            raise _failure(error.smtp_code, f"the server answered {error.smtp_code}") from None
        except smtplib.SMTPNotSupportedError:
            raise SinkRefused("the server offers no encryption or no login, and its connection asks for it") from None
        except (OSError, smtplib.SMTPException) as error:
            raise SinkFailed(f"no answer: {type(error).__name__}") from None
        return f"taken for {len(self.recipients) - len(refused)} of {len(self.recipients)} recipients"

    def _connect(self) -> smtplib.SMTP:
        if self.encryption == "tls":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(self.host, self.port, timeout=self.timeout_seconds, context=context)
        return smtplib.SMTP(self.host, self.port, timeout=self.timeout_seconds)

    def _mail(self, alert: Alert) -> EmailMessage:
        subject, body = render_lines("email", alert)
        mail = EmailMessage()
        mail["Subject"] = subject
        mail["From"] = self.sender
        mail["To"] = ", ".join(self.recipients)
        mail["Date"] = format_datetime(alert.at_utc or datetime.now(UTC))
        mail["Message-ID"] = f"<{alert.delivery_key}@{_DOMAIN}>"
        mail["References"] = f"<{_incident(alert)}@{_DOMAIN}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(body)
        return mail


def _incident(alert: Alert) -> str:
    """The same for all mails of one incident."""
    began = alert.began_utc.isoformat() if alert.began_utc else ""
    return sha256(f"{alert.dedup_key} {began}".encode()).hexdigest()[:32]


def _failure(code: int, message: str) -> SinkFailed:
    """A 4xx of SMTP asks to be tried again; a 5xx is final (RFC 5321)."""
    return SinkRefused(message) if code >= 500 else SinkFailed(message)
