"""Single records with their producer's identity: for breaks and look-ups only, so cost grows with breaks, not rows."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kafka.record.default_records import DefaultRecordBatch

from tallystick.census import DecidedBatch, Outcome, batch_at, walk_batches
from tallystick.contract import EventFields
from tallystick.log_fetch import Fetch
from tallystick.offsets import OffsetRange, TopicPartition

SESSION_HEADER = "session"
"""One value per producing process: tells a retry from a second process where there is no producer id."""
SOURCE_HEADER = "source"
"""Where the input of this output came from: tells a reprocessed input."""


@dataclass(frozen=True, kw_only=True)
class LogRecord:
    """One record as it lies in the log. producer_id -1: written without idempotence."""

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


def records_of(batch: DecidedBatch, topic_partition: TopicPartition, fields: EventFields) -> Iterator[LogRecord]:
    """Decode a data batch. A value that is no JSON object has empty keys."""
    header = batch.header
    for position, record in enumerate(DefaultRecordBatch(bytes(batch.raw))):
        headers = dict(record.headers or ())
        document = _document(record.value)
        yield LogRecord(
            topic_partition=topic_partition,
            kafka_offset=record.offset,
            outcome=batch.outcome,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            sequence=header.base_sequence + position if header.base_sequence >= 0 else -1,
            is_transactional=header.is_transactional,
            timestamp_ms=record.timestamp,
            match_key=_key(document.get(fields.match_key)),
            transaction_key=_key(document.get(fields.transaction_key)),
            session=_text(headers.get(SESSION_HEADER)),
            source=_text(headers.get(SOURCE_HEADER)),
        )


def read_record(fetch: Fetch, topic_partition: TopicPartition, offset: int, fields: EventFields) -> LogRecord:
    """The one record at an offset below the LSO. Raises tallystick.log_fetch.OffsetNotInLog, LookupError."""
    batch = batch_at(fetch, topic_partition, offset)
    for record in records_of(batch, topic_partition, fields):
        if record.kafka_offset == offset:
            return record
    raise LookupError(f"{topic_partition}: no record at offset {offset}")


def find_records(
    fetch: Fetch, ranges: Iterable[OffsetRange], fields: EventFields, wanted: Callable[[LogRecord], bool]
) -> Iterator[LogRecord]:
    """Every wanted record in the given ranges, whatever its outcome: committed, aborted, plain or open.

    Reads to each range's end, also past the LSO.
    """
    for offsets in ranges:
        for batch in _walk_past_lso(fetch, offsets):
            if batch.outcome is Outcome.MARKER:
                continue
            for record in records_of(batch, offsets.topic_partition, fields):
                inside = offsets.kafka_offset_start <= record.kafka_offset < offsets.kafka_offset_end
                if inside and wanted(record):
                    yield record


def _walk_past_lso(fetch: Fetch, offsets: OffsetRange) -> Iterator[DecidedBatch]:
    """Below the LSO with the aborted list, at and above it without."""
    if not len(offsets):
        return
    lso = fetch(offsets.topic_partition, offsets.kafka_offset_start, True).lso
    middle = min(max(lso, offsets.kafka_offset_start), offsets.kafka_offset_end)
    for start, end, read_committed in (
        (offsets.kafka_offset_start, middle, True),
        (middle, offsets.kafka_offset_end, False),
    ):
        part = OffsetRange(
            topic=offsets.topic, partition=offsets.partition, kafka_offset_start=start, kafka_offset_end=end
        )
        yield from walk_batches(fetch, part, read_committed=read_committed)


def _document(value: bytes | None) -> dict[str, object]:
    try:
        document = json.loads(value or b"null")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _key(value: object) -> str:
    """A key as the scan reads it: text as it is, anything else as JSON; none is empty."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")
