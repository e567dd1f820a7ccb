"""What an answer means: taken, to be tried again, or refused; and how long is waited."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tallystick.alerting.alert_json import SinkFailed, SinkRefused
from tallystick.alerting.sinks.http_post import retry_after_seconds, silent_logs
from tallystick.alerting.sinks.webhook import WebhookSink
from tests.alert_receiver import Receiver
from tests.unit.alerting.sinks.receivers import ALERT, NOON, PATIENT, SECRET, alertmanager, pagerduty, slack, webhook

BY_HTTP = pytest.mark.parametrize("make", [webhook, pagerduty, slack, alertmanager])


@BY_HTTP
def test_what_is_answered_with_2xx_is_taken(receiver: Receiver, make: Any) -> None:
    receiver.answer = 202
    assert make(receiver).deliver(ALERT) == "202"
    assert receiver.asked == 1


@BY_HTTP
@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_a_later_try_may_cure_is_a_failure(receiver: Receiver, make: Any, status: int) -> None:
    receiver.answer = status
    with pytest.raises(SinkFailed, match=f"^the receiver answered {status}$") as raised:
        make(receiver).deliver(ALERT)
    assert not isinstance(raised.value, SinkRefused)
    assert receiver.asked == 1


@BY_HTTP
@pytest.mark.parametrize("status", [302, 400, 401, 403, 404, 410, 413])
def test_what_no_later_try_cures_is_a_refusal(receiver: Receiver, make: Any, status: int) -> None:
    receiver.answer = status
    with pytest.raises(SinkRefused, match=f"^the receiver answered {status}$"):
        make(receiver).deliver(ALERT)


def test_a_receiver_that_sends_elsewhere_is_not_followed(receiver: Receiver) -> None:
    receiver.answer, receiver.answer_headers = 307, {"location": f"{receiver.base}/elsewhere"}
    with pytest.raises(SinkRefused):
        webhook(receiver, secret=SECRET).deliver(ALERT)
    assert [path for path, _, _ in receiver.requests] == ["/hook?token=s3cret"]


@pytest.mark.parametrize("answer", ["silence", "dribble"])
def test_an_answer_that_does_not_end_is_a_failure_within_the_time_limit(receiver: Receiver, answer: str) -> None:
    receiver.answer = answer
    with pytest.raises(SinkFailed, match=r"^no answer within 0\.2 s$"):
        webhook(receiver, timeout_seconds=0.2).deliver(ALERT)


@pytest.mark.parametrize("address", ["", "pager.example.org/hook", "ftp://pager/hook", "http://[::1/s3cret"])
def test_an_address_that_is_none_is_a_refusal_that_does_not_name_it(address: str) -> None:
    with pytest.raises(SinkRefused, match=r"^its connection has no usable address") as raised:
        WebhookSink(name="webhook:pager", address=address).deliver(ALERT)
    assert not address or address not in str(raised.value)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        ("Sun, 01 Mar 2026 12:00:30 GMT", 30),
        ("Sun, 01 Mar 2026 11:00:00 GMT", 0),
        ("999999999", 3600),
        ("Mon, 01 Mar 2027 12:00:00 GMT", 3600),
        ("soon", None),
        ("-5", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date_and_has_a_limit(header: str | None, seconds: int | None) -> None:
    assert retry_after_seconds(header, now_utc=NOON) == seconds


@BY_HTTP
def test_a_receiver_that_asks_for_time_is_heard(receiver: Receiver, make: Any) -> None:
    receiver.answer, receiver.answer_headers = 429, {"Retry-After": "120"}
    with pytest.raises(SinkFailed) as raised:
        make(receiver).deliver(ALERT)
    assert raised.value.retry_after_seconds == 120


def test_two_posts_at_once_log_no_address_and_leave_the_loggers_as_they_were(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """The first one ends while the second is on its way; then the second logs what it has posted."""
    log = logging.getLogger("httpx")
    caplog.set_level(logging.INFO, logger="httpx")
    first_began, second_began, first_ended = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        with silent_logs():
            first_began.set()
            assert second_began.wait(PATIENT)

    def second() -> None:
        assert first_began.wait(PATIENT)
        with silent_logs():
            second_began.set()
            assert first_ended.wait(PATIENT)
            webhook(receiver).deliver(ALERT)

    with ThreadPoolExecutor(2) as beside:
        one = beside.submit(first)
        one.add_done_callback(lambda _: first_ended.set())
        other = beside.submit(second)
        one.result(), other.result()
    assert receiver.asked == 1
    assert log.level == logging.INFO
    assert caplog.messages == []
    httpx.post(receiver.base, json={})
    assert [f"POST {receiver.base}" in said for said in caplog.messages] == [True], "and outside of a block it speaks"
