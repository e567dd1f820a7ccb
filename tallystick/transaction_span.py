"""The producer transaction that a record was written in, as one partition shows it: where it begins and how it ends.

Read for breaks only, from batch headers. A record's transaction on its partition is what its producer id wrote between
two markers; it ends at the first control batch of that producer id after the record, which may lie above the LSO.
Source: KIP-98.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tallystick.batch_header import BatchHeader, Marker, coordinator_epoch
from tallystick.census import DecidedBatch, read_log_start, walk_batches
from tallystick.log_fetch import Fetch
from tallystick.marker_protocol import MarkerProtocol, protocol_of_marker
from tallystick.offsets import OffsetRange, TopicPartition

LOOK_BACK_OFFSETS = 10_000
"""So far before a record its transaction's first record is looked for."""
_NO_END = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSpan:
    """One producer transaction on one partition.

    first_offset: of its first record seen; the first of all only where first_is_certain. marker None: not ended up to
    the high watermark. marker_timestamp_ms is the partition leader's clock, coordinator_epoch that of who ordered it.
    """

    first_offset: int
    first_is_certain: bool
    marker: Marker | None
    marker_offset: int | None
    marker_epoch: int | None
    marker_timestamp_ms: int | None
    coordinator_epoch: int | None
    protocol: MarkerProtocol

    def as_json(self) -> dict[str, Any]:
        return {
            "first_offset": self.first_offset,
            "first_is_certain": self.first_is_certain,
            "marker": None if self.marker is None else str(self.marker),
            "marker_offset": self.marker_offset,
            "marker_epoch": self.marker_epoch,
            "marker_timestamp_ms": self.marker_timestamp_ms,
            "coordinator_epoch": self.coordinator_epoch,
            "protocol": str(self.protocol),
        }


@dataclass(slots=True)
class _OpenSpan:
    """A span whose marker has not been met yet."""

    first_offset: int
    first_is_certain: bool
    data_epoch: int
    wanted: list[int] = field(default_factory=list)


class _Sweep:
    """One pass over neighbouring records of one partition; remembers one span per producer id."""

    def __init__(self, start: int) -> None:
        self.open: dict[int, _OpenSpan] = {}
        self.waiting = 0
        self._start = start
        self._ended: set[int] = set()
        self._found: list[tuple[int, _OpenSpan, DecidedBatch | None]] = []
        self._protocols: dict[int, set[MarkerProtocol]] = {}

    def add_data(self, header: BatchHeader, wanted: list[int]) -> None:
        span = self.open.get(header.producer_id)
        if span is None:
            certain = self._start == 0 or header.producer_id in self._ended
            span = self.open[header.producer_id] = _OpenSpan(header.base_offset, certain, header.producer_epoch)
        span.data_epoch = header.producer_epoch
        span.wanted += wanted
        self.waiting += len(wanted)

    def add_marker(self, batch: DecidedBatch) -> None:
        header = batch.header
        span = self.open.pop(header.producer_id, None)
        self._ended.add(header.producer_id)
        if span is None or header.marker is None:
            return
        told = protocol_of_marker(header.marker, data_epoch=span.data_epoch, marker_epoch=header.producer_epoch)
        self._protocols.setdefault(header.producer_id, set()).add(told)
        if span.wanted:
            self._found.append((header.producer_id, span, batch))
            self.waiting -= len(span.wanted)

    def spans(self) -> Iterator[tuple[int, TransactionSpan]]:
        """Offset and span of all records asked for, also of those whose marker was not met."""
        still_open = [(producer_id, span, None) for producer_id, span in self.open.items()]
        for producer_id, span, marker in (*self._found, *still_open):
            ended = _span(span, marker, self._protocol(producer_id))
            for offset in span.wanted:
                yield offset, ended

    def _protocol(self, producer_id: int) -> MarkerProtocol:
        """Both told: the client was changed in between, and which one wrote a record is not known."""
        told = self._protocols.get(producer_id, set()) - {MarkerProtocol.UNKNOWN}
        return told.pop() if len(told) == 1 else MarkerProtocol.UNKNOWN


def _span(span: _OpenSpan, marker: DecidedBatch | None, protocol: MarkerProtocol) -> TransactionSpan:
    header = None if marker is None else marker.header
    return TransactionSpan(
        first_offset=span.first_offset,
        first_is_certain=span.first_is_certain,
        marker=None if header is None else header.marker,
        marker_offset=None if header is None else header.base_offset,
        marker_epoch=None if header is None else header.producer_epoch,
        marker_timestamp_ms=None if header is None else header.max_timestamp_ms,
        coordinator_epoch=None if marker is None else coordinator_epoch(marker.raw),
        protocol=protocol,
    )


def read_spans(
    fetch: Fetch, topic_partition: TopicPartition, producer_ids: Mapping[int, int]
) -> dict[int, TransactionSpan]:
    """The span of each offset of a transactional record. producer_ids: offset to who wrote it.

    Neighbours share one pass over the batch headers, so no part of the log is read twice. What has left the log has no
    span.
    """
    log_start = read_log_start(fetch, topic_partition, [max(producer_ids)] if producer_ids else [])
    waiting = sorted((offset for offset in producer_ids if log_start is not None and offset >= log_start), reverse=True)
    found: dict[int, TransactionSpan] = {}
    while waiting and log_start is not None:
        start = max(log_start, waiting[-1] - LOOK_BACK_OFFSETS)
        sweep = _Sweep(start)
        everything = OffsetRange(
            topic=topic_partition.topic,
            partition=topic_partition.partition,
            kafka_offset_start=start,
            kafka_offset_end=_NO_END,
        )
        for batch in walk_batches(fetch, everything, read_committed=False):
            header = batch.header
            inside = list(_take_up_to(waiting, header.last_offset))
            if header.is_control:
                sweep.add_marker(batch)
            elif header.is_transactional:
                sweep.add_data(header, [at for at in inside if producer_ids[at] == header.producer_id])
            nothing_near = not waiting or waiting[-1] - LOOK_BACK_OFFSETS > header.last_offset
            if nothing_near and not sweep.waiting:
                break
        else:
            waiting.clear()
        found |= sweep.spans()
    return found


def _take_up_to(waiting: list[int], last_offset: int) -> Iterator[int]:
    while waiting and waiting[-1] <= last_offset:
        yield waiting.pop()
