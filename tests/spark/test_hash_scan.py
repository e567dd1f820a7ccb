"""The quick way says of both sides what pairing all of them says, word by word."""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tallystick.matching.scan_result import CANARY, CANARY_PARTITION, SliceScan
from tallystick.model.direction import Direction
from tallystick.model.open_item import ItemSide
from tallystick_spark.matching import hash_scan
from tallystick_spark.matching.frame_match import beside_planted, scan_slices
from tallystick_spark.matching.hash_scan import (
    Canaries,
    ParsedEvents,
    ParsedRows,
    SourceChangedDuringScan,
    _exceptional,
    scan_by_hash,
    supports_hash_match,
    tasks_to_match,
)
from tallystick_spark.readers.ledger_frame import LEDGER_ROWS, RowsById
from tests.spark.match_frames import EVENTS, LEGS, PAYMENTS, ROWS, Event, LedgerRow, event, frames, in_arrow, row
from tests.unit.builders import event as copy_of_event
from tests.unit.builders import row as copy_of_row

ONE_LEG = {"payment": PAYMENTS}
PLANTED_EVENTS = (
    event(0, f"{CANARY}no row", partition=CANARY_PARTITION, payment=f"{CANARY}1"),
    event(1, f"{CANARY}equal", partition=CANARY_PARTITION, payment=f"{CANARY}2"),
    event(2, f"{CANARY}equal", leg="invoice", partition=CANARY_PARTITION, payment=f"{CANARY}2"),
    event(3, None, None, None, partition=CANARY_PARTITION, readable=False),
)
PLANTED_ROWS = (row(1, f"{CANARY}no event"), row(2, f"{CANARY}equal"))


def both(
    spark: SparkSession,
    events: Sequence[Event],
    rows: Sequence[LedgerRow],
    *,
    keys_to_include: Iterable[str] = (),
    legs: dict[str, str] = LEGS,
    planted: tuple[Sequence[Event], Sequence[LedgerRow]] = (PLANTED_EVENTS, PLANTED_ROWS),
    by_id: RowsById | None = None,
    **asked: Any,
) -> tuple[SliceScan, SliceScan]:
    """What the quick way says, and the full one."""
    (topic, ledger), (canary_events, canary_rows) = (
        frames(spark, [one for one in in_topic if one[0] in legs.values()], in_ledger)
        for in_topic, in_ledger in ((events, rows), planted)
    )
    quick = scan_by_hash(
        ParsedEvents(events=topic, legs=legs),
        ParsedRows(rows=ledger, by_id=by_id),
        Canaries(events=in_arrow(canary_events), rows=in_arrow(canary_rows)),
        legs=legs,
        keys_to_include=set(keys_to_include),
        offsets=len(events),
        **asked,
    )
    full = scan_slices(
        beside_planted(topic, canary_events),
        beside_planted(ledger, canary_rows),
        legs=legs,
        keys_to_include=set(keys_to_include),
        **asked,
    )
    return quick.scan, full


def in_order(scan: SliceScan) -> SliceScan:
    """Copies have no order."""
    by_id = {
        name: tuple(sorted(getattr(scan, name), key=lambda copy: copy.item_id)) for name in ("copies", "incomplete")
    }
    planted = {
        name: tuple(sorted(getattr(scan.canaries, name), key=lambda copy: copy.item_id))
        for name in ("copies", "incomplete")
    }
    return replace(scan, **by_id, canaries=replace(scan.canaries, **planted))


def test_every_case_of_the_full_way(spark: SparkSession) -> None:
    quick, full = both(spark, EVENTS, ROWS, keys_to_include=("known",), possible_ms=(1, 2))
    assert in_order(quick) == in_order(full)
    assert full.copies
    assert full.incomplete
    assert full.canaries.copies
    assert full.canaries.incomplete
    assert full.canaries.unreadable == 1


def test_real_copies_under_the_keys_of_planted_ones_are_like_any_other(spark: SparkSession) -> None:
    """Pairs, copies alone, and transactions, under keys that are planted too and under keys that merely begin so."""
    events = [
        event(0, f"{CANARY}equal", payment=f"{CANARY}2"),
        event(1, f"{CANARY}of somebody", payment=f"{CANARY}1"),
        event(2, f"{CANARY}alone", payment=f"{CANARY}3", leg="invoice"),
        event(3, f"{CANARY}no event", payment="whole"),
        event(4, "other leg", payment="whole", leg="invoice"),
    ]
    rows = [
        row(1, f"{CANARY}no row"),
        row(2, f"{CANARY}of somebody"),
        row(3, f"{CANARY}no event"),
        row(4, f"{CANARY}no event"),
        row(5, "other leg"),
    ]
    quick, full = both(spark, events, rows, keys_to_include=(f"{CANARY}of somebody",))
    assert in_order(quick) == in_order(full)
    assert Counter((copy.match_key.removeprefix(CANARY), copy.side) for copy in full.copies) == {
        ("equal", ItemSide.TOPIC): 1,
        ("no row", ItemSide.LEDGER): 1,
        ("alone", ItemSide.TOPIC): 1,
        ("of somebody", ItemSide.TOPIC): 1,
        ("of somebody", ItemSide.LEDGER): 1,
        ("no event", ItemSide.TOPIC): 1,
        ("no event", ItemSide.LEDGER): 2,
    }
    assert (full.ledger_rows, full.topic_rows) == (5, 5)
    assert {copy.transaction_key for copy in full.incomplete} == {f"{CANARY}{n}" for n in (1, 2, 3)}
    nothing, _ = both(spark, (), ())
    assert in_order(quick).canaries == in_order(nothing).canaries


