"""A verdict is due so long after its window's end, counted from the books' begin where that is later."""

from datetime import datetime, timedelta

import pytest

from tallystick.contract.verdict_deadline import firings_between, is_overdue, verdict_due_utc
from tests.unit.builders import HOUR, MINUTE, NOON, contract_of

HOURLY = contract_of(settle_timeout_seconds=600, verdict_within_seconds=1200)
"""Half an hour in all."""
LONG_AGO = NOON - 1000 * HOUR


@pytest.mark.parametrize(
    ("begun_utc", "due_utc"),
    [
        (LONG_AGO, NOON + 30 * MINUTE),
        (NOON, NOON + 30 * MINUTE),
        (NOON + MINUTE, NOON + 31 * MINUTE),  # the contract began when the window had ended
    ],
)
def test_a_verdict_is_due_after_the_windows_end_or_the_books_begin(begun_utc: datetime, due_utc: datetime) -> None:
    assert verdict_due_utc(HOURLY, window_end_utc=NOON, begun_utc=begun_utc) == due_utc


def test_an_hour_is_given_unless_the_contract_says_otherwise() -> None:
    contract = contract_of(settle_timeout_seconds=600)
    assert verdict_due_utc(contract, window_end_utc=NOON, begun_utc=LONG_AGO) == NOON + 70 * MINUTE


@pytest.mark.parametrize(
    ("now_utc", "overdue"), [(NOON + HOUR + 29 * MINUTE, False), (NOON + HOUR + 30 * MINUTE, True)]
)
def test_books_that_are_judged_until_noon_are_overdue_when_the_window_until_one_is(
    now_utc: datetime, overdue: bool
) -> None:
    assert is_overdue(HOURLY, judged_until_utc=NOON, begun_utc=LONG_AGO, now_utc=now_utc) is overdue


def test_the_next_window_ends_when_the_schedule_says_also_after_a_weekend() -> None:
    friday = datetime.fromisoformat("2026-09-18T06:00:00+00:00")
    daily, weekdays = (
        contract_of(schedule=schedule, settle_timeout_seconds=0) for schedule in ("0 6 * * *", "0 6 * * 1-5")
    )
    asked = {"judged_until_utc": friday, "begun_utc": LONG_AGO, "now_utc": friday + 48 * HOUR}
    assert (is_overdue(daily, **asked), is_overdue(weekdays, **asked)) == (True, False)


def test_windows_before_the_books_began_make_them_overdue_only_that_long_after_their_begin() -> None:
    asked = {"judged_until_utc": LONG_AGO, "begun_utc": NOON}
    assert is_overdue(HOURLY, now_utc=NOON + 29 * MINUTE, **asked) is False
    assert is_overdue(HOURLY, now_utc=NOON + 30 * MINUTE, **asked) is True


@pytest.mark.parametrize(
    ("until", "count", "hours"),
    [
        (NOON, 9, [-2, -1, 0]),
        (NOON, 2, [-1, 0]),
        (NOON - timedelta(milliseconds=300), 9, [-2, -1]),
        (NOON - 3 * HOUR, 9, []),
    ],
    ids=["up to one", "the newest two", "a moment before one", "none"],
)
def test_firings_end_with_the_newest_one_that_has_come(until: datetime, count: int, hours: list[int]) -> None:
    found = firings_between("0 * * * *", NOON - 3 * HOUR, until, count=count)
    assert found == [NOON + n * HOUR for n in hours]
