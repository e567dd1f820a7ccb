"""A side has settled when everything that was open at a sample has ended; timestamps are never asked."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.model.cut import Sample, next_topic_slice
from tallystick.model.offsets import TopicPartition
from tallystick.pipeline.readiness import assess_readiness, ledger_settled_until, topic_settled_until
from tallystick.pipeline.sources import sample_of
from tests.unit.builders import HOUR, LAW, MINUTE, NOON, PART, ledger_at, partition_at, sample_at

MARK = sample_at(NOON, 20, 300)


def waits(*samples: Sample, lso: int = 20, ledger_low_mark: int = 300) -> tuple[str, ...]:
    readiness = assess_readiness(
        samples, window_end_utc=NOON, partitions=[partition_at(lso=lso)], ledger_low_mark=ledger_low_mark
    )
    assert readiness.settled == (not readiness.waits_for)
    return readiness.waits_for


def test_both_marks_reached_is_settled() -> None:
    assert waits(MARK) == ()
    assert waits(MARK, lso=21, ledger_low_mark=301) == ()


def test_each_side_that_is_one_short_is_waited_for_and_named() -> None:
    assert waits(MARK, lso=19) == ("billing.payouts[0]: the LSO stands at 19, the mark is 20",)
    assert waits(MARK, ledger_low_mark=299) == ("ledger: the horizon stands at 299, the mark is 300",)
    assert len(waits(MARK, lso=19, ledger_low_mark=299)) == 2


def test_before_any_sample_at_the_windows_end_nothing_is_settled() -> None:
    assert waits() == ("the window ends at 2026-03-01 12:00:00 UTC",)
    assert waits(replace(MARK, at_utc=NOON - MINUTE)) == ("the window ends at 2026-03-01 12:00:00 UTC",)


def test_the_first_sample_after_the_end_is_the_mark_and_later_traffic_is_not_waited_for() -> None:
    later = sample_at(NOON + MINUTE, 500, 900)
    assert waits(later, MARK) == ()
    assert len(waits(later)) == 2


def test_an_idle_topic_settles() -> None:
    """Nothing new is written, so no record's time ever passes the window's end."""
    assert waits(sample_at(NOON, 0, 300), lso=0) == ()


def test_a_partition_that_the_sample_did_not_know_is_not_waited_for() -> None:
    new = partition_at(partition=1, lso=0)
    readiness = assess_readiness([MARK], window_end_utc=NOON, partitions=[partition_at(), new], ledger_low_mark=300)
    assert readiness.settled


# Until when a side has settled.

SAMPLES = [sample_at(NOON + step * MINUTE, 20 + step, 300 + step) for step in range(4)]


@pytest.mark.parametrize(("lso", "minutes"), [(20, 0), (21, 1), (22, 2), (99, 3)])
def test_the_topic_has_settled_until_the_newest_sample_that_the_lso_has_reached(lso: int, minutes: int) -> None:
    assert topic_settled_until(SAMPLES, [partition_at(lso=lso)]) == NOON + minutes * MINUTE


@pytest.mark.parametrize(("xmin", "minutes"), [(300, 0), (301, 1), (302, 2), (999, 3)])
def test_the_ledger_has_settled_until_the_newest_sample_that_the_horizon_has_reached(xmin: int, minutes: int) -> None:
    assert ledger_settled_until(SAMPLES, ledger_low_mark=xmin) == NOON + minutes * MINUTE


def test_what_was_open_at_a_sample_must_have_ended_not_only_what_had_ended_by_then() -> None:
    """The sample's own horizon says nothing of the ids between it and xmax."""
    sample = replace(MARK, ledger_low_mark=290, ledger_high_mark=300)
    assert ledger_settled_until([sample], ledger_low_mark=299) is None
    assert ledger_settled_until([sample], ledger_low_mark=300) == NOON


