"""A value of any format is read by the one rule, in all its ways alike, and says what is wrong in its own words."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallystick.contract.event import EventFields
from tallystick.formats import opener as opener_module
from tallystick.formats.debezium import DebeziumOpener
from tallystick.formats.opener import opener_of
from tallystick.formats.prefix import PrefixedJsonOpener
from tallystick.formats.schema_cache import SchemaText
from tallystick.kafka_log.event_decoder import DECODE_ERRORS, EventDecoder, written_keys
from tests.avro_values import FLAT, WHOLE, changed, prefixed, record_of, schemas_with, written
from tests.protobuf_values import FLAT as FLAT_PROTO
from tests.protobuf_values import written as written_proto
from tests.unit.event_payloads import NAMES, PAYLOADS, by_the_rule

AVRO = EventFields(format="avro").asking("schemas_of_nobody")
PROTOBUF = EventFields(format="protobuf").asking("schemas_of_nobody")
LACKING = 'syntax = "proto3"; message Payment { string event_id = 1; double amount_minor = 4; }'
SCHEMAS: dict[int, Any] = {
    11: SchemaText(11, "PROTOBUF", FLAT_PROTO),
    12: SchemaText(12, "PROTOBUF", LACKING),
    7: record_of(*FLAT),
    8: changed("amount_minor", ["null", "long", "double", "string"]),
    9: changed("event_id", ["null", "long", "string", "bytes"]),
    10: record_of(*FLAT[:4]),
}


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = schemas_with(**{f"s{number}": schema for number, schema in SCHEMAS.items()})
    monkeypatch.setattr(opener_module, "schemas_of", lambda _: cache)


def read_together(decoder: EventDecoder, values: list[bytes | None]) -> list[tuple[Any, ...] | None]:
    """As many are read at once, held against each other."""
    found = [None if one is None else tuple(getattr(one, name) for name in NAMES) for one in decoder.read_each(values)]
    quick, simple = decoder.read_whole(values), decoder.read_simple(values)
    assert quick is None or [tuple(getattr(event, name) for name in NAMES) for event in quick] == found
    if simple is not None:
        amounts = memoryview(simple.amounts_minor).cast("q").tolist()
        columns = zip([key.decode() for key in simple.match_keys], amounts, simple.currencies, strict=True)
        assert list(columns) == [one and (one[0], one[3], one[4]) for one in found]
    return found


def by_reading(decoder: EventDecoder, values: list[bytes | None]) -> list[tuple[Any, ...] | None]:
    readings = map(decoder.read, values)
    return [None if one.problem else tuple(getattr(one, name) for name in NAMES) for one in readings]


_TEXTS = st.sampled_from(["ev-1", "é", "", "a\0b", "x" * 501, '"\\'])
_VALUES = st.fixed_dictionaries(
    {
        "event_id": _TEXTS,
        "payment_id": _TEXTS,
        "leg": st.sampled_from(["payment", "invoice"]),
        "amount_minor": st.integers(-(2**63), 2**63 - 1),
        "currency": _TEXTS,
        "occurred_at": st.just(5),
    }
)
_AVRO_VALUES = st.one_of(
    st.builds(written, st.just(SCHEMAS[7]), _VALUES),
    st.builds(
        lambda value, amount: written(SCHEMAS[8], {**value, "amount_minor": amount}, schema_id=8),
        _VALUES,
        st.none() | st.integers(-5, 5) | st.floats() | st.just("5"),
    ),
    st.builds(
        lambda value, key: written(SCHEMAS[9], {**value, "event_id": key}, schema_id=9),
        _VALUES,
        st.none() | st.integers(-5, 5) | _TEXTS | st.binary(max_size=3),
    ),
    st.builds(lambda value: written(SCHEMAS[10], value, schema_id=10), _VALUES),
    st.binary(max_size=30).map(lambda rest: b"\0\0\0\0\7" + rest),
    st.binary(max_size=8),
    st.none(),
)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(values=st.lists(_AVRO_VALUES, max_size=5), several_legs=st.booleans())
def test_avro_is_read_alike_in_all_ways(values: list[bytes | None], several_legs: bool) -> None:
    decoder = EventDecoder(AVRO, several_legs=several_legs)
    expected = by_reading(decoder, values)
    assert read_together(decoder, values) == expected
    for value, said in zip(values, expected, strict=True):
        assert read_together(decoder, [value]) == [said]


_PROTOBUF_VALUES = st.one_of(
    st.builds(
        lambda value, lacks: written_proto(
            FLAT_PROTO, {name: one for name, one in value.items() if name not in ("occurred_at", lacks)}, schema_id=11
        ),
        _VALUES,
        st.sampled_from(["", "event_id", "payment_id", "amount_minor"]),
    ),
    st.builds(
        lambda amount: written_proto(LACKING, {"amountMinor": amount}, schema_id=12, place=(0,)), st.floats(0, 9)
    ),
    st.binary(max_size=30).map(lambda rest: prefixed(11, rest)),
    st.binary(max_size=30).map(lambda rest: prefixed(11, b"\2\2" + rest)),
    st.binary(max_size=8),
    st.none(),
)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(values=st.lists(_PROTOBUF_VALUES, max_size=5), several_legs=st.booleans())
def test_protobuf_is_read_alike_in_all_ways(values: list[bytes | None], several_legs: bool) -> None:
    decoder = EventDecoder(PROTOBUF, several_legs=several_legs)
    expected = by_reading(decoder, values)
    assert read_together(decoder, values) == expected
    for value, said in zip(values, expected, strict=True):
        assert read_together(decoder, [value]) == [said]


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(values=st.lists(PAYLOADS, max_size=4), several_legs=st.booleans())
def test_json_in_another_format_reads_as_it_does_alone(values: list[bytes], several_legs: bool) -> None:
    alone = [one and one[: len(NAMES)] for one in by_the_rule(values, EventFields(), several_legs=several_legs)]
    prefixed = EventDecoder(EventFields(format="json_schema"), several_legs=several_legs)
    behind_an_id: list[bytes | None] = [b"\0\0\0\0\7" + value for value in values]
    assert read_together(prefixed, behind_an_id) == by_reading(prefixed, behind_an_id) == alone
    debezium = EventDecoder(EventFields(format="debezium"), several_legs=several_legs)
    rows: list[bytes | None] = [b'{"op":"c","after":%b}' % value for value in values]
    assert read_together(debezium, rows) == by_reading(debezium, rows)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    drawn=st.one_of(st.tuples(st.just(AVRO), _AVRO_VALUES), st.tuples(st.just(PROTOBUF), _PROTOBUF_VALUES)).filter(
        lambda drawn: drawn[1] is not None
    )
)
def test_no_look_up_passes_over_a_value_that_reads_as_its_key(drawn: tuple[EventFields, bytes]) -> None:
    fields, value = drawn
    decoder = EventDecoder(fields)
    said = decoder.read(value)
    try:
        keys = decoder.decode_keys(value)
    except DECODE_ERRORS:
        return
    assert not said.match_key or keys.match_key in written_keys([said.match_key])
    assert not said.transaction_key or keys.transaction_key in written_keys([said.transaction_key])


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (written(SCHEMAS[7], WHOLE), ""),
        (written(SCHEMAS[10], WHOLE, schema_id=10), "its schema 10 has no field currency"),
        (written(SCHEMAS[8], {**WHOLE, "amount_minor": 1.0}, schema_id=8), "amount_minor is no whole number"),
        (written(SCHEMAS[7], {**WHOLE, "event_id": ""}), "event_id is empty"),
        (json.dumps(WHOLE).encode(), "it does not begin with a schema's id"),
        (b"\0\0\0\0\7", "its bytes are no value of its schema 7"),
        (None, "it has no value"),
    ],
)
def test_an_unreadable_value_says_why(value: bytes | None, problem: str) -> None:
    said = EventDecoder(AVRO).read(value).problem
    assert said.startswith(problem) and bool(said) == bool(problem)


def test_a_decimal_of_major_units_is_money_and_a_double_is_not() -> None:
    fields = EventFields(format="avro", amount_unit="major").asking("schemas_of_nobody")
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    opener_module.schemas_of = lambda _: schemas_with(  # type: ignore[assignment]
        s7=changed("amount_minor", decimal), s8=changed("amount_minor", "double")
    )
    raw = changed("amount_minor", "bytes")
    sound = EventDecoder(fields).read(written(raw, {**WHOLE, "amount_minor": (1250).to_bytes(2, "big")}))
    assert (sound.amount_minor, sound.problem) == (1250, "")
    double = written(changed("amount_minor", "double"), {**WHOLE, "amount_minor": 12.5}, schema_id=8)
    assert (
        EventDecoder(fields)
        .read(double)
        .problem.startswith(
            "amount_minor is floating point number in its schema 8; expected a text, a whole number or a decimal"
        )
    )


def test_each_format_has_its_opener_and_json_needs_none() -> None:
    assert opener_of(EventFields()) is None
    assert isinstance(opener_of(EventFields(format="json_schema")), PrefixedJsonOpener)
    assert isinstance(opener_of(EventFields(format="debezium")), DebeziumOpener)
    assert not EventDecoder(AVRO).keeps_text
    assert not EventDecoder(EventFields(format="debezium").asking("schemas_of_nobody")).keeps_text
    assert EventDecoder(EventFields(format="debezium")).keeps_text and EventDecoder(EventFields()).keeps_text
