"""Batches that are small on the wire and huge when they are unpacked, and records that no client library writes.

A broker validates what it is sent as a stream, so that it takes them all. Source: Kafka protocol guide, "Record Batch".
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import cramjam
import zstandard
from kafka.admin import KafkaAdminClient
from kafka.protocol.producer import ProduceRequest
from kafka.record.util import calc_crc32c, encode_varint
from lz4.frame import LZ4FrameCompressor

from lab.services.raw_producer import leader_of, raise_for

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
CODECS = {"gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
_PIECE = bytes(4 << 20)
_XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_BEHIND_CHECKSUM = struct.Struct(">hiqqqhii")
_BEFORE_CHECKSUM = struct.Struct(">qiib")
_NOW_MS = 1_790_000_000_000


def swollen_batch(codec: int, *values_bytes: int, timestamp_ms: int = _NOW_MS) -> bytes:
    """A batch whose records have no key, and so many NULs as values."""
    return packed_batch(codec, _swollen_records(values_bytes), count=len(values_bytes), timestamp_ms=timestamp_ms)


def packed_batch(codec: int, records: Iterable[bytes], *, count: int, timestamp_ms: int = _NOW_MS) -> bytes:
    """A batch of records, given in pieces of any size."""
    body = b"".join(_PACKERS[codec](records))
    covered = _BEHIND_CHECKSUM.pack(codec, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count) + body
    length = len(covered) + 9
    return _BEFORE_CHECKSUM.pack(0, length, -1, 2) + struct.pack(">I", calc_crc32c(covered)) + covered


def record_bytes(offset: int, value: bytes, *, headers: Iterable[tuple[bytes, bytes]] = ()) -> bytes:
    """One record without a key."""
    told = [varint(len(name)) + name + varint(len(text)) + text for name, text in headers]
    body = b"\x00" + varint(0) + varint(offset) + varint(-1) + varint(len(value)) + value + varint(len(told))
    body += b"".join(told)
    return varint(len(body)) + body


def varint(number: int) -> bytes:
    """As a record has its numbers: zig-zag."""
    written = bytearray()
    encode_varint(number, written.append)
    return bytes(written)


def produce_batch(
    admin: KafkaAdminClient, topic: str, partition: int, batch: bytes, *, timeout_ms: int = 60_000
) -> int:
    """Send a batch as it is; give its first offset. Raises kafka.errors.KafkaError."""
    topic_data = ProduceRequest.TopicProduceData
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=timeout_ms,
        topic_data=[
            topic_data(name=topic, partition_data=[topic_data.PartitionProduceData(index=partition, records=batch)])
        ],
        max_version=11,
    )

    async def send(node: int) -> Any:
        return await admin._manager.send(request, node_id=node)

    answer = admin._manager.run(send, leader_of(admin, topic, partition))
    (produced,) = answer.responses[0].partition_responses
    raise_for(produced.error_code, f"Produce to {topic}[{partition}]")
    return int(produced.base_offset)


def _swollen_records(values_bytes: Iterable[int]) -> Iterator[bytes]:
    for offset, size in enumerate(values_bytes):
        before = b"\x00" + varint(0) + varint(offset) + varint(-1) + varint(size)
        yield varint(len(before) + size + 1) + before
        yield from (_PIECE for _ in range(size // len(_PIECE)))
        yield bytes(size % len(_PIECE)) + varint(0)


def _gzip(records: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(9, wbits=31)
    yield from map(packer.compress, records)
    yield packer.flush()


def _snappy(records: Iterable[bytes]) -> Iterator[bytes]:
    yield _XERIAL
    for piece in records:
        block = bytes(cramjam.snappy.compress_raw(piece))
        yield struct.pack(">i", len(block)) + block


def _lz4(records: Iterable[bytes]) -> Iterator[bytes]:
    packer = LZ4FrameCompressor(block_linked=False, block_size=7)
    yield packer.begin()
    yield from map(packer.compress, records)
    yield packer.flush()


def _zstd(records: Iterable[bytes]) -> Iterator[bytes]:
    packer = zstandard.ZstdCompressor().compressobj()
    yield from map(packer.compress, records)
    yield packer.flush()


_PACKERS: dict[int, Callable[[Iterable[bytes]], Iterable[bytes]]] = {
    0: iter,
    GZIP: _gzip,
    SNAPPY: _snappy,
    LZ4: _lz4,
    ZSTD: _zstd,
}
