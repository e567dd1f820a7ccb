"""Single records with their producer's identity: for breaks and look-ups only, so cost grows with breaks, not rows."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import msgspec

from tallystick.contract.event import EventFields
from tallystick.kafka_log.event_decoder import EventDecoder, decoder_of
from tallystick.kafka_log.fetch import Fetch
from tallystick.kafka_log.header_cache import NO_HEADS, KeptHeads
from tallystick.kafka_log.log_walk import DecidedBatch, Outcome, batch_at
from tallystick.kafka_log.open_batch import Record, open_batch, readable_records
from tallystick.kafka_log.transaction_span import TransactionSpan, read_spans
from tallystick.kafka_log.unpacking import UnreadableBatch
from tallystick.model.offsets import TopicPartition, partition_of

SESSION_HEADER = "session"
"""One value per producing process: tells a retry from a second process where there is no producer id."""
SOURCE_HEADER = "source"
"""The place that this output's input came from: shows that an input was processed again."""
ACTION_HEADER = "tallystick-action-id"
"""The compensation of ours that published the event."""
REVERSES_HEADER = "tallystick-reverses"
"""Item id (topic, partition, offset) of the copy that this event of ours takes back."""
HEADER_LENGTH = 200
"""Limit in characters. Headers of a longer name or value, and values that are no text, are not kept."""
HEADERS_KEPT = 100
"""Limit for one record; further headers are not kept. Ours and the contract's are four."""
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """One record as it lies in the log, without its payload. producer_id -1: written without idempotence.

    value_digest: equal where message key and value are, byte by byte. amount_minor None, currency "": not readable.
    headers: short text ones only. reverses: item id of the copy it takes back, "" for any other event.
    span: None unless it was looked for.
    """

    topic_partition: TopicPartition
    kafka_offset: int
    outcome: Outcome
    producer_id: int
    producer_epoch: int
    sequence: int
    is_transactional: bool
    timestamp_ms: int
    match_key: str
    transaction_key: str
    session: str | None
    source: str | None
    leg: str = ""
    amount_minor: int | None = None
    currency: str = ""
    value_digest: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    reverses: str = ""
    span: TransactionSpan | None = None

    @property
    def item_id(self) -> str:
        """Return the item id, as tallystick.matching.scan_result.topic_item_id writes it."""
        return f"topic:{self.topic_partition.topic}:{self.topic_partition.partition}:{self.kafka_offset}"

    @property
    def action_id(self) -> str:
        """The compensation that published it; "" for any other event."""
        return self.headers.get(ACTION_HEADER, "")

    def header(self, name: str) -> str | None:
        """A header's text; None if it has none, or one too long to be kept."""
        return self.headers.get(name)

    def as_json(self) -> dict[str, Any]:
        """Return who wrote the record, and in which producer transaction. No payload."""
        return {
            "at": self.item_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "sequence": self.sequence,
            "transactional": self.is_transactional,
            "outcome": str(self.outcome),
            "timestamp_ms": self.timestamp_ms,
            "session": self.session,
            "source": self.source,
            "span": self.span.as_json() if self.span else None,
        }


_PACK = msgspec.msgpack.Encoder()
_UNPACK: msgspec.msgpack.Decoder[tuple[Any, ...]] = msgspec.msgpack.Decoder(tuple)
_CLAIMS_A_REPAIR, _CLAIMS_NONE = b"\1", b"\0"


def packed(record: LogRecord) -> bytes:
    """Pack the record without its span, for another process or for as long as nobody reads it: a quarter of its size.

    The first byte says whether it claims to be a repair of ours.
    """
    values = (
        record.topic_partition.topic,
        record.topic_partition.partition,
        record.kafka_offset,
        record.outcome,
        record.producer_id,
        record.producer_epoch,
        record.sequence,
        record.is_transactional,
        record.timestamp_ms,
        record.match_key,
        record.transaction_key,
        record.session,
        record.source,
        record.leg,
        record.amount_minor,
        record.currency,
        record.value_digest,
        dict(record.headers),
        record.reverses,
    )
    claims = _CLAIMS_A_REPAIR if record.action_id or record.reverses else _CLAIMS_NONE
    return claims + _PACK.encode(values)


def unpacked(record: bytes, span: TransactionSpan | None = None) -> LogRecord:
    """Return the record that `packed` was given, with this span."""
    values = _UNPACK.decode(memoryview(record)[1:])
    return LogRecord(
        topic_partition=partition_of(values[0], values[1]),
        kafka_offset=values[2],
        outcome=Outcome(values[3]),
        producer_id=values[4],
        producer_epoch=values[5],
        sequence=values[6],
        is_transactional=values[7],
        timestamp_ms=values[8],
        match_key=values[9],
        transaction_key=values[10],
        session=values[11],
        source=values[12],
        leg=values[13],
        amount_minor=values[14],
        currency=values[15],
        value_digest=values[16],
        headers=values[17],
        reverses=values[18],
        span=span,
    )


class PackedRecords(Mapping[str, LogRecord]):
    """Records by item id, each unpacked anew when it is asked for: those of a broken window are read once, one by one.

    A record is given as `packed` made it, with its span.
    """

    def __init__(self, records: Mapping[str, tuple[bytes, TransactionSpan | None]]) -> None:
        self._records = records

    def __getitem__(self, item_id: str) -> LogRecord:
        return unpacked(*self._records[item_id])

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._records

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def packed(self, item_id: str) -> bytes:
        """Return one as it is kept."""
        return self._records[item_id][0]

    def claiming_a_repair(self) -> dict[str, LogRecord]:
        """Return those that claim to be a repair of ours: of an ordinary window none is unpacked."""
        claims = _CLAIMS_A_REPAIR[0]
        return {item_id: self[item_id] for item_id, (record, _) in self._records.items() if record[0] == claims}


