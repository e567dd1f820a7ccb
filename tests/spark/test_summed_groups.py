"""Many to one: the keys that Spark matches by itself are those whose parts a plain sum adds up to their one whole."""

import random
from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession

from tallystick.matching.scan_result import SliceScan, summary_of
from tallystick.model.open_item import ItemSide
from tallystick_spark.matching.frame_match import scan_slices
from tests.spark.match_frames import PAYMENTS, Event, LedgerRow, event, frames, row

LONG_MAX = 2**63 - 1
ONE_LEG = {"payment": PAYMENTS}


def scan_of(
    spark: SparkSession, events: Sequence[Event], rows: Sequence[LedgerRow], parts: ItemSide = ItemSide.TOPIC
) -> SliceScan:
    topic, ledger = frames(spark, events, rows)
    return scan_slices(topic, ledger, legs=ONE_LEG, keys_to_include=set(), parts=parts)


def home(scan: SliceScan) -> set[str]:
    return {copy.match_key for copy in scan.copies}


EVENTS = (
    event(0, "pair"),
    event(1, "two", 600),
    event(2, "two", 400),
    event(3, "refund", 1_400),
    event(4, "refund", -400),
    event(5, "one cent off", 600),
    event(6, "one cent off", 399),
    event(7, "currency", 600),
    event(8, "currency", 400, "USD"),
    event(9, "no row", 1_000),
    event(10, "two rows", 1_000),
    event(11, "huge", LONG_MAX),
    event(12, "huge", LONG_MAX),
    event(13, "huge", -LONG_MAX),
    event(14, "beyond a long", LONG_MAX),
    event(15, "beyond a long", LONG_MAX),
    event(16, "other currency", 600),
    event(17, "other currency", 400),
)
ROWS = (
    row(1, "pair"),
    row(2, "two"),
    row(3, "refund"),
    row(4, "one cent off"),
    row(5, "currency"),
    row(6, "no event"),
    row(7, "two rows", 500),
    row(8, "two rows", 500),
    row(9, "huge", LONG_MAX),
    row(10, "beyond a long", -2),
    row(11, "other currency", currency="USD"),
)
EXCEPTIONAL = {"one cent off", "currency", "no row", "no event", "two rows", "beyond a long", "other currency"}


def test_what_adds_up_stays_where_it_is_and_all_else_comes_home_whole(spark: SparkSession) -> None:
    scan = scan_of(spark, EVENTS, ROWS)
    assert home(scan) == EXCEPTIONAL
    assert (scan.matched_rows, scan.matched_keys) == (4, 4)
    assert scan.matched_money["EUR"] == 3_000 + LONG_MAX
    assert sum(copy.match_key == "one cent off" for copy in scan.copies) == 3


def test_rows_add_up_to_an_event_in_the_same_way(spark: SparkSession) -> None:
    rows = [row(1, "two", 999), row(2, "two", 1), row(3, "short", 9)]
    scan = scan_of(spark, [event(0, "two"), event(1, "short")], rows, parts=ItemSide.LEDGER)
    assert home(scan) == {"short"}
    assert (scan.matched_rows, scan.matched_keys) == (2, 1)
    assert (summary_of(scan).topic.keys, summary_of(scan).ledger.keys) == (2, 2)


@pytest.mark.parametrize("seed", range(3))
def test_random_groups_are_simple_where_a_plain_sum_says_so(spark: SparkSession, seed: int) -> None:
    dice, keys = random.Random(seed), [f"key {number}" for number in range(80)]
    amounts, currencies = [-1, 0, 1, 2, 3], ["EUR", "EUR", "EUR", "USD"]
    events = [event(number, dice.choice(keys), dice.choice(amounts), dice.choice(currencies)) for number in range(160)]
    rows = [row(number, dice.choice(keys), dice.choice(amounts), dice.choice(currencies)) for number in range(70)]
    scan = scan_of(spark, events, rows)
    expected = set()
    for key in keys:
        parts = [(one[8], one[9]) for one in events if one[5] == key]
        wholes = [(one[4], one[5]) for one in rows if one[1] == key]
        one_currency = len({currency for _, currency in parts + wholes}) == 1
        adds_up = len(wholes) == 1 and one_currency and sum(amount for amount, _ in parts) == wholes[0][0]
        if (parts or wholes) and not (adds_up and parts):
            expected.add(key)
    assert home(scan) == expected
    assert len(expected) < 80
