"""Posts an alert as JSON to an address. Any 2xx answer counts as delivered; nothing is tried twice here."""

from dataclasses import dataclass, field

import httpx

from tallystick.alert import Alert
from tallystick.alert_message import SinkFailed, message_of


@dataclass(frozen=True, kw_only=True)
class WebhookSink:
    """address may carry a token, so it appears in no message. "" means that nobody gave it.

    timeout_seconds: to connect, and between two bytes; a receiver that is slower is down for us.
    """

    name: str
    address: str = field(repr=False)
    timeout_seconds: int | float = 5

    def deliver(self, alert: Alert) -> str:
        """Send once. Raises SinkFailed."""
        if not self.address:
            raise SinkFailed("no address was given for its connection")
        try:
            response = httpx.post(self.address, json=message_of(alert), timeout=self.timeout_seconds)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise SinkFailed(f"no answer: {type(error).__name__}") from None
        if not response.is_success:
            raise SinkFailed(f"the receiver answered {response.status_code}")
        return str(response.status_code)
