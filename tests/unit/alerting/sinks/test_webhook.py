"""What a webhook is sent: signed where there is a secret, under one delivery key."""

import base64
import hashlib
import hmac

import pytest

from tallystick.alerting.alert_json import SinkRefused
from tallystick.alerting.sinks.webhook import signed
from tests.alert_receiver import Receiver
from tests.unit.alerting.sinks.receivers import ALERT, SECRET, webhook


def test_a_webhook_with_a_secret_is_signed_over_id_time_and_body(receiver: Receiver) -> None:
    webhook(receiver, secret=SECRET, now_seconds=lambda: 1772366400.9).deliver(ALERT)
    ((_, headers, body),) = receiver.requests
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == (ALERT.delivery_key, "1772366400")
    signed_text = f"{ALERT.delivery_key}.1772366400.".encode() + body
    expected = hmac.new(b"a secret of thirty-two bytes....", signed_text, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(expected).decode()


def test_the_signature_is_that_of_the_published_example() -> None:
    """The test vector that the authors of Standard Webhooks give their own libraries."""
    headers = signed(
        b'{"test": 2432232314}',
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        timestamp=1614265330,
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_webhook_without_a_secret_is_not_signed(receiver: Receiver) -> None:
    webhook(receiver).deliver(ALERT)
    ((_, headers, _),) = receiver.requests
    assert "webhook-signature" not in headers
    assert headers["webhook-id"] == ALERT.delivery_key


@pytest.mark.parametrize("secret", ["plain", "whsec_", "whsec_not base64"])
def test_a_secret_that_cannot_sign_is_refused_and_nothing_is_sent(receiver: Receiver, secret: str) -> None:
    with pytest.raises(SinkRefused, match="is none that signs") as raised:
        webhook(receiver, secret=secret).deliver(ALERT)
    assert receiver.asked == 0
    assert "plain" not in str(raised.value)
