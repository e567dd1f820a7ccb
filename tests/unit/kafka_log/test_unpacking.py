"""However little a batch is on the wire, what unpacking it costs is bounded, in each codec."""

import gzip
import random
import time
import tracemalloc
from collections.abc import Callable
from functools import partial

import cramjam
import pytest
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from lz4.frame import BLOCKSIZE_MAX4MB, BLOCKSIZE_MAX64KB
from lz4.frame import compress as lz4_compress

from tallystick.kafka_log import unpacking
from tallystick.kafka_log.unpacking import UNPACKED_TIMES_MAX, UnreadableBatch, bytes_max_of, unpack

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4


def packed_by(encode: Callable[..., object], **options: object) -> Callable[[bytes], bytes]:
    return lambda records: bytes(encode(records, **options))  # type: ignore[call-overload]


PACKED = {
    "gzip": (GZIP, packed_by(gzip_encode)),
    "snappy": (SNAPPY, packed_by(snappy_encode)),
    "snappy in one block": (SNAPPY, packed_by(snappy_encode, xerial_compatible=False)),
    "lz4": (LZ4, packed_by(lz4_encode)),
    "zstd": (ZSTD, packed_by(zstd_encode)),
}
EACH = pytest.mark.parametrize(("codec", "pack"), PACKED.values(), ids=PACKED)
IN_FRAMES = [name for name in PACKED if name != "snappy in one block"]
EVENTS = b"".join(b'{"event_id":"ev-%d","amount_minor":%d}' % (number, number * 37 % 999) for number in range(60_000))
NOISE = random.Random(7).randbytes(100_000)


@EACH
@pytest.mark.parametrize("records", [b"", b"x", EVENTS, NOISE], ids=["nothing", "a byte", "events", "noise"])
def test_what_was_packed_is_unpacked(codec: int, pack: Callable[[bytes], bytes], records: bytes) -> None:
    assert unpack(codec, pack(records)) == records


@pytest.mark.parametrize(("codec", "pack"), [PACKED[name] for name in IN_FRAMES], ids=IN_FRAMES)
def test_streams_that_follow_each_other_are_one_batch(codec: int, pack: Callable[[bytes], bytes]) -> None:
    assert unpack(codec, pack(EVENTS) + pack(NOISE)) == EVENTS + NOISE


@EACH
@pytest.mark.parametrize("too_much", [True, False])
def test_no_more_than_the_bound_is_unpacked(
    codec: int, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch, too_much: bool
) -> None:
    monkeypatch.setattr(unpacking, "UNPACKED_BYTES_MAX", len(EVENTS) - too_much)
    if too_much:
        with pytest.raises(UnreadableBatch, match=rf"unpacks to more than {len(EVENTS) - 1:,}, and no more is read"):
            unpack(codec, pack(EVENTS))
    else:
        assert unpack(codec, pack(EVENTS)) == EVENTS


def test_a_few_bytes_that_become_many_are_given_up_long_before() -> None:
    """256 MiB of NULs; in one stream, and in a thousand that follow each other."""
    piece = zstd_encode(bytes(256 << 10))
    for bomb in (zstd_encode(bytes(256 << 20)), bytes(piece) * 1_000):
        tracemalloc.start()
        with pytest.raises(UnreadableBatch):
            unpack(ZSTD, bytes(bomb))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 4 * bytes_max_of(bytes(bomb)) < 128 << 20


@pytest.mark.parametrize("pieces", range(4))
@pytest.mark.parametrize("packer", ["gzip", "lz4 of 64 KiB", "lz4 of 4 MiB"])
def test_a_stream_is_unpacked_wherever_what_is_taken_in_at_a_time_ends(packer: str, pieces: int) -> None:
    """Of a block that says little, all is taken in before any of it comes out; a stream ends anywhere."""
    records = [bytes(9 << 20), NOISE * 20, EVENTS, bytes(2 << 20)][pieces:]
    packed = b"".join(map(PACKERS[packer], records))
    codec = GZIP if packer == "gzip" else LZ4
    assert unpack(codec, packed) == b"".join(records)
    with pytest.raises(UnreadableBatch, match="not what its codec makes"):
        unpack(codec, packed[:-5])


PACKERS = {
    "gzip": gzip.compress,
    "lz4 of 64 KiB": partial(lz4_compress, block_size=BLOCKSIZE_MAX64KB),
    "lz4 of 4 MiB": partial(lz4_compress, block_size=BLOCKSIZE_MAX4MB),
}


@pytest.mark.parametrize(("codec", "pack"), [PACKED["gzip"], PACKED["lz4"]], ids=["gzip", "lz4"])
def test_empty_streams_behind_a_stream_cost_no_more_than_their_bytes(
    codec: int, pack: Callable[[bytes], bytes]
) -> None:
    """A broker reads no further than the records that it counts. Each copied all behind it: a minute for 4 MiB."""
    empty = pack(b"")
    began = time.process_time()
    assert unpack(codec, pack(EVENTS) + empty * ((4 << 20) // len(empty))) == EVENTS
    assert time.process_time() - began < 10


def test_events_that_are_much_alike_are_far_from_the_bound() -> None:
    packed = bytes(zstd_encode(EVENTS))
    assert len(EVENTS) * 20 < UNPACKED_TIMES_MAX * len(packed)


def test_a_block_that_says_it_is_huge_gets_no_room() -> None:
    """Snappy's block begins with how much it holds."""
    block = b"\xff\xff\xff\xff\x0f" + bytes(cramjam.snappy.compress_raw(b"x"))[1:]
    with pytest.raises(UnreadableBatch, match="unpacks to more"):
        unpack(SNAPPY, block)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD, 5, 7])
@pytest.mark.parametrize(
    "junk", [b"junk, and no stream", b"\x00\x01", NOISE, b"\x82SNAPPY\x00\0\0\0\1\0\0\0\1\x7f\xff\xff\xff"]
)
def test_what_is_no_stream_is_unreadable(codec: int, junk: bytes) -> None:
    with pytest.raises(UnreadableBatch):
        unpack(codec, junk)
