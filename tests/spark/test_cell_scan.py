"""The quick way says of both sides what pairing all of them says, word by word."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_apps import cell_scan
from spark_apps.cell_scan import CellPlan, Side, scan_cells, takes
from spark_apps.slice_matching import scan_slices
from tallystick.contract import Direction
from tallystick.slice_scan import CANARY, CANARY_PARTITION, SliceScan

from .test_slice_matching import EVENTS, LEGS, PAYMENTS, ROWS, Event, LedgerRow, event, frames, row

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
    known: Iterable[str] = (),
    legs: dict[str, str] = LEGS,
    planted: tuple[Sequence[Event], Sequence[LedgerRow]] = (PLANTED_EVENTS, PLANTED_ROWS),
    offsets: int | None = None,
    **asked: Any,
) -> tuple[SliceScan | None, SliceScan]:
    """What the quick way says, and the full one."""
    read, canaries = frames(spark, events, rows), frames(spark, *planted)
    topic, ledger = (Side(read=one, planted=other) for one, other in zip(read, canaries, strict=True))
    quick = scan_cells(
        topic,
        ledger,
        legs=legs,
        known_elsewhere=set(known),
        offsets=len(events) if offsets is None else offsets,
        partitions=4,
        **asked,
    )
    return quick, scan_slices(topic.all, ledger.all, legs=legs, known_elsewhere=set(known), **asked)


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
    quick, full = both(spark, EVENTS, ROWS, known=("known",), possible_ms=(1, 2))
    assert quick is not None
    assert in_order(quick) == in_order(full)
    assert full.copies
    assert full.incomplete
    assert full.canaries.copies
    assert full.canaries.incomplete
    assert full.canaries.unreadable == 1


def test_two_empty_sides(spark: SparkSession) -> None:
    quick, full = both(spark, (), (), planted=((), ()))
    assert quick is not None
    assert in_order(quick) == in_order(full)


def test_an_equal_pair_on_another_legs_topic(spark: SparkSession) -> None:
    events = [(PAYMENTS, *event(0, "wrong leg", leg="invoice")[1:]), event(1, "right leg")]
    quick, full = both(spark, events, [row(1, "wrong leg"), row(2, "right leg")])
    assert quick is not None
    assert in_order(quick) == in_order(full)
    assert {copy.match_key for copy in quick.copies} == {"wrong leg"}


def test_lags_are_those_of_all_pairs_where_each_key_has_a_cell_of_its_own(spark: SparkSession) -> None:
    events = [event(n, f"key {n}", written_ms=5_000) for n in range(20)]
    rows = [row(n, f"key {n}", 999 if n == 17 else 1_000, written_ms=5_000 + 7 * n) for n in range(19)]
    quick, full = both(spark, events, rows, legs=ONE_LEG, known=("key 3",), lag_of=Direction.TOPIC_TO_LEDGER)
    assert quick is not None
    assert in_order(quick) == in_order(full)
    assert sum(sum(lag.pairs) for lag in quick.lags) == 18


@pytest.mark.parametrize("seed", range(4))
def test_random_sides_whose_keys_share_cells(spark: SparkSession, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger's key is unique, as takes() asks for; the topic doubles, loses, swaps and tears."""
    monkeypatch.setattr(cell_scan, "OWN_CELLS", 10)
    monkeypatch.setattr(CellPlan, "shared_cells", 7)
    dice, events, rows = random.Random(seed), [], []
    for number in range(150):
        key, amount = f"key {number}", dice.randint(-(2**62), 2**62)
        for copy in range(dice.choice((1,) * 40 + (0, 2))):
            events.append(event(2 * number + copy, key, amount, partition=number % 2, payment=f"pay {number // 2}"))
        if dice.random() < 0.97:
            rows.append(row(number, key, amount + dice.choice((0,) * 40 + (1,))))
    amounts = [one[4] for one in rows[:2]]
    rows[:2] = [(*rows[0][:4], amounts[1], *rows[0][5:]), (*rows[1][:4], amounts[0], *rows[1][5:])]
    quick, full = both(spark, events, rows, legs=dict(ONE_LEG), known=("key 5", "nowhere"), possible_ms=(0, 9))
    assert quick is not None
    assert in_order(quick) == in_order(full)
    assert len(full.copies) > 3


@pytest.mark.parametrize("seed", range(2))
def test_random_transactions_of_two_legs(spark: SparkSession, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leg that the ledger lacks tears nothing; one that the topic lacks does, and a doubled one does not."""
    monkeypatch.setattr(cell_scan, "OWN_CELLS", 10)
    monkeypatch.setattr(CellPlan, "shared_cells", 7)
    dice, events, rows = random.Random(seed), [], []
    for number in range(80):
        for leg in LEGS:
            key = f"{leg} {number}"
            for copy in range(dice.choice((1,) * 30 + (0, 2))):
                events.append(event(2 * number + copy, key, payment=f"pay {number}", leg=leg))
            if dice.random() < 0.95:
                rows.append(row(len(rows), key))
    quick, full = both(spark, events, rows)
    assert quick is not None
    assert in_order(quick) == in_order(full)
    assert full.incomplete


def test_a_swap_of_two_amounts_in_one_cell_is_seen(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_scan, "OWN_CELLS", 1)
    monkeypatch.setattr(CellPlan, "shared_cells", 1)
    events = [event(0, "one", 1_000), event(1, "other", 2_000), event(2, "third", 5)]
    swapped = [row(1, "one", 2_000), row(2, "other", 1_000), row(3, "third", 5)]
    quick, full = both(spark, events, swapped, legs=ONE_LEG)
    assert quick is not None
    assert in_order(quick) == in_order(full)
    assert {copy.match_key for copy in quick.copies} == {"one", "other"}


def test_where_too_much_differs_the_full_way_is_taken(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [event(n, f"key {n}") for n in range(5)]
    monkeypatch.setattr(cell_scan, "HOME_ROWS_MAX", 4)
    assert both(spark, events, [], legs=ONE_LEG)[0] is None
    assert both(spark, events[:4], [], legs=ONE_LEG)[0] is not None


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ({}, True),
        ({"offsets": cell_scan.OWN_CELLS + 1}, True),
        ({"key_is_unique": False}, True),
        ({"key_is_unique": False, "offsets": cell_scan.OWN_CELLS + 1}, False),
        ({"has_sequence": True}, False),
        ({"ignore_case": True}, False),
        ({"has_inputs": True}, False),
    ],
)
def test_it_is_taken_where_it_answers_the_same(asked: dict[str, Any], taken: bool) -> None:
    usual = {"offsets": 5, "key_is_unique": True, "has_sequence": False, "ignore_case": False, "has_inputs": False}
    assert takes(**{**usual, **asked}) is taken
