"""Batch headers are read as they lie in the log."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from tallystick.kafka_log.batch_header import NO_PRODUCER_ID, Marker, coordinator_epoch, read_batches
from tests.unit.builders import LAW
from tests.unit.synthetic_log import SyntheticLog, build, build_marker, patch


def headers(raw: bytes) -> list[object]:
    return [header for header, _ in read_batches(raw)]


def test_every_field_of_a_transactional_batch_is_read() -> None:
    raw = patch(
        build([b"a", b"b", b"c"], producer_id=4001, epoch=3, sequence=17, transactional=True),
        base_offset=100,
        leader_epoch=5,
    )
    (header,) = headers(raw)
    assert (header.base_offset, header.last_offset, header.next_offset) == (100, 102, 103)
    assert (header.leader_epoch, header.record_count) == (5, 3)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4001, 3, 17)
    assert (header.is_transactional, header.is_control, header.marker) == (True, False, None)
    assert header.max_timestamp_ms == 1_700_000_000_002


def test_a_batch_without_idempotence_has_no_producer_id() -> None:
    (header,) = headers(build([b"a"], producer_id=-1, epoch=-1, sequence=-1, transactional=False))
    assert header.producer_id == NO_PRODUCER_ID
    assert not header.is_transactional


@pytest.mark.parametrize("marker", Marker)
def test_a_marker_says_how_the_transaction_ended(marker: Marker) -> None:
    (header,) = headers(build_marker(4001, marker, epoch=4))
    assert (header.is_control, header.is_transactional, header.marker, header.producer_epoch) == (True, True, marker, 4)


CLEANED_ABORT = bytes.fromhex(
    "0000000000000065000000450000000002aa21ca1a007000000000000001a213512ac1000001a20e2acbc000000000000000010000ffffffff"
    "00000001260081fcb2520008000000000c00000000000000"
)
"""A broker's own bytes: an ABORT at 101 after the cleaner of Kafka 3.1.0 has set the time of its removal (KIP-534)."""


def cleaned(marker: Marker, timestamp_delta: bytes, *, epoch: int = 0) -> bytes:
    """The same for any time until removal, written as long as it is."""
    raw = bytearray(build_marker(4001, marker, epoch=0))
    raw[22] |= 0x40
    raw[63:64] = timestamp_delta
    raw[-5:-1] = struct.pack(">i", epoch)
    struct.pack_into(">i", raw, 8, len(raw) - 12)
    return bytes(raw)


def test_a_marker_is_read_after_the_cleaner_has_set_the_time_of_its_removal() -> None:
    ((header, raw),) = read_batches(CLEANED_ABORT)
    assert (header.base_offset, header.marker, header.producer_id) == (101, Marker.ABORT, 1)
    assert coordinator_epoch(raw) == 0


@pytest.mark.parametrize("marker", Marker)
@pytest.mark.parametrize("length", range(1, 11))
def test_however_long_its_removal_is_away_a_marker_says_how_the_transaction_ended(marker: Marker, length: int) -> None:
    ((header, raw),) = read_batches(cleaned(marker, b"\xff" * (length - 1) + b"\x01", epoch=12))
    assert (header.marker, coordinator_epoch(raw)) == (marker, 12)


def test_a_cleaned_marker_without_an_end_is_none_and_one_that_ends_too_early_is_refused() -> None:
    endless = bytearray(CLEANED_ABORT)
    endless[63:] = b"\xff" * len(endless[63:])
    assert [header.marker for header in (one for one, _ in read_batches(bytes(endless)))] == [None]
    short = bytearray(CLEANED_ABORT)
    struct.pack_into(">i", short, 8, 76 - 12)
    with pytest.raises(ValueError, match="got 64"):
        headers(bytes(short))


def test_a_control_record_of_another_kind_is_no_marker() -> None:
    raw = bytearray(build_marker(4001, Marker.COMMIT, epoch=0))
    raw[66:70] = b"\x00\x00\x00\x05"
    (header,) = headers(bytes(raw))
    assert (header.is_control, header.marker) == (True, None)


@pytest.mark.parametrize("codec", [DefaultRecordBatch.CODEC_GZIP, DefaultRecordBatch.CODEC_LZ4])
def test_a_compressed_batch_is_counted_by_its_header(codec: int) -> None:
    raw = build([b"x" * 100] * 50, producer_id=1, epoch=0, sequence=0, transactional=True, compression=codec)
    assert len(raw) < 1_000
    assert [header.record_count for header in headers(raw)] == [50]


@pytest.mark.parametrize("length", [-(2**31), -12, 0, 48])
def test_a_length_without_room_for_a_header_is_refused_and_the_walk_ends(length: int) -> None:
    raw = bytearray(build([b"a"], producer_id=1, epoch=0, sequence=0, transactional=False))
    struct.pack_into(">i", raw, 8, length)
    with pytest.raises(ValueError, match=f"expected a length of its header at least, got {length}"):
        headers(bytes(raw))


def test_a_marker_that_ends_before_its_coordinators_epoch_is_refused_and_another_control_record_is_not() -> None:
    raw = bytearray(build_marker(4001, Marker.COMMIT, epoch=0))
    struct.pack_into(">i", raw, 8, 76 - 12)
    with pytest.raises(ValueError, match="got 64"):
        headers(bytes(raw))
    raw[66:70] = b"\x00\x00\x00\x05"
    (other,) = headers(bytes(raw[:76]))
    assert (other.is_control, other.marker) == (True, None)


def test_the_least_batch_has_a_header_and_no_records() -> None:
    raw = bytearray(build([b"a"], producer_id=1, epoch=0, sequence=0, transactional=False)[:61])
    struct.pack_into(">i", raw, 8, 49)
    assert len(headers(bytes(raw))) == 1


@LAW
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(0, 400))
def test_an_answer_that_was_cut_short_gives_its_whole_batches_only(sizes: list[int], missing: int) -> None:
    log = SyntheticLog()
    for size in sizes:
        log.append(*[b"value"] * size)
    raws = [batch.raw for batch in log.batches]
    whole = b"".join(raws)
    given_bytes = whole[: max(0, len(whole) - missing)]
    fitting = [raw for number, raw in enumerate(raws) if sum(map(len, raws[: number + 1])) <= len(given_bytes)]
    assert [bytes(raw) for _, raw in read_batches(given_bytes)] == fitting


def test_an_older_record_format_is_refused_by_its_offset() -> None:
    raw = bytearray(patch(build([b"a"], producer_id=-1, epoch=-1, sequence=-1, transactional=False), base_offset=42))
    raw[16] = 1
    with pytest.raises(ValueError, match="batch at offset 42: expected record format v2, got v1"):
        list(read_batches(bytes(raw)))


def test_nothing_has_no_batches() -> None:
    assert headers(b"") == []
