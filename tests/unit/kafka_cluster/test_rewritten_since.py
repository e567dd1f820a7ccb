"""A slice whose end a later leader has written anew is left out; leaders that change in good order change nothing."""

from dataclasses import replace

import pytest

from tallystick.kafka_cluster.batch_fingerprints import fingerprints
from tallystick.kafka_cluster.rewritten_since import (
    LogRewrittenMeanwhile,
    refuse_rewritten,
    rewritten_above,
    rewritten_since_cut,
    without_rewritten,
)
from tallystick.kafka_cluster.state import BatchFingerprint, RewrittenBatch
from tallystick.kafka_log.log_walk import walk_batches
from tallystick.model.cut import Cut, PartitionSnapshot, TopicSlice
from tests.unit.builders import PART, cut_of, offsets, partition_at, slice_of
from tests.unit.synthetic_log import SyntheticLog

THEN, LATER = 4, 5
"""Leader epochs: when the cut was made, and since."""


def log_of(*leader_epochs: int, records: int = 2) -> SyntheticLog:
    """A batch of some records of each of these leaders."""
    log = SyntheticLog()
    for epoch in leader_epochs:
        log.leader_epoch = epoch
        log.append(*records * [b"{}"])
    return log


CUT = cut_of(slice_of(2, 6))


def standing(log: SyntheticLog) -> PartitionSnapshot:
    return partition_at(log_start=log.log_start, lso=log.end, high_watermark=log.end, leader_epoch=log.leader_epoch)


def found(log: SyntheticLog, cut: Cut = CUT, now: PartitionSnapshot | None = None) -> tuple[RewrittenBatch, ...]:
    return rewritten_since_cut(log.fetch, cut, [now or standing(log)])


def last_of(log: SyntheticLog, part: TopicSlice = CUT.topic_slices[0]) -> dict[object, tuple[BatchFingerprint, ...]]:
    """What a scan keeps of a slice."""
    return {PART: fingerprints(PART, walk_batches(log.fetch, part.readable))}


ANEW = log_of(THEN, THEN, LATER)
ONLY_GREW = log_of(THEN, THEN, THEN, LATER)


def test_a_slice_whose_end_a_later_leader_has_written_is_left_out() -> None:
    (anew,) = found(ANEW)
    assert (anew.topic_partition, anew.kafka_offset, anew.read_by_cut, anew.unread_offsets) == (PART, 4, 2, 4)
    assert anew.before == "leader epoch 4 at most"
    assert anew.now.startswith("offsets 4 to 6, checksum ") and anew.now.endswith(", leader epoch 5")
    (part,) = without_rewritten(CUT, [anew]).topic_slices
    assert (len(part.readable), part.offsets, part.expired) == (0, CUT.topic_slices[0].offsets, 4)


def test_a_slice_behind_which_a_later_leader_goes_on_is_as_it_was() -> None:
    assert found(ONLY_GREW) == ()
    assert without_rewritten(CUT, ()) is CUT


def test_what_is_not_committed_yet_is_seen_as_well() -> None:
    log = log_of(THEN, THEN)
    log.leader_epoch = LATER
    log.append(b"{}", b"{}", producer_id=7, transactional=True)
    assert log.lso == 4
    assert len(found(log)) == 1


def test_a_log_without_another_leader_is_not_asked() -> None:
    assert found(ANEW, now=replace(standing(ANEW), leader_epoch=THEN)) == ()
    before = ANEW.fetches
    found(ANEW, now=replace(standing(ANEW), leader_epoch=THEN))
    assert ANEW.fetches == before


def test_a_slice_without_anything_to_read_and_an_unknown_partition_are_left_alone() -> None:
    assert found(ANEW, cut_of(slice_of(6, 6))) == found(ANEW, cut_of(slice_of(2, 6, expired=4))) == ()
    assert found(ANEW, now=replace(standing(ANEW), partition=1)) == ()


def test_a_broker_that_tells_no_epochs_proves_nothing() -> None:
    part = CUT.topic_slices[0]
    of_old = cut_of(replace(part, snapshot=replace(part.snapshot, leader_epoch=-1)))
    assert found(ANEW, of_old) == ()
    refuse_rewritten(of_old, last_of(ANEW))


def test_what_has_left_the_log_meanwhile_is_left_to_the_scan() -> None:
    log = log_of(THEN, THEN, LATER)
    now = standing(log)
    log.log_start = 6
    assert found(log, now=now) == ()


