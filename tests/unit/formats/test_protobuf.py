"""Each type of Protobuf at the end of a path, and values that are none of their schema's."""

import json
from typing import Any

import pytest

from tallystick.contract.event import EventFields
from tallystick.formats.prefix import Undecodable
from tallystick.formats.protobuf import ProtobufOpener
from tallystick.formats.schema_cache import SchemaText
from tests.avro_values import prefixed, schemas_with
from tests.protobuf_values import FLAT, PAYMENT, WHOLE, compiled, written

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
