"""The census counts every offset of a slice once, and says of what it cannot explain how much there is of it."""

from collections.abc import Callable
from dataclasses import astuple, replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.batch_header import Marker
from tallystick.census import Outcome, batch_at, take_census, walk_batches
from tallystick.log_fetch import FetchedLog, OffsetNotInLog
from tallystick.offsets import OffsetRange, TopicPartition
from tallystick.run_result import PartitionCensus

from .builders import LAW, MORE, PART, offsets
from .synthetic_log import Batch, SyntheticLog, patch

COMMIT, ABORT = Marker.COMMIT, Marker.ABORT


def census(log: SyntheticLog, start: int, end: int) -> PartitionCensus:
    return take_census(log.fetch, offsets(start, end))


def counts(log: SyntheticLog, start: int, end: int) -> dict[str, int]:
    """All counts that are not 0."""
    taken = census(log, start, end)
    names = ("committed", "aborted", "plain", "commit_markers", "abort_markers", "unexplained", "without_producer_id")
    return {name: getattr(taken, name) for name in names if getattr(taken, name)}


# Literal logs.


def test_plain_and_idempotent_records_are_plain_and_only_the_first_lack_a_producer() -> None:
    log = SyntheticLog()
    log.append(b"a", b"b")
    log.append(b"c", b"d", b"e", producer_id=7)
    assert counts(log, 0, 5) == {"plain": 5, "without_producer_id": 2}


def test_a_committed_and_an_aborted_transaction_are_told_apart() -> None:
    log = SyntheticLog()
    log.append(b"a", b"b", producer_id=7, transactional=True)
    log.end_transaction(7, COMMIT)
    log.append(b"c", producer_id=7, transactional=True)
    log.end_transaction(7, ABORT)
    assert counts(log, 0, 5) == {"committed": 2, "commit_markers": 1, "aborted": 1, "abort_markers": 1}


def test_transactions_that_overlap_on_the_log_are_told_apart_by_their_producer() -> None:
    log = SyntheticLog()
    log.append(b"a", producer_id=7, transactional=True)
    log.append(b"b", b"c", producer_id=8, transactional=True)
    log.append(b"d", producer_id=7, transactional=True)
    log.end_transaction(8, ABORT)
    log.end_transaction(7, COMMIT)
    assert counts(log, 0, 6) == {"committed": 2, "aborted": 2, "abort_markers": 1, "commit_markers": 1}


def test_the_brokers_list_is_in_the_order_of_markers_and_an_answer_may_end_between_them() -> None:
    """Producer 8 began second and was aborted first; with one batch an answer, each names what overlaps it."""
    for fetch_batches in (1, 50):
        log = SyntheticLog(fetch_batches=fetch_batches)
        log.append(b"a", producer_id=7, transactional=True)
        log.append(b"b", producer_id=8, transactional=True)
        log.append(b"c", producer_id=9, transactional=True)
        for producer_id, marker in ((8, ABORT), (9, COMMIT), (7, ABORT)):
            log.end_transaction(producer_id, marker)
        assert counts(log, 0, 6) == {"aborted": 2, "committed": 1, "abort_markers": 2, "commit_markers": 1}