def test_two_empty_sides(spark: SparkSession) -> None:
    quick, full = both(spark, (), (), planted=((), ()))
    assert in_order(quick) == in_order(full)


def test_an_equal_pair_on_another_legs_topic(spark: SparkSession) -> None:
    events = [(PAYMENTS, *event(0, "wrong leg", leg="invoice")[1:]), event(1, "right leg")]
    quick, full = both(spark, events, [row(1, "wrong leg"), row(2, "right leg")])
    assert in_order(quick) == in_order(full)
    assert {copy.match_key for copy in quick.copies} == {"wrong leg"}


def test_lags_are_those_of_all_pairs_of_a_small_slice(spark: SparkSession) -> None:
    events = [event(n, f"key {n}", written_ms=5_000) for n in range(20)]
    rows = [row(n, f"key {n}", 999 if n == 17 else 1_000, written_ms=5_000 + 7 * n) for n in range(19)]
    quick, full = both(spark, events, rows, legs=ONE_LEG, keys_to_include=("key 3",), lag_of=Direction.TOPIC_TO_LEDGER)
    assert in_order(quick) == in_order(full)
    assert sum(sum(lag.pairs) for lag in quick.lags) == 18


@pytest.mark.parametrize("seed", range(4))
def test_random_sides(spark: SparkSession, seed: int) -> None:
    """Both sides double and lose; amounts are swapped and changed, transactions torn."""
    dice, events, rows = random.Random(seed), [], []
    for number in range(150):
        key, amount = f"key {number}", dice.randint(-(2**62), 2**62)
        for copy in range(dice.choice((1,) * 40 + (0, 2))):
            events.append(event(2 * number + copy, key, amount, partition=number % 2, payment=f"pay {number // 2}"))
        for _ in range(dice.choice((1,) * 40 + (0, 2))):
            rows.append(row(len(rows), key, amount + dice.choice((0,) * 40 + (1,))))
    amounts = [one[4] for one in rows[:2]]
    rows[:2] = [(*rows[0][:4], amounts[1], *rows[0][5:]), (*rows[1][:4], amounts[0], *rows[1][5:])]
    quick, full = both(
        spark, events, rows, legs=dict(ONE_LEG), keys_to_include=("key 5", "nowhere"), possible_ms=(0, 9)
    )
    assert in_order(quick) == in_order(full)
    assert len(full.copies) > 3


@pytest.mark.parametrize("seed", range(2))
def test_random_transactions_of_two_legs(spark: SparkSession, seed: int) -> None:
    """A leg that the ledger lacks tears nothing; one that the topic lacks does, and a doubled one does not."""
    dice, events, rows = random.Random(seed), [], []
    for number in range(80):
        for leg in LEGS:
            key = f"{leg} {number}"
            for copy in range(dice.choice((1,) * 30 + (0, 2))):
                events.append(event(2 * number + copy, key, payment=f"pay {number}", leg=leg))
            if dice.random() < 0.95:
                rows.append(row(len(rows), key))
    quick, full = both(spark, events, rows)
    assert in_order(quick) == in_order(full)
    assert full.incomplete


def rows_of(rows: Sequence[LedgerRow], ids: Collection[int]) -> list[dict[str, Any]]:
    """What a ledger finds that can be asked for single rows."""
    return [dict(zip(LEDGER_ROWS.names, one, strict=True)) for one in rows if int(str(one[0])) in ids]


def test_only_what_differs_is_asked_for_by_its_id(spark: SparkSession) -> None:
    rows, asked = [row(1, "equal"), row(2, "more", 1_001), row(3, "alone"), row(4, "twice"), row(5, "twice")], []
    events = [event(0, "equal"), event(1, "more"), event(2, "twice")]

    def by_id(ids: Collection[int]) -> list[dict[str, Any]]:
        asked.extend(ids)
        return rows_of(rows, ids)

    quick, full = both(spark, events, rows, legs=ONE_LEG, by_id=by_id)
    assert in_order(quick) == in_order(full)
    assert sorted(asked) == [2, 3, 4, 5]


def test_an_id_that_two_keys_share_brings_home_only_the_one_that_differs(spark: SparkSession) -> None:
    rows = [row(7, "equal"), row(7, "alone")]
    quick, full = both(spark, [event(0, "equal")], rows, legs=ONE_LEG, by_id=partial(rows_of, rows))
    assert in_order(quick) == in_order(full)


