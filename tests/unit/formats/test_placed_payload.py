"""Fields in headers, in the record's key, and its timestamp: all ways of reading agree, and no value writes what stands
beside it.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallystick.contract.compare import ComparedColumns, CompareRule, compared_columns
from tallystick.contract.event import EventFields
from tallystick.contract.field_types import CurrencyConstant, HeaderPlace, KeyPlace, LegConstant, NoMoney, RecordPart
from tallystick.formats.placed_payload import placed_of
from tallystick.kafka_log.event_decoder import DECODE_ERRORS, EventDecoder, written_keys
from tests.unit.event_payloads import NAMES, PAYLOADS, SAID, as_said, fields_and_values

OF_CLOUD_EVENTS = EventFields(
    match_key=HeaderPlace(header="ce_id"), transaction_key=KeyPlace(record="key"), leg=HeaderPlace(header="ce_type")
)
HEADERS = (("ce_id", b"ev-1"), ("ce_type", b"payout"), ("other", b"\xff"))


class Told(NamedTuple):
    """A record as this test writes it."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int = 1_767_225_600_123


SOUND = Told(b"pay-1", b'{"amount_minor":1000,"currency":"EUR"}', HEADERS)
_PLACE = st.sampled_from([HeaderPlace(header="ce_id"), HeaderPlace(header="a.b"), KeyPlace(record="key")])
_TIMES = st.sampled_from([-1, 0, 1_767_225_600_123, 253_402_300_800_000, 2**62])
_BESIDE = {
    "written_at": CompareRule(within="2s", event=RecordPart(record="timestamp")),
    "made_by": CompareRule(exact="text", event=HeaderPlace(header="a.b")),
    "record_key": CompareRule(exact="text", event=RecordPart(record="key")),
}
_BYTES = st.sampled_from([b"ev-1", b"", b"\xff", b'"', b"a\x00b", b"\\u0000", "é".encode(), b"x" * 501, None])


@st.composite
def placed_records(draw: st.DrawFn) -> tuple[EventFields, list[Told]]:
    fields, values = draw(fields_and_values())
    names = draw(st.sets(st.sampled_from(["match_key", "transaction_key", "leg"]), min_size=1))
    fields = fields.model_copy(update={name: draw(_PLACE) for name in names})
    beside = compared_columns({name: _BESIDE[name] for name in draw(st.sets(st.sampled_from(sorted(_BESIDE))))})
    both = ComparedColumns(fields.compared.names + beside.names, fields.compared.rules + beside.rules)
    fields = fields.comparing(both)
    header = st.tuples(st.sampled_from(["ce_id", "a.b", "other"]), _BYTES)
    told = st.builds(Told, _BYTES, st.sampled_from([*values, b"{}"]), st.lists(header, max_size=4), _TIMES)
    return fields, draw(st.lists(told, max_size=4))


def as_rows(events: Sequence[Any]) -> list[tuple[Any, ...] | None]:
    return [None if one is None else tuple(getattr(one, name) for name in NAMES) for one in events]


@settings(max_examples=800, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=placed_records(), several_legs=st.booleans())
def test_all_ways_read_a_record_alike_and_no_look_up_passes_over_its_keys(
    drawn: tuple[EventFields, list[Told]], several_legs: bool
) -> None:
    fields, records = drawn
    decoder = EventDecoder(fields, several_legs=several_legs)
    said = [decoder.read_record(one) for one in records]
    expected = [None if one.problem else one for one in said]
    payloads = list(map(decoder.payload, records))
    rows = [None if one is None else tuple(getattr(one, name) for name in SAID) for one in expected]
    assert as_said(decoder, payloads, decoder.read_each(payloads)) == rows
    quick = decoder.read_whole(payloads)
    assert quick is None or as_rows(quick) == as_rows(expected)
    simple = decoder.read_simple(payloads)
    assert simple is None or [key.decode() for key in simple.match_keys] == [one.match_key for one in said]
    for payload, one in zip(payloads, said, strict=True):
        try:
            keys = decoder.decode_keys(payload or b"")
        except DECODE_ERRORS:
            continue
        assert one.match_key is None or keys.match_key in written_keys([one.match_key])
        assert one.transaction_key is None or keys.transaction_key in written_keys([one.transaction_key])


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=PAYLOADS, put=st.sampled_from([b"", b',"key":"theirs"', b'},"header":{"ce_id":"theirs"}', b"}"]))
def test_no_value_writes_what_stands_beside_it(value: bytes, put: bytes) -> None:
    placed = placed_of(OF_CLOUD_EVENTS)
    assert placed is not None
    try:
        payload = placed.payload(Told(b"pay-1", value + put, HEADERS), opened=lambda one: one)
    except DECODE_ERRORS:
        return
    try:
        document = json.loads(payload or b"")
    except (ValueError, RecursionError):  # a lone surrogate of UTF-8, or too deep
        return
    assert document["key"] == "pay-1"
    assert document["header"] == {"ce_id": "ev-1", "ce_type": "payout"}
    assert document.keys() == {"key", "header", "value"}


