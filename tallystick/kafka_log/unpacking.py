"""The records of one compressed batch, unpacked as far as a bound and no further.

A broker bounds what a batch takes on the wire (`max.message.bytes`), not what comes out of it: one megabyte of zstd may
hold thirty gigabytes. Each codec's own library unpacks piece by piece, so that what is beyond the bound never exists.
Source: Kafka protocol guide, "Record Batch"; why this bound: ADR 27.
"""

import struct
import zlib
from collections.abc import Callable, Iterator

import cramjam
import zstandard
from lz4.frame import LZ4FrameDecompressor

UNPACKED_BYTES_MAX = 64 << 20
"""Limit for one batch: sixty-four times the largest batch that a broker takes on the wire by default."""
UNPACKED_TIMES_MAX = 1_000
"""More than so many times its bytes on the wire no batch of events becomes, since each says something of its own: what
a writer's byte costs its readers is bounded too."""
_NEVER_TOO_MUCH_BYTES = 64 << 10
_PIECE_BYTES = 1 << 20
_FED_BYTES = 16 << 10
"""Bytes fed at a time: all behind a stream's end is copied, and a batch may be tens of thousands of empty streams."""
_GZIP_WINDOW = 31
"""zlib's way to say: with gzip's header, and the largest window."""
_XERIAL_MAGIC, _XERIAL_HEADER_BYTES = b"\x82SNAPPY\x00", 16
_BLOCK_LENGTH = struct.Struct(">i")
_CODEC_ERRORS = (zlib.error, zstandard.ZstdError, cramjam.DecompressionError, RuntimeError, EOFError, struct.error)
"""RuntimeError: lz4 raises nothing more special."""


class UnreadableBatch(ValueError):
    """A batch whose records nobody gets to see. The message is a clause about it, without what it holds."""


def unpack(codec: int, packed: bytes) -> bytes:
    """Return the unpacked bytes. codec: of the batch's attributes, not 0.

    Raises UnreadableBatch where it is more than `bytes_max_of` it, or no stream of that codec.
    """
    pieces_of = _PIECES.get(codec)
    if pieces_of is None:
        raise UnreadableBatch(f"its batch is packed by codec {codec}, which Kafka does not have")
    pieces, size, bytes_max = [], 0, bytes_max_of(packed)
    try:
        for piece in pieces_of(packed):
            size += len(piece)
            if size > bytes_max:
                raise _too_much(packed)
            pieces.append(piece)
    except _CODEC_ERRORS:
        raise UnreadableBatch("its batch is not what its codec makes, so that it cannot be unpacked") from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def bytes_max_of(packed: bytes) -> int:
    """Return the most bytes that are read of a packed batch when it is unpacked."""
    return min(UNPACKED_BYTES_MAX, _NEVER_TOO_MUCH_BYTES + UNPACKED_TIMES_MAX * len(packed))


def _too_much(packed: bytes) -> UnreadableBatch:
    return UnreadableBatch(
        f"its batch of {len(packed):,} bytes unpacks to more than {bytes_max_of(packed):,}, and no more is read"
    )


def _gzip_pieces(packed: bytes) -> Iterator[bytes]:
    """Yield the pieces of each member, one behind the other. Source: RFC 1952, 2.2."""
    position = 0
    while position < len(packed):
        member = zlib.decompressobj(_GZIP_WINDOW)
        while not member.eof:
            fed = packed[position : position + _FED_BYTES]
            piece = member.decompress(fed, _PIECE_BYTES)
            if not piece and not fed and not member.eof:
                raise EOFError
            left = member.unused_data if member.eof else member.unconsumed_tail
            position += len(fed) - len(left)
            yield piece


def _lz4_pieces(packed: bytes) -> Iterator[bytes]:
    """Yield the pieces of each frame, one behind the other."""
    position = 0
    while position < len(packed):
        frame = LZ4FrameDecompressor()
        while not frame.eof:
            fed = packed[position : position + _FED_BYTES] if frame.needs_input else b""
            position += len(fed)
            piece = frame.decompress(fed, _PIECE_BYTES)
            if not piece and frame.needs_input and position >= len(packed) and not frame.eof:
                raise EOFError
            yield piece
        position -= len(frame.unused_data or b"")


def _zstd_pieces(packed: bytes) -> Iterator[bytes]:
    """Yield the pieces of all frames together."""
    with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as stream:
        while piece := stream.read(_PIECE_BYTES):
            yield piece


def _snappy_pieces(packed: bytes) -> Iterator[bytes]:
    """Yield one block, or the blocks of xerial's stream. A block states its unpacked size first."""
    for block in _xerial_blocks(packed) if packed.startswith(_XERIAL_MAGIC) else (packed,):
        if cramjam.snappy.decompress_raw_len(block) > bytes_max_of(packed):
            raise _too_much(packed)
        yield bytes(cramjam.snappy.decompress_raw(block))


def _xerial_blocks(packed: bytes) -> Iterator[bytes]:
    """Source: SnappyOutputStream of snappy-java, whose streams may follow each other."""
    position = 0
    while position < len(packed):
        if packed.startswith(_XERIAL_MAGIC, position):
            position += _XERIAL_HEADER_BYTES
            continue
        (size,) = _BLOCK_LENGTH.unpack_from(packed, position)
        position += _BLOCK_LENGTH.size
        if not 0 <= size <= len(packed) - position:
            raise EOFError
        yield packed[position : position + size]
        position += size


_PIECES: dict[int, Callable[[bytes], Iterator[bytes]]] = {
    1: _gzip_pieces,
    2: _snappy_pieces,
    3: _lz4_pieces,
    4: _zstd_pieces,
}