def claiming_a_repair(records: Mapping[str, LogRecord]) -> Mapping[str, LogRecord]:
    """Return the records that claim to be a repair of ours, or to take back another event."""
    if isinstance(records, PackedRecords):
        return records.claiming_a_repair()
    return {item_id: record for item_id, record in records.items() if record.action_id or record.reverses}


def records_of(
    batch: DecidedBatch,
    topic_partition: TopicPartition,
    fields: EventFields,
    wanted: Callable[[int], bool] = lambda offset: True,
) -> Iterator[LogRecord]:
    """Decode the records of a data batch at the wanted offsets. What is not sound in one is empty."""
    for record in open_batch(batch):
        if wanted(record.offset):
            yield record_of(record, batch, topic_partition, fields)


def record_of(record: Record, batch: DecidedBatch, topic_partition: TopicPartition, fields: EventFields) -> LogRecord:
    """Decode one record of a data batch. Unsound fields are empty."""
    header = batch.header
    event = decoder_of(fields).read_record(record)
    headers = _short_texts(record.headers)
    return LogRecord(
        topic_partition=topic_partition,
        kafka_offset=record.offset,
        outcome=batch.outcome,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        sequence=header.base_sequence + record.offset - header.base_offset if header.base_sequence >= 0 else -1,
        is_transactional=header.is_transactional,
        timestamp_ms=record.timestamp,
        match_key=event.match_key or "",
        transaction_key=event.transaction_key or "",
        session=headers.get(SESSION_HEADER),
        source=headers.get(SOURCE_HEADER),
        leg=event.leg or "",
        amount_minor=event.amount_minor,
        currency=event.currency or "",
        value_digest=_digest(record.key, record.value),
        headers=headers,
        reverses=headers.get(REVERSES_HEADER, ""),
    )


def read_record(fetch: Fetch, topic_partition: TopicPartition, offset: int, fields: EventFields) -> LogRecord:
    """Read the one record at an offset below the LSO. Raises tallystick.kafka_log.fetch.OffsetNotInLog, LookupError."""
    batch = batch_at(fetch, topic_partition, offset)
    for record in records_of(batch, topic_partition, fields):
        if record.kafka_offset == offset:
            return record
    raise LookupError(f"{topic_partition}: no record at offset {offset}")


def read_records(
    fetch: Fetch,
    topic_partition: TopicPartition,
    offsets: Iterable[int],
    fields: EventFields,
    decoded: Mapping[int, LogRecord] = MappingProxyType({}),
    heads: KeptHeads = NO_HEADS,
) -> Iterator[LogRecord]:
    """Read the records at many offsets, with their spans. Leave out those that the log does not hold.

    decoded: those that were decoded before, by offset; of these only the spans are read. heads: where they are kept, a
    batch is fetched only if it has one of the others.
    """
    for found, span in read_with_spans(fetch, topic_partition, offsets, fields, decoded, heads):
        record = decoded[found] if isinstance(found, int) else found
        yield replace(record, topic_partition=topic_partition, span=span) if span else record


def read_with_spans(
    fetch: Fetch,
    topic_partition: TopicPartition,
    offsets: Iterable[int],
    fields: EventFields,
    known: Container[int],
    heads: KeptHeads,
) -> Iterator[tuple[LogRecord | int, TransactionSpan | None]]:
    """Read as `read_records` does. known: offsets of records that the caller has; each comes as its offset."""
    found: list[LogRecord | int] = []

    def meet(batch: DecidedBatch, inside: Sequence[int]) -> None:
        found.extend([offset for offset in inside if offset in known])
        if asked := {offset for offset in inside if offset not in known}:
            whole = heads.whole(topic_partition, batch)
            records = [record for record in open_batch(whole) if record.offset in asked]
            found.extend([record_of(record, whole, topic_partition, fields) for record in records])

    spans = read_spans(heads.over(fetch), topic_partition, offsets, meet)
    for one in found:
        yield one, spans.get(one if isinstance(one, int) else one.kafka_offset)


def why_unreadable(fetch: Fetch, topic_partition: TopicPartition, offset: int, decoder: EventDecoder) -> str:
    """Say what is wrong with one record, as `EventReading.problem` does. Raises fetch.OffsetNotInLog."""
    batch = batch_at(fetch, topic_partition, offset)
    try:
        records = readable_records(batch)
    except UnreadableBatch as error:
        return str(error)
    return next((decoder.read_record(one).problem for one in records if one.offset == offset), "")


def _digest(key: bytes | None, value: bytes | None) -> str:
    """Return half a SHA-256; the end of the key is part of it."""
    return sha256(b"%d:%b%b" % (len(key or b""), key or b"", value or b"")).hexdigest()[:32]


def _short_texts(headers: Iterable[tuple[str, bytes | None]]) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for name, value in headers or ():
        text = header_text(value)
        if text is None or len(name) > HEADER_LENGTH:
            texts.pop(name, None)
        elif name in texts or len(texts) < HEADERS_KEPT:
            texts[name] = text
    return MappingProxyType(texts) if texts else _NO_HEADERS


def header_text(value: bytes | None) -> str | None:
    """A header's text; None where it is no UTF-8, holds a NUL, or is longer than HEADER_LENGTH."""
    if value is None or len(value) > 4 * HEADER_LENGTH or b"\0" in value:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return text if len(text) <= HEADER_LENGTH else None
