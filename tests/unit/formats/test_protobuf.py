"""Each type of Protobuf at the end of a path, and values that are none of their schema's."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallystick.contract.event import EventFields
from tallystick.formats._flat_protobuf import open_flat
from tallystick.formats.prefix import Undecodable
from tallystick.formats.protobuf import ProtobufOpener
from tallystick.formats.schema_cache import SchemaText
from tests.avro_values import prefixed, schemas_with
from tests.protobuf_values import FLAT, PAYMENT, WHOLE, compiled, written
from tests.unit.builders import MORE

PATHS = sorted(set(EventFields().paths))
TYPES = """
syntax = "proto3";
import "google/type/money.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Own { string currency_code = 1; int64 units = 2; int32 nanos = 3; }
message Payment {
  string text = 1; sint32 signed = 2; uint64 large = 3; fixed64 fixed = 4; bool truth = 5; float single = 6;
  double twice = 7; bytes raw = 8; repeated string many = 9; map<string, string> tags = 10; Kind kind = 11;
  google.type.Money price = 12; Own own = 13; google.protobuf.Timestamp at = 14; optional int64 maybe = 15;
  google.protobuf.StringValue wrapped = 16; oneof one { string left = 17; int64 right = 18; }
  enum Kind { NONE = 0; CARD = 1; }
}
"""


def opener(text: str, *paths: str) -> ProtobufOpener:
    return ProtobufOpener(schemas_with(s7=SchemaText(7, "PROTOBUF", text)), paths or PATHS)


def opened(text: str, value: dict[str, Any], *paths: str, place: tuple[int, ...] = PAYMENT) -> Any:
    return json.loads(opener(text, *paths).to_json(written(text, value, place=place)), parse_float=str)


def test_the_contracts_fields_are_read_and_no_others() -> None:
    assert opened(FLAT, {**WHOLE, "rate": 1.5}) == WHOLE


def test_a_message_is_found_by_its_place() -> None:
    assert opened(FLAT, {"event_id": "x"}, "event_id", place=(0,)) == {"event_id": "x"}
    inner = {"event_id": "y", "amount_minor": 5}
    assert opened(FLAT, inner, "event_id", "amount_minor", place=(1, 0, 0)) == inner
    for place in ((2,), (1, 7), (1, 0, 0, 0)):
        indexes = bytes([2 * len(place), *(2 * one for one in place)])
        with pytest.raises(Undecodable, match="its schema 7 has no message at"):
            opener(FLAT).to_json(prefixed(7, indexes))


@pytest.mark.parametrize(
    ("value", "path", "read"),
    [
        ({"text": "é"}, "text", "é"),
        ({}, "text", ""),
        ({"signed": -5}, "signed", -5),
        ({}, "signed", 0),
        ({"large": 2**64 - 1}, "large", 2**64 - 1),
        ({"fixed": 5}, "fixed", 5),
        ({"truth": True}, "truth", True),
        ({"kind": "CARD"}, "kind", "CARD"),
        ({"kind": 7}, "kind", 7),
        ({"price": {"units": 12, "nanos": 500_000_000}}, "price.amount", "12.500000000"),
        ({"price": {"units": -1, "nanos": -10_000_000}}, "price.amount", "-1.010000000"),
        ({"price": {"nanos": -10_000_000}}, "price.amount", "-0.010000000"),
        ({"price": {"currencyCode": "EUR"}}, "price.currency_code", "EUR"),
        ({"own": {"units": 12}}, "own.amount", "12.000000000"),
        ({"at": "2026-01-01T00:00:00Z"}, "at.seconds", 1_767_225_600),
        ({"wrapped": "x"}, "wrapped.value", "x"),
        ({"maybe": 0}, "maybe", 0),
        ({"left": ""}, "left", ""),
    ],
)
def test_a_type_that_a_contract_can_use_is_read_as_it_stands(value: dict[str, Any], path: str, read: Any) -> None:
    found = opened(TYPES, value, path)
    for name in path.split("."):
        found = found[name]
    assert found == read
    assert opener(TYPES, path).why_unusable(written(TYPES, value), path) == ""


@pytest.mark.parametrize("path", ["maybe", "left", "right", "price.amount", "at.seconds", "wrapped.value"])
def test_a_field_that_was_not_set_is_missing_where_the_schema_can_tell(path: str) -> None:
    assert opened(TYPES, {}, path) == {}
    assert opener(TYPES, path).why_unusable(written(TYPES, {}), path) == ""


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"single": 1.5}, "single", "single is floating point number in its schema 7"),
        ({"twice": 1.5}, "twice", "twice is floating point number in its schema 7"),
        ({"raw": "MTI="}, "raw", "raw is bytes in its schema 7"),
        ({"many": ["x"]}, "many", "many is list in its schema 7"),
        ({"tags": {"a": "b"}}, "tags.a", "tags.a is list in its schema 7"),
        ({"price": {"units": 12}}, "price", "price is message in its schema 7"),
        ({"price": {"units": 12}}, "price.units", "price.units is a part of an amount of units and nanos"),
        ({"price": {"nanos": 12}}, "price.nanos", "price.nanos is a part of an amount"),
    ],
)
def test_another_type_is_neither_text_nor_number_and_its_schema_says_why(
    value: dict[str, Any], path: str, reason: str
) -> None:
    found = opened(TYPES, value, path)
    for name in path.split("."):
        found = found[name]
    assert found == {}
    assert opener(TYPES, path).why_unusable(written(TYPES, value), path).startswith(reason)


@pytest.mark.parametrize("price", [{"units": 1, "nanos": -1}, {"units": -1, "nanos": 1}, {"nanos": 1_000_000_000}])
def test_units_and_nanos_that_do_not_fit_together_are_no_amount(price: dict[str, Any]) -> None:
    assert opened(TYPES, {"price": price}, "price.amount") == {"price": {"amount": {}}}


@pytest.mark.parametrize("path", ["absent", "text.more", "own.absent", "event_id.amount", "price.amount.x"])
def test_a_field_that_the_schema_lacks_is_named(path: str) -> None:
    value = written(TYPES, {"text": "x"})
    assert opener(TYPES, path).to_json(value) == b"{}"
    assert opener(TYPES, path).why_unusable(value, path) == f"its schema 7 has no field {path}"


@pytest.mark.parametrize(
    "body",
    [b"", b"\x80", b"\x01", b"\x02", b"\xff\xff\xff\xff\xff\xff", b"\x02\x01", b"\xca\x01" + b"\0" * 200],
)
def test_a_value_that_does_not_say_which_message_it_is_is_undecodable(body: bytes) -> None:
    with pytest.raises(Undecodable, match="it does not say which message of its schema it is"):
        opener(FLAT).to_json(prefixed(7, body))


@pytest.mark.parametrize("body", [b"\x0a\x05ab", b"\x0a\x02\xff\xfe", b"\x08"])
def test_bytes_that_are_no_message_are_undecodable(body: bytes) -> None:
    with pytest.raises(Undecodable, match=r"^its bytes are no message of its schema 7$"):
        opener(FLAT).to_json(prefixed(7, b"\x02\x02" + body))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (SchemaText(7, "PROTOBUF", "message {"), "its schema 7 is no Protobuf schema that protoc compiles"),
        (
            SchemaText(7, "PROTOBUF", 'import "absent.proto";'),
            "its schema 7 is no Protobuf schema that protoc compiles",
        ),
        (SchemaText(7, "PROTOBUF", "", (("/etc/a.proto", ""),)), "its schema 7 imports a file outside of it"),
        (SchemaText(7, "PROTOBUF", "", (("../a.proto", ""),)), "its schema 7 imports a file outside of it"),
        (SchemaText(7, "PROTOBUF", 'syntax = "proto3";'), "its schema 7 has no message at"),
        (SchemaText(7, "AVRO", '"string"'), "its schema 7 is of type AVRO; expected PROTOBUF"),
    ],
)
def test_a_schema_that_is_none_is_refused(schema: SchemaText, reason: str) -> None:
    with pytest.raises(Undecodable, match=reason):
        ProtobufOpener(schemas_with(s7=schema), PATHS).to_json(prefixed(7, b"\0"))


def test_a_schema_may_refer_to_another_and_have_older_syntax() -> None:
    money = 'syntax = "proto2"; package a; message Money { required int64 amount = 1; optional int64 extra = 2; }'
    text = 'syntax = "proto2"; import "a/money.proto"; message Payment { optional a.Money total = 1; }'
    schema = SchemaText(7, "PROTOBUF", text, (("a/money.proto", money),))
    found = ProtobufOpener(schemas_with(s7=schema), ["total.amount", "total.extra"])
    assert json.loads(found.to_json(prefixed(7, b"\0\x0a\x02\x08\x05"))) == {"total": {"amount": 5}}
    assert json.loads(found.to_json(prefixed(7, b"\0"))) == {}


def test_what_a_schema_compiles_to_is_kept_by_the_place_of_its_message() -> None:
    assert compiled(FLAT).message_class((0,)).DESCRIPTOR.name == "Other"
    assert compiled(FLAT).message_class(PAYMENT).DESCRIPTOR.name == "Payment"


# Flat messages are opened together by compiled code, which says what protobuf says, or nothing.

EVERY_KIND = """
syntax = "proto3";
message Payment {
  int64 a = 1; int32 b = 2; sint64 c = 3; sint32 d = 4; uint64 e = 5; uint32 f = 6; bool g = 7; string h = 8;
  optional int64 i = 9; optional string j = 10; optional bool k = 1023; oneof alone { uint64 l = 12; }
  float m = 13; fixed64 n = 14; bytes o = 15; Kind p = 16; sfixed32 q = 17;
  enum Kind { NONE = 0; CARD = 1; }
}
"""
SCHEMAS = schemas_with(s7=SchemaText(7, "PROTOBUF", EVERY_KIND))
"""Compiled once: protoc takes its time."""
FIRST = (0,)
WRITTEN = "abcdefghijkl"
PLAIN = st.text(st.characters(codec="ascii", exclude_categories=["C"], exclude_characters='"\\'), max_size=5)
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys("aci", st.integers(-(2**63), 2**63 - 1)),
    **dict.fromkeys("bdq", st.integers(-(2**31), 2**31 - 1)),
    **dict.fromkeys("eln", st.integers(0, 2**64 - 1)),
    "f": st.integers(0, 2**32 - 1),
    **dict.fromkeys("gk", st.booleans()),
    **dict.fromkeys("hj", PLAIN),
    "m": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "o": st.sampled_from(["", "/w==", "AAAA"]),
    "p": st.sampled_from(["NONE", "CARD"]),
}


@st.composite
def flat_messages(draw: st.DrawFn) -> tuple[list[bytes], list[str]]:
    """Values, of which one may be spoilt, and the paths that are asked for."""
    some = st.fixed_dictionaries({}, optional=MEMBERS)
    values = [written(EVERY_KIND, draw(some), place=FIRST) for _ in range(draw(st.integers(1, 3)))]
    if draw(st.booleans()):
        at, put, gone = draw(st.integers(0, 40)), draw(st.binary(max_size=12)), draw(st.integers(0, 3))
        values[-1] = values[-1][:at] + put + values[-1][at + gone :]
    if draw(st.booleans()):
        values[-1] += written(EVERY_KIND, draw(some), place=FIRST)[6:]  # a field that stands twice
    return values, draw(st.lists(st.sampled_from([*MEMBERS, "absent"]), min_size=1, unique=True))


@MORE
@given(flat_messages())
def test_flat_messages_opened_together_are_what_each_is_by_itself(drawn: tuple[list[bytes], list[str]]) -> None:
    values, paths = drawn
    asked = ProtobufOpener(SCHEMAS, paths)
    found = asked.open_all(values)
    if found is not None:
        assert found == [asked.to_json(value) for value in values]


def of(**value: Any) -> bytes:
    return written(EVERY_KIND, value, place=FIRST)


def test_most_values_are_opened_together() -> None:
    one, other = of(a=-5, h="x", j="", l=2**64 - 1, m=0.5, o="AAAA"), of(b=7)
    assert ProtobufOpener(SCHEMAS, [*WRITTEN, "absent"]).open_all([one, other]) == [
        b'{"a":-5,"b":0,"c":0,"d":0,"e":0,"f":0,"g":false,"h":"x","j":"","l":18446744073709551615}',
        b'{"a":0,"b":7,"c":0,"d":0,"e":0,"f":0,"g":false,"h":""}',
    ]
    assert ProtobufOpener(SCHEMAS, ["i", "k"]).open_all([of(), of(i=1, k=True)]) == [b"{}", b'{"i":1,"k":true}']


@pytest.mark.parametrize(
    "values",
    [
        (),
        (None,),
        (of(a=1), None),
        (of(a=1), prefixed(8, b"\0")),
        (of(h="\u00e9"),),
        (of(h='a"b'),),
        (of(h="abc")[:-1],),
        (of(a=1) + b"\x08",),
        (of(a=1) + b"\x0d\0\0\0\0",),
        (of(a=1) + b"\xf8\x3e\x01",),
        (of(b=1)[:-1] + b"\xff\xff\xff\xff\x7f",),
        (of(g=True)[:-1] + b"\x02",),
        (b"\0\0",),
        (b"",),
    ],
)
def test_others_are_given_back_unread(values: tuple[bytes | None, ...]) -> None:
    assert ProtobufOpener(SCHEMAS, WRITTEN).open_all(values) is None


@pytest.mark.parametrize(
    ("members", "paths"),
    [
        ("string a = 1; double b = 2;", ["b"]),
        ("string a = 1; Kind b = 2; enum Kind { NONE = 0; }", ["b"]),
        ("string a = 1;", ["a.inside"]),
        ("string a = 1;", ["absent"]),
        ("string a = 1; repeated string b = 2;", ["a"]),
        ("string a = 1; Own b = 2; message Own { string c = 1; }", ["a"]),
        ("oneof one { string a = 1; string b = 2; }", ["a"]),
        ("string a = 1024;", ["a"]),
        ("string currency_code = 1; int64 units = 2; int32 nanos = 3;", ["units"]),
    ],
    ids=["double", "enum", "path", "absent", "list", "message", "one of two", "number", "money"],
)
def test_a_message_that_is_not_flat_is_left_to_protobuf(members: str, paths: list[str]) -> None:
    schema = f'syntax = "proto3"; message Payment {{ {members} }}'
    assert opener(schema, *paths).open_all([prefixed(7, b"\0")]) is None


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        (((1, 7, False, 0),), ()),
        (((1, 7, False, 1),), (b'"a":',)),
        (((1, 7, False, -1),), (b'"a":',)),
        (((1, 7, False, 0), (2, 7, False, 0)), (b'"a":',)),
        (((1, 7, False, 0), (1, 7, False, -1)), (b'"a":',)),
        (((0, 7, False, 0),), (b'"a":',)),
        (((1024, 7, False, 0),), (b'"a":',)),
        (((1, 8, False, 0),), (b'"a":',)),
        (((1, 12, False, -1), (2, 7, False, 0)), (b'"a":',)),
        (((1, 7, False, 0),), ("a",)),
    ],
)
def test_a_plan_that_is_none_is_refused(fields: Any, names: Any) -> None:
    with pytest.raises(ValueError, match="expected"):
        open_flat([b""], b"", fields, names)


@MORE
@given(st.binary(max_size=40))
@example(b"\xff" * 10)
@example(b"\x08" + b"\x80" * 9 + b"\x01")
@example(b"\x8a\x80\x80\x80\x80\x00\x01x")
@example(b"\x8a\x80\x80\x80\x00\x01x")
@example(b"\x42\x81\x80\x80\x80\x80\x00x")
@example(b"\x42\x81\x80\x80\x80\x00x")
def test_any_bytes_are_a_flat_message_or_none(body: bytes) -> None:
    value, asked = prefixed(7, b"\0" + body), ProtobufOpener(SCHEMAS, WRITTEN)
    found = asked.open_all([value])
    if found is not None:
        assert found == [asked.to_json(value)]