def test_more_rows_than_are_asked_for_by_id_are_picked_out_of_all(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hash_scan, "ROWS_BY_ID_MAX", 1)
    rows = [row(1, "equal"), row(2, "alone"), row(3, "more", 7), row(3, "equal too")]
    events = [event(0, "equal"), event(1, "more"), event(2, "equal too")]
    quick, full = both(spark, events, rows, legs=ONE_LEG, by_id=partial(rows_of, ()))
    assert in_order(quick) == in_order(full)
    assert {copy.match_key for copy in quick.copies} == {"alone", "more"}


def test_rows_whose_id_says_nothing_are_found_by_reading_all_again(spark: SparkSession) -> None:
    rows = [row(0, "alone"), row(3, "alone too")]
    quick, full = both(spark, [event(0, "equal")], rows, legs=ONE_LEG, by_id=lambda ids: [])
    assert in_order(quick) == in_order(full)


def test_a_row_that_is_gone_at_the_second_look_fails_the_attempt(spark: SparkSession) -> None:
    with pytest.raises(
        SourceChangedDuringScan, match="expected 0 events and 1 ledger rows at the second look, got 0 and 0"
    ):
        both(spark, [], [row(1, "alone")], legs=ONE_LEG, by_id=lambda ids: [])


def test_two_keys_of_one_hash_are_told_apart_at_home() -> None:
    """Were all hashes the same, everything would come home, and nothing be called wrong that is not."""
    events = [copy_of_event(n, f"key {n}") for n in range(6)]
    rows = [copy_of_row(n, f"key {n}") for n in range(1, 7)]
    exceptional = _exceptional(events, rows, ONE_LEG, frozenset())
    assert exceptional == ([events[0]], [rows[-1]])


ALWAYS_EQUAL = ("H\u075c\u10b6\u07c4\u01f1\u063f\u056c\u0109", "h\u041bI'jMx\u01f1\u063f&a7s")
"""Two texts that xxhash64 gives the same hash, whatever its seed."""


@pytest.mark.parametrize(
    "keys", [("jCVRTAXHeCc56utV", "pjmm1jo3fL#$$%WM"), ALWAYS_EQUAL], ids=["of one xxhash64", "of one under any seed"]
)
def test_keys_that_were_made_to_collide_are_two(spark: SparkSession, keys: tuple[str, str]) -> None:
    quick, full = both(spark, [event(0, keys[0])], [row(1, keys[1])], legs=ONE_LEG)
    assert in_order(quick) == in_order(full)
    assert {copy.match_key for copy in quick.copies} == set(keys)


@pytest.mark.parametrize("money", [(4532, "lQ4ar~`G"), (1_000, ALWAYS_EQUAL[1])], ids=["amount", "currency"])
def test_a_currency_that_was_made_to_hide_another_amount_or_currency_hides_none(
    spark: SparkSession, money: tuple[int, str]
) -> None:
    """Of the first, amount and xxhash64 of the currency together are those of 50,000.00 EUR."""
    said = (1_000, ALWAYS_EQUAL[0]) if money[0] == 1_000 else (5_000_000, "EUR")
    quick, full = both(spark, [event(0, "a", *said)], [row(1, "a", *money)], legs=ONE_LEG)
    assert in_order(quick) == in_order(full)
    assert len(quick.copies) == 2


def test_a_swap_of_two_amounts_is_seen(spark: SparkSession) -> None:
    events = [event(0, "one", 1_000), event(1, "other", 2_000), event(2, "third", 5)]
    swapped = [row(1, "one", 2_000), row(2, "other", 1_000), row(3, "third", 5)]
    quick, full = both(spark, events, swapped, legs=ONE_LEG)
    assert in_order(quick) == in_order(full)
    assert {copy.match_key for copy in quick.copies} == {"one", "other"}


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ({}, True),
        ({"has_sequence": True}, False),
        ({"ignore_case": True}, False),
        ({"has_inputs": True}, False),
        ({"adds_up": True}, False),
    ],
)
def test_it_is_taken_where_it_answers_the_same(asked: dict[str, bool], taken: bool) -> None:
    nothing = dict.fromkeys(("has_sequence", "ignore_case", "has_inputs", "adds_up"), False)
    assert supports_hash_match(**nothing | asked) is taken


@pytest.mark.parametrize(
    ("offsets", "cores", "tasks"),
    [(0, 2, 1), (199_999, 2, 1), (399_999, 2, 2), (400_000, 2, 4), (10**9, 2, 4), (799_999, 8, 7), (10**9, 8, 16)],
)
def test_each_core_matches_as_often_as_the_others(offsets: int, cores: int, tasks: int) -> None:
    assert tasks_to_match(offsets, cores=lambda: cores) == tasks


def test_a_small_slice_asks_for_no_cores() -> None:
    answers = iter([2])
    assert [tasks_to_match(offsets, cores=lambda: next(answers)) for offsets in (0, 199_999, 200_000)] == [1, 1, 2]
    assert list(answers) == []
