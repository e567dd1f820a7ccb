"""Finding records by key in what a log retains, without reading most of it: look-ups only.

Pure but for the fetch it is given. A batch whose bytes hold none of the keys is passed over before it is decoded, which
is what the cost of a look-up is made of.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafka.record.default_records import DefaultRecordBatch

from tallystick.census import DecidedBatch, Outcome, walk_batches
from tallystick.contract import EventFields
from tallystick.log_fetch import Fetch
from tallystick.log_record import LogRecord, records_of
from tallystick.offsets import OffsetRange, TopicPartition

NEEDLES_MAX = 256
"""Above it, looking for each key in each batch costs more than decoding them all."""
_WRITTEN_AS_IT_IS = re.compile(r'[^"/\[\\\]{}]+', re.ASCII)
"""Keys that JSON writes byte by byte, save for \\u escapes; those of other characters have several spellings."""
_ESCAPE = rb"\u"
_CODEC_AT, _CODEC = 22, 0x07
"""The low byte of a batch's attributes; of it the bits that name a compression. Source: Kafka protocol guide."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is looked for: records of one of these keys, or at one of these places."""

    match_keys: frozenset[str] = frozenset()
    transaction_keys: frozenset[str] = frozenset()
    places: frozenset[tuple[TopicPartition, int]] = frozenset()

    def __contains__(self, record: LogRecord) -> bool:
        return (
            record.match_key in self.match_keys
            or record.transaction_key in self.transaction_keys
            or (record.topic_partition, record.kafka_offset) in self.places
        )

    @property
    def needles(self) -> tuple[bytes, ...] | None:
        """The keys' bytes; None where a batch may hold a key that they do not find."""
        keys = self.match_keys | self.transaction_keys
        plain = all(key.isascii() and key.isprintable() and _WRITTEN_AS_IT_IS.fullmatch(key) for key in keys)
        return tuple(sorted(key.encode() for key in keys)) if plain and len(keys) <= NEEDLES_MAX else None


def find_records(
    fetch: Fetch, ranges: Iterable[OffsetRange], fields: EventFields, wanted: Wanted
) -> Iterator[LogRecord]:
    """Every wanted record in the given ranges, whatever its outcome: committed, aborted, plain or open.

    Reads to each range's end, also past the LSO.
    """
    needles = wanted.needles
    for offsets in ranges:
        places = sorted(offset for part, offset in wanted.places if part == offsets.topic_partition)
        for batch in _walk_past_lso(fetch, offsets):
            if batch.outcome is Outcome.MARKER or not _may_hold(batch, needles, places):
                continue
            for record in records_of(batch, offsets.topic_partition, fields):
                inside = offsets.kafka_offset_start <= record.kafka_offset < offsets.kafka_offset_end
                if inside and record in wanted:
                    yield record


def _may_hold(batch: DecidedBatch, needles: tuple[bytes, ...] | None, places: list[int]) -> bool:
    """May a batch hold a wanted record? Only a no is certain."""
    if needles is None or any(batch.header.base_offset <= place <= batch.header.last_offset for place in places):
        return True
    if batch.raw[_CODEC_AT] & _CODEC:
        opened = DefaultRecordBatch(batch.raw)
        opened._maybe_uncompress()
        records = bytes(opened._buffer)
    else:
        records = bytes(batch.raw)
    return _ESCAPE in records or any(needle in records for needle in needles)


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
