"""An alert has one key however often it is sent, and no other alert has it."""

from dataclasses import replace

from tests.unit.alerting.sinks.receivers import ALERT, RESOLVED


def test_a_message_has_one_delivery_key_however_often_it_is_sent_and_no_other_has_it() -> None:
    again = replace(ALERT, details={**ALERT.details, "links": {}})
    assert again.delivery_key == ALERT.delivery_key
    others = {ALERT.delivery_key, RESOLVED.delivery_key, replace(ALERT, outbox_id=70).delivery_key}
    assert len(others) == 3
    assert ALERT.dedup_key == RESOLVED.dedup_key
