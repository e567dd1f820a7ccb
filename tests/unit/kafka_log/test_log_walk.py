"""A walk over batches ends where it must and knows each batch's outcome; both ways of deciding agree."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.kafka_log.fetch import Fetch, FetchedLog, OffsetNotInLog
from tallystick.kafka_log.log_walk import (
    PATIENCE,
    LogEndsEarly,
    Outcome,
    batch_at,
    read_log_start,
    walk_batches,
    walk_past_lso,
)
from tallystick.kafka_log.offset_census import take_census
from tallystick.model.offsets import TopicPartition
from tests.forward_outcomes import outcomes_forward
from tests.unit.builders import MORE, PART, offsets
from tests.unit.kafka_log.censuses import ABORT, COMMIT, LOGS, census, cut_points
from tests.unit.synthetic_log import SyntheticLog


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


def test_a_log_whose_end_comes_back_in_time_is_whole() -> None:
    """A new leader's high watermark may lag for a moment."""
    log, asked = SyntheticLog(), []
    log.append(b"a")

    def lagging(part: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        asked.append(offset)
        if len(asked) == PATIENCE:
            log.append(b"b")
        return log.fetch(part, offset, read_committed)

    assert take_census(lagging, offsets(0, 2)).unexplained == 0


def test_the_batch_that_holds_an_offset_is_found_with_its_outcome() -> None:
    log = SyntheticLog()
    log.append(b"x")
    log.append(b"a", b"b", producer_id=7, transactional=True)
    log.end_transaction(7, ABORT)
    asked: list[tuple[int, bool]] = []
    found = batch_at(noted(log, asked), PART, 2)
    assert (found.header.base_offset, found.outcome) == (1, Outcome.ABORTED)
    assert asked == [(2, True)]


def test_each_outcome_has_its_word() -> None:
    assert [str(one) for one in Outcome] == ["committed", "aborted", "plain", "open", "marker"]


def test_an_offset_in_a_hole_has_no_batch() -> None:
    log = SyntheticLog()
    log.append(b"x")
    log.end += 3
    log.append(b"y")
    for hole in (2, 3):
        with pytest.raises(OffsetNotInLog, match=rf"payouts\[0\]: nothing lies at offset {hole}"):
            batch_at(log.fetch, PART, hole)


def test_above_the_lso_every_record_is_open_and_the_walk_ends_with_the_log() -> None:
    log = SyntheticLog()
    log.append(b"a", producer_id=7, transactional=True)
    log.append(b"b")
    log.end_transaction(8, COMMIT)
    outcomes = [batch.outcome for batch in walk_batches(log.fetch, offsets(0, 9), read_committed=False)]
    assert outcomes == [Outcome.OPEN, Outcome.OPEN, Outcome.MARKER]


@MORE
@given(LOGS, st.data())
def test_both_ways_of_deciding_agree_on_every_slice(log: SyntheticLog, data: st.DataObject) -> None:
    """By the aborted list, and forward from the markers; slices begin and end anywhere."""
    start, end = cut_points(log, data, 2)
    forward = outcomes_forward(log.fetch, offsets(start, end))
    taken = census(log, start, end)
    expected = Counter(forward.values())
    assert {name: getattr(taken, name) for name in expected} == expected
    assert (len(forward), taken.unexplained) == (end - start, 0)
    for batch in walk_batches(log.fetch, offsets(start, end)):
        numbers = range(max(start, batch.header.base_offset), min(end, batch.header.next_offset))
        expected_of_batch = "markers" if batch.outcome is Outcome.MARKER else str(batch.outcome)
        assert all(forward[number].endswith(expected_of_batch) for number in numbers)


# Where a log ends before it should.


def plain_log(*, batches: int = 1) -> SyntheticLog:
    log = SyntheticLog()
    for _ in range(batches):
        log.append(b"x")
    return log


def noted(log: SyntheticLog, asked: list[tuple[int, bool]]) -> Fetch:
    """The log's fetch; notes where it is asked, and whether for what is committed."""

    def fetch(part: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        assert part == PART
        asked.append((offset, read_committed))
        return log.fetch(part, offset, read_committed)

    return fetch


def test_a_log_that_shows_nothing_new_is_asked_as_often_as_a_new_leader_may_lag_and_then_ends_there() -> None:
    asked: list[tuple[int, bool]] = []
    with pytest.raises(LogEndsEarly, match=r"payouts\[0\]: the log ends at 2 \(LSO 2, high watermark 2\), expected 3$"):
        list(walk_batches(noted(plain_log(batches=2), asked), offsets(0, 3)))
    assert asked == [(0, True), *20 * [(2, True)]]


def test_a_log_is_truncated_where_its_high_watermark_is_below_the_range_and_only_held_where_it_is_not() -> None:
    log = plain_log()
    log.append(b"a", producer_id=7, transactional=True)
    with pytest.raises(OffsetNotInLog) as held:
        list(walk_batches(log.fetch, offsets(0, 2)))
    assert not isinstance(held.value, LogEndsEarly)
    with pytest.raises(LogEndsEarly):
        list(walk_batches(log.fetch, offsets(0, 3)))


def test_patience_begins_anew_with_each_batch_that_comes() -> None:
    log, asked = plain_log(), list[int]()

    def slowly(part: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        asked.append(offset)
        if len(asked) % (PATIENCE - 1) == 0:
            log.append(b"x")
        return log.fetch(part, offset, read_committed)

    assert len(list(walk_batches(slowly, offsets(0, 4)))) == 4


def test_a_walk_past_the_lso_ends_where_the_log_does_unless_all_of_the_range_was_seen() -> None:
    log = plain_log(batches=2)
    assert len(list(walk_batches(log.fetch, offsets(0, 9), read_committed=False))) == 2
    with pytest.raises(LogEndsEarly):
        list(walk_batches(log.fetch, offsets(0, 9), read_committed=False, to_end=True))
    assert len(list(walk_batches(log.fetch, offsets(0, 2), read_committed=False, to_end=True))) == 2


def test_a_walk_past_the_lso_goes_on_while_the_high_watermark_is_ahead_of_what_came() -> None:
    log, asked = plain_log(batches=2), list[int]()

    def late(part: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        asked.append(offset)
        return (
            replace(log.fetch(part, offset, read_committed), records=b"")
            if len(asked) == 2
            else log.fetch(part, offset, read_committed)
        )

    log.fetch_batches = 1
    assert len(list(walk_batches(late, offsets(0, 9), read_committed=False))) == 2
    assert asked[:3] == [0, 1, 1]


# Both sides of the LSO.


def half_open() -> SyntheticLog:
    """0 aborted, 1 its marker, 2 plain, 3 open, 4 plain."""
    log = SyntheticLog()
    log.append(b"a", producer_id=7, transactional=True)
    log.end_transaction(7, ABORT)
    log.append(b"b")
    log.append(b"c", producer_id=8, transactional=True)
    log.append(b"d")
    assert log.lso == 3
    return log


DECIDED, OPEN = [Outcome.ABORTED, Outcome.MARKER, Outcome.PLAIN], [Outcome.OPEN, Outcome.OPEN]


@pytest.mark.parametrize(
    ("start", "end", "outcomes", "asked_committed"),
    [
        (0, 5, DECIDED + OPEN, [True, False]),
        (2, 4, DECIDED[2:] + OPEN[:1], [True, False]),
        (0, 3, DECIDED, [True]),
        (3, 5, OPEN, [False]),
        (4, 5, OPEN[:1], [False]),
        (1, 2, DECIDED[1:2], [True]),
    ],
)
def test_below_the_lso_the_aborted_list_decides_and_at_and_above_it_all_is_open(
    start: int, end: int, outcomes: list[Outcome], asked_committed: list[bool]
) -> None:
    asked: list[tuple[int, bool]] = []
    walked = walk_past_lso(noted(half_open(), asked), offsets(start, end), lso=3)
    assert [batch.outcome for batch in walked] == outcomes
    assert [committed for _, committed in asked] == asked_committed


def test_a_walk_on_both_sides_of_the_lso_ends_with_the_log_unless_all_of_it_was_seen() -> None:
    assert len(list(walk_past_lso(half_open().fetch, offsets(0, 9), lso=3))) == 5
    with pytest.raises(LogEndsEarly):
        list(walk_past_lso(half_open().fetch, offsets(0, 9), lso=3, to_end=True))


def test_an_answer_that_goes_past_the_lso_decides_what_lies_below_it() -> None:
    """A broker of old answers an uncommitted read with its LSO; one of today does not."""
    log = half_open()

    def with_lso(part: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        return replace(log.fetch(part, offset, read_committed), lso=3)

    outcomes = [batch.outcome for batch in walk_batches(with_lso, offsets(2, 5), read_committed=False)]
    assert outcomes == [Outcome.PLAIN, Outcome.OPEN, Outcome.OPEN]


# Markers.


def test_an_abort_says_whether_its_transaction_had_data_and_a_commit_never_does() -> None:
    log = SyntheticLog()
    log.append(b"a", producer_id=7, transactional=True)
    log.append(b"b", producer_id=8, transactional=True)
    log.end_transaction(8, COMMIT)
    log.end_transaction(7, ABORT)
    log.end_transaction(7, ABORT)
    walked = walk_batches(log.fetch, offsets(0, 5))
    assert [batch.ends_aborted_data for batch in walked] == [False, False, False, True, False]


# Where a log begins.


def test_the_logs_start_is_asked_for_at_the_first_offset_that_is_still_there() -> None:
    log, asked = SyntheticLog(log_start=40), list[tuple[int, bool]]()
    log.append(b"x", b"y")
    assert read_log_start(noted(log, asked), PART, [3, 41, 40]) == 40
    assert asked == [(3, False), (41, False)]


def test_where_no_offset_is_there_the_logs_start_is_not_known() -> None:
    log = SyntheticLog(log_start=40)
    assert read_log_start(log.fetch, PART, [3, 99]) is None
    assert read_log_start(log.fetch, PART, []) is None
