"""A walk over batches ends where it must and knows each batch's outcome; both ways of deciding agree."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.kafka_log.fetch import FetchedLog, OffsetNotInLog
from tallystick.kafka_log.log_walk import PATIENCE, Outcome, batch_at, walk_batches
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
