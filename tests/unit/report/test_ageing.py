"""How old open items are: each edge belongs to one bucket, and nothing is lost between them."""

from datetime import timedelta

import pytest

from tallystick.model.open_item import BUCKETS, ItemState, ItemTotal
from tallystick.report.ageing import AgeTotals, age_buckets, all_ages
from tests.unit.builders import HOUR, NOON

DAY, TICK = timedelta(days=1), timedelta(microseconds=1)


def seen(age: timedelta, *, state: ItemState = ItemState.OPEN, currency: str = "EUR", count: int = 1) -> ItemTotal:
    return ItemTotal(state=state, first_seen_utc=NOON - age, currency=currency, count=count, amount_minor=count * 1_250)


@pytest.mark.parametrize(
    ("age", "words"),
    [
        pytest.param(timedelta(0), "under 1 hour", id="just seen"),
        pytest.param(HOUR - TICK, "under 1 hour", id="not yet 1 hour"),
        pytest.param(HOUR, "1 hour to 1 day", id="1 hour"),
        pytest.param(DAY - TICK, "1 hour to 1 day", id="not yet 1 day"),
        pytest.param(DAY, "1 to 7 days", id="1 day"),
        pytest.param(7 * DAY - TICK, "1 to 7 days", id="not yet 7 days"),
        pytest.param(7 * DAY, "7 days and over", id="7 days"),
        pytest.param(4_000 * DAY, "7 days and over", id="years"),
        pytest.param(-TICK, "under 1 hour", id="first seen after the clock of the run"),
    ],
)
def test_each_age_is_in_one_bucket(age: timedelta, words: str) -> None:
    found = {bucket.words: bucket.waiting.count for bucket in age_buckets([seen(age)], now_utc=NOON)}
    assert found == {name: int(name == words) for name, _ in BUCKETS}


def test_money_is_counted_per_currency_and_apart_for_what_waits_and_what_is_broken() -> None:
    items = [
        seen(HOUR, count=2),
        seen(2 * HOUR, currency="JPY"),
        seen(3 * HOUR, state=ItemState.BROKEN, count=3),
        seen(3 * HOUR, state=ItemState.BROKEN, currency="", count=4),
    ]
    bucket = age_buckets(items, now_utc=NOON)[1]
    assert bucket.waiting == AgeTotals(count=3, money={"EUR": 2_500, "JPY": 1_250})
    assert bucket.broken == AgeTotals(count=7, money={"EUR": 3_750}, unknown=4)


def test_the_sum_of_the_buckets_is_all_that_stands() -> None:
    items = [
        seen(age, state=state) for age in (0 * HOUR, HOUR, DAY, 9 * DAY) for state in (ItemState.OPEN, ItemState.BROKEN)
    ]
    total = all_ages(age_buckets(items, now_utc=NOON))
    assert total.waiting == total.broken == AgeTotals(count=4, money={"EUR": 5_000})


@pytest.mark.parametrize("state", [ItemState.CLEARED, ItemState.WRITTEN_OFF, ItemState.UNDECIDABLE])
def test_what_does_not_stand_is_not_counted(state: ItemState) -> None:
    total = all_ages(age_buckets([seen(HOUR, state=state)], now_utc=NOON))
    assert (total.waiting.count, total.broken.count) == (0, 0)


def test_the_order_of_the_items_changes_nothing() -> None:
    items = [seen(age, currency=currency) for age in (HOUR, DAY) for currency in ("JPY", "EUR")]
    assert repr(age_buckets(items, now_utc=NOON)) == repr(age_buckets(items[::-1], now_utc=NOON))


def test_nothing_that_stands_has_no_ages() -> None:
    assert age_buckets([], now_utc=NOON) == ()
