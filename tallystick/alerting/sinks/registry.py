"""The kinds of sinks, made of a contract's connections. To add a kind: its file, a line here, its word
in the contract.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

from tallystick.alerting.alert import Alert
from tallystick.alerting.alert_json import SinkRefused
from tallystick.alerting.policy import sink_name
from tallystick.alerting.sinks.alertmanager import AlertmanagerSink
from tallystick.alerting.sinks.apprise import AppriseSink
from tallystick.alerting.sinks.connection import SinkConnection, sink_connection
from tallystick.alerting.sinks.email import ENCRYPTIONS, EmailSink
from tallystick.alerting.sinks.file import FileSink
from tallystick.alerting.sinks.pagerduty import EVENTS_ADDRESS, PagerDutySink
from tallystick.alerting.sinks.slack import SlackSink
from tallystick.alerting.sinks.webhook import WebhookSink
from tallystick.contract.alerts import AlertSinkSection as SinkRule
from tallystick.contract.contract import Contract
from tallystick.contract.verdict_deadline import next_firing
from tallystick.host.artifacts import Place


class Sink(Protocol):
    """A place that alerts go to."""

    @property
    def name(self) -> str:
        """The name deliveries are recorded under; as `sink_name` gives it."""

    def deliver(self, alert: Alert) -> str:
        """Send one alert; return what the receiver said. Raises SinkFailed, SinkRefused."""


def is_stateless(sink: Sink) -> bool:
    """Return whether a sink's receiver must be told again and again of what still fires; one that must says `forgets`.

    Asked at each delivery, and to hold a sink against a protocol takes longer than to deliver nothing.
    """
    return bool(getattr(sink, "forgets", False))


@dataclass(frozen=True, kw_only=True)
class UnusableSink:
    """Stands for a sink whose connection is missing or unfit, so that the others are told all the same."""

    name: str
    fault: str

    def deliver(self, alert: Alert) -> str:
        """Raises SinkRefused."""
        raise SinkRefused(self.fault)


def sinks_for(
    contract: Contract, *, connections: Mapping[str, SinkConnection], artifacts: Place | None
) -> tuple[Sink, ...]:
    """The contract's sinks. connections: by id; one that is missing or unfit fails when it is sent to, and so does a
    file where nobody knows a place for artifacts (None).
    """
    return tuple(_sink(contract, rule, connections, artifacts) for rule in contract.alert.sinks)


def sinks_from_environment(contract: Contract, *, artifacts: Place, environment: Mapping[str, str]) -> tuple[Sink, ...]:
    """The contract's sinks, as the environment names their connections outside Airflow."""
    connections = {
        rule.connection: sink_connection(rule.connection, environment)
        for rule in contract.alert.sinks
        if rule.connection
    }
    return sinks_for(contract, connections=connections, artifacts=artifacts)


def _sink(
    contract: Contract, rule: SinkRule, connections: Mapping[str, SinkConnection], artifacts: Place | None
) -> Sink:
    name = sink_name(rule)
    if rule.kind == "file":
        if artifacts is None:
            return UnusableSink(name=name, fault="the place of artifacts is refused; the log of the task says why")
        return FileSink(name=name, path=artifacts / (rule.path or ""))
    connection = connections.get(rule.connection or "", SinkConnection())
    fault = connection.fault or _FAULTS[rule.kind](connection)
    if fault:
        return UnusableSink(name=name, fault=fault)
    return _MAKERS[rule.kind](name, connection, contract)


def _webhook(name: str, connection: SinkConnection, _: Contract) -> Sink:
    return WebhookSink(name=name, address=connection.address, secret=connection.secret)


def _slack(name: str, connection: SinkConnection, _: Contract) -> Sink:
    """The webhook's secret part may stand in the secret, as Airflow's own Slack connections have it."""
    address = connection.address
    return SlackSink(name=name, address=f"{address.rstrip('/')}/{connection.secret}" if connection.secret else address)


def _pagerduty(name: str, connection: SinkConnection, _: Contract) -> Sink:
    return PagerDutySink(name=name, routing_key=connection.secret, address=connection.address or EVENTS_ADDRESS)


def _alertmanager(name: str, connection: SinkConnection, contract: Contract) -> Sink:
    return AlertmanagerSink(
        name=name,
        address=connection.address,
        login=connection.login,
        secret=connection.secret,
        fires_until=partial(fires_until, contract),
    )


def _email(name: str, connection: SinkConnection, _: Contract) -> Sink:
    server = urlsplit(connection.address)
    encryption = next(one for one in ENCRYPTIONS if one == connection.settings.get("encryption", ENCRYPTIONS[0]))
    return EmailSink(
        name=name,
        host=server.hostname or "",
        port=server.port or {"starttls": 587, "tls": 465, "none": 25}[encryption],
        sender=connection.settings["from"],
        recipients=_recipients(connection),
        login=connection.login,
        secret=connection.secret,
        encryption=encryption,
    )


def _apprise(name: str, connection: SinkConnection, _: Contract) -> Sink:
    return AppriseSink(name=name, url=connection.secret)


def fires_until(contract: Contract, now_utc: datetime) -> datetime:
    """Return until when an incident counts as firing without being sent again: the run after the next one may be late.

    When that has not come either, a verdict is overdue, and on-call is told of that.
    """
    return next_firing(contract.schedule, next_firing(contract.schedule, now_utc)) + contract.verdict_timeout


def _recipients(connection: SinkConnection) -> tuple[str, ...]:
    return tuple(part.strip() for part in connection.settings.get("to", "").split(",") if part.strip())


def _needs_address(connection: SinkConnection) -> str:
    return "" if connection.address else "no address was given for its connection"


def _needs_secret(connection: SinkConnection) -> str:
    return "" if connection.secret else "its connection has no secret"


def _needs_mailbox(connection: SinkConnection) -> str:
    try:
        server = urlsplit(connection.address).hostname
        _ = urlsplit(connection.address).port
    except ValueError:
        server = None
    if not server or not connection.settings.get("from") or not _recipients(connection):
        return "its connection lacks something: expected smtp://host:port, a sender 'from', and recipients 'to'"
    if connection.settings.get("encryption", ENCRYPTIONS[0]) not in ENCRYPTIONS:
        return f"its connection's encryption is not known: expected one of {', '.join(ENCRYPTIONS)}"
    return ""


_MAKERS: Mapping[str, Callable[[str, SinkConnection, Contract], Sink]] = {
    "webhook": _webhook,
    "pagerduty": _pagerduty,
    "alertmanager": _alertmanager,
    "slack": _slack,
    "email": _email,
    "apprise": _apprise,
}
_FAULTS: Mapping[str, Callable[[SinkConnection], str]] = {
    "webhook": _needs_address,
    "pagerduty": _needs_secret,
    "alertmanager": _needs_address,
    "slack": _needs_address,
    "email": _needs_mailbox,
    "apprise": _needs_secret,
}
