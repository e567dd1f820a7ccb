"""Types of Avro and Protobuf in columns that are compared besides money: what each is written as, and what is none."""

import json
from typing import Any

import pytest

from tallystick.contract.event import EventFields
from tallystick.formats.avro import AvroOpener
from tallystick.formats.debezium import AvroDebeziumOpener
from tallystick.formats.prefix import Undecodable
from tallystick.formats.protobuf import ProtobufOpener
from tallystick.formats.schema_cache import SchemaText
from tests.avro_values import FLAT, WHOLE, record_of, schemas_with, written
from tests.protobuf_values import written as written_message

PATHS = sorted(set(EventFields().paths))
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}


def field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind}


def of_avro(kind: Any, value: Any) -> Any:
    """The column `it` of a record, beside the contract's fields."""
    schema = record_of(*FLAT, field("it", kind))
    raw = json.loads(json.dumps(schema).replace('"logicalType"', '"ignored"'))
    opener = AvroOpener(schemas_with(s7=schema), PATHS, ["it"])
    found = json.loads(opener.to_json(written(raw, {**WHOLE, "it": value})), parse_float=str)
    assert {name: found[name] for name in PATHS} == {name: WHOLE[name] for name in PATHS}
    return found.get("it")


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ("string", "é", "é"),
        ("long", -5, -5),
        ("boolean", True, True),
        ("double", 0.1, "0.1"),
        ("double", 1e300, "1e+300"),
        ("double", float("nan"), "NaN"),
        ("double", float("inf"), "Infinity"),
        ("float", float("-inf"), "-Infinity"),
        ("float", 0.5, "0.5"),
        ("float", 0.1, "0.1"),
        ("float", 16777216.0, "16777216.0"),
        ("float", 3.4028234663852886e38, "3.4028235e+38"),
        (["null", "float", "double"], 0.5, "0.5"),
        (DECIMAL, (1250).to_bytes(2, "big"), "12.50"),
        (["null", "double"], None, None),
        (["null", "double"], 2.5, "2.5"),
        ({"type": "long", "logicalType": "timestamp-millis"}, 1_767_225_600_001, "2026-01-01T00:00:00.001000Z"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, 1_500, "1970-01-01T00:00:00.000002Z"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, 2_500, "1970-01-01T00:00:00.000002Z"),
        ({"type": "long", "logicalType": "timestamp-micros"}, 1_767_225_600_000_000, "2026-01-01T00:00:00Z"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, -1, "1969-12-31T23:59:59.999000Z"),
        ({"type": "int", "logicalType": "date"}, 20_454, "2026-01-01T00:00:00Z"),
        ({"type": "long", "logicalType": "timestamp-millis"}, 2**62, 2**62),
        (["null", {"type": "long", "logicalType": "timestamp-millis"}], 0, "1970-01-01T00:00:00Z"),
    ],
)
def test_what_avro_can_say_in_one_text_is_compared(kind: Any, value: Any, read: Any) -> None:
    assert of_avro(kind, value) == read


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("bytes", b"x", "it is bytes in its schema 7"),
        ({"type": "array", "items": "string"}, ["x"], "it is list in its schema 7"),
        (record_of(field("a", "string")) | {"name": "Inside"}, {"a": "x"}, "it is record in its schema 7"),
        (["null", "long", {"type": "int", "logicalType": "date"}], 5, "it is whole numbers of several meanings"),
    ],
)
def test_what_avro_cannot_makes_the_record_unreadable_with_the_reason(kind: Any, value: Any, said: str) -> None:
    with pytest.raises(Undecodable, match=said):
        of_avro(kind, value)


def test_a_schema_without_the_column_says_nothing_there() -> None:
    opener = AvroOpener(schemas_with(s7=record_of(*FLAT)), PATHS, ["it", "inside.it"])
    assert json.loads(opener.to_json(written(record_of(*FLAT), WHOLE))) == {name: WHOLE[name] for name in PATHS}


def test_a_row_in_debeziums_envelope_has_its_columns() -> None:
    row = record_of(field("event_id", "string"), field("fee", "double"))
    envelope = record_of(field("op", "string"), field("after", ["null", row | {"name": "Row"}]))
    opener = AvroDebeziumOpener(schemas_with(s7=envelope), ["event_id"], ["fee"])
    value = written(envelope, {"op": "c", "after": {"event_id": "a", "fee": 0.25}})
    assert json.loads(opener.to_json(value)) == {"event_id": "a", "fee": 0.25}


MESSAGE = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Payment {
  string text = 1; bool truth = 2; float single = 3; double twice = 4; bytes raw = 5; repeated string many = 6;
  google.protobuf.Timestamp at = 7; optional double maybe = 8; Own own = 9; int64 whole = 10;
  message Own { double fee = 1; }
}
"""


def of_protobuf(path: str, value: dict[str, Any]) -> Any:
    opener = ProtobufOpener(schemas_with(s7=SchemaText(7, "PROTOBUF", MESSAGE)), ["text"], [path])
    found = json.loads(opener.to_json(written_message(MESSAGE, value, place=(0,))), parse_float=str)
    for name in path.split("."):
        found = (found or {}).get(name)
    return found


@pytest.mark.parametrize(
    ("path", "value", "read"),
    [
        ("truth", {"truth": True}, True),
        ("truth", {}, False),
        ("whole", {"whole": 7}, 7),
        ("single", {"single": 0.5}, "0.5"),
        ("twice", {"twice": 0.1}, "0.1"),
        ("twice", {}, "0.0"),
        ("twice", {"twice": "Infinity"}, "Infinity"),
        ("single", {"single": 0.1}, "0.1"),
        ("maybe", {}, None),
        ("own.fee", {"own": {"fee": 0.25}}, "0.25"),
        ("own.fee", {}, None),
        ("at", {}, None),
        ("absent", {}, None),
    ],
)
def test_what_protobuf_can_say_in_one_text_is_compared(path: str, value: dict[str, Any], read: Any) -> None:
    assert of_protobuf(path, value) == read


def test_a_timestamp_is_its_instant() -> None:
    assert of_protobuf("at", {"at": "2026-01-01T00:00:00.000001999Z"}) == "2026-01-01T00:00:00.000002Z"


@pytest.mark.parametrize(("path", "said"), [("raw", "bytes"), ("many", "list"), ("own", "message")])
def test_what_protobuf_cannot_makes_the_record_unreadable_with_the_reason(path: str, said: str) -> None:
    with pytest.raises(Undecodable, match=f"{path} is {said} in its schema 7"):
        of_protobuf(path, {"text": "x"})
