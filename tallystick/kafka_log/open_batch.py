"""The records of one batch as they lie in the log, whatever stands in their headers.

The library's decoder takes a header's name for UTF-8, as the protocol has it; a broker takes any bytes. Such a batch is
read by hand, and a header whose name is no text is left out. So is a batch of which a record's attributes have the
highest bit: the library takes that byte for the first one of a longer number, and would read another key and value than
Kafka's clients do. Source: Kafka protocol guide, "Record".

What a batch costs to open is bounded, whatever its writer packed into it: beyond the bounds each of its offsets has a
record without a value, which is unreadable like any other. Source: ADR 27.

The library is loaded with the first batch, since a whole client comes with its decoder. What forks readers loads it
ahead.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, Union

from tallystick.kafka_log.batch_header import HEADER_BYTES, checksum
from tallystick.kafka_log.log_walk import DecidedBatch
from tallystick.kafka_log.unpacking import UnreadableBatch, unpack

if TYPE_CHECKING:
    from aiokafka.record.default_records import DefaultRecord

RECORDS_MAX = 1_000_000
"""Limit for one batch. Each record becomes an object of some 200 bytes, however few bytes it has in the batch."""
HEADERS_MAX = 1_000
"""Limit for one record of a large batch. Each header becomes an object of some 70 bytes, made of two bytes."""
WALKED_ABOVE_BYTES = 4 << 20
"""A larger batch is walked before it is decoded. In a smaller one headers fill 150 MB at most."""
_ATTRIBUTES_AT = 21
"""The checksum covers all bytes from here on."""
_CODEC, _LOG_APPEND_TIME = 0x07, 0x08
_BASE_TIMESTAMP_AT, _RECORD_COUNT_AT = 27, 57
_LENGTH_AND_ATTRIBUTES = 3
"""The bytes that a record of less than 8 KiB begins with, or fewer."""
_VARLONG_BITS = 70
"""Ten bytes of seven: a longer number is none that Kafka writes, and each byte more costs more than the last."""


class PlainRecord(NamedTuple):
    """The part of a DefaultRecord's interface that readers use."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


Record: TypeAlias = Union["DefaultRecord", PlainRecord]


def open_batch(batch: DecidedBatch) -> Sequence[Record]:
    """Return the records of a data batch; where nobody may see them, one without key and value for each.

    For RECORDS_MAX at most: more would cost what the bound saves, so of a batch of more the two readers' counts differ.
    """
    try:
        return readable_records(batch)
    except UnreadableBatch:
        return _unseen_records(batch)


def readable_records(batch: DecidedBatch) -> Sequence[Record]:
    """Return the records of a data batch. Raises UnreadableBatch."""
    from aiokafka.errors import CorruptRecordException
    from aiokafka.record.default_records import DefaultRecordBatch

    raw = plain_batch(batch)
    if len(raw) > WALKED_ABOVE_BYTES:
        _refuse_many_headers(raw, batch.header.record_count)
    if _has_wide_attributes(raw, batch.header.record_count):
        return _by_hand(batch, raw)
    try:
        return list(DefaultRecordBatch(raw))
    except UnicodeDecodeError:
        return _by_hand(batch, raw)
    except (CorruptRecordException, OverflowError):  # a length that no memory has
        raise _no_records() from None


def plain_batch(batch: DecidedBatch) -> bytes:
    """Return the batch as it is without compression; its checksum is of other bytes. Raises UnreadableBatch."""
    if batch.header.record_count > RECORDS_MAX:
        raise UnreadableBatch(
            f"its batch has {batch.header.record_count:,} records, and one of more than {RECORDS_MAX:,} is not read"
        )
    attributes = _attributes_of(batch)
    if not attributes & _CODEC:
        return bytes(batch.raw)
    header = bytearray(batch.raw[:HEADER_BYTES])
    struct.pack_into(">h", header, _ATTRIBUTES_AT, attributes & ~_CODEC)
    return bytes(header) + unpack(attributes & _CODEC, bytes(batch.raw[HEADER_BYTES:]))


def is_compressed(batch: DecidedBatch) -> bool:
    return bool(_attributes_of(batch) & _CODEC)


def is_whole(batch: DecidedBatch) -> bool:
    """Return whether a batch's bytes match its checksum."""
    from aiokafka.record.util import calc_crc32c

    return bool(checksum(batch.raw) == calc_crc32c(bytes(batch.raw[_ATTRIBUTES_AT:])))


def _attributes_of(batch: DecidedBatch) -> int:
    (attributes,) = struct.unpack_from(">h", batch.raw, _ATTRIBUTES_AT)
    return int(attributes)


def _no_records() -> UnreadableBatch:
    return UnreadableBatch("its batch does not hold the records that its header counts")


