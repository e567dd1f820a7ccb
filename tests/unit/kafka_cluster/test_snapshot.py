"""A transaction keeps the moment at which it was seen first, and another one is seen first now. A partition always
keeps batches by which the next run sees whether its log is what it was.
"""

from collections.abc import Sequence
from dataclasses import replace

from tallystick.kafka_cluster.batch_fingerprints import read_anchors
from tallystick.kafka_cluster.snapshot import first_sights, follow_anchors
from tallystick.kafka_cluster.state import BatchFingerprint
from tallystick.kafka_log.fetch import Asked, FetchedLog
from tests.unit.builders import HOUR, NOON, PART, partition_at, slice_of
from tests.unit.kafka_cluster.states import OPEN
from tests.unit.synthetic_log import SyntheticLog


def test_a_transaction_keeps_the_moment_at_which_it_was_seen_first() -> None:
    (sight,) = first_sights([OPEN], (), now_utc=NOON)
    assert sight.first_seen_utc == NOON
    assert first_sights([OPEN], [sight], now_utc=NOON + HOUR) == (sight,)
    assert first_sights([], [sight], now_utc=NOON + HOUR) == ()


def test_another_transaction_of_the_same_producer_is_seen_first_now() -> None:
    (sight,) = first_sights([OPEN], (), now_utc=NOON)
    (later,) = first_sights([replace(OPEN, kafka_offset_start=27)], [sight], now_utc=NOON + HOUR)
    assert later.first_seen_utc == NOON + HOUR


def log_of(*values: bytes) -> SyntheticLog:
    """A batch of two records for each value."""
    log = SyntheticLog()
    for one in values:
        log.append(one, one)
    return log


def follow(
    log: SyntheticLog, start: int, end: int, earlier: Sequence[BatchFingerprint] = (), *, cut_n: int = 2
) -> tuple[list[int], tuple[BatchFingerprint, ...]]:
    """Where batches are not what they were, and what a run keeps that reads these offsets."""
    now = partition_at(log_start=log.log_start, lso=log.end, high_watermark=log.end)
    part = slice_of(start, end)
    scanned = {PART: read_anchors(log.fetch, part.readable, cut_n=0)}
    anchors, rewritten = follow_anchors(
        log.fetch, nothing_together, cut_n, [now], [(part, now)], earlier, scanned=scanned
    )
    return [one.kafka_offset for one in rewritten], anchors


def nothing_together(group: Sequence[Asked]) -> dict[Asked, FetchedLog]:
    return {}


def starts_of(anchors: Sequence[BatchFingerprint]) -> list[int]:
    return [one.kafka_offset_start for one in anchors]


BELOW = log_of(b"a", b"b", b"c")


def test_a_baseline_keeps_what_stands_below_it_and_the_first_run_sees_whether_it_still_does() -> None:
    differ, anchors = follow(BELOW, 6, 6, cut_n=0)
    assert (differ, starts_of(anchors), {one.read_by_cut for one in anchors}) == ([], [0, 2, 4], {0})
    assert follow(log_of(b"a", b"b", b"c", b"d"), 6, 8, anchors)[0] == []
    assert follow(log_of(b"a", b"b", b"x", b"d"), 6, 8, anchors)[0] == [4]


def test_a_log_that_is_cut_back_a_second_time_before_anything_was_read_is_told_a_second_time() -> None:
    _, anchors = follow(BELOW, 0, 6)
    again = log_of(b"a", b"b", b"x")
    differ, kept = follow(again, 6, 6, anchors, cut_n=3)
    assert (differ, starts_of(kept), {one.read_by_cut for one in kept}) == ([4], [0, 2, 4], {3})
    assert follow(again, 6, 6, kept, cut_n=4) == ([], kept)
    assert follow(log_of(b"a", b"y", b"x"), 6, 6, kept, cut_n=4)[0] == [2]


def test_of_a_slice_that_was_left_out_what_stands_there_is_kept_and_told_again_only_if_it_changes_again() -> None:
    _, earlier = follow(log_of(b"a"), 0, 2)
    anew = log_of(b"a", b"b", b"c")
    now = partition_at(log_start=0, lso=6, high_watermark=6)
    left_out = replace(slice_of(2, 6), expired=4)
    kept, differ = follow_anchors(anew.fetch, nothing_together, 3, [now], [(left_out, now)], earlier, scanned={})
    assert (starts_of(kept), differ) == ([0, 2, 4], ())
    assert follow(anew, 6, 6, kept, cut_n=4)[0] == []
    assert follow(log_of(b"a", b"b", b"x"), 6, 6, kept, cut_n=4)[0] == [4]


def test_what_retention_reaches_while_it_is_read_below_a_slice_is_left_to_the_next_run() -> None:
    log = log_of(b"a", b"b", b"c")
    now = partition_at(log_start=0, lso=6, high_watermark=6)
    log.log_start = 4
    idle = [(slice_of(6, 6), now)]
    assert follow_anchors(log.fetch, nothing_together, 0, [now], idle, (), scanned={}) == ((), ())
    assert starts_of(follow(log, 6, 6)[1]) == [4]


def test_a_partition_that_is_idle_is_asked_for_its_known_batches_only() -> None:
    log = log_of(b"a", b"b", b"c")
    _, anchors = follow(log, 4, 6)
    before = log.fetches
    assert follow(log, 6, 6, anchors) == ([], anchors)
    assert (starts_of(anchors), log.fetches - before) == ([4], 1)


def test_a_run_keeps_the_batches_that_it_has_judged_and_not_those_that_stand_there_by_then() -> None:
    scanned = {PART: read_anchors(BELOW.fetch, slice_of(0, 6).readable, cut_n=0)}
    rewritten_since = log_of(b"a", b"b", b"x")
    now = partition_at(log_start=0, lso=6, high_watermark=6)
    read = [(slice_of(0, 6), now)]
    kept, _ = follow_anchors(rewritten_since.fetch, nothing_together, 2, [now], read, (), scanned=scanned)
    assert {one.read_by_cut for one in kept} == {2}
    assert follow(rewritten_since, 6, 6, kept, cut_n=3)[0] == [4]
    assert follow(BELOW, 6, 6, kept, cut_n=3)[0] == []
