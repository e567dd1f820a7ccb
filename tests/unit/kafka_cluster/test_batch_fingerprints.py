"""A batch that was read is found again as it was, or the log was rewritten; expiry and a clean move change nothing."""

from dataclasses import replace

import pytest

from tallystick.kafka_cluster.batch_fingerprints import (
    ANCHORS_MAX,
    compare_anchors,
    cut_off_since,
    find_rewritten,
    gone_unseen,
    newest_anchors,
    read_anchors,
    written_anew_and_gone,
    written_since,
)
from tallystick.kafka_cluster.state import BatchFingerprint, RewrittenBatch
from tallystick.kafka_log.batch_header import Marker
from tallystick.model.cut import PartitionSnapshot
from tests.unit.builders import PART, cut_of, offsets, partition_at, slice_of
from tests.unit.synthetic_log import SyntheticLog


def log_of(*values: bytes, leader_epoch: int = 0) -> SyntheticLog:
    """A batch of two records for each value."""
    log = SyntheticLog(leader_epoch=leader_epoch)
    for one in values:
        log.append(one, one)
    return log


def anchors_of(
    log: SyntheticLog, *, start: int = 0, end: int | None = None, cut_n: int = 1
) -> tuple[BatchFingerprint, ...]:
    end = log.end if end is None else end
    return read_anchors(log.fetch, offsets(start, end, topic=PART.topic), cut_n=cut_n)


READ = log_of(b"a", b"b", b"c")
KNOWN = anchors_of(READ)


def rewritten(log: SyntheticLog, anchors: tuple[BatchFingerprint, ...] = KNOWN) -> tuple[RewrittenBatch, ...]:
    return find_rewritten(log.fetch, anchors, log_start=log.log_start)


def test_a_log_that_only_grew_is_as_it_was() -> None:
    grown = log_of(b"a", b"b", b"c", b"d")
    assert rewritten(READ) == rewritten(grown) == ()


def test_a_tail_that_was_cut_and_grew_again_is_noticed() -> None:
    (found,) = rewritten(log_of(b"a", b"b", b"x", b"y"))
    assert (found.topic_partition, found.kafka_offset, found.read_by_cut) == (PART, 4, 1)
    assert found.before != found.now
    assert found.before.startswith("offsets 4 to 6, checksum ")


def test_a_tail_that_grew_again_with_other_bounds_is_noticed() -> None:
    log = log_of(b"a", b"b")
    log.append(b"c")
    log.append(b"c")
    (found,) = rewritten(log)
    assert found.now.startswith("offsets 4 to 5")
    merged = log_of(b"a")
    merged.append(b"b", b"b", b"c", b"c")
    assert [one.now for one in rewritten(merged)] == [one.now for one in rewritten(merged)]
    assert [one.kafka_offset for one in rewritten(merged)] == [2, 4]
    assert rewritten(merged)[1].now == "no batch begins here"


def test_of_a_topic_that_compacts_only_what_a_later_leader_wrote_in_its_place_is_another_batch() -> None:
    def compacted(log: SyntheticLog) -> list[int]:
        found = find_rewritten(log.fetch, KNOWN, log_start=log.log_start, compacts=True)
        return [one.kafka_offset for one in found]

    assert compacted(log_of(b"a", b"x")) == []  # a batch with other records, and one that is gone
    assert compacted(log_of(b"a", b"x", leader_epoch=9)) == [2]
    assert compacted(log_of(b"a", b"b", b"c", leader_epoch=9)) == []
    gone = replace(KNOWN[-1], crc32c=None)
    assert len(find_rewritten(READ.fetch, [gone], log_start=0, compacts=True)) == 1


def test_the_same_batches_under_a_later_leader_epoch_are_the_same() -> None:
    assert rewritten(log_of(b"a", b"b", b"c", leader_epoch=9)) == ()


def test_what_retention_has_reached_proves_nothing() -> None:
    log = log_of(b"x", b"y", b"c")
    log.log_start = 4
    assert rewritten(log) == ()
    log.log_start = 6
    assert rewritten(log) == ()


def test_what_is_left_after_retention_is_still_compared() -> None:
    log = log_of(b"a", b"b", b"x")
    log.log_start = 4
    assert [one.kafka_offset for one in rewritten(log)] == [4]


def test_a_batch_that_retention_cuts_through_proves_nothing() -> None:
    log = log_of(b"a", b"x", b"c")
    log.log_start = 3
    assert rewritten(log) == ()


def test_retention_that_reaches_an_anchor_while_it_is_looked_for_proves_nothing() -> None:
    log = log_of(b"x", b"y", b"z")
    log.log_start = 2
    assert find_rewritten(log.fetch, KNOWN, log_start=0) == ()


def test_only_the_last_few_batches_are_kept_and_markers_are_batches() -> None:
    log = SyntheticLog()
    for number in range(20):
        log.append(b"%d" % number, producer_id=7, transactional=True)
        log.end_transaction(7, Marker.COMMIT)
    found = anchors_of(log)
    assert len(found) == ANCHORS_MAX
    assert [one.kafka_offset_start for one in found] == list(range(32, 40))


def test_anchors_lie_inside_the_slice_whole_or_cut() -> None:
    assert [one.kafka_offset_start for one in anchors_of(READ, start=2, end=4)] == [2]
    assert [one.kafka_offset_start for one in anchors_of(READ, start=3, end=5)] == [2, 4]
    assert anchors_of(READ, start=4, end=4) == ()


