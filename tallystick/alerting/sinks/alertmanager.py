"""Tells Alertmanager by its API v2, which knows an alert by its labels and keeps it only until endsAt.

Without an endsAt it forgets what it was not told again within resolve_timeout, five minutes. So what fires carries one,
far enough for the next run to send it again; that also tells an Alertmanager that was restarted and has lost it.
The severity is a label, since routes ask for it, so an alert that escalates is another one there: with each message
those of the other severities end.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from tallystick.alerting.alert import Alert, AlertAction
from tallystick.alerting.sinks.http_post import TIMEOUT_SECONDS, post
from tallystick.alerting.template import render_json
from tallystick.contract.alerts import Severity

_CLOCKS_APART = timedelta(minutes=5)
"""What has ended is told as ended so long ago: one that ends in Alertmanager's future fires on there until then, and
then until the end that it had been given before. Source: Alertmanager, types.Alert.Merge.
"""


@dataclass(frozen=True, kw_only=True)
class AlertmanagerSink:
    """address: without the path. login: for basic authentication with secret; without one, secret is a bearer token.

    fires_until: from the time of sending to the time until which what fires may count as firing without being sent
    again.
    """

    name: str
    address: str = field(repr=False)
    fires_until: Callable[[datetime], datetime]
    login: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    timeout_seconds: int | float = TIMEOUT_SECONDS
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    @property
    def forgets(self) -> Literal[True]:
        """Return true: each call of `deliver_pending` sends again what fires."""
        return True

    def deliver(self, alert: Alert) -> str:
        """Send once. Raises SinkFailed, SinkRefused."""
        return post(
            f"{self.address.rstrip('/')}/api/v2/alerts",
            json.dumps(self._alerts(alert)).encode(),
            headers=self._credentials(),
            timeout_seconds=self.timeout_seconds,
        )

    def _alerts(self, alert: Alert) -> list[dict[str, Any]]:
        """One per severity: at most one of them fires."""
        now_utc = self.now()
        told = render_json("alertmanager", alert)
        began_utc = alert.began_utc or now_utc
        fires = None if alert.action is AlertAction.RESOLVE else alert.severity
        ended_utc = max(began_utc, now_utc - _CLOCKS_APART)
        return [
            {
                **told,
                "labels": {**told["labels"], "severity": str(severity)},
                "startsAt": began_utc.isoformat(),
                "endsAt": (self.fires_until(now_utc) if severity is fires else ended_utc).isoformat(),
            }
            for severity in Severity
        ]

    def _credentials(self) -> Mapping[str, str]:
        if self.login:
            pair = base64.b64encode(f"{self.login}:{self.secret}".encode()).decode()
            return {"authorization": f"Basic {pair}"}
        return {"authorization": f"Bearer {self.secret}"} if self.secret else {}
