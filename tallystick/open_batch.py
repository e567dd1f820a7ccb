"""The records of one batch as they lie in the log, whatever stands in their headers.

The library's decoder takes a header's name for UTF-8, as the protocol has it; a broker takes any bytes. Such a batch is
read by hand, and a header whose name is no text is left out. Source: Kafka protocol guide, "Record".
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from aiokafka.codec import gzip_decode, lz4_decode, snappy_decode, zstd_decode
from aiokafka.record.default_records import DefaultRecord, DefaultRecordBatch

from tallystick.batch_header import HEADER_BYTES
from tallystick.census import DecidedBatch

_UNPACK = {0: bytes, 1: gzip_decode, 2: snappy_decode, 3: lz4_decode, 4: zstd_decode}
_ATTRIBUTES_AT = 21
_CODEC, _LOG_APPEND_TIME = 0x07, 0x08
_BASE_TIMESTAMP_AT, _RECORD_COUNT_AT = 27, 57


class PlainRecord(NamedTuple):
    """What is asked of a DefaultRecord."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


Record: TypeAlias = DefaultRecord | PlainRecord


def open_batch(batch: DecidedBatch) -> Sequence[Record]:
    """The records of a data batch."""
    return records_in(library_batch(batch), batch)


def library_batch(batch: DecidedBatch) -> DefaultRecordBatch:
    """The batch for the library, to be walked once."""
    return DefaultRecordBatch(bytes(batch.raw))


def records_in(opened: DefaultRecordBatch, batch: DecidedBatch) -> Sequence[Record]:
    """The same of a batch that was opened before."""
    try:
        return list(opened)
    except UnicodeDecodeError:
        return _by_hand(batch)


def unpacked_records(batch: DecidedBatch) -> bytes:
    """All that stands behind a batch's header, without compression."""
    (attributes,) = struct.unpack_from(">h", batch.raw, _ATTRIBUTES_AT)
    unpacked: bytes = _UNPACK[attributes & _CODEC](bytes(batch.raw[HEADER_BYTES:]))
    return unpacked


def _by_hand(batch: DecidedBatch) -> Sequence[PlainRecord]:
    (attributes,) = struct.unpack_from(">h", batch.raw, _ATTRIBUTES_AT)
    (base_timestamp,) = struct.unpack_from(">q", batch.raw, _BASE_TIMESTAMP_AT)
    (count,) = struct.unpack_from(">i", batch.raw, _RECORD_COUNT_AT)
    bytes_left, records = _Bytes(unpacked_records(batch)), []
    for _ in range(count):
        bytes_left.varint()  # the record's length
        bytes_left.position += 1  # its attributes: none is in use
        timestamp = base_timestamp + bytes_left.varint()
        offset = batch.header.base_offset + bytes_left.varint()
        key, value = bytes_left.sized(), bytes_left.sized()
        headers = [(bytes_left.sized(), bytes_left.sized()) for _ in range(bytes_left.varint())]
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
    return records


class _Bytes:
    """Reads numbers and byte strings, one behind the other. Source: Kafka protocol guide, VARLONG (zig-zag)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.position = data, 0

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.data[self.position]
            self.position += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
            shift += 7

    def sized(self) -> bytes | None:
        size = self.varint()
        if size < 0:
            return None
        self.position += size
        return self.data[self.position - size : self.position]


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True
