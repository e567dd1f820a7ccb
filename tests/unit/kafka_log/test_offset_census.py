"""The census counts every offset of a slice once, and says of what it cannot explain how much there is of it.

One file, since all of it is counted in one pass over the same few logs.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.fetch import Fetch, FetchedLog, OffsetNotInLog
from tallystick.kafka_log.log_walk import walk_batches
from tallystick.kafka_log.offset_census import (
    LOOK_BACK_OFFSETS,
    OffsetProgress,
    take_census,
    walk_counted,
    with_compaction,
)
from tallystick.model.census_values import PartitionCensus
from tallystick.model.offsets import TopicPartition
from tests.unit.builders import LAW, MORE, PART, offsets
from tests.unit.kafka_log.censuses import ABORT, COMMIT, LOGS, PRODUCERS, census, cut_points
from tests.unit.synthetic_log import SyntheticLog, patch


def counts(log: SyntheticLog, start: int, end: int) -> dict[str, int]:
    """All counts that are not 0."""
    taken = census(log, start, end)
    names = ("committed", "aborted", "plain", "commit_markers", "abort_markers", "unexplained", "without_producer_id")
    return {name: getattr(taken, name) for name in names if getattr(taken, name)}


# Literal logs.


def test_a_census_tells_how_far_it_is_over_all_partitions_and_no_oftener_than_by_hundredths() -> None:
    log = SyntheticLog()
    for _ in range(500):
        log.append(b"a", b"b")
    heard: list[dict[str, int]] = []
    told = OffsetProgress(2_000, lambda step, figures: heard.append({"step": step, **figures}))
    counted = [take_census(log.fetch, offsets(0, 1_000), told=told) for _ in range(2)]
    assert counted == [census(log, 0, 1_000)] * 2
    assert {one["step"] for one in heard} == {"counting"}
    assert [one["done"] for one in heard] == list(range(20, 2_001, 20))
    assert {one["of"] for one in heard} == {2_000}


def test_progress_is_told_at_each_whole_hundredth_and_not_before() -> None:
    heard: list[int] = []
    told = OffsetProgress(10_100, lambda _, figures: heard.append(figures["done"]))
    for counted in (100, 101, 101, 201, 203):
        told.of_partition(counted)
    assert heard == [101, 203]


def test_of_a_batch_that_a_slice_cuts_only_the_part_inside_counts_as_done() -> None:
    log = SyntheticLog(end=100)
    for _ in range(3):
        log.append(*[b"x"] * 4)
    heard: list[int] = []
    told = OffsetProgress(11, lambda _, figures: heard.append(figures["done"]))
    for start, end in ((102, 110), (110, 112), (101, 102)):
        take_census(log.fetch, offsets(start, end), told=told)
    assert heard == [2, 6, 8, 10, 11]


def test_a_hole_at_the_end_of_a_slice_is_done_with_the_slice() -> None:
    log = SyntheticLog()
    log.append(b"a")
    log.end += 3
    log.append(b"b")
    heard: list[int] = []
    take_census(log.fetch, offsets(0, 4), told=OffsetProgress(4, lambda _, figures: heard.append(figures["done"])))
    assert heard == [1, 4]


def test_each_batch_of_the_slice_is_given_on_as_it_was_walked_and_the_census_comes_last() -> None:
    log = SyntheticLog(leader_epoch=5)
    log.append(b"a", b"b")
    log.append(b"c", producer_id=7, transactional=True)
    log.end_transaction(7, COMMIT)
    log.batches[1] = replace(log.batches[1], raw=patch(log.batches[1].raw, leader_epoch=4))
    counting, walked = walk_counted(log.fetch, offsets(1, 4)), []
    while True:
        try:
            walked.append(next(counting))
        except StopIteration as ended:
            counted = ended.value
            break
    assert walked == list(walk_batches(log.fetch, offsets(1, 4)))
    assert counted == census(log, 1, 4)
    assert (counted.log_start, counted.lso, counted.high_watermark) == (0, 0, 0)


def test_a_census_of_nothing_tells_nothing() -> None:
    heard: list[str] = []
    take_census(SyntheticLog().fetch, offsets(0, 0), told=OffsetProgress(0, lambda step, _: heard.append(step)))
    assert heard == []


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


def without_list(log: SyntheticLog) -> Fetch:
    """A broker whose index of aborted transactions is lost (KAFKA-13727)."""
    return lambda place, offset, read_committed: replace(log.fetch(place, offset, read_committed), aborted=())


def hidden_abort() -> SyntheticLog:
    """0-1 aborted, 2-3 plain, 4 their marker, 5 committed, 6 marker, 7 an ABORT of nothing."""
    log = SyntheticLog()
    log.append(b"a", b"b", producer_id=7, transactional=True)
    log.append(b"x", b"y")
    log.end_transaction(7, ABORT)
    log.append(b"c", producer_id=7, transactional=True)
    log.end_transaction(7, COMMIT)
    log.end_transaction(8, ABORT)
    return log


@pytest.mark.parametrize(("start", "end"), [(0, 8), (0, 1), (1, 2), (1, 4), (5, 8)])
def test_what_a_marker_aborts_is_aborted_though_the_brokers_list_does_not_name_it(start: int, end: int) -> None:
    """The marker may stand after the slice; only its records in the slice are counted."""
    log = hidden_abort()
    assert take_census(without_list(log), offsets(start, end)) == census(log, start, end)


def test_an_abort_of_a_listed_transaction_and_one_of_nothing_hide_nothing() -> None:
    taken = census(hidden_abort(), 0, 8)
    assert (taken.committed, taken.aborted, taken.empty_transactions) == (1, 2, 1)


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
    assert (taken.topic, taken.partition, taken.kafka_offset_start, taken.kafka_offset_end) == (
        PART.topic,
        PART.partition,
        0,
        1,
    )


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


def test_what_a_truncated_log_has_lost_at_its_end_is_unexplained() -> None:
    log = SyntheticLog()
    log.append(b"a")
    assert counts(log, 0, 3) == {"plain": 1, "without_producer_id": 1, "unexplained": 2}
    assert census(log, 0, 3).holes == 0


def test_a_slice_above_the_lso_is_an_error_and_not_a_count() -> None:
    log = SyntheticLog()
    log.append(b"a", producer_id=7, transactional=True)
    log.append(b"b")
    with pytest.raises(OffsetNotInLog, match=r"the log ends at 0 \(LSO 0, high watermark 2\), expected 2"):
        census(log, 0, 2)


def with_changed_batch(change: Callable[[bytes], bytes]) -> SyntheticLog:
    """Batches of 1, 3 and 1 records under leader epoch 5; the middle one changed."""
    log = SyntheticLog(leader_epoch=5)
    log.append(b"a")
    log.append(b"b", b"c", b"d")
    log.append(b"e")
    log.batches[1] = replace(log.batches[1], raw=change(log.batches[1].raw))
    return log


# Compaction.


def a_log_with_holes() -> SyntheticLog:
    """Offsets 0 to 8: a hole of 3, a batch of 3 offsets with 2 records, one of 2 offsets that claims 3."""
    log = SyntheticLog()
    log.append(b"a")
    log.end += 3
    log.append(b"b", b"c", b"d")
    log.append(b"e", b"f")
    for number, count in ((1, 2), (2, 3)):
        log.batches[number] = replace(log.batches[number], raw=patch(log.batches[number].raw, record_count=count))
    return log


def test_where_the_topic_compacts_holes_are_compacted_and_a_wrong_count_stays_unexplained() -> None:
    taken = census(a_log_with_holes(), 0, 9)
    assert (taken.unexplained, taken.holes, taken.compacted) == (5, 4, 0)
    moved = with_compaction(taken, compacts=True)
    assert (moved.unexplained, moved.holes, moved.compacted) == (1, 4, 4)
    assert with_compaction(moved, compacts=True) == moved


def test_where_it_does_not_they_stay_unexplained() -> None:
    taken = census(a_log_with_holes(), 0, 9)
    assert with_compaction(taken, compacts=False) == taken


def test_holes_add_up_and_a_batch_that_claims_more_than_it_has_room_for_has_none() -> None:
    log = a_log_with_holes()
    log.end += 2
    log.append(b"g")
    assert census(log, 0, 12).holes == 6
    claims_more = census(log, 7, 9)
    assert (claims_more.holes, claims_more.unexplained) == (0, 1)


def test_the_part_of_a_batch_that_may_have_lost_all_its_records_counts_none() -> None:
    log = SyntheticLog()
    log.append(b"a", b"b", b"c")
    log.batches[0] = replace(log.batches[0], raw=patch(log.batches[0].raw, record_count=1))
    assert counts(log, 0, 1) == {"unexplained": 1}
    assert counts(log, 0, 3) == {"plain": 1, "without_producer_id": 1, "unexplained": 2}


@pytest.mark.parametrize(("start", "end", "holes"), [(0, 1, 0), (0, 2, 1), (2, 3, 1), (2, 4, 2), (3, 5, 1)])
def test_a_hole_that_a_slice_cuts_counts_as_far_as_it_lies_inside(start: int, end: int, holes: int) -> None:
    log = a_log_with_holes()
    log.batches[1] = replace(log.batches[1], raw=patch(log.batches[1].raw, record_count=3))
    assert census(log, start, end).holes == census(log, start, end).unexplained == holes


# Transactions without data.


def empty_transactions(log: SyntheticLog, start: int, end: int) -> int:
    return census(log, start, end).empty_transactions


@pytest.mark.parametrize("marker", [COMMIT, ABORT])
def test_a_marker_without_data_ends_an_empty_transaction(marker: Marker) -> None:
    log = SyntheticLog()
    log.append(b"x", producer_id=8, transactional=True)
    log.end_transaction(8, COMMIT)
    log.end_transaction(7, marker)
    assert [empty_transactions(log, 0, 3), empty_transactions(log, 2, 3), empty_transactions(log, 0, 2)] == [1, 1, 0]


@pytest.mark.parametrize("marker", [COMMIT, ABORT])
@pytest.mark.parametrize("start", [0, 1, 3])
def test_a_marker_whose_data_lies_before_the_slice_ends_no_empty_one(start: int, marker: Marker) -> None:
    log = SyntheticLog()
    log.append(b"x", b"y", producer_id=7, transactional=True)
    log.append(b"z")
    log.end_transaction(7, marker)
    assert empty_transactions(log, start, 4) == 0


def test_a_marker_that_lies_above_the_lso_is_found_too() -> None:
    log = SyntheticLog()
    log.append(b"x", producer_id=7, epoch=1, transactional=True)
    log.append(b"y", producer_id=8, transactional=True)
    log.append(b"x", producer_id=7, epoch=2, transactional=True)
    log.end_transaction(7, COMMIT, epoch=2)
    assert log.lso == 1
    taken = census(log, 0, 1)
    assert (taken.committed, taken.bled_batches) == (1, 1)


def test_the_marker_is_looked_for_no_further_than_it_lies() -> None:
    log = SyntheticLog(fetch_batches=1)
    log.append(b"x", producer_id=7, transactional=True)
    log.end_transaction(7, COMMIT)
    for _ in range(5):
        log.append(b"y")
    census(log, 0, 1)
    assert log.fetches == 2


def test_what_expired_before_a_commits_data_could_be_looked_for_leaves_it_undecided() -> None:
    log = SyntheticLog()
    log.append(b"x", b"y")
    log.end_transaction(7, COMMIT)

    def expires(part: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        if offset < 2:
            raise OffsetNotInLog("it is gone")
        return log.fetch(part, offset, read_committed)

    taken = take_census(expires, offsets(2, 3))
    assert (taken.commit_markers, taken.empty_transactions, taken.unexplained) == (1, 0, 0)
    assert empty_transactions(log, 2, 3) == 1


def test_what_a_producer_wrote_outside_of_any_transaction_is_no_data_of_one() -> None:
    log = SyntheticLog()
    log.append(b"x", producer_id=7)
    log.end_transaction(7, COMMIT)
    assert empty_transactions(log, 1, 2) == 1


def test_a_slice_that_retention_has_overtaken_looks_for_nothing_before_it() -> None:
    log = SyntheticLog()
    log.append(b"x", b"y")
    log.end_transaction(7, COMMIT)
    assert take_census(log.fetch, offsets(2, 3), log_start=9).empty_transactions == 1


@pytest.mark.parametrize(("between", "empty"), [(9_998, 1), (9_999, 0)])
def test_a_commit_is_called_empty_where_the_last_trace_of_its_producer_is_a_marker_that_was_looked_at(
    between: int, empty: int
) -> None:
    log = SyntheticLog()
    log.append(b"x")
    log.append(b"x", producer_id=7, transactional=True)
    log.end_transaction(7, COMMIT)
    log.append(*[b"y"] * (between + 1))
    log.end_transaction(7, COMMIT)
    assert empty_transactions(log, log.end - 1, log.end) == empty


def test_an_administrators_abort_leaves_the_coordinators_commit_empty() -> None:
    log = SyntheticLog()
    log.append(b"x", producer_id=7, transactional=True)
    log.end_transaction(7, ABORT)
    log.end_transaction(7, COMMIT)
    assert [empty_transactions(log, start, 3) for start in range(3)] == [1, 1, 1]


def test_a_commit_whose_data_may_lie_further_back_than_was_looked_is_not_called_empty() -> None:
    for data_before, empty in ((True, 0), (False, 0)):
        log = SyntheticLog()
        log.append(b"x", producer_id=7 if data_before else 8, transactional=True)
        log.append(*[b"y"] * LOOK_BACK_OFFSETS)
        log.end_transaction(7, COMMIT)
        log.end_transaction(8, COMMIT)
        assert empty_transactions(log, log.end - 2, log.end) == empty


def test_where_the_log_begins_there_is_nothing_before() -> None:
    log = SyntheticLog(log_start=500)
    log.append(b"x")
    log.end_transaction(7, COMMIT)
    assert take_census(log.fetch, offsets(501, 502), log_start=500).empty_transactions == 1
    assert empty_transactions(log, 501, 502) == 0  # the log's start is not known


def figures(taken: PartitionCensus) -> tuple[int, ...]:
    """What adds up over slices."""
    return (
        taken.committed,
        taken.aborted,
        taken.plain,
        taken.commit_markers,
        taken.abort_markers,
        taken.unexplained,
        taken.without_producer_id,
        taken.holes,
        taken.empty_transactions,
    )


@MORE
@given(LOGS, st.data())
def test_a_slices_census_is_the_sum_of_its_parts(log: SyntheticLog, data: st.DataObject) -> None:
    start, middle, end = cut_points(log, data, 3)
    whole, first, second = census(log, start, end), census(log, start, middle), census(log, middle, end)
    assert figures(whole) == tuple(a + b for a, b in zip(figures(first), figures(second), strict=True))


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
    assert (known, taken.compacted, taken.unexplained) == (end - start, 0, 0)


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