def _unseen_records(batch: DecidedBatch) -> Sequence[PlainRecord]:
    header = batch.header
    return [
        PlainRecord(offset, header.max_timestamp_ms, None, None, ())
        for offset in range(header.base_offset, header.base_offset + min(header.record_count, RECORDS_MAX))
    ]


def _refuse_many_headers(raw: bytes, count: int) -> None:
    """Refuse records of too many headers. Raises UnreadableBatch. raw: as `plain_batch` has it."""
    for number_of_headers in _numbers_of_headers(raw, count):
        if number_of_headers > HEADERS_MAX:
            raise UnreadableBatch(
                f"a record of its batch has {number_of_headers:,} headers, and more than {HEADERS_MAX:,} are not read"
            )


def _numbers_of_headers(raw: bytes, count: int) -> Iterator[int]:
    bytes_left = _Bytes(raw, HEADER_BYTES)
    try:
        for _ in range(count):
            end = bytes_left.varint() + bytes_left.position
            bytes_left.position += 1
            bytes_left.varint()
            bytes_left.varint()
            bytes_left.skip_sized()
            bytes_left.skip_sized()
            yield bytes_left.varint()
            bytes_left.position = end
    except IndexError:
        raise _no_records() from None


def _has_wide_attributes(raw: bytes, count: int) -> bool:
    """Return whether the library misreads some record's attributes. Visits every record of a log, so it works out once
    what records that begin alike have in common.

    Where the records' lengths lead nowhere, the library says so.
    """
    at, known = HEADER_BYTES, dict[bytes, int]()
    try:
        for _ in range(count):
            head = raw[at : at + _LENGTH_AND_ATTRIBUTES]
            size = known.get(head)
            if size is None:
                attributes_at, size = _length_at(raw, at)
                if raw[attributes_at] > 0x7F:
                    return True
                size += attributes_at - at
                if attributes_at < at + _LENGTH_AND_ATTRIBUTES:
                    known[head] = size
            at += size
    except IndexError:
        pass
    return False


def _length_at(raw: bytes, at: int) -> tuple[int, int]:
    """Return where the number that begins here ends, and its value, which is a length and so not below 0."""
    length = byte = raw[at]
    at, shift = at + 1, 7
    while byte > 0x7F and shift < _VARLONG_BITS:
        byte = raw[at]
        length += byte - 1 << shift
        at, shift = at + 1, shift + 7
    return at, length >> 1


def _by_hand(batch: DecidedBatch, raw: bytes) -> Sequence[PlainRecord]:
    (attributes,) = struct.unpack_from(">h", raw, _ATTRIBUTES_AT)
    (base_timestamp,) = struct.unpack_from(">q", raw, _BASE_TIMESTAMP_AT)
    (count,) = struct.unpack_from(">i", raw, _RECORD_COUNT_AT)
    bytes_left, records = _Bytes(raw, HEADER_BYTES), []
    try:
        for _ in range(count):
            end = bytes_left.varint() + bytes_left.position
            bytes_left.position += 1  # its attributes: none is in use
            timestamp = _in_64_bits(base_timestamp + bytes_left.varint())
            offset = batch.header.base_offset + bytes_left.varint()
            key, value = bytes_left.sized(), bytes_left.sized()
            headers = [(bytes_left.sized(), bytes_left.sized()) for _ in range(bytes_left.varint())]
            if bytes_left.position != end:
                raise _no_records()
            of_log = attributes & _LOG_APPEND_TIME
            records.append(
                PlainRecord(
                    offset=offset,
                    timestamp=batch.header.max_timestamp_ms if of_log else timestamp,
                    key=key,
                    value=value,
                    headers=[(name.decode(), text) for name, text in headers if name is not None and _is_utf8(name)],
                )
            )
    except IndexError:
        raise _no_records() from None
    return records


def _in_64_bits(number: int) -> int:
    """Return a sum as a signed integer of 64 bits holds it, which runs over without a word: Java's long."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


class _Bytes:
    """Reads numbers and byte strings, one behind the other. Source: Kafka protocol guide, VARLONG (zig-zag).

    Raises IndexError where there are no more, or a number does not end.
    """

    def __init__(self, data: bytes, position: int) -> None:
        self.data, self.position = data, position

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.data[self.position]
            self.position += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
            shift += 7
            if shift >= _VARLONG_BITS:
                raise IndexError

    def sized(self) -> bytes | None:
        size = self.skip_sized()
        return None if size < 0 else self.data[self.position - size : self.position]

    def skip_sized(self) -> int:
        """Skip a value and return its length; below 0 there is nothing, not even an empty text."""
        size = self.varint()
        self.position += max(0, size)
        if not 0 <= self.position <= len(self.data):
            raise IndexError
        return size


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
