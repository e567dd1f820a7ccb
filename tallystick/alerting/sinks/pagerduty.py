"""Tells PagerDuty by its Events API v2. The incident's key is the alert's dedup_key: PagerDuty opens one per key,
takes further triggers of it into that one, and closes it at the resolve.
"""

import json
from dataclasses import dataclass, field

from tallystick.alerting.alert import Alert
from tallystick.alerting.sinks.http_post import TIMEOUT_SECONDS, post
from tallystick.alerting.template import render_json

EVENTS_ADDRESS = "https://events.pagerduty.com"


@dataclass(frozen=True, kw_only=True)
class PagerDutySink:
    """address: without the path. routing_key: the integration key of the PagerDuty service."""

    name: str
    routing_key: str = field(repr=False)
    address: str = field(default=EVENTS_ADDRESS, repr=False)
    timeout_seconds: int | float = TIMEOUT_SECONDS

    def deliver(self, alert: Alert) -> str:
        """Send once. Raises SinkFailed, SinkRefused."""
        event = {"routing_key": self.routing_key} | render_json("pagerduty", alert)
        return post(
            f"{self.address.rstrip('/')}/v2/enqueue",
            json.dumps(event).encode(),
            headers={},
            timeout_seconds=self.timeout_seconds,
        )
