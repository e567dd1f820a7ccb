"""An alert as the JSON document that leaves the house; the same for every sink."""

from typing import Any

from tallystick.alert import Alert

SCHEMA_VERSION = 1


class SinkFailed(RuntimeError):
    """A sink did not take an alert. The message names no address and no secret."""


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
