"""Tells whatever Apprise can reach: some hundred services by one address each, for those without a sink of their own.

Apprise says only whether all went well, so that is checked: no answer is a failure, too.
"""

from dataclasses import dataclass, field

import apprise

from tallystick.alert import Alert, AlertAction
from tallystick.alert_message import SinkFailed, SinkRefused
from tallystick.alert_template import render_lines
from tallystick.contract import Severity
from tallystick.http_post import TIMEOUT_SECONDS
from tallystick.silent_logs import silent_logs

_TYPES = {
    Severity.INFO: apprise.NotifyType.INFO,
    Severity.WARNING: apprise.NotifyType.WARNING,
    Severity.ERROR: apprise.NotifyType.FAILURE,
    Severity.CRITICAL: apprise.NotifyType.FAILURE,
}


@dataclass(frozen=True, kw_only=True)
class AppriseSink:
    """url: one address in Apprise's own form, with its secrets in it."""

    name: str
    url: str = field(repr=False)

    def deliver(self, alert: Alert) -> str:
        """Send once. Raises SinkFailed, SinkRefused."""
        title, body = render_lines("apprise", alert)
        told = apprise.NotifyType.SUCCESS if alert.action is AlertAction.RESOLVE else _TYPES[alert.severity]
        with silent_logs():
            service = apprise.Apprise()
            if not service.add(self.url):
                raise SinkRefused("its connection has no address that Apprise knows")
            result = service.notify(
                body=body, title=title, notify_type=told, body_format=apprise.NotifyFormat.TEXT, timeout=TIMEOUT_SECONDS
            )
        if result.status is not apprise.AppriseResultStatus.SUCCESS:
            raise SinkFailed(f"Apprise could not deliver it: {result.status.name}")
        return "taken by Apprise"
