"""Walk a log's batches in order of offset, each with the outcome of its transaction."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from tallystick.kafka_log.batch_header import BatchHeader, Marker, read_batches
from tallystick.kafka_log.fetch import Fetch, FetchedLog, OffsetNotInLog
from tallystick.model.offsets import OffsetRange, TopicPartition

NO_END = 1 << 62


PATIENCE = 20
"""Answers without a new batch, in a row, until the log is taken to end there. The broker holds each for a tenth of a
second; a new leader's high watermark and LSO may lag that long."""


class LogEndsEarly(OffsetNotInLog):
    """The high watermark lies below offsets that stood there when the range was fixed: the log was truncated."""


class Outcome(StrEnum):
    """The fate of a record in its producer transaction."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    PLAIN = "plain"
    """Written outside any producer transaction."""
    OPEN = "open"
    """The record is at or above the LSO: its outcome is not decided yet."""
    MARKER = "marker"


class DecidedBatch(NamedTuple):
    """One batch with its outcome and its bytes. ends_aborted_data: an ABORT marker of a transaction with data.

    A tuple, since every batch of a slice becomes one.
    """

    header: BatchHeader
    outcome: Outcome
    raw: memoryview
    ends_aborted_data: bool = False


def walk_batches(
    fetch: Fetch, offsets: OffsetRange, *, read_committed: bool = True, to_end: bool = False
) -> Iterator[DecidedBatch]:
    """Walk all batches that touch the range, in log order; the first may begin before it, the last may end after it.

    read_committed False also passes the LSO: what lies there is OPEN. It stops where the high watermark lies, unless
    to_end says that all of the range has been seen there. Raises OffsetNotInLog where the log ends early, LogEndsEarly
    if that is where its high watermark lies.
    """
    position, end, empty_answers = offsets.kafka_offset_start, offsets.kafka_offset_end, 0
    while position < end:
        fetched = fetch(offsets.topic_partition, position, read_committed)
        last_position = position
        for batch in decide_batches(fetched, read_committed):
            header = batch.header
            next_offset = header.last_offset + 1
            if next_offset <= position:
                continue
            if header.base_offset >= end:
                return
            yield batch
            position = next_offset
        empty_answers = empty_answers + 1 if position == last_position else 0
        if empty_answers and not (read_committed or to_end) and position >= fetched.high_watermark:
            return
        if empty_answers >= PATIENCE:
            raise (LogEndsEarly if fetched.high_watermark < end else OffsetNotInLog)(
                f"{offsets.topic_partition}: the log ends at {position} (LSO {fetched.lso}, "
                f"high watermark {fetched.high_watermark}), expected {end}"
            )


def walk_past_lso(fetch: Fetch, offsets: OffsetRange, *, lso: int, to_end: bool = False) -> Iterator[DecidedBatch]:
    """Yield the same; below the LSO with the aborted list, at and above it without: all that lies there is open."""
    start, end = offsets.kafka_offset_start, offsets.kafka_offset_end
    middle = min(max(lso, start), end)
    for first, last, read_committed in ((start, middle, True), (middle, end, False)):
        if first == last:
            continue
        part = replace(offsets, kafka_offset_start=first, kafka_offset_end=last)
        yield from walk_batches(fetch, part, read_committed=read_committed, to_end=to_end)


def decide_batches(fetched: FetchedLog, read_committed: bool) -> Iterator[DecidedBatch]:
    """Follow the aborted list through one answer: an entry ends at its producer's ABORT marker."""
    pending = sorted(fetched.aborted, key=lambda entry: entry[1], reverse=True)
    aborting: set[int] = set()
    for header, raw in read_batches(fetched.records):
        while pending and pending[-1][1] <= header.last_offset:
            aborting.add(pending.pop()[0])
        if header.is_control:
            ends_data = header.marker is Marker.ABORT and header.producer_id in aborting
            yield DecidedBatch(header, Outcome.MARKER, raw, ends_data)
            if ends_data:
                aborting.discard(header.producer_id)
        elif not read_committed and header.base_offset >= fetched.lso:
            yield DecidedBatch(header, Outcome.OPEN, raw)
        elif not header.is_transactional:
            yield DecidedBatch(header, Outcome.PLAIN, raw)
        else:
            yield DecidedBatch(header, Outcome.ABORTED if header.producer_id in aborting else Outcome.COMMITTED, raw)


def batch_at(fetch: Fetch, topic_partition: TopicPartition, offset: int) -> DecidedBatch:
    """Return the batch that holds one offset, with its outcome. Raises OffsetNotInLog."""
    at = OffsetRange(
        topic=topic_partition.topic,
        partition=topic_partition.partition,
        kafka_offset_start=offset,
        kafka_offset_end=offset + 1,
    )
    for batch in walk_batches(fetch, at, read_committed=True):
        return batch
    raise OffsetNotInLog(f"{topic_partition}: nothing lies at offset {offset}")


def read_log_start(fetch: Fetch, topic_partition: TopicPartition, offsets: Iterable[int]) -> int | None:
    """Return the retained log's start, asked at the first of these offsets that is still there; None if none is."""
    for offset in offsets:
        try:
            return fetch(topic_partition, offset, False).log_start
        except OffsetNotInLog:
            continue
    return None
