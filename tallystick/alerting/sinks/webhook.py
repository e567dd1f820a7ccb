"""Posts an alert as JSON to an address, signed where its connection has a secret.

The signature is that of Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`, in three headers. webhook-id is the
same whenever one alert is sent again, so a receiver that keeps ids takes each alert once.
"""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tallystick.alerting.alert import Alert
from tallystick.alerting.alert_json import SinkRefused, message_of
from tallystick.alerting.sinks.http_post import TIMEOUT_SECONDS, post

_SECRET_PREFIX = "whsec_"


@dataclass(frozen=True, kw_only=True)
class WebhookSink:
    """address may carry a token, so it appears in no message. secret: "whsec_" and base64, or "" for no signature."""

    name: str
    address: str = field(repr=False)
    secret: str = field(default="", repr=False)
    timeout_seconds: int | float = TIMEOUT_SECONDS
    now_seconds: Callable[[], float] = time.time

    def deliver(self, alert: Alert) -> str:
        """Send once. Raises SinkFailed, SinkRefused."""
        body = json.dumps(message_of(alert), ensure_ascii=False).encode()
        headers = {"webhook-id": alert.delivery_key}
        if self.secret:
            headers |= signed(
                body, message_id=alert.delivery_key, timestamp=int(self.now_seconds()), secret=self.secret
            )
        return post(self.address, body, headers=headers, timeout_seconds=self.timeout_seconds)


def signed(body: bytes, *, message_id: str, timestamp: int, secret: str) -> Mapping[str, str]:
    """The headers by which a receiver knows who sent a body, and when. timestamp: seconds since 1970.

    Raises SinkRefused.
    """
    try:
        key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not secret.startswith(_SECRET_PREFIX) or not key:
        raise SinkRefused("its connection's secret is none that signs: expected 'whsec_' and base64, or none at all")
    digest = hmac.new(key, b".".join([message_id.encode(), str(timestamp).encode(), body]), hashlib.sha256).digest()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }
