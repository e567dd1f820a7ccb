"""What somebody with WRITE on a topic controls: batches, events, headers, and records of a progress topic."""

import json
import struct
from collections.abc import Iterator
from typing import Any

from aiokafka.record.util import calc_crc32c

from tallystick.compensation.plan import Plan
from tallystick.compensation.progress_record import (
    ExecutorKey,
    action_of_key,
    judge_progress,
    progress_record,
    read_record,
    sealed_plans,
    topics_of,
)
from tallystick.contract.compare import CompareRule, compared_columns
from tallystick.contract.equality import TEXT_LENGTH_MAX
from tallystick.contract.event import EventFields
from tallystick.contract.field_path import document_of
from tallystick.kafka_log import open_batch
from tallystick.kafka_log.batch_header import HEADER_BYTES, coordinator_epoch, read_batches
from tallystick.kafka_log.event_decoder import EventDecoder, EventReading
from tallystick.kafka_log.log_walk import DecidedBatch, Outcome
from tallystick.kafka_log.record import HEADER_LENGTH, HEADERS_KEPT, packed, record_of, unpacked
from tallystick.kafka_log.search import Wanted, _KeyFilter
from tallystick.kafka_log.unpacking import UnreadableBatch, bytes_max_of
from tallystick.model.offsets import TopicPartition
from tallystick_spark.readers.event_columns import compared_texts, read_columns, read_events
from tests.planned_items import ITEM

from .pieces import Pieces

PLACE = TopicPartition(topic="payouts", partition=0)
_HEADER_BEFORE, _HEADER_BEHIND = struct.Struct(">qiib"), struct.Struct(">hiqqqhii")
_UNSEEN_MAX = 10_000
"""Of more records nobody makes empty ones here: that each costs its 200 bytes is known."""


def batch_of(attributes: int, count: int, body: bytes, *, last_delta: int | None = None) -> bytes:
    """A batch as a broker keeps it: its length and its checksum are right, whatever else is."""
    delta = max(count - 1, 0) if last_delta is None else last_delta
    covered = _HEADER_BEHIND.pack(attributes, delta, 1_000, 2_000, -1, -1, -1, count) + body
    return _HEADER_BEFORE.pack(0, len(covered) + 9, -1, 2) + struct.pack(">I", calc_crc32c(covered)) + covered


def batches(data: bytes) -> None:
    """The first byte says whether what follows is a whole answer, or what a broker would make a batch of."""
    pieces = Pieces(data)
    if pieces.byte() % 2:
        buffer = pieces.rest()
    else:
        attributes, count = pieces.byte(), pieces.number(">i")
        buffer = batch_of(attributes & ~0x20, count, pieces.rest())
    try:
        found = list(read_batches(buffer))
    except ValueError:
        return
    assert sum(len(raw) for _, raw in found) <= len(buffer)
    for header, raw in found:
        if header.marker:
            coordinator_epoch(raw)
        elif not header.is_control:
            _one_batch(DecidedBatch(header, Outcome.PLAIN, raw))


def _one_batch(batch: DecidedBatch) -> None:
    open_batch.is_whole(batch)
    try:
        plain = open_batch.plain_batch(batch)
        records = open_batch.readable_records(batch)
    except UnreadableBatch:
        if batch.header.record_count <= _UNSEEN_MAX:
            unseen = open_batch.open_batch(batch)
            assert all(one.value is None for one in unseen)
        return
    if open_batch.is_compressed(batch):
        assert len(plain) <= HEADER_BYTES + bytes_max_of(bytes(batch.raw[HEADER_BYTES:]))
    again = open_batch._by_hand(batch, plain)
    assert _told(records) == _told(again), "the library and our own hand read a batch differently"
    for record in records:
        kept = record_of(record, batch, PLACE, EventFields())
        assert unpacked(packed(kept)) == kept


def _told(records: Any) -> list[Any]:
    return [(one.offset, one.timestamp, one.key, one.value, list(one.headers)) for one in records]


_RULES = {
    "account": "exact",
    "n": CompareRule(exact="number"),
    "at": CompareRule(within="2s", event="data.at"),
    "again": CompareRule(exact="text", event="n"),
}
FIELDS = (
    EventFields(),
    EventFields(amount_unit="major"),
    EventFields(sequence="n", ordering_key="account"),
    EventFields(match_key="id", transaction_key="id"),
    EventFields(match_key="a", transaction_key="b", leg="c", amount_minor="d", currency="e"),
    EventFields(match_key="a.b", transaction_key="a.c", leg="leg", amount_minor='a."b.c".d', currency="a.e-f"),
    EventFields().comparing(compared_columns(_RULES)),
)
_SOUND = {
    fields: json.dumps(
        document_of(
            {
                fields.match_key: "ev",
                fields.transaction_key: "ev",
                fields.leg: "payout",
                fields.amount_minor: "1.00" if fields.amount_unit == "major" else 100,
                fields.currency: "EUR",
                "n": 1,
                "account": "x",
            }
        )
    ).encode()
    for fields in FIELDS
}
_SHOWN = ("match_key", "transaction_key", "leg", "amount_minor", "currency")


def events(data: bytes) -> None:
    """The first byte picks the contract's fields, the rest is a payload: all ways say the same of it."""
    pieces = Pieces(data)
    picked = pieces.byte()
    fields, several_legs = FIELDS[picked % len(FIELDS)], picked >= 0x80
    value = None if picked & 0x40 else pieces.rest()
    decoder = EventDecoder(fields, several_legs=several_legs)
    reading = decoder.read(value)
    sound_or_said(reading)
    for values in ([value], [_SOUND[fields], value, _SOUND[fields]]):
        place = len(values) // 2
        same_by_columns(decoder, values, place, reading)
    if value is not None:
        found_by_its_key(fields, value)


