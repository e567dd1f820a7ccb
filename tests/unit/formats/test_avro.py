"""Each type of Avro at the end of a path, and values that are none of their schema's."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallystick.contract.event import EventFields
from tallystick.formats._flat_avro import open_flat
from tallystick.formats.avro import AvroOpener, decimal_number
from tallystick.formats.prefix import Undecodable
from tallystick.formats.schema_cache import SchemaText
from tests.avro_values import FLAT, WHOLE, changed, prefixed, record_of, schemas_with, written
from tests.unit.builders import MORE

PATHS = sorted(set(EventFields().paths))


def opened(schema: Any, value: dict[str, Any], *paths: str, schema_id: int = 7) -> Any:
    opener = AvroOpener(schemas_with(s7=schema), paths or PATHS)
    return json.loads(opener.to_json(written(schema, value, schema_id=schema_id)), parse_float=str)


def test_the_contracts_fields_are_read_and_no_others() -> None:
    assert opened(record_of(*FLAT), WHOLE) == {name: WHOLE[name] for name in PATHS}


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ("string", "é", "é"),
        ("int", -5, -5),
        ("long", 2**63 - 1, 2**63 - 1),
        ({"type": "long", "logicalType": "timestamp-millis"}, 1_767_225_600_000, 1_767_225_600_000),
        ({"type": "int", "logicalType": "date"}, 20_000, 20_000),
        ({"type": "string", "logicalType": "uuid"}, "not-checked", "not-checked"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        (DECIMAL, (1250).to_bytes(2, "big"), "12.50"),
        (DECIMAL, (-5).to_bytes(1, "big", signed=True), "-0.05"),
        (DECIMAL, (123_456_789).to_bytes(5, "big"), "1234567.89"),
        ({**DECIMAL, "scale": 0}, (1250).to_bytes(2, "big"), 1250),
        ({"type": "fixed", "name": "F", "size": 16, "logicalType": "decimal", "precision": 38, "scale": 9},
         (10**12 + 1).to_bytes(16, "big"), "1000.000000001"),
        ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, bytes(range(16)),
         "00010203-0405-0607-0809-0a0b0c0d0e0f"),
        (["null", "long"], 5, 5),
        (["null", DECIMAL], (1250).to_bytes(2, "big"), "12.50"),
        (["string", "long"], "x", "x"),
    ],
)  # fmt: skip
def test_a_type_that_a_contract_can_use_is_read_as_it_stands(kind: Any, value: Any, read: Any) -> None:
    """A decimal has all digits, also those beyond its precision, which fastavro itself would round away."""
    schema = changed("amount_minor", kind)
    raw = json.loads(json.dumps(schema).replace('"logicalType"', '"ignored"'))
    opener = AvroOpener(schemas_with(s7=schema), PATHS)
    found = json.loads(opener.to_json(written(raw, {**WHOLE, "amount_minor": value})), parse_float=str)
    assert found["amount_minor"] == read
    assert opener.why_unusable(prefixed(7, b""), "amount_minor") == ""


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("double", 12.5, "amount_minor is floating point number in its schema 7"),
        (["null", "float"], 12.5, "amount_minor is floating point number in its schema 7"),
        ("bytes", b"12", "amount_minor is bytes in its schema 7"),
        (["bytes", {"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 4}], b"12",
         "amount_minor may be bytes of several kinds in its schema 7"),
        ({"type": "array", "items": "long"}, [1], "amount_minor is list in its schema 7"),
        (record_of({"name": "x", "type": "long"}, name="X"), {"x": 1}, "amount_minor is record in its schema 7"),
        (["long", "double"], 12.5, ""),
    ],
)  # fmt: skip
def test_another_type_is_neither_text_nor_number_and_its_schema_says_why(kind: Any, value: Any, reason: str) -> None:
    schema = changed("amount_minor", kind)
    raw = json.loads(json.dumps(schema).replace('"logicalType"', '"ignored"'))
    opener = AvroOpener(schemas_with(s7=schema), PATHS)
    assert json.loads(opener.to_json(written(raw, {**WHOLE, "amount_minor": value})))["amount_minor"] == {}
    why = opener.why_unusable(prefixed(7, b""), "amount_minor")
    assert why.startswith(reason) and bool(why) == bool(reason)


def test_a_field_that_the_schema_lacks_is_named_and_null_is_missing() -> None:
    schema = record_of(*FLAT[:3], {"name": "amount_minor", "type": ["null", "long"]})
    opener = AvroOpener(schemas_with(s7=schema), PATHS)
    value = written(schema, {**WHOLE, "amount_minor": None})
    assert json.loads(opener.to_json(value)) == {name: WHOLE[name] for name in ("event_id", "payment_id", "leg")}
    assert opener.why_unusable(value, "currency") == "its schema 7 has no field currency"
    assert opener.why_unusable(value, "amount_minor") == ""


def test_a_path_leads_through_records_unions_and_maps() -> None:
    money = record_of({"name": "amount", "type": "long"}, name="Money")
    schema = record_of(
        {"name": "data", "type": ["null", record_of({"name": "total", "type": money}, name="Data")]},
        {"name": "other", "type": "shop.Money"},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
    )
    value = {"data": {"total": {"amount": 5}}, "other": {"amount": 6}, "tags": {"a": "b"}}
    assert opened(schema, value, "data.total.amount", "other.amount", "tags.a") == {
        "data": {"total": {"amount": 5}},
        "other": {"amount": 6},
        "tags": {"a": "b"},
    }
    assert opened(schema, {**value, "data": None}, "data.total.amount", "other.amount") == {"other": {"amount": 6}}


def test_records_of_several_schemas_are_each_read_by_their_writers() -> None:
    older = record_of(*FLAT)
    newer = record_of({"name": "note", "type": "string"}, *reversed(FLAT))
    opener = AvroOpener(schemas_with(s7=older, s8=newer), PATHS)
    values = [written(older, WHOLE), written(newer, {**WHOLE, "note": "x"}, schema_id=8), written(older, WHOLE)]
    assert len({json.dumps(json.loads(opener.to_json(value)), sort_keys=True) for value in values}) == 1


def test_a_schema_may_refer_to_another() -> None:
    money = record_of({"name": "amount", "type": "long"}, name="Money")
    schema = record_of({"name": "total", "type": "shop.Money"})
    text = SchemaText(7, "AVRO", json.dumps(schema), (("shop.Money", json.dumps(money)),))
    opener = AvroOpener(schemas_with(s7=text), ["total.amount"])
    value = written(schema, {"total": {"amount": 5}}, money=money)
    assert json.loads(opener.to_json(value)) == {"total": {"amount": 5}}


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value[:-1],
        lambda value: value + b"\0",
        lambda value: value[:5],
        lambda value: value[:5] + b"\xff" * 11 + value[5:],
        lambda value: value[:6] + b"\xff\xfe" + value[8:],
        lambda value: value[:5] + b"\x01" + value[6:],
    ],
)
def test_bytes_that_are_no_value_of_the_schema_are_undecodable(change: Any) -> None:
    opener = AvroOpener(schemas_with(s7=record_of(*FLAT)), PATHS)
    with pytest.raises(Undecodable, match=r"^its bytes are .* of its schema 7") as caught:
        opener.to_json(change(written(record_of(*FLAT), WHOLE)))
    assert "ev-1" not in str(caught.value)


FAN = [record_of(*({"name": f"f{n}", "type": f"shop.L{level - 1}"} for n in range(40)), name=f"L{level}")
       for level in range(1, 5)]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (record_of({"name": "next", "type": ["null", "shop.Payment"]}), "has the record shop.Payment inside itself"),
        (record_of({"name": "a", "type": {"type": "array", "items": "null"}}), "members take no bytes"),
        (record_of({"name": "a", "type": {"type": "array", "items": record_of(name="X")}}), "members take no bytes"),
        ({"type": "record"}, "is no Avro schema"),
        (record_of({"name": "a", "type": "nothing"}), "is no Avro schema"),
        (SchemaText(7, "AVRO", "not json"), "is no Avro schema"),
        (SchemaText(7, "AVRO", json.dumps(FAN[-1]),
                    tuple((str(n), json.dumps(one)) for n, one in enumerate([record_of(name="L0"), *FAN[:-1]]))),
         "has more than 100,000 parts"),
        (SchemaText(7, "PROTOBUF", ""), "is of type PROTOBUF; expected AVRO"),
    ],
)  # fmt: skip
def test_a_schema_that_a_few_bytes_could_make_endless_is_refused(schema: Any, reason: str) -> None:
    with pytest.raises(Undecodable, match=reason):
        AvroOpener(schemas_with(s7=schema), PATHS).to_json(prefixed(7, b"\0" * 20))


def test_a_record_twice_side_by_side_is_no_record_inside_itself() -> None:
    money = record_of({"name": "amount", "type": "long"}, name="Money")
    schema = record_of({"name": "a", "type": money}, {"name": "b", "type": {"type": "array", "items": "shop.Money"}})
    assert opened(schema, {"a": {"amount": 1}, "b": [{"amount": 2}]}, "a.amount") == {"a": {"amount": 1}}


@pytest.mark.parametrize(
    ("unscaled", "scale", "text"),
    [(0, 0, b"0"), (0, 2, b"0.00"), (5, 2, b"0.05"), (-1250, 2, b"-12.50"), (7, 0, b"7")],
)
def test_a_decimal_is_written_with_the_digits_of_its_scale(unscaled: int, scale: int, text: bytes) -> None:
    assert bytes(decimal_number(unscaled, scale)) == text


# Flat records are opened together by compiled code, which says what fastavro says, or nothing.

PLAIN = st.text(st.characters(codec="ascii", exclude_categories=["C"], exclude_characters='"\\'), max_size=5)
LONGS = st.sampled_from([0, -1, 63, -64, 64, 2**31, -(2**63), 2**63 - 1]) | st.integers(-(2**63), 2**63 - 1)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": LONGS,
    "string": PLAIN,
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
}
ONE_KIND = st.sampled_from(sorted(VALUES))
KINDS = ONE_KIND | st.lists(ONE_KIND, min_size=1, max_size=4, unique=True)


@st.composite
def flat_records(draw: st.DrawFn) -> tuple[dict[str, Any], list[bytes], list[str]]:
    """A schema, values of it, of which one may be spoilt, and the paths that are asked for."""
    kinds = draw(st.lists(KINDS, min_size=1, max_size=6))
    schema = record_of(*({"name": f"f{n}", "type": kind} for n, kind in enumerate(kinds)))
    values = []
    for _ in range(draw(st.integers(1, 3))):
        record = {}
        for n, kind in enumerate(kinds):
            picked = draw(st.sampled_from(kind)) if isinstance(kind, list) else kind
            value = draw(VALUES[picked])
            record[f"f{n}"] = (picked, value) if isinstance(kind, list) else value
        values.append(written(schema, record))
    if draw(st.booleans()):
        at, put, gone = draw(st.integers(0, 40)), draw(st.binary(max_size=12)), draw(st.integers(0, 3))
        values[-1] = values[-1][:at] + put + values[-1][at + gone :]
    return schema, values, draw(st.lists(st.sampled_from([*schema_names(schema)]), min_size=1, unique=True))


def schema_names(schema: dict[str, Any]) -> list[str]:
    return [one["name"] for one in schema["fields"]]


@MORE
@given(flat_records())
def test_flat_records_opened_together_are_what_each_is_by_itself(
    drawn: tuple[dict[str, Any], list[bytes], list[str]],
) -> None:
    schema, values, paths = drawn
    opener = AvroOpener(schemas_with(s7=schema), paths)
    found = opener.open_all(values)
    if found is not None:
        assert found == [opener.to_json(value) for value in values]


FLAT_SCHEMA = record_of(
    {"name": "event_id", "type": {"type": "string", "avro.java.string": "String"}},
    {"name": "rate", "type": "double"},
    {"name": "amount_minor", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "note", "type": ["null", "string", "float"]},
    {"name": "paid", "type": ["boolean", "null"]},
)
FLAT_RECORD = {"event_id": "ev-1", "rate": 0.5, "amount_minor": -1250, "note": "n", "paid": True}
ASKED = ["amount_minor", "event_id", "paid"]


def together(*values: bytes | None, paths: list[str] | None = None, schema: Any = FLAT_SCHEMA) -> list[bytes] | None:
    return AvroOpener(schemas_with(s7=schema, s8=schema), paths or ASKED).open_all(values)


def of(**changes: Any) -> bytes:
    return written(FLAT_SCHEMA, FLAT_RECORD | changes)


def test_most_values_are_opened_together() -> None:
    assert together(of(), of(note=None, paid=None)) == [
        b'{"amount_minor":-1250,"event_id":"ev-1","paid":true}',
        b'{"amount_minor":-1250,"event_id":"ev-1","paid":null}',
    ]


@pytest.mark.parametrize(
    "values",
    [
        (),
        (None,),
        (of(), None),
        (of(), written(FLAT_SCHEMA, FLAT_RECORD, schema_id=8)),
        (of(event_id="\u00e9"),),
        (of(event_id='a"b'),),
        (of(note="a\nb"),),
        (of()[:-1],),
        (of() + b"\0",),
        (b"\0\0",),
        (b"",),
    ],
)
def test_others_are_given_back_unread(values: tuple[bytes | None, ...]) -> None:
    assert together(*values) is None


ALONE = {"name": "event_id", "type": "string"}


@pytest.mark.parametrize(
    ("paths", "schema"),
    [
        (["rate"], FLAT_SCHEMA),
        (["note"], FLAT_SCHEMA),
        (["absent"], FLAT_SCHEMA),
        (["event_id.inside"], FLAT_SCHEMA),
        (["event_id"], record_of(*FLAT)),
        (["event_id"], record_of(ALONE, {"name": "many", "type": DECIMAL})),
        (["event_id"], record_of(ALONE, {"name": "none", "type": {"type": {"type": "string"}}})),
        (["event_id"], record_of(ALONE, *({"name": f"f{n}", "type": "string"} for n in range(256)))),
    ],
    ids=[
        "floating",
        "maybe floating",
        "absent",
        "a path",
        "an enum beside it",
        "bytes",
        "a type in a type",
        "too many",
    ],
)
def test_a_schema_that_is_not_flat_is_left_to_fastavro(paths: list[str], schema: Any) -> None:
    assert together(prefixed(7, b"\x02a" * 300), paths=paths, schema=schema) is None


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        (((b"\x03", False, 0),), ()),
        (((b"\x03", False, 1),), (b'"a":',)),
        (((b"\x03", False, -1),), (b'"a":',)),
        (((b"\x03", False, 0), (b"\x03", False, 0)), (b'"a":',)),
        (((b"\x04", False, 0),), (b'"a":',)),
        (((b"\x06", False, -1), (b"\x03", False, 0)), (b'"a":',)),
        (((b"\x03\x02", False, 0),), (b'"a":',)),
        (((b"\x03" * 5, True, 0),), (b'"a":',)),
        (((b"", True, 0),), (b'"a":',)),
        (((b"\x03", False, 0),), ("a",)),
    ],
)
def test_a_plan_that_is_none_is_refused(fields: Any, names: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        open_flat([b"\x02a"], b"", fields, names)


@MORE
@given(st.binary(max_size=40))
@example(b"\xff" * 10)
@example(b"\x80" * 9 + b"\x02")
def test_any_bytes_are_a_flat_record_or_none(body: bytes) -> None:
    value = prefixed(7, body)
    found = together(value)
    if found is not None:
        assert found == [AvroOpener(schemas_with(s7=FLAT_SCHEMA), ASKED).to_json(value)]
