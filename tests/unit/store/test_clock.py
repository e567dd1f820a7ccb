"""How far a host's clock is off, at least, whatever the question took."""

from datetime import datetime, timedelta

import pytest

from tallystick.store.clock import StoreClock, dated_by_store, least_difference
from tests.unit.builders import MINUTE, NOON

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("before", "after", "ahead"),
    [
        pytest.param(NOON, NOON + SECOND, timedelta(), id="the answer took a second, which is no difference"),
        pytest.param(NOON - SECOND, NOON, timedelta(), id="nor is one that comes at once"),
        pytest.param(NOON + 2 * MINUTE, NOON + 2 * MINUTE + SECOND, 2 * MINUTE, id="ahead"),
        pytest.param(NOON - 2 * MINUTE - SECOND, NOON - 2 * MINUTE, -2 * MINUTE, id="behind"),
    ],
)
def test_a_difference_is_what_the_question_cannot_explain(before: datetime, after: datetime, ahead: timedelta) -> None:
    assert least_difference(before, NOON, after) == ahead


HOUR = 60 * MINUTE


@pytest.mark.parametrize(
    ("at", "host_ahead", "dated"),
    [
        pytest.param(NOON - HOUR, timedelta(), NOON - HOUR, id="all clocks agree"),
        pytest.param(NOON - HOUR, 2 * MINUTE, NOON - HOUR - 2 * MINUTE, id="it may be ahead as this host is"),
        pytest.param(NOON - HOUR, -2 * MINUTE, NOON - HOUR, id="it may be right where this host is behind"),
        pytest.param(NOON + MINUTE, 2 * MINUTE, NOON - MINUTE, id="ahead as this host is"),
        pytest.param(NOON + 3 * MINUTE, 2 * MINUTE, NOON - 2 * HOUR, id="of the future by any clock"),
        pytest.param(NOON - 3 * HOUR, timedelta(), NOON - 2 * HOUR, id="before it can have been"),
    ],
)
def test_what_another_host_dated_is_never_taken_for_younger_than_it_may_be(
    at: datetime, host_ahead: timedelta, dated: datetime
) -> None:
    clock = StoreClock(now_utc=NOON, host_ahead=host_ahead)
    assert dated_by_store(clock, at, not_before=NOON - 2 * HOUR) == dated
