"""Who walks a slice by its heads sees what a walk of the log sees, and fetches only what it looks into."""

from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.contract.event import EventFields
from tallystick.kafka_log.batch_header import HEADER_BYTES, Marker
from tallystick.kafka_log.fetch import FetchedLog, OffsetNotInLog
from tallystick.kafka_log.header_cache import FETCH_WORTH_BYTES, NO_HEADS, BatchHeads, HeadKeeper, KeptHeads
from tallystick.kafka_log.log_walk import DecidedBatch, Outcome, walk_batches, walk_past_lso
from tallystick.kafka_log.offset_census import walk_counted
from tallystick.kafka_log.record import read_records
from tallystick.kafka_log.search import Wanted, find_records
from tallystick.model.offsets import OffsetRange, TopicPartition
from tallystick.report.log_excerpt import read_strip
from tests.laws.scanned_logs import STEPS, log_of
from tests.unit.builders import LAW, PART, offsets
from tests.unit.synthetic_log import SyntheticLog

FIELDS = EventFields()


@pytest.fixture(autouse=True, scope="module")
def short_answers() -> Iterator[None]:
    """So that a walk takes several."""
    with patch("tallystick.kafka_log.header_cache.HEADS_OF_AN_ANSWER", 2):
        yield


def keep(log: SyntheticLog, inside: OffsetRange, *, heads_max: int = 1_000) -> BatchHeads | None:
    keeper = HeadKeeper(inside, heads_max=heads_max)
    for _ in keeper.keeping(walk_counted(log.fetch, inside)):
        pass
    return keeper.kept()


def kept_of(log: SyntheticLog, inside: OffsetRange) -> KeptHeads:
    heads = keep(log, inside)
    assert heads is not None
    one = replace_fetches(log, fetch_batches=1)
    return KeptHeads(of={PART: heads}, fetch_one=one.fetch)


def replace_fetches(log: SyntheticLog, *, fetch_batches: int) -> SyntheticLog:
    return replace(log, fetch_batches=fetch_batches, fetches=0)


def seen(batches: Iterator[DecidedBatch]) -> list[tuple[object, ...]]:
    return [(batch.header, batch.outcome, batch.ends_aborted_data) for batch in batches]


@LAW
@given(STEPS, st.data())
def test_a_walk_by_heads_sees_what_a_walk_of_the_log_sees(steps: list[object], data: st.DataObject) -> None:
    log = log_of(steps)  # type: ignore[arg-type]
    start, end = sorted(data.draw(st.tuples(st.integers(0, log.lso), st.integers(0, log.lso))))
    kept = kept_of(log, offsets(start, end))
    first, last = sorted(data.draw(st.tuples(st.integers(0, log.end), st.integers(0, log.end))))
    asked = offsets(first, last)
    by_heads = seen(walk_past_lso(kept.over(log.fetch), asked, lso=log.lso))
    assert by_heads == seen(walk_past_lso(log.fetch, asked, lso=log.lso))


@LAW
@given(STEPS, st.data())
def test_records_and_spans_are_the_same_with_heads_and_without(steps: list[object], data: st.DataObject) -> None:
    log = log_of(steps)  # type: ignore[arg-type]
    start, end = sorted(data.draw(st.tuples(st.integers(0, log.lso), st.integers(0, log.lso))))
    kept = kept_of(log, offsets(start, end))
    asked = data.draw(st.sets(st.integers(0, log.end)))
    without = list(read_records(log.fetch, PART, asked, FIELDS))
    assert list(read_records(log.fetch, PART, asked, FIELDS, heads=kept)) == without
    decoded = {one.kafka_offset: replace(one, span=None) for one in without if data.draw(st.booleans())}
    again = read_records(log.fetch, PART, asked, FIELDS, decoded, kept)
    assert sorted(again, key=lambda one: one.kafka_offset) == without


@LAW
@given(STEPS, st.data())
def test_a_search_by_heads_finds_the_same(steps: list[object], data: st.DataObject) -> None:
    log = log_of(steps)  # type: ignore[arg-type]
    start, end = sorted(data.draw(st.tuples(st.integers(0, log.lso), st.integers(0, log.lso))))
    inside = offsets(start, end)
    kept, keys = kept_of(log, inside), frozenset(data.draw(st.sets(st.sampled_from("abcde"))))
    wanted = Wanted(match_keys=keys, known=(inside,) if data.draw(st.booleans()) else ())
    whole = offsets(0, log.end)
    assert list(find_records(log.fetch, [whole], FIELDS, wanted, kept)) == list(
        find_records(log.fetch, [whole], FIELDS, wanted)
    )