def test_a_batch_that_an_answer_repeats_is_walked_once_and_one_that_the_slice_ends_before_is_not() -> None:
    """An answer begins with the whole batch that holds the offset asked for, and does not end with the slice."""
    log = SyntheticLog(fetch_batches=2)
    for _ in range(4):
        log.append(b"x", b"y")
    walked = [batch.header.base_offset for batch in walk_batches(log.fetch, offsets(1, 6))]
    assert walked == [0, 2, 4]

    def repeating(part: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        return log.fetch(part, max(0, offset - 2), read_committed)

    assert [batch.header.base_offset for batch in walk_batches(repeating, offsets(1, 6))] == [0, 2, 4]


def test_a_slice_that_ends_before_the_marker_knows_the_outcome() -> None:
    """The marker lies past the slice, below the LSO: "no marker seen" would read as open or as committed."""
    log = SyntheticLog()
    log.append(b"a", b"b", producer_id=7, transactional=True)
    log.append(b"x", b"y", b"z")
    log.end_transaction(7, ABORT)
    assert counts(log, 0, 2) == {"aborted": 2}
    assert counts(log, 1, 4) == {"aborted": 1, "plain": 2, "without_producer_id": 2}


def test_a_slice_that_begins_inside_a_transaction_and_a_batch_counts_its_part() -> None:
    log = SyntheticLog()
    log.append(b"a", b"b", b"c", b"d", producer_id=7, transactional=True)
    log.end_transaction(7, COMMIT)
    assert counts(log, 1, 5) == {"committed": 3, "commit_markers": 1}
    assert counts(log, 1, 3) == {"committed": 2}


def test_an_abort_of_an_earlier_transaction_does_not_touch_the_next_one_of_the_same_producer() -> None:
    log = SyntheticLog()
    log.append(b"a", producer_id=7, transactional=True)
    log.end_transaction(7, ABORT)
    log.append(b"b", b"c", producer_id=7, transactional=True)
    log.end_transaction(7, COMMIT)
    assert counts(log, 2, 5) == {"committed": 2, "commit_markers": 1}


def test_a_marker_under_a_later_epoch_decides_the_data_before_it() -> None:
    """A broker that ends a zombie's transaction raises the epoch; so does every marker under KIP-890."""
    log = SyntheticLog()
    log.append(b"a", producer_id=7, epoch=3, transactional=True)
    log.end_transaction(7, ABORT, epoch=4)
    log.append(b"b", producer_id=7, epoch=4, transactional=True)
    log.end_transaction(7, COMMIT, epoch=5)
    assert counts(log, 0, 4) == {"aborted": 1, "abort_markers": 1, "committed": 1, "commit_markers": 1}


def test_a_marker_without_data_is_counted_as_a_marker() -> None:
    log = SyntheticLog()
    log.end_transaction(7, COMMIT)
    log.end_transaction(8, ABORT)
    assert counts(log, 0, 2) == {"commit_markers": 1, "abort_markers": 1}


def test_a_log_whose_first_batch_begins_before_its_start_is_clipped() -> None:
    """As after DeleteRecords: log start 150, the first batch still holds 101 to 200."""
    log = SyntheticLog(end=101)
    log.append(*[b"x"] * 100, producer_id=7)
    log.log_start = 150
    assert counts(log, 150, 201) == {"plain": 51}


def test_an_empty_slice_counts_nothing_and_asks_nobody() -> None:
    log = SyntheticLog()
    assert counts(log, 0, 0) == {}
    assert log.fetches == 0


def test_the_brokers_bounds_are_passed_through() -> None:
    log = SyntheticLog()
    log.append(b"a")
    taken = take_census(log.fetch, offsets(0, 1), log_start=3, lso=5, high_watermark=9)
    assert (taken.log_start, taken.lso, taken.high_watermark, taken.spark_rows) == (3, 5, 9, None)


# What cannot be explained.


def test_a_hole_between_batches_is_unexplained() -> None:
    log = SyntheticLog()
    log.append(b"a")
    log.end += 3
    log.append(b"b")
    assert counts(log, 0, 5) == {"plain": 2, "without_producer_id": 2, "unexplained": 3}
    assert counts(log, 0, 1) == {"plain": 1, "without_producer_id": 1}


@pytest.mark.parametrize("record_count", [2, 4])
def test_a_wrong_record_count_is_unexplained(record_count: int) -> None:
    log = with_changed_batch(lambda raw: patch(raw, record_count=record_count))
    assert counts(log, 0, 5) == {"plain": 4, "without_producer_id": 4, "unexplained": 1}


def test_the_right_record_count_is_not() -> None:
    log = with_changed_batch(lambda raw: patch(raw, record_count=3))
    assert counts(log, 0, 5) == {"plain": 5, "without_producer_id": 5}


@pytest.mark.parametrize(("leader_epoch", "unexplained"), [(4, 3), (5, 0), (6, 1)])
def test_a_leader_epoch_that_goes_backward_is_unexplained(leader_epoch: int, unexplained: int) -> None:
    """The batches before and after it are of epoch 5; one of a later epoch leaves the last one behind."""
    log = with_changed_batch(lambda raw: patch(raw, leader_epoch=leader_epoch))
    assert counts(log, 0, 5).get("unexplained", 0) == unexplained


def test_a_control_batch_that_is_no_marker_is_unexplained() -> None:
    log = SyntheticLog()
    log.end_transaction(7, COMMIT)
    raw = bytearray(log.batches[0].raw)
    raw[66:70] = b"\x00\x00\x00\x05"
    log.batches[0] = replace(log.batches[0], raw=bytes(raw))
    assert counts(log, 0, 1) == {"unexplained": 1}


def test_a_log_that_ends_before_the_slice_is_an_error_and_not_a_count() -> None:
    log = SyntheticLog()
    log.append(b"a")
    with pytest.raises(OffsetNotInLog, match=r"the log ends at 1 \(LSO 1, high watermark 1\), expected 2"):
        census(log, 0, 2)


def test_a_slice_above_the_lso_is_an_error_and_not_a_count() -> None:
    log = SyntheticLog()
    log.append(b"a", producer_id=7, transactional=True)
    log.append(b"b")
    with pytest.raises(OffsetNotInLog, match="LSO 0"):
        census(log, 0, 2)


def with_changed_batch(change: Callable[[bytes], bytes]) -> SyntheticLog:
    """Batches of 1, 3 and 1 records under leader epoch 5; the middle one changed."""
    log = SyntheticLog(leader_epoch=5)
    log.append(b"a")
    log.append(b"b", b"c", b"d")
    log.append(b"e")
    log.batches[1] = replace(log.batches[1], raw=change(log.batches[1].raw))
    return log


# Single batches.


def test_the_batch_that_holds_an_offset_is_found_with_its_outcome() -> None:
    log = SyntheticLog()
    log.append(b"x")
    log.append(b"a", b"b", producer_id=7, transactional=True)
    log.end_transaction(7, ABORT)
    found = batch_at(log.fetch, PART, 2)
    assert (found.header.base_offset, found.outcome) == (1, Outcome.ABORTED)


def test_an_offset_in_a_hole_has_no_batch() -> None:
    log = SyntheticLog()
    log.append(b"x")
    log.end += 3
    log.append(b"y")
    with pytest.raises(OffsetNotInLog, match="nothing lies at offset 2"):
        batch_at(log.fetch, PART, 2)


def test_above_the_lso_every_record_is_open_and_the_walk_ends_with_the_log() -> None:
    log = SyntheticLog()
    log.append(b"a", producer_id=7, transactional=True)
    log.append(b"b")
    log.end_transaction(8, COMMIT)
    outcomes = [batch.outcome for batch in walk_batches(log.fetch, offsets(0, 9), read_committed=False)]
    assert outcomes == [Outcome.OPEN, Outcome.OPEN, Outcome.MARKER]


# Laws over random logs.

PRODUCERS = (7, 8, 9)
STEPS = ("plain", "data", "data", "data", "commit", "abort", "abort", "elect")


def random_log(dice: Random) -> SyntheticLog:
    """Any interleaving of transactions, all ended; a marker may come without data and under a later epoch."""
    log = SyntheticLog(fetch_batches=dice.choice((1, 2, 3, 50)))
    for _ in range(dice.randint(5, 25)):
        what, values = dice.choice(STEPS), [b"x"] * dice.randint(1, 4)
        if what == "elect":
            log.leader_epoch += 1
        elif what == "plain":
            log.append(*values, producer_id=dice.choice((-1, 20)))
        elif what == "data":
            log.append(*values, producer_id=dice.choice(PRODUCERS), transactional=True, compression=dice.choice((0, 1)))
        else:
            log.end_transaction(dice.choice(PRODUCERS), Marker(what), epoch=dice.choice((0, 1)))
    for producer_id in PRODUCERS:
        log.end_transaction(producer_id, dice.choice((COMMIT, ABORT)))
    return log


LOGS = st.integers(0, 10**9).map(lambda seed: random_log(Random(seed)))
"""By seed, since drawn step by step most logs are too short to hold two aborted transactions that overlap."""


def cut_points(log: SyntheticLog, data: st.DataObject, number: int) -> list[int]:
    return sorted(data.draw(st.integers(0, log.end)) for _ in range(number))


def figures(taken: PartitionCensus) -> tuple[int, ...]:
    """The seven counts."""
    return astuple(taken)[4:11]


def outcome_of(log: SyntheticLog, batch: Batch) -> str:
    """The forward method: the first control batch of the same producer id at a greater offset decides."""
    if batch.marker is not None:
        return f"{batch.marker}_markers"
    if not batch.transactional:
        return "plain"
    later = (one for one in log.batches if one.first > batch.first and one.producer_id == batch.producer_id)
    return "committed" if next(one.marker for one in later if one.marker) is COMMIT else "aborted"


@MORE
@given(LOGS, st.data())
def test_a_slices_census_is_the_sum_of_its_parts(log: SyntheticLog, data: st.DataObject) -> None:
    start, middle, end = cut_points(log, data, 3)
    whole, first, second = census(log, start, end), census(log, start, middle), census(log, middle, end)
    assert figures(whole) == tuple(a + b for a, b in zip(figures(first), figures(second), strict=True))


@MORE
@given(LOGS, st.data())
def test_every_offset_is_what_the_markers_after_it_say(log: SyntheticLog, data: st.DataObject) -> None:
    start, end = cut_points(log, data, 2)
    expected: dict[str, int] = {}
    for batch in log.batches:
        inside = len(range(max(batch.first, start), min(batch.next, end)))
        if inside:
            name = outcome_of(log, batch)
            expected[name] = expected.get(name, 0) + inside
            if batch.producer_id == -1:
                expected["without_producer_id"] = expected.get("without_producer_id", 0) + inside
    assert counts(log, start, end) == expected


@LAW
@given(LOGS, st.data())
def test_the_size_of_the_answers_changes_nothing(log: SyntheticLog, data: st.DataObject) -> None:
    start, end = cut_points(log, data, 2)
    taken = census(log, start, end)
    log.fetch_batches = 1_000
    assert census(log, start, end) == taken


@LAW
@given(LOGS, st.data())
def test_the_law_of_the_census_holds_and_nothing_is_unexplained(log: SyntheticLog, data: st.DataObject) -> None:
    start, end = cut_points(log, data, 2)
    taken = census(log, start, end)
    known = taken.committed + taken.aborted + taken.plain + taken.commit_markers + taken.abort_markers
    assert (known, taken.unexplained) == (end - start, 0)


@LAW
@given(LOGS, st.data())
def test_a_batch_that_vanishes_is_missed_by_as_many_offsets_as_it_had(log: SyntheticLog, data: st.DataObject) -> None:
    log.append(b"x", b"y")
    lost = data.draw(st.sampled_from([batch for batch in log.batches if batch.marker is None]))
    log.append(b"z")
    log.batches.remove(lost)
    assert census(log, 0, log.end).unexplained == lost.next - lost.first


@LAW
@given(LOGS, st.data())
def test_open_transactions_end_what_may_be_read_and_change_nothing_below(
    log: SyntheticLog, data: st.DataObject
) -> None:
    before = census(log, 0, log.end)
    end = log.end
    log.append(b"x", producer_id=data.draw(st.sampled_from(PRODUCERS)), transactional=True)
    log.append(b"y")
    assert log.lso == end
    assert census(log, 0, end) == before
    with pytest.raises(OffsetNotInLog):
        census(log, 0, log.end)


def test_a_range_knows_its_partition() -> None:
    assert OffsetRange(topic=PART.topic, partition=0, kafka_offset_start=3, kafka_offset_end=3).topic_partition == PART
