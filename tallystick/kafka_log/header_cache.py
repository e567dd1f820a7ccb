"""The heads of a slice's batches: who asks about breaks walks them, and fetches only the batches that it looks into.

A head is a batch without its records; a marker keeps its own. They come from the walk that counts the slice, which
knows each batch's outcome.
"""

import struct
from bisect import bisect_right
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from tallystick.kafka_log.batch_header import HEADER_BYTES, read_batches
from tallystick.kafka_log.fetch import Fetch, FetchedLog, OffsetNotInLog
from tallystick.kafka_log.log_walk import DecidedBatch, Outcome, batch_at
from tallystick.model.offsets import OffsetRange, TopicPartition

HEADS_MAX = 200_000
"""Heads of all slices of a cut together, at most: some 50 MB. A slice beyond its share keeps none."""
HEADS_OF_AN_ANSWER = 200
LAST_BATCHES = 8
"""Of each slice so many are kept whole while it is walked: by them a later run sees whether its log is what it was."""
FETCH_WORTH_BYTES = 512 << 10
"""Fetching one batch by itself takes as long as walking so much of a log."""
_LENGTH = struct.Struct(">i")
_LENGTH_AT, _LENGTH_END = 8, 12
_NO_RECORDS = _LENGTH.pack(HEADER_BYTES - _LENGTH_END)
_Counted = TypeVar("_Counted")


@dataclass(frozen=True, kw_only=True)
class BatchHeads:
    """One slice's heads in log order, and of each the offset behind it.

    aborted: places among them of aborted batches, and of the markers that ended those. batch_bytes: of the batches,
    records and all.
    """

    offsets: OffsetRange
    heads: tuple[bytes, ...]
    next_offsets: tuple[int, ...]
    aborted: frozenset[int]
    batch_bytes: int

    def covers(self, offset: int) -> bool:
        """Return whether the offset is in the slice, with a head at or behind it."""
        return bool(self.heads) and self.offsets.kafka_offset_start <= offset < self.next_offsets[-1]

    @property
    def are_worth_picking(self) -> bool:
        """Return whether it is quicker to fetch each aborted batch by itself than to walk the slice."""
        return self._is_quicker(len(self.aborted))

    def picked(self, offsets: Iterable[int]) -> tuple[int, ...] | None:
        """Return one offset per batch that holds some of these, in log order; None where a walk is quicker."""
        of_batch = {bisect_right(self.next_offsets, offset): offset for offset in sorted(offsets)}
        return tuple(of_batch.values()) if self._is_quicker(len(of_batch)) else None

    def _is_quicker(self, fetches: int) -> bool:
        return fetches * FETCH_WORTH_BYTES < self.batch_bytes

    def answer(self, offset: int, around: FetchedLog) -> FetchedLog:
        """Answer like a broker under read_committed from this offset on, without records. around: the log's bounds."""
        first = bisect_right(self.next_offsets, offset)
        end = first + HEADS_OF_AN_ANSWER
        some = b"".join(self.heads[first:end])
        aborted = () if self.aborted.isdisjoint(range(first, end)) else tuple(self._aborted(first, some, offset))
        return replace(around, records=some, aborted=aborted)

    def _aborted(self, first: int, some: bytes, offset: int) -> Iterator[tuple[int, int]]:
        aborting: set[int] = set()
        for place, (header, _) in enumerate(read_batches(some), first):
            if place not in self.aborted:
                continue
            if header.producer_id not in aborting:
                yield header.producer_id, offset if header.is_control else header.base_offset
                aborting.add(header.producer_id)
            if header.is_control:
                aborting.discard(header.producer_id)


class HeadKeeper:
    """Keeps the heads of one slice while somebody walks it; of more than `heads_max` batches none.

    last: the last batches of the walk.
    """

    def __init__(self, offsets: OffsetRange, *, heads_max: int) -> None:
        self._offsets, self._heads_max = offsets, heads_max
        self.last: deque[DecidedBatch] = deque(maxlen=LAST_BATCHES)
        self._heads: list[bytes] = []
        self._next_offsets: list[int] = []
        self._aborted: set[int] = set()
        self._batch_bytes = self._batches = 0

    def keeping(self, walk: Generator[DecidedBatch, None, _Counted]) -> Generator[DecidedBatch, None, _Counted]:
        """Yield the same walk, to the same end, and keep its heads."""
        while True:
            try:
                batch = next(walk)
            except StopIteration as ended:
                counted: _Counted = ended.value
                return counted
            self._keep(batch)
            self.last.append(batch)
            yield batch

    def kept(self) -> BatchHeads | None:
        if self._batches > self._heads_max:
            return None
        return BatchHeads(
            offsets=self._offsets,
            heads=tuple(self._heads),
            next_offsets=tuple(self._next_offsets),
            aborted=frozenset(self._aborted),
            batch_bytes=self._batch_bytes,
        )

    def _keep(self, batch: DecidedBatch) -> None:
        self._batches += 1
        if self._batches > self._heads_max:
            self._heads, self._next_offsets, self._aborted = [], [], set()
            return
        raw = batch.raw
        if batch.outcome is Outcome.ABORTED or batch.ends_aborted_data:
            self._aborted.add(len(self._heads))
        is_marker = batch.outcome is Outcome.MARKER
        without_records = (raw[:_LENGTH_AT], _NO_RECORDS, raw[_LENGTH_END:HEADER_BYTES])
        self._heads.append(bytes(raw) if is_marker else b"".join(without_records))
        self._next_offsets.append(batch.header.next_offset)
        self._batch_bytes += len(raw)


@dataclass(frozen=True, kw_only=True)
class KeptHeads:
    """The heads of some slices. fetch_one: answers with one batch, however large."""

    of: Mapping[TopicPartition, BatchHeads]
    fetch_one: Fetch

    def over(self, fetch: Fetch) -> Fetch:
        """Answer like `fetch`; about these slices under read_committed without records, and without the broker.

        Where a log begins and ends is asked once.
        """
        around: dict[TopicPartition, FetchedLog] = {}

        def fetch_or_keep(topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
            kept = self.of.get(topic_partition)
            if kept is None or not read_committed or not kept.covers(offset):
                return fetch(topic_partition, offset, read_committed)
            if topic_partition not in around:
                around[topic_partition] = self.fetch_one(topic_partition, offset, True)
            if offset < around[topic_partition].log_start:
                raise OffsetNotInLog(f"{topic_partition}: offset {offset} has left the log meanwhile")
            return kept.answer(offset, around[topic_partition])

        return fetch_or_keep

    def whole(self, topic_partition: TopicPartition, batch: DecidedBatch) -> DecidedBatch:
        """A batch with its records. Raises OffsetNotInLog."""
        if len(batch.raw) > HEADER_BYTES or not batch.header.record_count:
            return batch
        return batch_at(self.fetch_one, topic_partition, batch.header.last_offset)

    def worth_picking(self, ranges: tuple[OffsetRange, ...]) -> "KeptHeads":
        """Return the heads of these ranges, except where so much was aborted that walking the log is quicker."""
        picked = {part: kept for part, kept in self.of.items() if kept.offsets in ranges and kept.are_worth_picking}
        return replace(self, of=picked)


def _never(topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
    raise OffsetNotInLog(f"{topic_partition}: no heads are kept; offset {offset} is nobody's")


NO_HEADS = KeptHeads(of={}, fetch_one=_never)
