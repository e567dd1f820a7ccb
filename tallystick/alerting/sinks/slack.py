"""Tells a Slack channel by an incoming webhook. Slack keeps no incident: the message says what is over, too."""

import json
from dataclasses import dataclass, field

from tallystick.alerting.alert import Alert
from tallystick.alerting.sinks.http_post import TIMEOUT_SECONDS, post
from tallystick.alerting.template import render_json


@dataclass(frozen=True, kw_only=True)
class SlackSink:
    """address: all of the webhook's, which is a secret by itself."""

    name: str
    address: str = field(repr=False)
    timeout_seconds: int | float = TIMEOUT_SECONDS

    def deliver(self, alert: Alert) -> str:
        """Send once. Raises SinkFailed, SinkRefused."""
        body = json.dumps(render_json("slack", alert), ensure_ascii=False).encode()
        return post(self.address, body, headers={}, timeout_seconds=self.timeout_seconds)
