"""Protobuf values, as a producer with Confluent's serializer writes them."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tallystick.formats.protobuf import ProtobufSchema
from tallystick.formats.schema_cache import SchemaText
from tests.avro_values import prefixed

FLAT = """
syntax = "proto3";
package shop;
message Other { string event_id = 9; }
message Payment {
  string event_id = 1;
  optional string payment_id = 2;
  Leg leg = 3;
  int64 amount_minor = 4;
  string currency = 5;
  double rate = 6;
  enum Leg { payment = 0; invoice = 1; }
  message Inner { message Innermost { string event_id = 1; int64 amount_minor = 2; } }
}
"""
PAYMENT = (1,)
"""The place of Payment in its file."""
WHOLE = {"event_id": "ev-1", "payment_id": "pay-1", "leg": "payment", "amount_minor": 1000, "currency": "EUR"}


@cache
def compiled(text: str) -> ProtobufSchema:
    """A schema, compiled once for all tests."""
    return ProtobufSchema(SchemaText(7, "PROTOBUF", text))


def zigzag(number: int) -> bytes:
    """A varint of a number that is not negative."""
    number, written = number << 1, b""
    while number > 0x7F:
        written += bytes([number & 0x7F | 0x80])
        number >>= 7
    return written + bytes([number])


def written(text: str, value: Mapping[str, Any], *, schema_id: int = 7, place: Sequence[int] = PAYMENT) -> bytes:
    """A message behind its schema's id and its place. That of the first message is one zero."""
    from google.protobuf import json_format

    message = json_format.ParseDict(dict(value), compiled(text).message_class(place)())
    indexes = b"\0" if tuple(place) == (0,) else zigzag(len(place)) + b"".join(map(zigzag, place))
    return prefixed(schema_id, indexes + message.SerializeToString())
