"""Tells whatever Apprise can reach: some hundred services by one address each, for those without a sink of their own.

Apprise says only whether all went well, so that is checked: no answer is a failure, too.
"""

from dataclasses import dataclass, field

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.alerting.alert_json import SinkFailed, SinkRefused
from tallystick.alerting.sinks.http_post import TIMEOUT_SECONDS, silent_logs
from tallystick.alerting.template import render_lines
from tallystick.contract.alerts import Severity
from tallystick.host.extras import is_installed, not_installed


@dataclass(frozen=True, kw_only=True)
class AppriseSink:
    """url: one address in Apprise's own form, with its secrets in it."""

    name: str
    url: str = field(repr=False)

    def deliver(self, alert: Alert) -> str:
        """Send once. Raises SinkFailed, SinkRefused."""
        title, body = render_lines("apprise", alert)
        if not is_installed("apprise"):
            raise SinkRefused(not_installed("apprise"))
        with silent_logs():
            import apprise  # takes half a second, which no other sink needs

            told = apprise.NotifyType(_tone(alert))
            service = apprise.Apprise()
            if not service.add(self.url):
                raise SinkRefused("its connection has no address that Apprise knows")
            result = service.notify(
                body=body, title=title, notify_type=told, body_format=apprise.NotifyFormat.TEXT, timeout=TIMEOUT_SECONDS
            )
        if result.status is not apprise.AppriseResultStatus.SUCCESS:
            raise SinkFailed(f"Apprise could not deliver it: {result.status.name}")
        return "taken by Apprise"


def _tone(alert: Alert) -> str:
    """Apprise's four words: it has one for what is over, and none louder than failure."""
    if alert.action is AlertAction.RESOLVE:
        return "success"
    return {Severity.INFO: "info", Severity.WARNING: "warning"}.get(alert.severity, "failure")
