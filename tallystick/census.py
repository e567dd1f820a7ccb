"""Every offset of a slice accounted for, and the outcome of every batch in it.

A batch's outcome is the broker's own list of aborted transactions, answered with each fetch; never "the markers seen in
my slice", since a slice begins inside transactions and ends before their markers, and never the epoch, since a marker
may carry a later one. Source: KIP-98; the client's rule is in Kafka's CompletedFetch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tallystick.batch_header import NO_PRODUCER_ID, BatchHeader, Marker, read_batches
from tallystick.log_fetch import Fetch, FetchedLog, OffsetNotInLog
from tallystick.offsets import OffsetRange, TopicPartition
from tallystick.run_result import PartitionCensus


class Outcome(StrEnum):
    """What became of a record."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    PLAIN = "plain"
    """Written outside any producer transaction."""
    OPEN = "open"
    """At or above the LSO: nobody can say yet."""
    MARKER = "marker"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedBatch:
    """One batch with its outcome and its bytes."""

    header: BatchHeader
    outcome: Outcome
    raw: memoryview


def walk_batches(fetch: Fetch, offsets: OffsetRange, *, read_committed: bool = True) -> Iterator[DecidedBatch]:
    """Walk all batches that touch the range, in log order; the first may begin before it, the last may end after it.

    read_committed False also passes the LSO: what lies there is OPEN. Raises OffsetNotInLog where the log ends early.
    """
    position = offsets.kafka_offset_start
    while position < offsets.kafka_offset_end:
        fetched = fetch(offsets.topic_partition, position, read_committed)
        last_position = position
        for batch in _decide(fetched, read_committed):
            if batch.header.next_offset <= position:
                continue
            if batch.header.base_offset >= offsets.kafka_offset_end:
                return
            yield batch
            position = batch.header.next_offset
        if position == last_position:
            if read_committed:
                raise OffsetNotInLog(
                    f"{offsets.topic_partition}: the log ends at {position} (LSO {fetched.lso}, "
                    f"high watermark {fetched.high_watermark}), expected {offsets.kafka_offset_end}"
                )
            return


def _decide(fetched: FetchedLog, read_committed: bool) -> Iterator[DecidedBatch]:
    """Follow the aborted list through one answer: an entry ends at its producer's ABORT marker."""
    pending = sorted(fetched.aborted, key=lambda entry: entry[1], reverse=True)
    aborting: set[int] = set()
    for header, raw in read_batches(fetched.records):
        while pending and pending[-1][1] <= header.last_offset:
            aborting.add(pending.pop()[0])
        yield DecidedBatch(header=header, outcome=_outcome(header, aborting, fetched, read_committed), raw=raw)
        if header.marker is Marker.ABORT:
            aborting.discard(header.producer_id)


def _outcome(header: BatchHeader, aborting: set[int], fetched: FetchedLog, read_committed: bool) -> Outcome:
    if header.is_control:
        return Outcome.MARKER
    if not read_committed and header.base_offset >= fetched.lso:
        return Outcome.OPEN
    if not header.is_transactional:
        return Outcome.PLAIN
    return Outcome.ABORTED if header.producer_id in aborting else Outcome.COMMITTED


def take_census(
    fetch: Fetch, offsets: OffsetRange, *, log_start: int = 0, lso: int = 0, high_watermark: int = 0
) -> PartitionCensus:
    """Count what every offset of [start, end) is; end must not be above the LSO. The last three are passed through.

    Holes between and inside batches, and batches whose leader epoch goes backwards, are unexplained.
    """
    counts = dict.fromkeys((Outcome.COMMITTED, Outcome.ABORTED, Outcome.PLAIN), 0)
    markers = {Marker.COMMIT: 0, Marker.ABORT: 0}
    without_producer_id, explained, leader_epoch = 0, 0, -1
    for batch in walk_batches(fetch, offsets):
        header = batch.header
        if header.leader_epoch < leader_epoch:
            continue
        leader_epoch = header.leader_epoch
        clipped = min(header.next_offset, offsets.kafka_offset_end) - max(
            header.base_offset, offsets.kafka_offset_start
        )
        holes = header.next_offset - header.base_offset - header.record_count
        records = max(0, clipped - abs(holes))
        explained += records
        if header.marker is not None:
            markers[header.marker] += records
        elif batch.outcome is Outcome.MARKER:
            explained -= records
        else:
            counts[batch.outcome] += records
            without_producer_id += records if header.producer_id == NO_PRODUCER_ID else 0
    return PartitionCensus(
        topic=offsets.topic,
        partition=offsets.partition,
        kafka_offset_start=offsets.kafka_offset_start,
        kafka_offset_end=offsets.kafka_offset_end,
        committed=counts[Outcome.COMMITTED],
        aborted=counts[Outcome.ABORTED],
        plain=counts[Outcome.PLAIN],
        commit_markers=markers[Marker.COMMIT],
        abort_markers=markers[Marker.ABORT],
        unexplained=len(offsets) - explained,
        without_producer_id=without_producer_id,
        log_start=log_start,
        lso=lso,
        high_watermark=high_watermark,
    )


def batch_at(fetch: Fetch, topic_partition: TopicPartition, offset: int) -> DecidedBatch:
    """The batch that holds one offset, with its outcome. Raises OffsetNotInLog."""
    at = OffsetRange(
        topic=topic_partition.topic,
        partition=topic_partition.partition,
        kafka_offset_start=offset,
        kafka_offset_end=offset + 1,
    )
    for batch in walk_batches(fetch, at, read_committed=True):
        return batch
    raise OffsetNotInLog(f"{topic_partition}: nothing lies at offset {offset}")
