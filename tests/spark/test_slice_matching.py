"""What one scan counts as agreed, and what it brings home: everything that is not one event and one equal row."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_apps.slice_matching import exceptional_keys, scan_slices
from tallystick.slice_scan import SliceScan

_TOPIC = (
    "topic string, partition int, kafka_offset long, value_hash long, match_key string, transaction_key string, "
    "leg string, amount_minor long, currency string, readable boolean"
)
_LEDGER = "row_id string, match_key string, transaction_key string, leg string, amount_minor long, currency string"
PAYMENTS, INVOICES = "billing.payments", "billing.invoices"
LEGS = {"payment": PAYMENTS, "invoice": INVOICES}

Event = tuple[object, ...]
LedgerRow = tuple[object, ...]


def event(
    offset: int,
    key: str | None,
    amount_minor: int | None = 1_000,
    currency: str | None = "EUR",
    *,
    payment: str = "pay",
    leg: str = "payment",
    partition: int = 0,
    value_hash: int = 5,
    readable: bool = True,
) -> Event:
    return (
        LEGS[leg], partition, offset, value_hash + offset, key, payment, leg, amount_minor, currency, readable
    )  # fmt: skip


def row(row_id: int, key: str, amount_minor: int = 1_000, currency: str = "EUR") -> LedgerRow:
    return (str(row_id), key, "pay", "payment", amount_minor, currency)


BIG = 2**53
EVENTS: tuple[Event, ...] = (
    event(0, "equal"),
    event(1, "negative", -500),
    event(2, "equal and big", BIG + 1),
    event(3, "one cent off", 10_000_000_000),
    event(4, "big by one", BIG + 1),
    event(5, "sign", -500),
    event(6, "currency"),
    event(7, "no row"),
    event(8, "twice in the topic"),
    event(9, "twice in the topic"),
    event(10, "twice on both"),
    event(11, "twice on both"),
    event(12, "known"),
    event(13, "swapped 1", 1_000),
    event(14, "swapped 2", 2_000),
    event(15, None, None, None, readable=False),
    event(16, "unreadable", 1_000, None, readable=False),
    event(17, "Equal"),
    event(22, "three to one"),
    event(23, "three to one"),
    event(24, "three to one"),
    event(25, "one to three"),
    event(0, "other partition", partition=1),
    event(18, "torn", payment="pay-1"),
    event(19, "whole/payment", payment="pay-2"),
    event(0, "whole/invoice", payment="pay-2", leg="invoice"),
    event(1, "whole of three/invoice", payment="pay-3", leg="invoice"),
    event(20, "whole of three/payment", payment="pay-3"),
    event(21, "whole of three/payment", payment="pay-3"),
)
ROWS: tuple[LedgerRow, ...] = (
    row(1, "equal"),
    row(2, "negative", -500),
    row(3, "equal and big", BIG + 1),
    row(4, "one cent off", 10_000_000_399),
    row(5, "big by one", BIG),
    row(6, "sign", 500),
    row(7, "currency", currency="USD"),
    row(8, "no event"),
    row(9, "twice in the topic"),
    row(10, "twice on both"),
    row(11, "twice on both"),
    row(12, "twice in the ledger"),
    row(13, "twice in the ledger"),
    row(14, "known"),
    row(15, "swapped 1", 2_000),
    row(16, "swapped 2", 1_000),
    row(17, "unreadable"),
    row(19, "three to one"),
    row(20, "one to three"),
    row(21, "one to three"),
    row(22, "one to three"),
    row(18, "other partition"),
)
AGREED = {"equal", "negative", "equal and big", "other partition"}


def frames(spark: SparkSession, events: Iterable[Event], rows: Iterable[LedgerRow]) -> tuple[DataFrame, DataFrame]:
    return spark.createDataFrame(list(events), _TOPIC), spark.createDataFrame(list(rows), _LEDGER)


def scan_of(
    spark: SparkSession, events: Sequence[Event], rows: Sequence[LedgerRow], *, known: Iterable[str] = ("known",)
) -> SliceScan:
    topic, ledger = frames(spark, events, rows)
    return scan_slices(topic, ledger, legs=LEGS, known_elsewhere=set(known))


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
    in_scope = {str(one[4]) for one in EVENTS if one[9]} | {str(one[1]) for one in ROWS}
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


# Laws.


def test_order_and_partitioning_change_nothing(spark: SparkSession, scan: SliceScan) -> None:
    dice = random.Random(7)
    topic, ledger = frames(spark, dice.sample(EVENTS, len(EVENTS)), dice.sample(ROWS, len(ROWS)))
    again = scan_slices(topic.repartition(5), ledger.repartition(3), legs=LEGS, known_elsewhere={"known"})
    assert set(again.copies) == set(scan.copies)
    assert set(again.incomplete) == set(scan.incomplete)
    assert again.content_digests == scan.content_digests
    assert (again.matched_rows, again.matched_money) == (scan.matched_rows, scan.matched_money)


def test_equal_sides_of_unique_keys_agree_whole(spark: SparkSession) -> None:
    keys = [f"ev-{number}" for number in range(50)]
    whole = scan_of(
        spark, [event(n, key) for n, key in enumerate(keys)], [row(n, key) for n, key in enumerate(keys)], known=()
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
    empty = scan_of(spark, [], [], known=())
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
    found = [one["match_key"] for one in exceptional_keys(topic, ledger, ()).collect()]
    assert sorted(found) == sorted((events.keys() | rows.keys()) - agreed)
