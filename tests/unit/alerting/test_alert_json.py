"""The message of an alert is JSON with the words that receivers know."""

import json

from tallystick.alerting.alert_json import message_of
from tests.unit.alerting.run_alerts import a_break, alerts


def test_the_message_is_json_with_the_words_receivers_know() -> None:
    (alert,) = alerts(a_break("a"))
    message = json.loads(json.dumps(message_of(alert)))
    assert (message["action"], message["severity"], message["schema_version"]) == ("trigger", "error", 1)
    assert set(message) == {"schema_version", "action", "dedup_key", "severity", "summary", "details"}
