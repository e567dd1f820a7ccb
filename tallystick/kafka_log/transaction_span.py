"""The producer transaction that a record was written in, as one partition shows it: where it begins and how it ends.

Read for breaks only, from batch headers. A record's transaction on its partition is what its producer id wrote between
two markers; it ends at the first control batch of that producer id after the record, which may lie above the LSO.
Source: KIP-98.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tallystick.kafka_log.batch_header import BatchHeader, Marker, coordinator_epoch
from tallystick.kafka_log.fetch import Fetch, FetchedLog, OffsetNotInLog
from tallystick.kafka_log.log_walk import DecidedBatch, decide_batches, read_log_start, walk_past_lso
from tallystick.kafka_log.producer_history import MarkerProtocol, protocol_of_marker
from tallystick.model.offsets import OffsetRange, TopicPartition

LOOK_BACK_OFFSETS = 10_000
"""Distance before a record in which its transaction's first record is looked for."""
_NO_END = 1 << 62
Meet = Callable[[DecidedBatch, Sequence[int]], None]
"""(data batch, offsets asked for that it holds) -> None"""


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

    def as_json(self) -> Mapping[str, Any]:
        """Return one value for all records of the transaction: thousands of breaks may share it."""
        return _as_json(self)


@lru_cache(maxsize=1024)
def _as_json(span: TransactionSpan) -> Mapping[str, Any]:
    return {
        "first_offset": span.first_offset,
        "first_is_certain": span.first_is_certain,
        "marker": None if span.marker is None else str(span.marker),
        "marker_offset": span.marker_offset,
        "marker_epoch": span.marker_epoch,
        "marker_timestamp_ms": span.marker_timestamp_ms,
        "coordinator_epoch": span.coordinator_epoch,
        "protocol": str(span.protocol),
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
        """Return offset and span of all records asked for, also of those whose marker was not met."""
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
    fetch: Fetch, topic_partition: TopicPartition, offsets: Iterable[int], meet: Meet
) -> dict[int, TransactionSpan]:
    """Return the span of each offset that is a producer transaction's record. Calls `meet` for each of their batches.

    Neighbours share one walk, so no part of the log is read twice. What has left the log has no span.
    """
    asked = sorted(set(offsets), reverse=True)
    log_start = read_log_start(fetch, topic_partition, [asked[0], asked[-1]] if asked else [])
    waiting = [offset for offset in asked if log_start is not None and offset >= log_start]
    found: dict[int, TransactionSpan] = {}
    while waiting and log_start is not None:
        try:
            here = fetch(topic_partition, waiting[-1], True)
        except OffsetNotInLog:
            break
        looks_back = _may_be_transactional(here)
        start = max(log_start, waiting[-1] - LOOK_BACK_OFFSETS) if looks_back else waiting[-1]
        sweep = _Sweep(start)
        onwards = OffsetRange(
            topic=topic_partition.topic,
            partition=topic_partition.partition,
            kafka_offset_start=start,
            kafka_offset_end=_NO_END,
        )
        for batch in walk_past_lso(fetch, onwards, lso=here.lso):
            header = batch.header
            if header.is_transactional and not looks_back and waiting and waiting[-1] <= header.last_offset:
                break  # its transaction may begin before this sweep did
            inside = list(_take_up_to(waiting, header.last_offset))
            if header.is_control:
                sweep.add_marker(batch)
            else:
                if inside:
                    meet(batch, inside)
                if header.is_transactional:
                    sweep.add_data(header, inside)
            nothing_near = not waiting or waiting[-1] - LOOK_BACK_OFFSETS > header.last_offset
            if nothing_near and not sweep.waiting:
                break
        else:
            waiting.clear()
        found |= sweep.spans()
    return found


def _may_be_transactional(fetched: FetchedLog) -> bool:
    """Return whether, by what an answer shows, its first batch may belong to a producer transaction."""
    first = next(decide_batches(fetched, True), None)
    return first is None or first.header.is_transactional


def _take_up_to(waiting: list[int], last_offset: int) -> Iterator[int]:
    while waiting and waiting[-1] <= last_offset:
        yield waiting.pop()
