"""What nobody gets to see of a batch is as many records without a value; whatever its writer says of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.faults.swollen_batch import CODECS, packed_batch, record_bytes, varint
from tallystick.kafka_log import open_batch as module
from tallystick.kafka_log.event_decoder import EventDecoder
from tallystick.kafka_log.log_walk import DecidedBatch, batch_at
from tallystick.kafka_log.open_batch import HEADERS_MAX, is_whole, open_batch, readable_records
from tallystick.kafka_log.record import read_record, why_unreadable
from tallystick.kafka_log.search import Wanted, find_records
from tallystick.kafka_log.unpacking import UnreadableBatch
from tests.unit.builders import PART, offsets
from tests.unit.kafka_log.handmade_batches import FIELDS, log_with_a_bomb
from tests.unit.synthetic_log import SyntheticLog

EACH = pytest.mark.parametrize("codec", [0, *CODECS.values()], ids=["none", *CODECS])


def decided(raw: bytes, *, records: int) -> DecidedBatch:
    log = SyntheticLog()
    log.append_raw(raw, records=records)
    return batch_at(log.fetch, PART, 0)


@EACH
def test_a_batch_made_by_hand_is_read_like_any_other(codec: int) -> None:
    records = [record_bytes(place, b"value %d" % place, headers=[(b"name", b"text")]) for place in range(3)]
    batch = decided(packed_batch(codec, records, count=3), records=3)
    assert is_whole(batch)
    found = [(one.offset, one.key, one.value, list(one.headers)) for one in open_batch(batch)]
    assert found == [(place, None, b"value %d" % place, [("name", b"text")]) for place in range(3)]


@EACH
def test_a_header_whose_name_is_no_text_is_left_out_in_any_codec(codec: int) -> None:
    records = [record_bytes(0, b"value", headers=[(b"caf\xe9", b"1"), (b"name", b"2")])]
    (record,) = open_batch(decided(packed_batch(codec, records, count=1), records=1))
    assert (record.value, list(record.headers)) == (b"value", [("name", b"2")])


def test_a_timestamp_runs_over_as_a_long_does_whoever_reads_its_batch() -> None:
    now_ms = 1_795_000_000_000
    base_ms = -(1 << 63)
    for name in (b"name", b"caf\xe9"):  # the library reads the first, and we read the second by hand
        header = varint(1) + varint(len(name)) + name + varint(0)
        body = b"\0" + varint(now_ms - base_ms - (1 << 64)) + varint(0) + varint(-1) + varint(1) + b"v" + header
        raw = packed_batch(0, [varint(len(body)) + body], count=1, timestamp_ms=base_ms)
        (record,) = open_batch(decided(raw, records=1))
        assert (record.value, record.timestamp) == (b"v", now_ms), name


def with_attributes(attributes: int, value: bytes, *, offset: int = 1) -> bytes:
    """A record of it, as `record_bytes` makes one; a broker asks nothing of that byte."""
    plain = record_bytes(offset, value)
    at = 1 + next(place for place, byte in enumerate(plain) if byte < 0x80)
    return plain[:at] + bytes([attributes]) + plain[at + 1 :]


@EACH
@pytest.mark.parametrize("value", [b"real", b"x" * 3_000], ids=["short", "long"])
@pytest.mark.parametrize("attributes", [0, 0x7F, 0x80, 0xFF])
def test_a_records_attributes_are_one_byte_whatever_they_say(codec: int, attributes: int, value: bytes) -> None:
    """The library goes on to read where the next number begins, and so another record than consumers get."""
    records = [record_bytes(0, b"before"), with_attributes(attributes, value)]
    found = open_batch(decided(packed_batch(codec, records, count=2), records=2))
    assert [(one.offset, one.key, one.value) for one in found] == [(0, None, b"before"), (1, None, value)]


@given(
    values=st.lists(
        st.sampled_from([b"real", b"lure", b"x" * 3_000, b"y" * 3_000, b"x" * 9_000]), min_size=1, max_size=6
    ),
    attributes=st.lists(st.sampled_from([0, 0x80]), min_size=6, max_size=6),
)
def test_no_record_takes_on_what_one_that_begins_alike_was_seen_to_be(
    values: list[bytes], attributes: list[int]
) -> None:
    records = [
        with_attributes(of, value, offset=n) for n, (value, of) in enumerate(zip(values, attributes, strict=False))
    ]
    found = open_batch(decided(packed_batch(0, records, count=len(records)), records=len(records)))
    assert [(one.offset, one.key, one.value) for one in found] == [(n, None, value) for n, value in enumerate(values)]


def test_a_record_that_ends_elsewhere_than_it_says_is_none_in_either_reading() -> None:
    for attributes in (0, 0x80):
        record = bytearray(with_attributes(attributes, b"real"))
        record[0] += 2
        batch = decided(packed_batch(0, [record_bytes(0, b"before"), bytes(record), b"\0"], count=2), records=2)
        with pytest.raises(UnreadableBatch, match="does not hold the records"):
            readable_records(batch)


def test_of_a_batch_that_is_too_much_each_offset_has_a_record_without_a_value() -> None:
    batch = batch_at(log_with_a_bomb().fetch, PART, 1)
    assert [(one.offset, one.key, one.value) for one in open_batch(batch)] == [(1, None, None), (2, None, None)]


LIES = {
    "more records than it holds": (packed_batch(0, [record_bytes(0, b"x")], count=3), 3),
    "fewer": (packed_batch(0, [record_bytes(0, b"x"), record_bytes(1, b"y")], count=1), 1),
    "a value that is longer than the batch": (
        packed_batch(0, [varint(20) + b"\0" + varint(0) + varint(0) + varint(-1) + varint(1 << 30)], count=1),
        1,
    ),
    "a key that is longer than any memory": (
        packed_batch(0, [varint(20) + b"\0" + varint(0) + varint(0) + varint((1 << 63) - 1)], count=1),
        1,
    ),
    "a key that is longer than the batch": (
        packed_batch(0, [varint(20) + b"\0" + varint(0) + varint(0) + varint(1 << 30)], count=1),
        1,
    ),
    "more headers than the batch has bytes": (
        packed_batch(
            0, [varint(9) + b"\0" + varint(0) + varint(0) + varint(-1) + varint(-1) + varint(1 << 28)], count=1
        ),
        1,
    ),
}


@pytest.mark.parametrize(("raw", "records"), LIES.values(), ids=LIES)
def test_a_batch_that_says_what_is_not_so_is_unreadable(raw: bytes, records: int) -> None:
    batch = decided(raw, records=records)
    with pytest.raises(UnreadableBatch, match="does not hold the records that its header counts"):
        readable_records(batch)
    assert [one.value for one in open_batch(batch)] == [None] * records


@pytest.mark.parametrize(("bytes_of_it", "readable"), [(10, True), (11, False)])
def test_a_number_that_does_not_end_is_no_record(
    monkeypatch: pytest.MonkeyPatch, bytes_of_it: int, readable: bool
) -> None:
    """Each byte of one costs more than the byte before: of a megabyte, hours."""
    monkeypatch.setattr(module, "WALKED_ABOVE_BYTES", 0)
    monkeypatch.setattr("aiokafka.record.default_records.DefaultRecordBatch", lambda raw: [raw])
    timestamp = b"\x80" * (bytes_of_it - 1) + b"\x00"
    record = b"\0" + timestamp + varint(0) + varint(-1) + varint(-1) + varint(0)
    walked = decided(packed_batch(0, [varint(len(record)) + record], count=1), records=1)
    if readable:
        assert len(readable_records(walked)) == 1
        return
    with pytest.raises(UnreadableBatch, match="does not hold the records that its header counts"):
        readable_records(walked)


@pytest.mark.parametrize(("number", "readable"), [(HEADERS_MAX, True), (HEADERS_MAX + 1, False)])
def test_a_large_batch_with_a_record_of_too_many_headers_is_unreadable(
    monkeypatch: pytest.MonkeyPatch, number: int, readable: bool
) -> None:
    monkeypatch.setattr(module, "WALKED_ABOVE_BYTES", 1_000)
    records = [record_bytes(0, b"first"), record_bytes(1, b"x", headers=[(b"", b"")] * number)]
    (_, record) = open_batch(decided(packed_batch(0, records, count=2), records=2))
    assert record.value == (b"x" if readable else None)


@pytest.mark.parametrize(("most", "readable"), [(3, True), (2, False)])
def test_a_batch_of_too_many_records_is_not_unpacked_and_takes_no_more_room_than_the_most(
    monkeypatch: pytest.MonkeyPatch, most: int, readable: bool
) -> None:
    monkeypatch.setattr(module, "RECORDS_MAX", most)
    records = [record_bytes(place, b"value") for place in range(3)]
    found = [one.value for one in open_batch(decided(packed_batch(0, records, count=3), records=3))]
    assert found == ([b"value"] * 3 if readable else [None] * 2)


def test_a_record_of_it_is_named_with_the_batchs_problem_and_never_with_its_content() -> None:
    problem = why_unreadable(log_with_a_bomb().fetch, PART, 2, EventDecoder(FIELDS))
    assert "bytes unpacks to more than" in problem
    record = read_record(log_with_a_bomb().fetch, PART, 2, FIELDS)
    assert (record.match_key, record.amount_minor) == ("", None)


@pytest.mark.parametrize(
    "more", [frozenset(), frozenset(f"no such {number}" for number in range(9))], ids=["few", "many"]
)
def test_a_look_up_passes_it_over_and_finds_what_stands_behind(more: frozenset[str]) -> None:
    wanted = Wanted(match_keys=frozenset({"ev-1"}) | more)
    found = find_records(log_with_a_bomb().fetch, [offsets(0, 4)], FIELDS, wanted)
    assert [record.kafka_offset for record in found] == [3]
    at_place = find_records(log_with_a_bomb().fetch, [offsets(0, 4)], FIELDS, Wanted(places=frozenset({(PART, 2)})))
    assert [record.kafka_offset for record in at_place] == [2]
