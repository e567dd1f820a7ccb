"""What both sides' hashes tell, against a plain model: all that is no simple pair, and exact totals."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick_spark.matching import bucket_blobs
from tallystick_spark.matching.bucket_blobs import (
    BUCKETS,
    HASHED_EVENTS,
    HASHED_ROWS,
    NO_BUCKET,
    PARTITIONS,
    PLANTED,
    SUMMARY,
    BlobKind,
    GroupTotal,
    ScanPlan,
    add_totals,
    bucket_of,
    by_bucket,
    numbers_in,
    summarise_events,
    summarise_rows,
    totals_in,
)
from tallystick_spark.matching.hash_match import BucketsOutOfOrder, match
from tests.unit.builders import LAW

CURRENCY_HASH = {"EUR": -7_000_000_000_000_000_001, "USD": 5_123_456_789_012_345_678}
HASHES = (-(2**63), 2**63 - 1, -1, 0, 1, 2**56, 2**56 + 1, -(2**40), 987_654_321_987_654_321)
"""The ends of the range, neighbours in a bucket, and neighbours across its edge."""


@dataclass(frozen=True, kw_only=True)
class Event:
    key_hash: int
    amount_minor: int | None = 1_000
    currency: str | None = "EUR"
    topic: int = 0
    partition: int = 0
    place: int = 0
    content: int = 0
    written_ms: int = 0
    transaction_hash: int = 0
    misrouted: bool = False
    readable: bool = True

    @property
    def part(self) -> int:
        return self.topic * PARTITIONS + self.partition + 1


@dataclass(frozen=True, kw_only=True)
class LedgerRow:
    key_hash: int
    amount_minor: int = 1_000
    currency: str = "EUR"
    place: int = 0
    content: int = 0
    written_ms: int | None = None


def fields(one: Event | LedgerRow) -> int:
    return (one.amount_minor or 0) ^ CURRENCY_HASH.get(one.currency or "", 0)


def event_batch(events: Sequence[Event]) -> pa.RecordBatch:
    rows = [asdict(one) | {"part": one.part, "fields": fields(one)} for one in events]
    nothing = {"amount_minor": None, "currency": None}
    return pa.RecordBatch.from_pylist([row if row["readable"] else row | nothing for row in rows], HASHED_EVENTS)


def row_batch(rows: Sequence[LedgerRow]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([asdict(one) | {"fields": fields(one)} for one in rows], HASHED_ROWS)


@dataclass(frozen=True, kw_only=True)
class Told:
    """What came of a match: rows of numbers by kind, in order, and totals by side."""

    home_events: list[tuple[int, ...]]
    home_rows: list[tuple[int, ...]]
    incomplete: list[tuple[int, ...]]
    lags: list[tuple[int, ...]]
    unreadable: list[tuple[int, ...]]
    event_totals: set[GroupTotal]
    row_totals: set[GroupTotal]


def on_progress(
    events: Sequence[Event],
    rows: Sequence[LedgerRow],
    *,
    planted_rows: Sequence[LedgerRow] = (),
    wanted: Iterable[int] = (),
    in_tasks: int = 1,
    in_batch: int = 3,
    **asked: Any,
) -> Told:
    """Each side in tasks and batches of so many rows, sorted as a shuffle does, and matched in batches again."""
    plan = ScanPlan(**{"secret": "", "topics": ("payments", "invoices"), "legs": 1, **asked})
    asked_for = np.array(sorted(wanted), dtype=np.int64)
    summaries = list(
        chain(
            *(summarise_events(map(event_batch, batches(task, in_batch)), plan) for task in tasks(events, in_tasks)),
            *(summarise_rows(map(row_batch, batches(task, in_batch)), plan) for task in tasks(rows, in_tasks)),
            summarise_rows([row_batch(planted_rows)], plan, planted=True),
            [by_bucket(BlobKind.WANTED, bucket_of(asked_for), asked_for[:, np.newaxis])],
        )
    )
    shuffled = pa.Table.from_batches(summaries).sort_by("bucket").to_batches(max_chunksize=in_batch)
    told = pa.Table.from_batches(match(shuffled, plan), SUMMARY).to_pylist()

    def numbers(kind: BlobKind) -> list[tuple[int, ...]]:
        blobs = [one["blob"] for one in told if one["kind"] == kind]
        return sorted(map(tuple, numbers_in(kind, blobs).tolist()))

    def totals(kind: BlobKind) -> set[GroupTotal]:
        return set(add_totals(total for one in told if one["kind"] == kind for total in totals_in(one["blob"])))

    return Told(
        home_events=[tuple(row[1:]) for row in numbers(BlobKind.EXCEPTION_EVENTS)],
        home_rows=numbers(BlobKind.EXCEPTION_ROWS),
        incomplete=numbers(BlobKind.INCOMPLETE),
        lags=numbers(BlobKind.LAGS),
        unreadable=numbers(BlobKind.UNREADABLE),
        event_totals=totals(BlobKind.EVENT_TOTALS),
        row_totals=totals(BlobKind.ROW_TOTALS),
    )


def tasks(side: Sequence[Any], count: int) -> Iterator[Sequence[Any]]:
    return (side[n::count] for n in range(count))


def batches(task: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (task[n : n + size] for n in range(0, len(task), size))


money = st.sampled_from((1_000, 1_000, 1_000, 1_001)) | st.integers(-(2**63), 2**63 - 1)
currencies = st.sampled_from(("EUR", "EUR", "EUR", "USD"))
contents = st.integers(-(2**63), 2**63 - 1)
events_of = st.builds(
    Event,
    key_hash=st.sampled_from(HASHES),
    amount_minor=money,
    currency=currencies,
    topic=st.integers(0, 1),
    partition=st.integers(0, 2),
    content=contents,
    written_ms=st.integers(0, 50),
    transaction_hash=st.sampled_from(HASHES[:5]),
    misrouted=st.sampled_from((False, False, False, True)),
    readable=st.sampled_from((True, True, True, False)),
)
rows_of = st.builds(
    LedgerRow,
    key_hash=st.sampled_from(HASHES),
    amount_minor=money,
    currency=currencies,
    content=contents,
    written_ms=st.none() | st.integers(0, 50),
)


@LAW
@given(
    st.lists(events_of, max_size=14),
    st.lists(rows_of, max_size=14),
    st.sets(st.sampled_from(HASHES), max_size=2),
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(1, 5),
)
def test_it_tells_what_a_plain_model_tells(
    events: list[Event], rows: list[LedgerRow], wanted: set[int], legs: int, in_tasks: int, in_batch: int
) -> None:
    events = [replace(one, place=number) for number, one in enumerate(events)]
    rows = [replace(one, place=100 + number) for number, one in enumerate(rows)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bucket_blobs, "FLUSH_ROWS", 4)
        asked = {"legs": legs, "possible_ms": (10, 40), "lag_of_one_in": 1, "wanted": wanted}
        told = on_progress(events, rows, in_tasks=in_tasks, in_batch=in_batch, **asked)
    assert told.home_events + told.home_rows == sorted_exceptional(events, rows, wanted, legs=legs)
    assert told.incomplete == incomplete(events, legs=legs)
    assert told.lags == lags(events, rows)
    assert told.event_totals == event_totals(events)
    assert told.row_totals == row_totals(rows)


def by_key(side: Sequence[Any]) -> dict[int, list[Any]]:
    groups = defaultdict(list)
    for one in side:
        groups[one.key_hash].append(one)
    return groups


def simple_pairs(events: Sequence[Event], rows: Sequence[LedgerRow]) -> Iterator[tuple[Event, LedgerRow]]:
    in_topic, in_ledger = by_key([one for one in events if one.readable]), by_key(rows)
    for key in in_topic.keys() & in_ledger.keys():
        if len(in_topic[key]) == len(in_ledger[key]) == 1:
            (event,), (row,) = in_topic[key], in_ledger[key]
            if (event.amount_minor, event.currency) == (row.amount_minor, row.currency):
                yield event, row


def sorted_exceptional(
    events: Sequence[Event], rows: Sequence[LedgerRow], wanted: set[int], *, legs: int
) -> list[tuple[int, ...]]:
    wanted = wanted | {one.key_hash for one in events if one.readable and one.misrouted and legs > 1}
    simple = {event.key_hash for event, _ in simple_pairs(events, rows)} - wanted
    in_order = sorted((one for one in events if one.readable and one.key_hash not in simple), key=event_order)
    in_ledger = sorted((one.key_hash, one.place) for one in rows if one.key_hash not in simple)
    return [(one.part, one.place) for one in in_order] + in_ledger


def event_order(event: Event) -> tuple[int, int, int]:
    return event.key_hash, event.part, event.place


def incomplete(events: Sequence[Event], *, legs: int) -> list[tuple[int, int]]:
    if legs == 1:
        return []
    topics = defaultdict(set)
    readable = [one for one in events if one.readable]
    for one in readable:
        topics[one.transaction_hash].add(one.topic)
    return sorted((one.part, one.place) for one in readable if len(topics[one.transaction_hash]) < legs)


def lags(events: Sequence[Event], rows: Sequence[LedgerRow]) -> list[tuple[int, int]]:
    return sorted(
        (event.topic, row.written_ms - event.written_ms)
        for event, row in simple_pairs(events, rows)
        if row.written_ms is not None
    )


def event_totals(events: Sequence[Event]) -> set[GroupTotal]:
    return set(
        add_totals(
            replace(
                total_of(one, one.part, one.readable),
                earliest_ms=one.written_ms,
                latest_ms=one.written_ms,
                early=int(one.written_ms < 10),
                late=int(one.written_ms > 40),
            )
            for one in events
        )
    )


def row_totals(rows: Sequence[LedgerRow]) -> set[GroupTotal]:
    return set(add_totals(total_of(one, 0, True) for one in rows))


def total_of(one: Event | LedgerRow, part: int, readable: bool) -> GroupTotal:
    return GroupTotal(
        part=part,
        readable=readable,
        currency=one.currency if readable else None,
        rows=1,
        amount=one.amount_minor if readable else None,
        xor=one.content,
        sum=one.content & 0xFFFFFFFF,
    )


def test_sides_that_agree_tell_nothing() -> None:
    events = [Event(key_hash=key, place=number) for number, key in enumerate(HASHES)]
    rows = [LedgerRow(key_hash=key) for key in reversed(HASHES)]
    told = on_progress(events, rows)
    assert told.home_events == []
    assert told.home_rows == []


@pytest.mark.parametrize(
    "row",
    [
        LedgerRow(key_hash=1, amount_minor=1_001),
        LedgerRow(key_hash=1, amount_minor=-1_000),
        LedgerRow(key_hash=1, currency="USD"),
        LedgerRow(key_hash=2),
    ],
    ids=["a cent", "the sign", "the currency", "another key"],
)
def test_a_pair_that_is_one_fact_away_is_told(row: LedgerRow) -> None:
    told = on_progress([Event(key_hash=1, place=7)], [replace(row, place=9)])
    assert told.home_events == [(1, 7)]
    assert told.home_rows == [(row.key_hash, 9)]


def test_two_amounts_that_change_places_are_told() -> None:
    events = [Event(key_hash=1, amount_minor=5), Event(key_hash=2, amount_minor=6, place=1)]
    told = on_progress(events, [LedgerRow(key_hash=1, amount_minor=6), LedgerRow(key_hash=2, amount_minor=5)])
    assert len(told.home_events) == len(told.home_rows) == 2


def test_a_key_that_both_sides_double_is_told_with_all_its_copies() -> None:
    events = [Event(key_hash=1, place=number) for number in range(2)]
    rows = [LedgerRow(key_hash=1, place=10 + number) for number in range(2)]
    told = on_progress(events, rows, in_tasks=2)
    assert told.home_events == [(1, 0), (1, 1)]
    assert told.home_rows == [(1, 10), (1, 11)]


def test_two_copies_on_one_side_are_no_pair() -> None:
    assert len(on_progress([Event(key_hash=1), Event(key_hash=1, place=1)], []).home_events) == 2
    assert len(on_progress([], [LedgerRow(key_hash=1), LedgerRow(key_hash=1, place=1)]).home_rows) == 2


def test_a_simple_pair_comes_home_only_if_it_is_wanted() -> None:
    events = [Event(key_hash=key, place=key) for key in (1, 2, -3)]
    told = on_progress(events, [LedgerRow(key_hash=one.key_hash) for one in events], wanted=[2, 99])
    assert (told.home_events, told.home_rows) == ([(1, 2)], [(2, 0)])


def test_a_misrouted_pair_comes_home_only_if_there_is_another_leg() -> None:
    events, rows = [Event(key_hash=1, misrouted=True)], [LedgerRow(key_hash=1)]
    assert len(on_progress(events, rows, legs=2).home_events) == 1
    assert on_progress(events, rows, legs=1).home_events == []


def test_a_transaction_lacks_a_leg_whatever_its_neighbour_has() -> None:
    whole = [Event(key_hash=key, topic=topic, place=key, transaction_hash=6) for key, topic in ((1, 0), (2, 1))]
    torn = [Event(key_hash=key, place=key, transaction_hash=5) for key in (3, 4)]
    assert on_progress([*whole, *torn], [], legs=2).incomplete == [(1, 3), (1, 4)]
    assert on_progress(whole, [], legs=2).incomplete == []


def test_what_is_planted_meets_only_what_is_planted() -> None:
    planted = Event(key_hash=1, partition=-1, place=5)
    told = on_progress([planted, Event(key_hash=2)], [LedgerRow(key_hash=1), LedgerRow(key_hash=2)])
    assert (told.home_events, told.home_rows) == ([(0, 5)], [(1, 0)])
    pair = on_progress([planted, Event(key_hash=1)], [LedgerRow(key_hash=1)], planted_rows=[LedgerRow(key_hash=1)])
    assert (pair.home_events, pair.home_rows) == ([], [])


def test_the_first_unreadable_records_of_a_task_are_told_by_place_and_no_planted_one() -> None:
    events = [Event(key_hash=0, place=place, partition=place % 2, readable=False) for place in range(9, 0, -1)]
    told = on_progress([*events, Event(key_hash=0, partition=-1, readable=False)], [])
    assert told.unreadable == [(1, 2), (1, 4), (1, 6), (1, 8), (2, 1)]


def test_lags_are_of_one_key_in_so_many() -> None:
    events = [Event(key_hash=key, place=key, written_ms=5) for key in range(100)]
    rows = [LedgerRow(key_hash=key, written_ms=5 + key) for key in range(100)]
    assert on_progress(events, rows, lag_of_one_in=10).lags == [(0, key) for key in range(0, 100, 10)]
    assert on_progress(events, rows).lags == []


def test_buckets_are_even_and_cover_all_hashes() -> None:
    ends = np.array([-(2**63), -(2**63) + 2**56 - 1, -1, 0, 2**63 - 1], dtype=np.int64)
    assert bucket_of(ends).tolist() == [0, 0, BUCKETS // 2 - 1, BUCKETS // 2, BUCKETS - 1]
    assert NO_BUCKET < 0 < BUCKETS <= PLANTED


def test_rows_that_are_not_sorted_by_bucket_are_refused() -> None:
    plan = ScanPlan(secret="", topics=("payments",), legs=1)
    one, other = (by_bucket(BlobKind.ROWS, np.array([n]), np.array([[1, 2, 3]])) for n in (1, 2))
    assert len(list(match([one, one, other], plan))) == 2
    with pytest.raises(BucketsOutOfOrder):
        list(match([one, other, one], plan))


def test_rows_of_a_bucket_stay_together() -> None:
    buckets = np.array([3, 1, 3, 1, 1])
    batch = by_bucket(BlobKind.WANTED, buckets, np.arange(5)[:, np.newaxis])
    held = Counter({one["bucket"]: len(one["blob"]) // 8 for one in batch.to_pylist()})
    assert held == {1: 3, 3: 2}
