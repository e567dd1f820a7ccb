"""Record batch headers, as they lie in the log.

Parses the 61 bytes of the v2 batch header and nothing behind it but a marker's type. Source: Kafka protocol guide,
"Record Batch"; KIP-98.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH_END = 12
_CONTROL_TYPE = struct.Struct(">hh")
_CONTROL_KEY_AT = 66
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
NO_PRODUCER_ID = -1


class Marker(StrEnum):
    """How a producer transaction ended on this partition."""

    COMMIT = "commit"
    ABORT = "abort"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchHeader:
    """One batch. last_offset is inclusive, as in the log; marker is set for transaction markers only."""

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

    Raises ValueError for a batch that is not of format v2: older ones have no producer id.
    """
    position, view = 0, memoryview(buffer)
    while position + _HEADER.size <= len(buffer):
        fields = _HEADER.unpack_from(buffer, position)
        size = _LENGTH_END + fields[1]
        if position + size > len(buffer):
            return
        if fields[3] != 2:
            raise ValueError(f"batch at offset {fields[0]}: expected record format v2, got v{fields[3]}")
        yield _header(fields, buffer, position), view[position : position + size]
        position += size


def _header(fields: tuple[int, ...], buffer: bytes, position: int) -> BatchHeader:
    attributes = fields[5]
    is_control = bool(attributes & _CONTROL)
    return BatchHeader(
        base_offset=fields[0],
        last_offset=fields[0] + fields[6],
        leader_epoch=fields[2],
        producer_id=fields[9],
        producer_epoch=fields[10],
        base_sequence=fields[11],
        record_count=fields[12],
        is_transactional=bool(attributes & _TRANSACTIONAL),
        is_control=is_control,
        max_timestamp_ms=fields[8],
        marker=_marker(buffer, position) if is_control else None,
    )


def _marker(buffer: bytes, position: int) -> Marker | None:
    _version, control_type = _CONTROL_TYPE.unpack_from(buffer, position + _CONTROL_KEY_AT)
    return {0: Marker.ABORT, 1: Marker.COMMIT}.get(control_type)
