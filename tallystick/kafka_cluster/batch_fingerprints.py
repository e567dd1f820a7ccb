"""R1: does the log still hold, byte for byte, what earlier runs have read?

Each run keeps what identifies the last batches it has read of each partition, and a baseline the last ones that stand
below it; the next run looks whether they are there. What an unclean election or a restored disk takes, it takes from
the end, and a tail that has grown again since hides that from every count. Source: KIP-101, KIP-279.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tallystick.kafka_cluster.state import BatchFingerprint, RewrittenBatch
from tallystick.kafka_log.batch_header import checksum
from tallystick.kafka_log.fetch import Fetch, OffsetNotInLog
from tallystick.kafka_log.header_cache import LAST_BATCHES
from tallystick.kafka_log.log_walk import DecidedBatch, walk_batches
from tallystick.model.cut import Cut, PartitionSnapshot, TopicSlice, discontinuity
from tallystick.model.offsets import OffsetRange, TopicPartition

ANCHORS_MAX = LAST_BATCHES
"""Batches kept per partition."""
_REACH = 1_000
"""Offsets before a slice's end in which its last batches are looked for."""


def read_anchors(fetch: Fetch, offsets: OffsetRange, *, cut_n: int) -> tuple[BatchFingerprint, ...]:
    """The last batches of a slice, oldest first. Raises OffsetNotInLog."""
    found = fingerprints(offsets.topic_partition, walk_batches(fetch, tail_of(offsets), read_committed=False))
    return tuple(replace(one, read_by_cut=cut_n) for one in found)


def fingerprints(topic_partition: TopicPartition, batches: Iterable[DecidedBatch]) -> tuple[BatchFingerprint, ...]:
    """Return the last of these batches, oldest first, as read by nobody yet."""
    return tuple(_anchor(topic_partition, batch) for batch in deque(batches, maxlen=ANCHORS_MAX))


def read_anchors_left(fetch: Fetch, offsets: OffsetRange, *, cut_n: int) -> tuple[BatchFingerprint, ...]:
    """The same of what the log has below a slice; none where retention reaches it meanwhile: the next run looks."""
    try:
        return read_anchors(fetch, offsets, cut_n=cut_n)
    except OffsetNotInLog:
        return ()


def stands_below(read: TopicSlice, now: PartitionSnapshot) -> OffsetRange:
    """The tail of what the log has below a slice's end, whoever has read it."""
    end = read.offsets.kafka_offset_end
    return tail_of(_range(now.topic_partition, min(now.log_start, end), end))


def tail_of(offsets: OffsetRange) -> OffsetRange:
    """The end of a slice, in which its last batches are looked for."""
    start = max(offsets.kafka_offset_start, offsets.kafka_offset_end - _REACH)
    return _range(offsets.topic_partition, start, offsets.kafka_offset_end)


def span_of(anchors: Sequence[BatchFingerprint], *, log_start: int) -> OffsetRange | None:
    """Return where fingerprints of one partition lie, oldest first, without those that retention has reached."""
    kept = _kept(anchors, log_start=log_start)
    if not kept:
        return None
    return _range(kept[0].topic_partition, kept[0].kafka_offset_start, kept[-1].kafka_offset_end)


def newest_anchors(
    earlier: Iterable[BatchFingerprint], new: Iterable[BatchFingerprint]
) -> tuple[BatchFingerprint, ...]:
    """The last few of one partition: new ones, and earlier ones as far as there are too few of them."""
    merged = {one.kafka_offset_start: one for one in (*earlier, *new)}
    return tuple(merged[start] for start in sorted(merged)[-ANCHORS_MAX:])


def find_rewritten(
    fetch: Fetch, anchors: Sequence[BatchFingerprint], *, log_start: int, compacts: bool = False
) -> tuple[RewrittenBatch, ...]:
    """Anchors of one partition that the log holds otherwise. Those that retention has reached prove nothing."""
    span = span_of(anchors, log_start=log_start)
    if span is None:
        return ()
    kept = _kept(anchors, log_start=log_start)
    try:
        found = [_anchor(span.topic_partition, batch) for batch in walk_batches(fetch, span, read_committed=False)]
    except OffsetNotInLog:
        return ()  # retention reached it meanwhile: the bounds around the scan tell
    return compare_anchors(kept, found, compacts=compacts)


def _kept(anchors: Iterable[BatchFingerprint], *, log_start: int) -> list[BatchFingerprint]:
    return [one for one in anchors if one.kafka_offset_start >= log_start]


def compare_anchors(
    anchors: Iterable[BatchFingerprint], found: Sequence[BatchFingerprint], *, compacts: bool = False
) -> tuple[RewrittenBatch, ...]:
    """Each anchor must be found with the same bounds and checksum. Another leader epoch alone is the same batch.

    Where the topic compacts, its cleaner takes batches, or leaves them with fewer records under the leader epoch that
    they had: there only what a later leader wrote in an anchor's place is another batch. Source: KIP-58, KIP-101.
    """
    now = {one.kafka_offset_start: one for one in found}
    return tuple(
        RewrittenBatch(
            topic_partition=one.topic_partition,
            kafka_offset=one.kafka_offset_start,
            read_by_cut=one.read_by_cut,
            before=identity(one),
            now=identity(now[one.kafka_offset_start]) if one.kafka_offset_start in now else "no batch begins here",
        )
        for one in anchors
        if one.kafka_offset_start not in now or now[one.kafka_offset_start].content != one.content
        if not compacts or one.crc32c is None or any(_took_its_place(other, one) for other in found)
    )