def test_an_idle_partition_keeps_its_older_anchors() -> None:
    assert newest_anchors(KNOWN, ()) == KNOWN
    new = tuple(replace(KNOWN[-1], kafka_offset_start=6 + at, read_by_cut=2) for at in range(7))
    kept = newest_anchors(KNOWN, new)
    assert (len(kept), kept[0], kept[1:]) == (ANCHORS_MAX, KNOWN[-1], new)


@pytest.mark.parametrize("flipped", [b"C", b"c "])
def test_one_byte_is_enough(flipped: bytes) -> None:
    assert len(rewritten(log_of(b"a", b"b", flipped))) == 1


def test_whatever_stands_where_a_log_was_cut_off_once_it_had_been_read_is_something_else() -> None:
    shorter = partition_at(log_start=0, lso=4, high_watermark=4)
    gone = cut_off_since(slice_of(0, 6), shorter, cut_n=2)
    assert (gone.kafka_offset_start, gone.kafka_offset_end, gone.read_by_cut) == (4, 6, 2)
    (differs,) = compare_anchors([gone], [replace(gone, crc32c=0)])
    assert differs.before == "offsets 4 to 6 (cut off since)"
    assert find_rewritten(READ.fetch, [gone], log_start=6) == ()


NOW = partition_at(log_start=6, high_watermark=9)


@pytest.mark.parametrize(
    ("now", "ended_at", "expired", "is_told"),
    [
        pytest.param(NOW, 2, 0, True, id="cut back, grown, and gone"),
        pytest.param(replace(NOW, leader_epoch=9), 6, 0, False, id="a clean move, and gone"),
        pytest.param(replace(NOW, log_start=4), 2, 0, False, id="the last one is there to compare"),
        pytest.param(replace(NOW, topic_id="another"), 2, 0, False, id="another topic"),
        pytest.param(replace(NOW, high_watermark=5), 2, 0, False, id="a log that ends below: truncated"),
        pytest.param(NOW, 2, 3, False, id="offsets expired unread: that is told"),
        pytest.param(replace(NOW, partition=1), 2, 0, False, id="another partition"),
    ],
)
def test_a_log_that_a_cut_saw_cut_back_and_that_grew_again_is_told_though_all_of_that_expired(
    now: PartitionSnapshot, ended_at: int, expired: int, is_told: bool
) -> None:
    before = replace(slice_of(0, 6), snapshot=partition_at(high_watermark=ended_at))
    previous, cut = cut_of(before, n=1), cut_of(replace(slice_of(6, 9, expired=expired), snapshot=NOW))
    found = list(written_anew_and_gone(previous, cut, KNOWN, [now]))
    assert [(one.kafka_offset, one.read_by_cut, one.is_gone) for one in found] == ([(2, 1, True)] if is_told else [])


@pytest.mark.parametrize(("seen_by", "told"), [(1, [4]), (0, [])], ids=["the run before", "an older one, which told"])
def test_a_log_that_a_run_saw_cut_back_while_it_read_is_told_though_all_that_grew_there_expired(
    seen_by: int, told: list[int]
) -> None:
    read = slice_of(0, 6)
    previous, cut = cut_of(read, n=1), cut_of(replace(slice_of(6, 9), snapshot=NOW))
    gone = cut_off_since(read, partition_at(high_watermark=4), cut_n=seen_by)
    found = written_anew_and_gone(previous, cut, (*KNOWN, gone), [NOW])
    assert [one.kafka_offset for one in found] == told


@pytest.mark.parametrize(
    ("now", "is_told"),
    [
        pytest.param(replace(NOW, leader_epoch=9), True, id="all that was kept is gone, and another leader"),
        pytest.param(replace(NOW, leader_epoch=9, log_start=5), True, id="the last batch is gone in part"),
        pytest.param(NOW, False, id="its leader stayed"),
        pytest.param(replace(NOW, leader_epoch=9, log_start=4), False, id="the last batch is there to compare"),
        pytest.param(replace(NOW, leader_epoch=9, log_start=0), False, id="nothing has expired"),
        pytest.param(replace(NOW, leader_epoch=9, partition=1), False, id="another partition"),
    ],
)
def test_a_partition_has_gone_unseen_where_a_later_leader_has_it_and_nothing_is_left_to_compare(
    now: PartitionSnapshot, is_told: bool
) -> None:
    before = partition_at(log_start=0, high_watermark=6)
    assert gone_unseen([before], KNOWN, [now]) == ((PART,) if is_told else ())
    already = replace(before, log_start=now.log_start), replace(before, leader_epoch=now.leader_epoch)
    assert [gone_unseen([before, newer], KNOWN, [now]) for newer in already] == [(), ()]


def test_a_batch_below_a_slices_end_is_written_since_where_a_later_leader_wrote_it() -> None:
    part = slice_of(2, 4)
    cut_under = replace(part, snapshot=replace(part.snapshot, leader_epoch=3))
    one = BatchFingerprint(
        topic_partition=PART, kafka_offset_start=3, kafka_offset_end=4, crc32c=1, leader_epoch=4, read_by_cut=0
    )
    assert written_since(one, cut_under)
    assert not written_since(replace(one, leader_epoch=3), cut_under)
    assert not written_since(replace(one, kafka_offset_start=4, kafka_offset_end=5), cut_under)
    assert not written_since(one, replace(part, snapshot=replace(part.snapshot, leader_epoch=-1)))
    assert not written_since(one, None)
