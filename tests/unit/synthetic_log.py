"""A partition's log as bytes: real v2 record batches, and a fetch that answers as a broker does.

The bytes are built by kafka-python's own builder; only what a broker sets is patched in: base offset, leader epoch and
the control flag (none of it is guarded by a checksum that the readers check).
"""

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.fetch import FetchedLog, OffsetNotInLog
from tallystick.model.offsets import TopicPartition

NO_PRODUCER = -1
_ATTRIBUTES_AT = DefaultRecordBatch.ATTRIBUTES_OFFSET
_LAST_OFFSET_DELTA_AT = _ATTRIBUTES_AT + 2
_RECORD_COUNT_AT = DefaultRecordBatch.HEADER_STRUCT.size - 4


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One batch as the log holds it. first, next: half-open offsets."""

    first: int
    next: int
    producer_id: int
    transactional: bool
    marker: Marker | None
    raw: bytes


@dataclass
class SyntheticLog:
    """Grows at its end. fetch_batches: how many batches an answer holds at most, as fetch.max.bytes would do."""

    log_start: int = 0
    fetch_batches: int = 1_000
    end: int = 0
    leader_epoch: int = 0
    batches: list[Batch] = field(default_factory=list)
    fetches: int = 0

    def __post_init__(self) -> None:
        self.end = max(self.end, self.log_start)

    def append(
        self,
        *values: bytes,
        producer_id: int = NO_PRODUCER,
        epoch: int = 0,
        sequence: int = 0,
        transactional: bool = False,
        compression: int = 0,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> int:
        """A data batch; its first offset."""
        known = producer_id != NO_PRODUCER
        raw = build(
            values,
            producer_id=producer_id,
            epoch=epoch if known else -1,
            sequence=sequence if known else -1,
            transactional=transactional,
            compression=compression,
            headers=headers,
        )
        return self._add(raw, len(values), producer_id, transactional, None)

    def append_raw(self, raw: bytes, *, records: int) -> int:
        """A batch outside any producer transaction as somebody else made it; its first offset."""
        return self._add(raw, records, NO_PRODUCER, False, None)

    def end_transaction(self, producer_id: int, marker: Marker, *, epoch: int = 0) -> int:
        """A marker; its offset. The broker writes it, maybe under a later epoch than the data's."""
        return self._add(build_marker(producer_id, marker, epoch=epoch), 1, producer_id, True, marker)

    def _add(self, raw: bytes, count: int, producer_id: int, transactional: bool, marker: Marker | None) -> int:
        first = self.end
        self.end += count
        self.batches.append(
            Batch(
                first=first,
                next=self.end,
                producer_id=producer_id,
                transactional=transactional,
                marker=marker,
                raw=patch(raw, base_offset=first, leader_epoch=self.leader_epoch),
            )
        )
        return first

    @property
    def lso(self) -> int:
        """First offset of the oldest transaction that is still open; the log's end without one."""
        open_since: dict[int, int] = {}
        for batch in self.batches:
            if batch.marker is not None:
                open_since.pop(batch.producer_id, None)
            elif batch.transactional:
                open_since.setdefault(batch.producer_id, batch.first)
        return min(open_since.values(), default=self.end)

    def fetch(self, topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        """Answer as a broker: whole batches from the one that holds the offset on, and the aborted list for them."""
        self.fetches += 1
        if not self.log_start <= offset <= self.end:
            raise OffsetNotInLog(f"{topic_partition}: offset {offset} is not in the log (log start {self.log_start})")
        upper = self.lso if read_committed else self.end
        batches = [batch for batch in self.batches if offset < batch.next and batch.first < upper]
        answered = batches[: self.fetch_batches]
        return FetchedLog(
            records=b"".join(batch.raw for batch in answered),
            high_watermark=self.end,
            lso=self.lso if read_committed else -1,
            log_start=self.log_start,
            aborted=tuple(self._aborted(offset, answered)) if read_committed else (),
        )

    def _aborted(self, offset: int, answered: Sequence[Batch]) -> Iterable[tuple[int, int]]:
        """Aborted transactions that overlap the answer, in the order of their markers, as in the transaction index."""
        if not answered:
            return
        open_since: dict[int, int] = {}
        for batch in self.batches:
            if batch.marker is None:
                if batch.transactional:
                    open_since.setdefault(batch.producer_id, batch.first)
                continue
            first = open_since.pop(batch.producer_id, None)
            aborted = batch.marker is Marker.ABORT and first is not None
            if aborted and batch.first >= offset and first < answered[-1].next:
                yield batch.producer_id, first


def build(
    values: Sequence[bytes],
    *,
    producer_id: int,
    epoch: int,
    sequence: int,
    transactional: bool,
    compression: int = 0,
    headers: Sequence[tuple[str, bytes]] = (),
) -> bytes:
    builder = DefaultRecordBatchBuilder(2, compression, transactional, producer_id, epoch, sequence, 1 << 20)
    for number, value in enumerate(values):
        assert builder.append(number, 1_700_000_000_000 + number, b"key", value, list(headers)) is not None
    return bytes(builder.build())


def build_marker(producer_id: int, marker: Marker, *, epoch: int) -> bytes:
    """Source: Kafka protocol guide, control records: version and type in the key, coordinator's epoch in the value."""
    builder = DefaultRecordBatchBuilder(2, 0, True, producer_id, epoch, -1, 1 << 20)
    control_type = {Marker.ABORT: 0, Marker.COMMIT: 1}[marker]
    builder.append(0, 1_700_000_000_000, struct.pack(">hh", 0, control_type), struct.pack(">hi", 0, 0), [])
    raw = bytearray(builder.build())
    (attributes,) = struct.unpack_from(">h", raw, _ATTRIBUTES_AT)
    struct.pack_into(">h", raw, _ATTRIBUTES_AT, attributes | DefaultRecordBatch.CONTROL_MASK)
    return bytes(raw)


def patch(
    raw: bytes,
    *,
    base_offset: int | None = None,
    leader_epoch: int | None = None,
    last_offset_delta: int | None = None,
    record_count: int | None = None,
) -> bytes:
    """The same batch with single header fields changed."""
    changed = bytearray(raw)
    for form, at, value in (
        (">q", 0, base_offset),
        (">i", DefaultRecordBatch.AFTER_LEN_OFFSET, leader_epoch),
        (">i", _LAST_OFFSET_DELTA_AT, last_offset_delta),
        (">i", _RECORD_COUNT_AT, record_count),
    ):
        if value is not None:
            struct.pack_into(form, changed, at, value)
    return bytes(changed)


def value(key: object, payment: object = "pay-1") -> bytes:
    """A payload with these keys and nothing else."""
    return json.dumps({"event_id": key, "payment_id": payment}).encode()


def a_log() -> SyntheticLog:
    """0 plain, 1-2 aborted, 3 marker, 4-5 committed, 6 marker, 7 open, 8 plain behind it."""
    log = SyntheticLog(fetch_batches=2)
    log.append(value("ev-0"), headers=[("session", b"relay-1"), ("source", b"in:0:4")])
    log.append(value("ev-1"), value("ev-2"), producer_id=7, epoch=3, sequence=40, transactional=True)
    log.end_transaction(7, Marker.ABORT)
    log.append(value("ev-1"), value("ev-3"), producer_id=8, transactional=True, compression=1)
    log.end_transaction(8, Marker.COMMIT)
    log.append(value("ev-1"), producer_id=9, transactional=True)
    log.append(value("ev-1"))
    return log
