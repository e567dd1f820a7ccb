"""An alert as the JSON document that leaves the house by webhook and file, and what a sink may answer."""

from dataclasses import dataclass
from typing import Any

from tallystick.alerting.alert import Alert
from tallystick.model.errors import TallystickError

SCHEMA_VERSION = 1


class SinkFailed(TallystickError):
    """A sink did not take an alert, and may take it later. The message names no address and no secret.

    retry_after_seconds: how long the receiver asked to be left alone; None: it did not.
    """

    retryable = True

    def __init__(self, message: str, *, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class SinkRefused(SinkFailed):
    """A sink did not take an alert, and will not until a person changes its connection, or the receiver."""

    retryable = False


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """The result of sending one alert once. detail: what the receiver answered or did instead; no
    address, no secret.
    """

    delivered: bool
    detail: str
    is_curable: bool = True
    retry_after_seconds: int | None = None


def message_of(alert: Alert) -> dict[str, Any]:
    """Receivers deduplicate and resolve by dedup_key."""
    return {
        "schema_version": SCHEMA_VERSION,
        "action": str(alert.action),
        "dedup_key": alert.dedup_key,
        "severity": str(alert.severity),
        "summary": alert.summary,
        "details": dict(alert.details),
    }
