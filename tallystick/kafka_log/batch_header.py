"""Record batch headers, as they lie in the log.

Parses the 61 bytes of the v2 batch header and nothing behind it but a marker's key and value. Source: Kafka protocol
guide, "Record Batch"; KIP-98.
"""

import struct
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

_HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = _HEADER.size
_LENGTH_END = 12
_CONTROL_TYPE = struct.Struct(">hh")
_TIMESTAMP_DELTA_AT = HEADER_BYTES + 2
_CONTROL_KEY_BEHIND_DELTA = 2
_COORDINATOR_EPOCH = struct.Struct(">i")
_COORDINATOR_EPOCH_AT_OF_KEY = 7  # behind its own four bytes, the value's length and version
_MARKER_BYTES_FROM_KEY = _COORDINATOR_EPOCH_AT_OF_KEY + _COORDINATOR_EPOCH.size
_CHECKSUM = struct.Struct(">I")
_CHECKSUM_AT, _ATTRIBUTES_AT = 17, 21
_TRANSACTIONAL, _CONTROL, _DELETE_HORIZON = 0x10, 0x20, 0x40
NO_PRODUCER_ID = -1


class Marker(StrEnum):
    """The end of a producer transaction on one partition."""

    COMMIT = "commit"
    ABORT = "abort"


class BatchHeader(NamedTuple):
    """One batch. last_offset is inclusive, as in the log; marker is set for transaction markers only.

    A tuple, since every batch of a slice becomes one: it is made in a quarter of a dataclass's time.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    is_transactional: bool
    is_control: bool
    max_timestamp_ms: int
    marker: Marker | None

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1


def read_batches(buffer: bytes) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Walk a fetch response: each whole batch with its bytes. A last batch that the response cut short is left out.

    Raises ValueError for a batch that is not of format v2, since older ones have no producer id, and for one without
    room for its header.
    """
    position, view, size_of_buffer = 0, memoryview(buffer), len(buffer)
    unpack, header_size = _HEADER.unpack_from, HEADER_BYTES
    while position + header_size <= size_of_buffer:
        (
            base_offset,
            length,
            leader_epoch,
            magic,
            _checksum,
            attributes,
            last_offset_delta,
            _base_timestamp,
            max_timestamp_ms,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        ) = unpack(buffer, position)
        end = position + _LENGTH_END + length
        if end > size_of_buffer:
            return
        if magic != 2:
            raise ValueError(f"batch at offset {base_offset}: expected record format v2, got v{magic}")
        is_control = attributes & _CONTROL != 0
        raw = view[position:end]
        marker = _marker(raw) if is_control else None
        least = _control_key_at(raw) + _MARKER_BYTES_FROM_KEY if marker else header_size
        if end < position + least:  # the walk might never come forward
            raise ValueError(f"batch at offset {base_offset}: expected a length of its header at least, got {length}")
        yield (
            BatchHeader(
                base_offset,
                base_offset + last_offset_delta,
                leader_epoch,
                producer_id,
                producer_epoch,
                base_sequence,
                record_count,
                attributes & _TRANSACTIONAL != 0,
                is_control,
                max_timestamp_ms,
                marker,
            ),
            raw,
        )
        position = end


def checksum(batch: memoryview) -> int:
    """Return the batch's CRC-32C, which covers all behind it: its records, not its place."""
    (crc32c,) = _CHECKSUM.unpack_from(batch, _CHECKSUM_AT)
    return int(crc32c)


def coordinator_epoch(marker: memoryview) -> int:
    """Return the epoch of the coordinator that ordered a marker. Source: Kafka protocol guide, control records."""
    (epoch,) = _COORDINATOR_EPOCH.unpack_from(marker, _control_key_at(marker) + _COORDINATOR_EPOCH_AT_OF_KEY)
    return int(epoch)


_MARKER_OF_TYPE = {0: Marker.ABORT, 1: Marker.COMMIT}


def _marker(batch: memoryview) -> Marker | None:
    if len(batch) < HEADER_BYTES:
        return None
    key_at = _control_key_at(batch)
    if len(batch) < key_at + _CONTROL_TYPE.size:
        return None
    _version, control_type = _CONTROL_TYPE.unpack_from(batch, key_at)
    return _MARKER_OF_TYPE.get(control_type)


def _control_key_at(batch: memoryview) -> int:
    """Where a marker's key stands: behind its record's length, attributes, both deltas and the length of the key.

    Each takes one byte; only the timestamp's may take more, once the cleaner has written the time of the marker's
    removal in the place of the batch's base timestamp. Source: KIP-534.
    """
    delta_at = _TIMESTAMP_DELTA_AT
    if batch[_ATTRIBUTES_AT + 1] & _DELETE_HORIZON:
        while delta_at + 1 < len(batch) and batch[delta_at] & 0x80:
            delta_at += 1
    return delta_at + 1 + _CONTROL_KEY_BEHIND_DELTA