def _took_its_place(other: BatchFingerprint, one: BatchFingerprint) -> bool:
    return (
        other.leader_epoch > one.leader_epoch
        and other.kafka_offset_start < one.kafka_offset_end
        and one.kafka_offset_start < other.kafka_offset_end
    )


def written_anew_and_gone(
    previous: Cut, cut: Cut, anchors: Iterable[BatchFingerprint], now: Iterable[PartitionSnapshot]
) -> Iterator[RewrittenBatch]:
    """Yield each partition whose log ended below what was read when the previous cut was made, or once its run had read
    it, and goes on by now, where retention has taken all that was kept to compare. A log that only seemed to end there
    would have kept it.

    Where offsets expired unread too, that says as much.
    """
    last = {one.topic_partition: one for one in anchors}
    for part in now:
        anchor, before = last.get(part.topic_partition), previous.slice_of(part.topic_partition)
        own = cut.slice_of(part.topic_partition)
        if before is None or own is None or own.expired or discontinuity(cut, part):
            continue
        end, was_cut_back_to = before.offsets.kafka_offset_end, before.snapshot.high_watermark
        if anchor is not None and anchor.crc32c is None and anchor.read_by_cut == previous.n:
            was_cut_back_to = anchor.kafka_offset_start
        is_kept = anchor is not None and anchor.kafka_offset_start >= part.log_start
        if was_cut_back_to < end <= own.snapshot.high_watermark and not is_kept:
            yield RewrittenBatch(
                topic_partition=part.topic_partition,
                kafka_offset=was_cut_back_to,
                read_by_cut=previous.n,
                before=f"it ended at offset {was_cut_back_to}",
                now=f"it begins at offset {part.log_start}",
                is_gone=True,
            )


def cut_off_since(read: TopicSlice, now: PartitionSnapshot, *, cut_n: int) -> BatchFingerprint:
    """Stand in for what a log no longer holds of a slice that a run has just read: no batch will be equal to it."""
    return BatchFingerprint(
        topic_partition=now.topic_partition,
        kafka_offset_start=max(now.high_watermark, now.log_start),
        kafka_offset_end=read.offsets.kafka_offset_end,
        crc32c=None,
        leader_epoch=now.leader_epoch,
        read_by_cut=cut_n,
    )


def written_since(one: BatchFingerprint, part: TopicSlice | None) -> bool:
    """Return whether a batch below a slice's end is of a later leader than the one that the slice's cut had seen. A
    broker that tells no epochs shows none.
    """
    if part is None or part.snapshot.leader_epoch < 0:
        return False
    return one.leader_epoch > part.snapshot.leader_epoch and one.kafka_offset_start < part.offsets.kafka_offset_end


def _anchor(topic_partition: TopicPartition, batch: DecidedBatch) -> BatchFingerprint:
    return BatchFingerprint(
        topic_partition=topic_partition,
        kafka_offset_start=batch.header.base_offset,
        kafka_offset_end=batch.header.next_offset,
        crc32c=checksum(batch.raw),
        leader_epoch=batch.header.leader_epoch,
        read_by_cut=0,
    )


def identity(anchor: BatchFingerprint) -> str:
    """Return what a batch is known by, for people."""
    offsets = f"offsets {anchor.kafka_offset_start} to {anchor.kafka_offset_end}"
    if anchor.crc32c is None:
        return f"{offsets} (cut off since)"
    return f"{offsets}, checksum {anchor.crc32c:08x}, leader epoch {anchor.leader_epoch}"


def _range(topic_partition: TopicPartition, start: int, end: int) -> OffsetRange:
    return OffsetRange(
        topic=topic_partition.topic,
        partition=topic_partition.partition,
        kafka_offset_start=start,
        kafka_offset_end=end,
    )


def gone_unseen(
    before: Iterable[PartitionSnapshot], anchors: Iterable[BatchFingerprint], now: Iterable[PartitionSnapshot]
) -> tuple[TopicPartition, ...]:
    """Return the partitions of which retention has taken all that the run before had kept to compare, and which have
    another leader since: what that one cut back, and what came in its place, nobody sees any more.

    before: as the run before saw them.
    """
    then = {part.topic_partition: part for part in before}
    kept = {one.topic_partition: one.kafka_offset_start for one in anchors}  # oldest first: the newest of each
    return tuple(
        part.topic_partition
        for part in now
        if (known := then.get(part.topic_partition)) is not None
        and known.leader_epoch != part.leader_epoch
        and known.log_start < part.log_start
        and kept.get(part.topic_partition, -1) < part.log_start
    )
