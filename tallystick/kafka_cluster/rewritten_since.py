"""R1, before a slice is judged: was its end cut away and written anew since its cut was made, or what the cut before it
had seen and could not read yet?

A cut's records lie below what was stable when it was made, so their batches have no later leader epoch than their
leader had at that moment. Only an unclean election, or a disk that was put back, ends a log below that; what is written
there afterwards is a later leader's. Such records are not those of the cut, so nothing of the slice is judged. Source:
KIP-101, KIP-279.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tallystick.kafka_cluster.batch_fingerprints import fingerprints, identity, tail_of
from tallystick.kafka_cluster.state import BatchFingerprint, RewrittenBatch
from tallystick.kafka_log.fetch import Fetch, OffsetNotInLog
from tallystick.kafka_log.log_walk import walk_batches
from tallystick.model.cut import Cut, PartitionSnapshot, TopicSlice, discontinuity
from tallystick.model.errors import TallystickError
from tallystick.model.offsets import TopicPartition


class LogRewrittenMeanwhile(TallystickError):
    """A log was cut back and grew again while it was read: the next attempt leaves its slice out."""

    retryable = True


def rewritten_since_cut(fetch: Fetch, cut: Cut, now: Iterable[PartitionSnapshot]) -> tuple[RewrittenBatch, ...]:
    """Find the slices whose end was written anew, by the first such batch of each. now: the partitions as they stand.

    Reads the end of those slices alone whose partition has had another leader since.
    """
    found = (_written_anew(fetch, cut, part) for part in now)
    return tuple(one for one in found if one)


def _written_anew(fetch: Fetch, cut: Cut, now: PartitionSnapshot) -> RewrittenBatch | None:
    part = cut.slice_of(now.topic_partition)
    if part is None or not len(part.readable) or now.leader_epoch <= part.snapshot.leader_epoch:
        return None
    try:
        last = fingerprints(now.topic_partition, walk_batches(fetch, tail_of(part.readable), read_committed=False))
    except OffsetNotInLog:
        return None  # the scan finds as much
    return _first_anew(part, last, cut_n=cut.n)


def rewritten_above(
    fetch: Fetch, previous: Cut, cut: Cut, now: Iterable[PartitionSnapshot]
) -> tuple[RewrittenBatch, ...]:
    """Find the logs that were cut back above what the previous cut could read: by a lower high watermark now, or by a
    batch of a later leader that stands below where it had been.

    Nothing that was read is another record. But the markers that had ended its transactions stood there too, and
    whoever comes next may end them otherwise.
    """
    found = (_anew_above(fetch, previous, cut, part) for part in now)
    return tuple(one for one in found if one)


def _anew_above(fetch: Fetch, previous: Cut, cut: Cut, now: PartitionSnapshot) -> RewrittenBatch | None:
    before, own = previous.slice_of(now.topic_partition), cut.slice_of(now.topic_partition)
    if before is None or own is None or discontinuity(previous, now) or discontinuity(cut, now):
        return None
    had_ended, ends = before.snapshot.high_watermark, min(own.snapshot.high_watermark, now.high_watermark)
    if ends < had_ended:
        return RewrittenBatch(
            topic_partition=now.topic_partition,
            kafka_offset=ends,
            read_by_cut=previous.n,
            before=f"it ended at offset {had_ended}",
            now=f"it ends at offset {ends}",
            is_above=True,
        )
    start, end = max(before.offsets.kafka_offset_end, now.log_start), min(had_ended, now.high_watermark)
    if start >= end or not 0 <= before.snapshot.leader_epoch < now.leader_epoch:
        return None
    above = replace(own.readable, kafka_offset_start=start, kafka_offset_end=end)
    try:
        stands = fingerprints(now.topic_partition, walk_batches(fetch, tail_of(above), read_committed=False))
    except OffsetNotInLog:
        return None  # it expired meanwhile
    if not stands or stands[-1].leader_epoch <= before.snapshot.leader_epoch:
        return None
    return RewrittenBatch(
        topic_partition=now.topic_partition,
        kafka_offset=stands[-1].kafka_offset_start,
        read_by_cut=previous.n,
        before=f"leader epoch {before.snapshot.leader_epoch} at most",
        now=identity(stands[-1]),
        is_above=True,
    )


def without_rewritten(cut: Cut, rewritten: Iterable[RewrittenBatch]) -> Cut:
    """Return the cut with nothing to read of these slices."""
    places = {one.topic_partition for one in rewritten}
    if not places:
        return cut
    slices = (
        replace(part, expired=len(part.offsets)) if part.offsets.topic_partition in places else part
        for part in cut.topic_slices
    )
    return replace(cut, topic_slices=tuple(slices))


def refuse_rewritten(cut: Cut, scanned: Mapping[TopicPartition, Sequence[BatchFingerprint]]) -> None:
    """Refuse to judge what a scan has read of a log that was written anew by then. scanned: the last batches of each
    slice, as the scan saw them.

    Raises LogRewrittenMeanwhile.
    """
    for place, last in scanned.items():
        part = cut.slice_of(place)
        anew = _first_anew(part, last, cut_n=cut.n) if part else None
        if anew:
            raise LogRewrittenMeanwhile(
                f"{place}: the log was cut back and grew again while it was read: expected {anew.before}, got "
                f"{anew.now}; the next attempt leaves these offsets out"
            )


def _first_anew(part: TopicSlice, last: Iterable[BatchFingerprint], *, cut_n: int) -> RewrittenBatch | None:
    """Return the first of a slice's last batches that a later leader has written."""
    known, tail = part.snapshot.leader_epoch, tail_of(part.readable)
    if known < 0:
        return None  # a broker that tells no epochs
    for one in last:
        if one.leader_epoch > known and one.kafka_offset_end > tail.kafka_offset_start:
            return RewrittenBatch(
                topic_partition=part.offsets.topic_partition,
                kafka_offset=one.kafka_offset_start,
                read_by_cut=cut_n,
                before=f"leader epoch {known} at most",
                now=identity(one),
                unread_offsets=len(part.offsets),
            )
    return None
