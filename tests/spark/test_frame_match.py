"""What one scan counts as agreed, and what it brings home: everything that is not one event and one equal row.

One file, since each case is a few rows over one session, and the laws at its end hold of all of them.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tallystick.matching.scan_result import SliceScan
from tallystick.model.direction import Direction
from tallystick.model.partner_lag import EDGES_MS, bucket_of
from tallystick_spark.matching import frame_match
from tallystick_spark.matching.frame_match import (
    exceptional_keys,
    ledger_totals_in_order,
    pair_by_key,
    scan_slices,
    topic_totals_in_order,
)
from tallystick_spark.matching.keyed_hash import new_secret
from tallystick_spark.matching.lag_meter import LagMeter
from tests.spark.match_frames import (
    _TOPIC,
    BIG,
    EVENTS,
    INVOICES,
    LEGS,
    PAYMENTS,
    ROWS,
    Event,
    LedgerRow,
    event,
    frames,
    row,
)

AGREED = {"equal", "negative", "equal and big", "other partition"}


def scan_of(
    spark: SparkSession,
    events: Sequence[Event],
    rows: Sequence[LedgerRow],
    *,
    keys_to_include: Iterable[str] = ("known",),
    **asked: Any,
) -> SliceScan:
    topic, ledger = frames(spark, events, rows)
    return scan_slices(topic, ledger, legs=LEGS, keys_to_include=set(keys_to_include), **asked)


def home(scan: SliceScan, key: str) -> list[str]:
    return sorted(copy.item_id for copy in scan.copies if copy.match_key == key)


@pytest.fixture(scope="module")
def scan(spark: SparkSession) -> SliceScan:
    return scan_of(spark, EVENTS, ROWS)


@pytest.mark.parametrize("key", sorted(AGREED))
def test_one_event_and_one_equal_row_stay_where_they_are(scan: SliceScan, key: str) -> None:
    assert home(scan, key) == []


@pytest.mark.parametrize(
    ("key", "copies"),
    [
        ("no row", ["topic:billing.payments:0:7"]),
        ("no event", ["ledger:8"]),
        ("one cent off", ["ledger:4", "topic:billing.payments:0:3"]),
        ("big by one", ["ledger:5", "topic:billing.payments:0:4"]),
        ("sign", ["ledger:6", "topic:billing.payments:0:5"]),
        ("currency", ["ledger:7", "topic:billing.payments:0:6"]),
        ("twice in the topic", ["ledger:9", "topic:billing.payments:0:8", "topic:billing.payments:0:9"]),
        ("twice in the ledger", ["ledger:12", "ledger:13"]),
        (
            "twice on both",
            ["ledger:10", "ledger:11", "topic:billing.payments:0:10", "topic:billing.payments:0:11"],
        ),
        ("swapped 1", ["ledger:15", "topic:billing.payments:0:13"]),
        ("swapped 2", ["ledger:16", "topic:billing.payments:0:14"]),
        ("three to one", ["ledger:19", *(f"topic:billing.payments:0:{offset}" for offset in (22, 23, 24))]),
        ("one to three", ["ledger:20", "ledger:21", "ledger:22", "topic:billing.payments:0:25"]),
        ("known", ["ledger:14", "topic:billing.payments:0:12"]),
        ("unreadable", ["ledger:17"]),
        ("Equal", ["topic:billing.payments:0:17"]),
    ],
)
def test_every_copy_of_any_other_key_comes_home(scan: SliceScan, key: str, copies: list[str]) -> None:
    assert home(scan, key) == copies


def test_nothing_else_comes_home(scan: SliceScan) -> None:
    in_scope = {str(one[5]) for one in EVENTS if one[10]} | {str(one[1]) for one in ROWS}
    assert {copy.match_key for copy in scan.copies} == in_scope - AGREED


def test_a_copy_comes_home_as_it_was(scan: SliceScan) -> None:
    (from_topic,) = [copy for copy in scan.copies if copy.item_id == "topic:billing.payments:0:4"]
    assert (from_topic.amount_minor, from_topic.currency, from_topic.order) == (BIG + 1, "EUR", 4)
    assert (from_topic.transaction_key, from_topic.leg, from_topic.carried) == ("pay", "payment", None)
    (from_ledger,) = [copy for copy in scan.copies if copy.item_id == "ledger:5"]
    assert (from_ledger.amount_minor, from_ledger.order) == (BIG, 5)


def test_rows_are_counted_per_partition_readable_or_not(scan: SliceScan) -> None:
    assert scan.rows_by_partition == {(PAYMENTS, 0): 26, (PAYMENTS, 1): 1, (INVOICES, 0): 2}
    assert (scan.topic_rows, scan.ledger_rows, scan.unreadable_count) == (27, 22, 2)


def test_what_agrees_is_counted_with_its_money(scan: SliceScan) -> None:
    assert scan.matched_rows == len(AGREED)
    assert scan.matched_money == {"EUR": 1_000 - 500 + BIG + 1 + 1_000, "USD": 0}


def test_unreadable_records_are_named_by_position(scan: SliceScan) -> None:
    assert [(one.topic, one.partition, one.kafka_offset) for one in scan.unreadable_sample] == [
        (PAYMENTS, 0, 15),
        (PAYMENTS, 0, 16),
    ]


def test_events_of_transactions_that_lack_a_leg_come_home(scan: SliceScan) -> None:
    assert {copy.match_key for copy in scan.incomplete if copy.transaction_key != "pay"} == {"torn"}
    assert {copy.transaction_key for copy in scan.incomplete} == {"pay", "pay-1"}


def test_the_money_of_each_side_is_all_that_was_read_of_it_matched_or_not(scan: SliceScan) -> None:
    for side, expected in ((scan.topic_money, EVENTS), (scan.ledger_money, ROWS)):
        totals = Counter[object]()
        for one in expected:
            amount_minor, currency, readable = (*one[8:10], one[10]) if expected is EVENTS else (*one[4:6], True)
            if readable:
                totals[currency] += amount_minor
        assert side == dict(totals)


def test_what_the_contract_does_not_declare_is_not_asked(scan: SliceScan) -> None:
    assert (scan.differently_written, scan.out_of_order, scan.out_of_order_count, scan.record_times) == (0, (), 0, ())


def test_an_equal_pair_comes_home_where_its_event_names_a_leg_of_another_topic(spark: SparkSession) -> None:
    of_no_leg = event(2, "no leg of the contract")
    events = (
        (PAYMENTS, *event(0, "wrong leg", leg="invoice")[1:]),
        event(1, "right leg"),
        tuple("tip" if value == "payment" else value for value in of_no_leg),
        (INVOICES, *event(3, "wrong topic")[1:]),
    )
    keys = ("wrong leg", "right leg", "no leg of the contract", "wrong topic")
    rows = tuple(row(number, key) for number, key in enumerate(keys))
    found = scan_of(spark, events, rows, keys_to_include=())
    assert {copy.match_key for copy in found.copies} == {"wrong leg", "wrong topic"}
    assert (len(found.copies), found.matched_rows) == (4, 2)


# Currencies whose case the contract ignores.

IN_CASES = (
    event(0, "both upper"),
    event(1, "both lower", currency="eur"),
    event(2, "event lower", currency="eur"),
    event(3, "row lower"),
    event(4, "both odd", currency="Eur"),
    event(5, "another currency", currency="eur"),
    event(6, "another amount", 999, currency="eur"),
    event(7, "twice", currency="eur"),
    event(8, "twice", currency="eur"),
)
ROWS_IN_CASES = (
    row(1, "both upper"),
    row(2, "both lower", currency="eur"),
    row(3, "event lower"),
    row(4, "row lower", currency="eur"),
    row(5, "both odd", currency="eUR"),
    row(6, "another currency", currency="USD"),
    row(7, "another amount"),
    row(8, "twice"),
)


def test_currencies_that_differ_in_case_are_equal_and_counted_where_the_contract_says_so(spark: SparkSession) -> None:
    ignored = scan_of(spark, IN_CASES, ROWS_IN_CASES, keys_to_include=(), ignore_case=True)
    assert {copy.match_key for copy in ignored.copies} == {"another currency", "another amount", "twice"}
    assert {copy.currency for copy in ignored.copies} == {"EUR", "USD"}
    assert (ignored.matched_rows, ignored.matched_money) == (5, {"EUR": 5_000, "USD": 0})
    assert ignored.differently_written == 3


def test_they_are_other_currencies_where_it_does_not(spark: SparkSession) -> None:
    exact = scan_of(spark, IN_CASES, ROWS_IN_CASES, keys_to_include=())
    assert exact.matched_rows == 2
    assert {copy.match_key for copy in exact.copies} >= {"event lower", "row lower", "both odd"}
    assert exact.differently_written == 0


# The order of events, where the contract names a sequence.


def numbered(*numbers: tuple[int, int, str, int]) -> tuple[Event, ...]:
    """(partition, offset, ordering key, sequence) of events of keys of their own."""
    return tuple(
        (*event(offset, f"ev-{partition}-{offset}", partition=partition), ordering_key, sequence)
        for partition, offset, ordering_key, sequence in numbers
    )


def ordered_scan(spark: SparkSession, events: Sequence[Event], *, partitions: int = 3) -> SliceScan:
    topic = spark.createDataFrame(list(events), f"{_TOPIC}, ordering_key string, sequence long")
    _, ledger = frames(spark, (), ())
    topic = topic.withColumn("planted", F.lit(False))
    return scan_slices(topic.repartition(partitions), ledger, legs=LEGS, keys_to_include=())


UNORDERED = numbered(
    (0, 10, "a", 1),
    (0, 11, "a", 4),
    (0, 12, "a", 2),
    (0, 13, "b", 1),
    (0, 14, "a", 3),
    (0, 15, "a", 4),
    (0, 16, "a", BIG + 1),
    (0, 17, "a", BIG),
    (1, 10, "a", 3),
    (1, 11, "b", 9),
    (1, 12, "a", 4),
)


def test_an_event_below_a_sequence_before_it_is_out_of_order(spark: SparkSession) -> None:
    found = ordered_scan(spark, UNORDERED)
    assert [(one.kafka_offset, one.sequence, one.highest_offset, one.highest_before) for one in found.out_of_order] == [
        (12, 2, 11, 4),
        (14, 3, 11, 4),
        (17, BIG, 16, BIG + 1),
    ]
    assert found.out_of_order_count == 3
    first = found.out_of_order[0]
    assert (first.topic, first.partition, first.ordering_key) == (PAYMENTS, 0, "a")
    assert (first.match_key, first.transaction_key, first.leg) == ("ev-0-12", "pay", "payment")


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(numbered((0, 1, "a", 1), (0, 2, "a", 1), (0, 3, "a", 2)), id="an equal one: a copy"),
        pytest.param(numbered((0, 1, "a", 2), (1, 2, "a", 1)), id="on another partition, where no order is promised"),
        pytest.param(numbered((0, 1, "a", 2), (0, 2, "b", 1)), id="under another ordering key"),
        pytest.param(numbered((0, 1, "a", 1), (0, 2, "a", 9), (0, 3, "a", 10)), id="with gaps"),
    ],
)
def test_it_is_in_order(spark: SparkSession, events: Sequence[Event]) -> None:
    assert ordered_scan(spark, events).out_of_order == ()


def test_order_is_that_of_offsets_however_the_rows_are_shuffled(spark: SparkSession) -> None:
    dice, expected = random.Random(7), ordered_scan(spark, UNORDERED).out_of_order
    for partitions in (1, 4):
        shuffled = dice.sample(UNORDERED, len(UNORDERED))
        assert ordered_scan(spark, shuffled, partitions=partitions).out_of_order == expected


def test_random_sequences_are_out_of_order_where_a_loop_finds_them(spark: SparkSession) -> None:
    dice = random.Random(11)
    places = [(partition, offset) for partition in (0, 1) for offset in range(120)]
    events = numbered(*((*place, dice.choice("abc"), dice.randint(1, 60) + place[1] // 2) for place in places))
    expected, highest = [], Counter[tuple[object, ...]]()
    for one in sorted(events, key=lambda one: (one[1], one[2])):
        key, sequence = (one[1], one[-2]), int(one[-1])
        if sequence < highest[key]:
            expected.append((one[1], one[2], highest[key]))
        highest[key] = max(highest[key], sequence)
    found = ordered_scan(spark, events).out_of_order
    assert expected
    assert [(one.partition, one.kafka_offset, one.highest_before) for one in found] == expected


def test_only_the_first_come_home_and_all_are_counted(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_match, "OUT_OF_ORDER_MAX", 2)
    found = ordered_scan(spark, UNORDERED)
    assert [one.kafka_offset for one in found.out_of_order] == [12, 14]
    assert found.out_of_order_count == 3


# Timestamps.


def test_timestamps_outside_the_possible_ones_are_counted_per_partition(spark: SparkSession) -> None:
    written = (999, 1_000, 2_000, 2_001, 2_002)
    events = [event(n, f"ev-{n}", written_ms=at, readable=n != 3) for n, at in enumerate(written)]
    events.append(event(0, "other partition", partition=1, currency="USD", written_ms=1_500))
    found = scan_of(spark, events, [], keys_to_include=(), possible_ms=(1_000, 2_000)).record_times
    assert [(one.topic, one.partition, one.early, one.late, one.earliest_ms, one.latest_ms) for one in found] == [
        (PAYMENTS, 0, 1, 2, 999, 2_002),
        (PAYMENTS, 1, 0, 0, 1_500, 1_500),
    ]


def test_what_is_asked_of_timestamps_is_no_part_of_the_digest(spark: SparkSession) -> None:
    events = [event(0, "a", written_ms=5)]
    asked = scan_of(spark, events, [], keys_to_include=(), possible_ms=(6, 7))
    assert asked.content_digests == scan_of(spark, events, [], keys_to_include=()).content_digests


# How late partners came.


def test_pairs_are_counted_by_topic_and_lag_while_they_are_paired(spark: SparkSession) -> None:
    events = [
        event(0, "at once", written_ms=5_000),
        event(1, "a second", written_ms=5_000),
        event(2, "clocks differ", written_ms=5_000),
        event(3, "no clock", written_ms=5_000),
        event(4, "unequal", written_ms=5_000),
        event(5, "twice", written_ms=5_000),
        event(6, "twice", written_ms=5_000),
        event(0, "invoice", leg="invoice", written_ms=0),
        event(1, "ages", leg="invoice", written_ms=0),
    ]
    rows = [
        row(0, "at once", written_ms=5_010),
        row(1, "a second", written_ms=6_000),
        row(2, "clocks differ", written_ms=4_000),
        row(3, "no clock"),
        row(4, "unequal", 1, written_ms=5_010),
        row(5, "twice", written_ms=5_010),
        row(6, "invoice", written_ms=11),
        row(7, "ages", written_ms=2 * EDGES_MS[-1]),
    ]
    found = scan_of(spark, events, rows, keys_to_include=("elsewhere",), lag_of=Direction.TOPIC_TO_LEDGER)
    counted = {lag.topic: {EDGES_MS[n]: count for n, count in enumerate(lag.pairs) if count} for lag in found.lags}
    assert counted == {PAYMENTS: {10: 2, 1_280: 1}, INVOICES: {20: 1, EDGES_MS[-1]: 1}}
    assert found.content_digests == scan_of(spark, events, rows, keys_to_include=("elsewhere",)).content_digests


def test_a_relays_lag_runs_from_the_row_to_the_event(spark: SparkSession) -> None:
    sides = [event(0, "a", written_ms=6_000)], [row(0, "a", written_ms=5_000)]
    (lag,) = scan_of(spark, *sides, keys_to_include=(), lag_of=Direction.LEDGER_TO_TOPIC).lags
    assert (lag.topic, sum(lag.pairs), lag.pairs[bucket_of(1_000)]) == (PAYMENTS, 1, 1)


@pytest.mark.parametrize("events", [[], [event(0, "a", written_ms=5)]], ids=["nothing", "no row says when"])
def test_without_a_pair_that_says_when_no_lag_is_measured(spark: SparkSession, events: Sequence[Event]) -> None:
    rows = [row(n, "a") for n in range(len(events))]
    assert scan_of(spark, events, rows, keys_to_include=(), lag_of=Direction.TOPIC_TO_LEDGER).lags == ()


# The plan.


def test_the_pairing_shuffles_its_rows_once(spark: SparkSession) -> None:
    """Once by key; that both sides share."""
    keys = exceptional_keys(pair_by_key(*frames(spark, EVENTS, ROWS), secret=new_secret()), ())
    keys.collect()
    plan = keys._jdf.queryExecution().executedPlan().toString()
    assert plan.partition("Initial Plan")[0].count("Exchange hashpartitioning") == 1


def test_measuring_lag_folds_the_pairs_before_it_shuffles_them_again(spark: SparkSession) -> None:
    lag, width = LagMeter((PAYMENTS,), Direction.TOPIC_TO_LEDGER), 500
    events = [event(n, f"ev-{n}", written_ms=0) for n in range(width)]
    rows = [row(n, f"ev-{n}", written_ms=n) for n in range(width)]
    paired = pair_by_key(*frames(spark, events, rows), secret=new_secret(), lag=lag)
    paired.collect()
    plan = paired._jdf.queryExecution().executedPlan().toString().partition("Initial Plan")[0]
    assert "SortAggregate" not in plan
    assert plan.count("Exchange hashpartitioning") == 2
    assert plan.count("HashAggregate") == 4  # by key and by bucket, each before its shuffle and after it
    assert [sum(one.pairs) for one in lag.read(paired)] == [width]


# Laws.


def test_order_and_partitioning_change_nothing(spark: SparkSession, scan: SliceScan) -> None:
    dice = random.Random(7)
    topic, ledger = frames(spark, dice.sample(EVENTS, len(EVENTS)), dice.sample(ROWS, len(ROWS)))
    again = scan_slices(topic.repartition(5), ledger.repartition(3), legs=LEGS, keys_to_include={"known"})
    assert set(again.copies) == set(scan.copies)
    assert set(again.incomplete) == set(scan.incomplete)
    assert again.content_digests == scan.content_digests
    assert (again.matched_rows, again.matched_money) == (scan.matched_rows, scan.matched_money)


def test_equal_sides_of_unique_keys_agree_whole(spark: SparkSession) -> None:
    keys = [f"ev-{number}" for number in range(50)]
    whole = scan_of(
        spark,
        [event(n, key) for n, key in enumerate(keys)],
        [row(n, key) for n, key in enumerate(keys)],
        keys_to_include=(),
    )
    assert (whole.copies, whole.matched_rows, whole.matched_money) == ((), 50, {"EUR": 50_000})


def test_each_sides_digest_changes_with_what_was_read_of_it(spark: SparkSession, scan: SliceScan) -> None:
    """One record of other bytes, which the fields do not show, and one row of another amount."""
    events = (*EVENTS[:-1], event(21, "whole of three/payment", payment="pay-3", value_hash=6))
    rows = (*ROWS[:-1], row(18, "other partition", 1_001))
    again = scan_of(spark, events, rows)
    assert again.content_digests["topic"] != scan.content_digests["topic"]
    assert again.content_digests["ledger"] != scan.content_digests["ledger"]


def test_two_empty_sides_are_nothing(spark: SparkSession) -> None:
    empty = scan_of(spark, [], [], keys_to_include=())
    assert (empty.topic_rows, empty.ledger_rows, empty.matched_rows, empty.copies) == (0, 0, 0, ())


def test_the_exceptional_keys_of_random_sides_are_those_a_plain_count_finds(spark: SparkSession) -> None:
    dice = random.Random(7)

    def side() -> list[tuple[str, int, str]]:
        amounts, currencies = (100, 200, BIG, BIG + 1), ("EUR", "USD")
        return [(f"ev-{dice.randint(1, 250)}", dice.choice(amounts), dice.choice(currencies)) for _ in range(300)]

    in_topic, in_ledger = side(), side()
    topic, ledger = frames(
        spark,
        [event(n, *fields) for n, fields in enumerate(in_topic)],
        [row(n, *fields) for n, fields in enumerate(in_ledger)],
    )
    events, rows = Counter(key for key, *_ in in_topic), Counter(key for key, *_ in in_ledger)
    agreed = {key for key, *fields in set(in_topic) & set(in_ledger) if (events[key], rows[key]) == (1, 1)}
    assert agreed
    found = [
        one["match_key"] for one in exceptional_keys(pair_by_key(topic, ledger, secret=new_secret()), ()).collect()
    ]
    assert sorted(found) == sorted((events.keys() | rows.keys()) - agreed)


def test_totals_stand_in_the_order_that_spark_would_give_them(spark: SparkSession) -> None:
    """Digests that are stored were made of them in Spark's order."""
    texts = (None, "", "EUR", "eur", "\uffff", "\U00010000", "ÄUR")
    rows = [
        {"topic": topic, "partition": partition, "readable": readable, "currency": text}
        for topic in ("b", "B", "a.b")
        for partition in (10, 9, -1)
        for readable in (True, False)
        for text in texts
    ]
    frame = spark.createDataFrame(rows, "topic string, partition int, readable boolean, currency string")
    of_topic = frame.orderBy("topic", "partition", "readable", "currency").collect()
    assert topic_totals_in_order(rows) == [row.asDict() for row in of_topic] != rows
    of_ledger = frame.select("currency").distinct().orderBy("currency").collect()
    assert ledger_totals_in_order({"currency": text} for text in texts) == [row.asDict() for row in of_ledger]