@LAW
@given(STEPS, st.data())
def test_a_strip_by_heads_is_that_of_the_log(steps: list[object], data: st.DataObject) -> None:
    log = log_of(steps)  # type: ignore[arg-type]
    start, end = sorted(data.draw(st.tuples(st.integers(0, log.lso), st.integers(0, log.lso))))
    kept = kept_of(log, offsets(start, end))
    for offset in range(log.end):
        assert read_strip(kept.over(log.fetch), PART, offset) == read_strip(log.fetch, PART, offset)


def test_of_a_producer_that_aborts_twice_both_times_are_seen() -> None:
    log = SyntheticLog()
    for marker in (Marker.ABORT, Marker.COMMIT, Marker.ABORT):
        log.append(b"{}", producer_id=1, transactional=True)
        log.end_transaction(1, marker)
    walked = seen(walk_batches(kept_of(log, offsets(0, 6)).over(log.fetch), offsets(0, 6)))
    assert walked == seen(walk_batches(log.fetch, offsets(0, 6)))
    assert [outcome for _, outcome, _ in walked[::2]] == [Outcome.ABORTED, Outcome.COMMITTED, Outcome.ABORTED]


def test_what_lies_in_the_slice_is_not_fetched_but_for_the_batch_that_is_looked_into() -> None:
    log = SyntheticLog(fetch_batches=1)
    for number in range(20):
        log.append(b'{"event_id":"%d"}' % number, producer_id=number, transactional=True)
        log.end_transaction(number, Marker.ABORT if number == 7 else Marker.COMMIT)
    kept = kept_of(log, offsets(0, log.end))
    log.fetches = 0
    found = find_records(
        log.fetch, [offsets(0, log.end)], FIELDS, Wanted(match_keys=frozenset("7"), known=(offsets(0, log.end),)), kept
    )
    assert [record.outcome for record in found] == [Outcome.ABORTED]
    assert log.fetches == 0
    list(find_records(log.fetch, [offsets(0, log.end)], FIELDS, Wanted(match_keys=frozenset("7"))))
    assert log.fetches > 20


def test_a_head_is_a_batch_without_its_records_and_a_marker_is_whole() -> None:
    log = SyntheticLog()
    log.append(b"{}", producer_id=1, transactional=True)
    log.end_transaction(1, Marker.COMMIT)
    heads = keep(log, offsets(0, 2))
    assert heads is not None
    assert [len(head) for head in heads.heads] == [HEADER_BYTES, len(log.batches[1].raw)]
    assert heads.batch_bytes == sum(len(batch.raw) for batch in log.batches)


def test_of_a_slice_with_too_many_batches_none_is_kept() -> None:
    log = SyntheticLog()
    for _ in range(3):
        log.append(b"{}")
    assert keep(log, offsets(0, 3), heads_max=2) is None
    assert keep(log, offsets(0, 3), heads_max=3) is not None


def test_an_offset_that_has_left_the_log_meanwhile_is_not_there_any_more() -> None:
    log = SyntheticLog()
    for _ in range(3):
        log.append(b"{}")
    kept = kept_of(log, offsets(0, 3))

    def trimmed(topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        return replace(log.fetch(topic_partition, offset, read_committed), log_start=2)

    fetch = replace(kept, fetch_one=trimmed).over(log.fetch)
    assert [batch.header.base_offset for batch in walk_batches(fetch, offsets(2, 3))] == [2]
    with pytest.raises(OffsetNotInLog):
        next(walk_batches(fetch, offsets(1, 3)))


def test_of_few_offsets_one_of_each_batch_is_picked_and_of_many_none() -> None:
    log = SyntheticLog()
    for _ in range(4):
        log.append(b"{}", b"{}", b"{}")
    heads = keep(log, offsets(0, 12))
    assert heads is not None
    large = replace(heads, batch_bytes=2 * FETCH_WORTH_BYTES + 1)
    assert large.picked([10, 4, 3]) == (4, 10)
    assert large.picked([1, 4, 10]) is None


@pytest.mark.parametrize(("batch_bytes", "picked"), [(2 * FETCH_WORTH_BYTES + 1, True), (2 * FETCH_WORTH_BYTES, False)])
def test_where_much_was_aborted_the_log_is_walked(batch_bytes: int, picked: bool) -> None:
    inside = offsets(0, 9)
    heads = BatchHeads(offsets=inside, heads=(), next_offsets=(), aborted=frozenset({0, 1}), batch_bytes=batch_bytes)
    kept = replace(NO_HEADS, of={PART: heads})
    assert (PART in kept.worth_picking((inside,)).of) is picked
    assert not kept.worth_picking((offsets(0, 8),)).of