def test_an_event_is_read_from_its_headers_its_key_and_its_value() -> None:
    decoder = EventDecoder(OF_CLOUD_EVENTS, several_legs=True)
    reading = decoder.read_record(SOUND)
    assert reading[:5] == ("ev-1", "pay-1", "payout", 1000, "EUR")
    again = SOUND._replace(headers=[*HEADERS, ("ce_id", b"ev-2")])
    assert decoder.read_record(again).match_key == "ev-2", "the last of one name counts"


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (SOUND._replace(headers=HEADERS[1:]), "header.ce_id is missing"),
        (SOUND._replace(headers=(("ce_id", b"\xff"), *HEADERS[1:])), "header.ce_id is missing"),
        (SOUND._replace(headers=(("ce_id", b""), *HEADERS[1:])), "header.ce_id is empty"),
        (SOUND._replace(key=None), "key is missing"),
        (SOUND._replace(value=None), "it has no value"),
        (SOUND._replace(value=b"{} x"), "its value is not one JSON object and nothing else"),
        (SOUND._replace(value=b"[]"), "currency is missing"),
        (SOUND._replace(value=b'{"currency":"EUR"}'), "amount_minor is missing"),
    ],
)
def test_what_is_missing_is_named(record: Told, problem: str) -> None:
    decoder = EventDecoder(OF_CLOUD_EVENTS, several_legs=True)
    assert decoder.read_record(record).problem == problem
    assert decoder.read_each([decoder.payload(record)]) == [None]


def test_a_value_that_nobody_reads_may_be_anything_and_money_that_is_none_is_zero() -> None:
    fields = EventFields(
        match_key=HeaderPlace(header="id"),
        transaction_key=HeaderPlace(header="id"),
        leg=LegConstant(constant="payout"),
        amount_minor=NoMoney(constant=0),
        currency=CurrencyConstant(constant="XXX"),
    )
    decoder = EventDecoder(fields)
    record = Told(None, b"\x00\x01 whatever", [("id", b"7")])
    assert decoder.read_record(record)[:5] == ("7", "7", "payout", 0, "XXX")
    assert as_rows(decoder.read_each([decoder.payload(record)])) == [("7", "7", "payout", 0, "XXX")]
    assert EventDecoder(fields).read_record(record._replace(value=None)).problem == "it has no value"


@pytest.mark.parametrize(
    ("timestamp_ms", "said"),
    [
        (1_767_225_600_123, "2026-01-01T00:00:00.123Z"),
        (0, "1970-01-01T00:00:00Z"),
        (-1, None),
        (2**62, str(2**62)),
    ],
)
def test_what_is_compared_may_be_the_records_timestamp_its_key_or_a_header(timestamp_ms: int, said: str | None) -> None:
    columns = compared_columns(_BESIDE)
    decoder = EventDecoder(EventFields().comparing(columns))
    event = {"event_id": "e", "payment_id": "p", "leg": "payout", "amount_minor": 5, "currency": "EUR"}
    record = Told(b"k", json.dumps(event).encode(), [("a.b", b"relay")], timestamp_ms)
    reading = decoder.read_record(record)
    assert (reading.problem, reading.match_key) == ("", "e")
    expected = columns.text_of(
        [{"made_by": "relay", "record_key": "k", "written_at": said}[one] for one in columns.names]
    )
    assert reading.compared_text == expected
    assert json.loads(reading.compared_text)["written_at"] == (said and said.replace(".123Z", ".123000Z"))
    silent = decoder.read_record(record._replace(key=None, headers=()))
    assert (silent.problem, json.loads(silent.compared_text)["made_by"]) == ("", None)


def test_a_key_or_header_that_is_no_text_is_compared_by_its_digest_and_equals_no_other_and_not_nothing() -> None:
    columns = compared_columns(_BESIDE)
    decoder = EventDecoder(EventFields().comparing(columns))
    event = b'{"event_id": "e", "payment_id": "p", "leg": "payout", "amount_minor": 5, "currency": "EUR"}'

    def said(written: bytes | None) -> str:
        reading = decoder.read_record(Told(written, event, [("a.b", written)]))
        assert (reading.problem, reading.match_key) == ("", "e")
        return reading.compared_text

    binary, other, nothing = said(b"\x00\xff\x01"), said(b"\x80\xaa"), said(None)
    assert json.loads(binary)["record_key"].endswith(" of 3 bytes")
    for here, there in ((binary, other), (binary, nothing)):
        assert [one.column for one in columns.differing(here, there)] == ["made_by", "record_key"]
    assert columns.differing(binary, said(b"\x00\xff\x01")) == ()


def test_a_contract_whose_fields_all_stand_in_the_value_reads_the_value_as_it_is() -> None:
    assert placed_of(EventFields()) is None
    decoder = EventDecoder(EventFields())
    assert not decoder.has_places
    assert decoder.payload(SOUND) is SOUND.value