def test_what_was_scanned_of_a_log_that_was_written_anew_is_not_judged() -> None:
    with pytest.raises(LogRewrittenMeanwhile) as refused:
        refuse_rewritten(CUT, last_of(ANEW))
    assert refused.value.retryable
    assert str(refused.value).startswith(
        "billing.payouts[0]: the log was cut back and grew again while it was read: expected leader epoch 4 at most, "
        "got offsets 4 to 6, checksum "
    )


def test_what_was_scanned_of_a_log_that_only_grew_is_judged() -> None:
    refuse_rewritten(CUT, last_of(ONLY_GREW))
    refuse_rewritten(cut_of(slice_of(0, 4)), {**last_of(ANEW, slice_of(0, 4)), replace(PART, partition=1): ()})


def test_both_look_at_the_same_end_so_that_the_next_attempt_leaves_out_what_this_one_refuses() -> None:
    """A batch far before the end, as compaction may leave it there alone."""
    log = log_of(LATER, LATER)
    far = cut_of(slice_of(0, 2_000))
    refuse_rewritten(far, last_of(log, slice_of(0, 4)))
    assert rewritten_since_cut(log.fetch, far, [standing(log)]) == ()
    assert offsets(0, 2_000) == far.topic_slices[0].readable


HELD = cut_of(replace(slice_of(0, 2), snapshot=partition_at(lso=2, high_watermark=6)), n=1)
"""Its cut could read two offsets of six."""


def held_before(log: SyntheticLog, **changes: object) -> tuple[RewrittenBatch, ...]:
    """What the next cut finds, which can read all that stands."""
    now = replace(standing(log), **changes)  # type: ignore[arg-type]
    own = replace(slice_of(2, max(2, log.end)), snapshot=now)
    return rewritten_above(log.fetch, HELD, cut_of(own), [now])


@pytest.mark.parametrize(
    ("log", "offset", "before"),
    [
        pytest.param(log_of(THEN, THEN, LATER), 4, "leader epoch 4 at most", id="grown again"),
        pytest.param(log_of(THEN, THEN, LATER, LATER), 4, "leader epoch 4 at most", id="past where it had ended"),
        pytest.param(log_of(THEN, THEN), 4, "it ended at offset 6", id="not yet"),
        pytest.param(log_of(THEN), 2, "it ended at offset 6", id="all that could not be read"),
    ],
)
def test_a_log_that_was_cut_back_above_what_a_cut_could_read_is_told(
    log: SyntheticLog, offset: int, before: str
) -> None:
    (anew,) = held_before(log)
    assert (anew.kafka_offset, anew.read_by_cut, anew.before, anew.is_above) == (offset, 1, before, True)


def test_it_is_told_while_an_open_transaction_holds_the_next_cut_below_it() -> None:
    """The cut behind that one sees a leader that has not changed since."""
    log = log_of(THEN, THEN, LATER)
    now = standing(log)
    (anew,) = rewritten_above(log.fetch, HELD, cut_of(replace(slice_of(2, 2), snapshot=now)), [now])
    assert (anew.kafka_offset, anew.is_above) == (4, True)


@pytest.mark.parametrize(
    ("log", "changes"),
    [
        pytest.param(log_of(THEN, THEN, THEN, LATER), {}, id="a clean move"),
        pytest.param(log_of(THEN, THEN, LATER), {"leader_epoch": THEN}, id="no other leader"),
        pytest.param(log_of(THEN, THEN, LATER), {"topic_id": "another"}, id="another topic"),
        pytest.param(log_of(THEN, THEN, LATER), {"log_start": 6}, id="expired since"),
        pytest.param(log_of(THEN, THEN, LATER), {"partition": 1}, id="another partition"),
    ],
)
def test_any_other_log_above_what_a_cut_could_read_is_as_it_was(log: SyntheticLog, changes: dict[str, object]) -> None:
    assert held_before(log, **changes) == ()


def test_what_left_the_log_while_it_was_looked_at_tells_nothing() -> None:
    log = log_of(THEN, THEN, LATER)
    now = standing(log)
    log.log_start = 6
    own = replace(slice_of(2, 6), snapshot=now)
    assert rewritten_above(log.fetch, HELD, cut_of(own), [now]) == ()
