"""Collect what the producers of a slice did: transactions without data, fenced ones, batches that bled, hidden aborts.

Holds a few values per producer id, nothing per transaction or batch, so a long slice needs no more memory than a short
one of as many producers. Pure: the census feeds it.

The protocol that a producer speaks is known from one marker and the data before it. transaction.version 1 (librdkafka,
Java clients before 4.0): the epoch stays the same from one transaction to the next. transaction.version 2 (KIP-890): it
goes up by one with each, and the marker already carries the next one. The broker's own version does not say: an old
client keeps its epoch on a new broker.
"""

from dataclasses import replace
from enum import StrEnum

from tallystick.kafka_log.batch_header import BatchHeader, Marker
from tallystick.model.census_values import BledBatch
from tallystick.model.offsets import OffsetRange

BLED_SAMPLE = 20
"""Number of bled batches of a slice that are named; all are counted."""


class _Producer:
    """One producer id. The first five fields are about the span since its last marker; epoch -1: no data in it."""

    __slots__ = (
        "aborts_by_later_epoch",
        "batches",
        "bled",
        "committed_records",
        "epoch",
        "first_batches",
        "has_marker",
        "protocols",
    )

    def __init__(self) -> None:
        self.epoch = -1
        self.batches = 0
        self.committed_records = 0
        self.first_batches: list[tuple[int, int]] = []
        self.bled: list[BledBatch] = []
        self.has_marker = False
        self.protocols: set[MarkerProtocol] = set()
        self.aborts_by_later_epoch = 0


class ProducerHistory:
    """Feed it a slice's transactional batches in log order, then what lies around the slice."""

    def __init__(self, offsets: OffsetRange) -> None:
        self._offsets = offsets
        self._producers: dict[int, _Producer] = {}
        self._committed_beyond: set[int] = set()
        self._bled: list[BledBatch] = []
        self.bled_batches = 0
        self.empty_transactions = 0
        self.hidden_aborts = 0
        """Records that the broker's list does not call aborted, before a marker that aborts them."""
        self.undecided_commits: set[int] = set()
        """Producer ids whose first trace in the slice is a COMMIT marker: its data may lie before the slice."""

    @property
    def bled(self) -> tuple[BledBatch, ...]:
        """The first few, in log order. marker_offset None: the marker was not found."""
        waiting = [batch for producer in self._producers.values() for batch in producer.bled]
        return tuple(sorted([*self._bled, *waiting], key=lambda batch: batch.kafka_offset_start))[:BLED_SAMPLE]

    @property
    def fencings(self) -> int:
        """Aborts under a later epoch, of producers that are known to keep one epoch for all their transactions."""
        return sum(
            producer.aborts_by_later_epoch
            for producer in self._producers.values()
            if producer.protocols - {MarkerProtocol.UNKNOWN} == {MarkerProtocol.CONSTANT_EPOCH}
        )

    def add_data(self, header: BatchHeader, *, is_committed: bool, records: int) -> None:
        """A batch that a producer wrote in a transaction. records: those that lie in the slice.

        Another epoch than the data before it in the span, and committed: what stands before it has bled. The broker
        refuses an epoch below the last one, so the earlier batches are the strays. Source: KIP-890.
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = self._producers[header.producer_id] = _Producer()
        if producer.epoch != header.producer_epoch:
            if producer.epoch >= 0 and is_committed:
                self._bleed(header.producer_id, producer, header.producer_epoch)
            producer.epoch = header.producer_epoch
            producer.batches = 0
            producer.first_batches = []
        producer.batches += 1
        if producer.batches <= BLED_SAMPLE:
            producer.first_batches.append((header.base_offset, header.next_offset))
        if is_committed:
            producer.committed_records += records
            self._committed_beyond.add(header.producer_id)

    def add_marker(self, header: BatchHeader, *, ends_aborted_data: bool) -> None:
        """A marker. ends_aborted_data: the broker lists the transaction that this ABORT ends, so it had data."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = self._producers[header.producer_id] = _Producer()
        if header.marker is Marker.ABORT:
            self.empty_transactions += not (ends_aborted_data or producer.committed_records)
        elif producer.epoch < 0:
            if producer.has_marker:
                self.empty_transactions += 1
            else:
                self.undecided_commits.add(header.producer_id)
        if producer.epoch >= 0 and header.marker is not None:
            producer.protocols.add(
                protocol_of_marker(header.marker, data_epoch=producer.epoch, marker_epoch=header.producer_epoch)
            )
            producer.aborts_by_later_epoch += header.marker is Marker.ABORT and header.producer_epoch > producer.epoch
        self._end_span(producer, header)
        self._committed_beyond.discard(header.producer_id)

    def unfinished(self) -> set[int]:
        """Producer ids with committed data whose marker lies after the slice."""
        return set(self._committed_beyond)

    def add_after(self, header: BatchHeader) -> None:
        """A batch after the slice, of an unfinished producer: its first marker ends the span."""
        if header.producer_id not in self._committed_beyond:
            return
        producer = self._producers[header.producer_id]
        if header.is_control:
            self._end_span(producer, header)
            self._committed_beyond.discard(header.producer_id)
        elif header.is_transactional and producer.epoch >= 0 and producer.epoch != header.producer_epoch:
            self._bleed(header.producer_id, producer, header.producer_epoch)
            producer.epoch = -1

    def add_before(self, has_data: dict[int, bool], *, nothing_else_before: bool) -> None:
        """Add the state before the slice: producer id to whether data of it follows its last marker there.

        A producer id that is not named is undecided, and not counted, unless the log begins there.
        """
        for producer_id in self.undecided_commits:
            self.empty_transactions += not has_data.get(producer_id, not nothing_else_before)

    def _bleed(self, producer_id: int, producer: _Producer, epoch: int) -> None:
        self.bled_batches += producer.batches
        room = BLED_SAMPLE - len(self._bled) - len(producer.bled)
        producer.bled += [
            BledBatch(
                kafka_offset_start=max(start, self._offsets.kafka_offset_start),
                kafka_offset_end=min(end, self._offsets.kafka_offset_end),
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                span_epoch=epoch,
                marker_offset=None,
            )
            for start, end in producer.first_batches[: max(0, room)]
        ]

    def _end_span(self, producer: _Producer, marker: BatchHeader) -> None:
        if marker.marker is Marker.ABORT:
            self.hidden_aborts += producer.committed_records
        producer.committed_records = 0
        if producer.bled:
            self._bled += [replace(batch, marker_offset=marker.base_offset) for batch in producer.bled]
            producer.bled = []
        producer.epoch = -1
        producer.batches = 0
        producer.has_marker = True


class MarkerProtocol(StrEnum):
    """The way a producer's epochs change from one transaction to the next."""

    CONSTANT_EPOCH = "constant_epoch"
    """transaction.version 1."""
    EPOCH_PER_TRANSACTION = "epoch_per_transaction"
    """transaction.version 2."""
    UNKNOWN = "unknown"


def protocol_of_marker(marker: Marker, *, data_epoch: int, marker_epoch: int) -> MarkerProtocol:
    """Return the protocol that one transaction on one partition shows.

    An ABORT under a later epoch shows nothing: a coordinator that fences a producer or times it out raises the epoch
    under either version.
    """
    if marker_epoch == data_epoch:
        return MarkerProtocol.CONSTANT_EPOCH
    return MarkerProtocol.EPOCH_PER_TRANSACTION if marker is Marker.COMMIT else MarkerProtocol.UNKNOWN