def sound_or_said(reading: EventReading) -> None:
    """What is held is sound, and what is not held is told."""
    for name in _SHOWN:
        held = getattr(reading, name)
        assert reading.problem or held is not None
        if isinstance(held, str):
            assert len(held) <= TEXT_LENGTH_MAX and "\0" not in held
            held.encode()


def same_by_columns(decoder: EventDecoder, values: list[bytes | None], place: int, reading: EventReading) -> None:
    """What is read of many at once is what is read of one."""
    whole, each = decoder.read_whole(values), decoder.read_each(values)
    row = read_events(decoder, values).to_pylist()[place]
    readable = not reading.problem
    assert row["readable"] is readable, f"columns say {row['readable']}, the reader {reading.problem!r}"
    assert (each[place] is not None) is readable
    assert whole is None or readable
    simple = decoder.read_simple(values)
    assert simple is None or readable
    if simple is not None:
        assert simple.match_keys[place].decode() == reading.match_key
        assert memoryview(simple.amounts_minor).cast("q")[place] == reading.amount_minor
        assert simple.currencies[place] == reading.currency
    texts = compared_texts(decoder, values)
    if readable and texts is not None:
        assert texts[place].as_py() == reading.compared_text
        if simple is not None:
            columns = read_columns(decoder, values)
            assert columns is not None and columns.compared_texts == texts
    if readable:
        wanted = tuple(getattr(reading, name) for name in _SHOWN)
        assert tuple(row[name] for name in _SHOWN) == wanted
        assert tuple(getattr(each[place], name) for name in _SHOWN) == wanted
        if whole is not None:
            assert tuple(getattr(whole[place], name) for name in _SHOWN) == wanted


def found_by_its_key(fields: EventFields, value: bytes) -> None:
    """A look-up's filter lets every record through that has the key which is asked for."""
    reading = EventDecoder(fields).read(value)
    if not reading.match_key:
        return
    wanted = Wanted(match_keys=frozenset({reading.match_key}), transaction_keys=frozenset())
    body = _record_bytes(value)
    ((header, raw),) = read_batches(batch_of(0, 1, body))
    batch = DecidedBatch(header, Outcome.PLAIN, raw)
    assert list(_KeyFilter(fields, wanted).possible(batch, ())), "a look-up would not find this record by its key"


def _record_bytes(value: bytes, headers: tuple[tuple[bytes, bytes | None], ...] = ()) -> bytes:
    body = bytes(3) + _varint(-1) + _varint(len(value)) + value + _varint(len(headers))
    for name, text in headers:
        body += _varint(len(name)) + name + (_varint(-1) if text is None else _varint(len(text)) + text)
    return _varint(len(body)) + body


def _varint(number: int) -> bytes:
    left, written = number * 2 if number >= 0 else -number * 2 - 1, bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*written, left])


def headers(data: bytes) -> None:
    """Names and values, one behind the other."""
    pieces, told = Pieces(data), []
    while pieces and len(told) < 1_000:
        told.append((pieces.sized() or b"", pieces.sized()))
    ((header, raw),) = read_batches(batch_of(0, 1, _record_bytes(b"{}", tuple(told))))
    batch = DecidedBatch(header, Outcome.PLAIN, raw)
    (record,) = open_batch.readable_records(batch)
    kept = record_of(record, batch, PLACE, EventFields())
    assert len(kept.headers) <= HEADERS_KEPT
    for name, text in kept.headers.items():
        assert len(name) <= HEADER_LENGTH and len(text) <= HEADER_LENGTH and "\0" not in text
        assert kept.header(name) == text
    assert unpacked(packed(kept)) == kept
    json.dumps(kept.as_json()).encode()


KEY = ExecutorKey(secret=b"of the fuzz")
PLAN = Plan(contract="payouts", contract_fingerprint="f", cut_n=4, dry_run=False, items=(ITEM,), left_out=())
_OURS = progress_record(KEY, PLAN, ITEM, reopened=0)


def progress(data: bytes) -> None:
    """Keys and values of a progress topic. What nobody sealed proves nothing; what is sealed does, whatever else."""
    pieces = Pieces(data)
    ours_at, void_before, places = pieces.byte(), pieces.byte() % 4, []
    for offset, (key, value) in enumerate(_keyed(pieces)):
        if action_of_key(key) == ITEM.action_id:
            places.append(read_record("progress[0]", offset, value))
    forged = [one for one in places if not (one.claim and one.claim.seal == json.loads(_OURS[1])["seal"])]
    found = judge_progress(ITEM, forged, key=KEY, planned=topics_of([PLAN]), void_before=void_before)
    assert not found.published, "a record that no executor sealed counts"
    assert bool(found.doubt) is any(one.kafka_offset >= void_before for one in forged)
    found.doubt.encode()
    assert not sealed_plans(forged, KEY, ITEM.action_id, reopened=0)
    mine = read_record("progress[0]", 1_000, _OURS[1])
    all_of_them = [*forged[: ours_at % (len(forged) + 1)], mine, *forged[ours_at % (len(forged) + 1) :]]
    assert judge_progress(ITEM, all_of_them, key=KEY, planned=topics_of([PLAN]), void_before=void_before).published


def _keyed(pieces: Pieces) -> Iterator[tuple[bytes, bytes]]:
    while pieces:
        key = pieces.sized()
        yield _OURS[0] if key is None else key, pieces.sized() or b""


SEEDS_OF_EVENTS = tuple(bytes([n]) + _SOUND[fields] for n, fields in enumerate(FIELDS))