def test_a_side_that_has_reached_no_sample_has_settled_until_no_time() -> None:
    assert topic_settled_until(SAMPLES, [partition_at(lso=19)]) is None
    assert ledger_settled_until(SAMPLES, ledger_low_mark=299) is None
    assert topic_settled_until([], [partition_at()]) is None
    assert ledger_settled_until([], ledger_low_mark=300) is None


def test_one_partition_behind_holds_the_topic() -> None:
    both = replace(MARK, high_watermarks=((PART, 20), (replace(PART, partition=1), 5)))
    assert topic_settled_until([both], [partition_at(), partition_at(partition=1, lso=4)]) is None
    assert topic_settled_until([both], [partition_at(), partition_at(partition=1, lso=5)]) == NOON


def test_a_sample_of_some_topics_has_the_marks_of_their_partitions_alone() -> None:
    other = TopicPartition(topic="billing.requests", partition=0)
    both = replace(MARK, high_watermarks=((PART, 20), (other, 30)))
    assert both.of_topics([PART.topic]).high_watermarks == ((PART, 20),)
    assert both.of_topics([other.topic]).high_watermarks == ((other, 30),)


def test_a_partition_that_vanished_never_reads_as_settled() -> None:
    empty_then = replace(MARK, high_watermarks=((PART, 0),))
    assert topic_settled_until([empty_then], []) is None


@LAW
@given(st.permutations(SAMPLES), st.integers(15, 30))
def test_the_order_of_samples_changes_nothing(samples: list[Sample], reached: int) -> None:
    partitions = [partition_at(lso=reached)]
    assert topic_settled_until(samples, partitions) == topic_settled_until(SAMPLES, partitions)
    assert ledger_settled_until(samples, ledger_low_mark=280 + reached) == ledger_settled_until(
        SAMPLES, ledger_low_mark=280 + reached
    )
    assert assess_readiness(
        samples, window_end_utc=NOON, partitions=partitions, ledger_low_mark=300
    ) == assess_readiness(SAMPLES, window_end_utc=NOON, partitions=partitions, ledger_low_mark=300)


@LAW
@given(st.integers(0, 40), st.integers(0, 40))
def test_a_side_that_goes_on_never_settles_less(lso: int, more: int) -> None:
    def reached(at: int) -> object:
        return topic_settled_until(SAMPLES, [partition_at(lso=at)]) or NOON - HOUR

    assert reached(lso) <= reached(lso + more)


@given(lso=st.integers(0, 30), above=st.integers(0, 5), unseen=st.integers(0, 5))
def test_a_window_is_settled_only_once_all_that_the_leader_had_can_be_read(lso: int, above: int, unseen: int) -> None:
    now = partition_at(lso=lso, high_watermark=lso + above, log_end=lso + above + unseen)
    sample = sample_of((now,), ledger_at(300), at_utc=NOON)
    readiness = assess_readiness([sample], window_end_utc=NOON, partitions=(now,), ledger_low_mark=300)
    assert readiness.settled == (above + unseen == 0)
    assert (topic_settled_until([sample], (now,)) is None) == (above + unseen > 0)
    taken = next_topic_slice(now, previous=None, mark=sample.high_watermark(PART))
    assert taken.held == (taken.held_by_transaction or taken.held_by_replication)
    assert (taken.held_by_transaction, taken.held_by_replication) == (above > 0, unseen > 0)


def test_one_partition_that_is_not_whole_leaves_all_of_them_unsettled() -> None:
    whole = partition_at(partition=1, lso=20, high_watermark=20, log_end=20)
    short = partition_at(lso=20, high_watermark=20, log_end=21)
    sample = sample_of((short, whole), ledger_at(300), at_utc=NOON)
    assert topic_settled_until([sample], (short, whole)) is None
    assert topic_settled_until([sample], (replace(short, lso=21, high_watermark=21), whole)) == NOON
    assert topic_settled_until([sample_at(NOON, 20, 300)], (short, whole)) == NOON
