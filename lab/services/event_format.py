"""In which format the lab's services write events, and how they read them: one for a process and all that it starts.

Told by the environment (`VARIABLE`); without it, JSON. Uses libraries alone and nothing of Tallystick's own readers.
"""

import io
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from typing import Any

VARIABLE = "LAB_EVENT_FORMAT"
"""The format, and behind a colon its schema's id in the registry: `avro:3`."""

Fields = Mapping[str, str | int]
"""An event's fields, as they stand in JSON."""

_TEXTS = ("event_id", "payment_id", "leg", "currency", "occurred_at")
_NUMBERS = ("amount_minor",)
_OPTIONAL = {"account": "string", "sequence": "long"}

AVRO_SCHEMA: Mapping[str, Any] = {
    "type": "record",
    "name": "Event",
    "namespace": "lab",
    "fields": [
        *({"name": name, "type": "string"} for name in _TEXTS),
        *({"name": name, "type": "long"} for name in _NUMBERS),
        *({"name": name, "type": ["null", kind], "default": None} for name, kind in _OPTIONAL.items()),
    ],
}
PROTOBUF_SCHEMA = """
syntax = "proto3";
package lab;
message Event {
  string event_id = 1;
  string payment_id = 2;
  string leg = 3;
  string currency = 4;
  string occurred_at = 5;
  int64 amount_minor = 6;
  optional string account = 7;
  optional int64 sequence = 8;
}
"""
LEG_HEADER = "ce_type"
"""Where an envelope's leg stands."""

_FIRST_MESSAGE = b"\0"
"""Of Confluent's message indexes: the first of its file."""


class EventFormat(StrEnum):
    """As `event.format` of a contract names it; envelope: JSON whose fields a contract names by their places."""

    JSON = "json"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    JSON_SCHEMA = "json_schema"
    DEBEZIUM = "debezium"
    ENVELOPE = "envelope"


@dataclass(frozen=True)
class WrittenAs:
    """One format. schema_id: in the registry, where the format has schemas."""

    format: EventFormat = EventFormat.JSON
    schema_id: int = 0

    @property
    def setting(self) -> str:
        """Return it as `VARIABLE` says it."""
        return f"{self.format}:{self.schema_id}"

    @classmethod
    def parse(cls, setting: str) -> "WrittenAs":
        name, _, schema_id = setting.partition(":")
        return cls(EventFormat(name), int(schema_id or 0))

    def write(self, fields: Fields) -> bytes:
        """Return a record's value."""
        match self.format:
            case EventFormat.AVRO:
                return self._head + _avro_bytes(fields)
            case EventFormat.PROTOBUF:
                body: bytes = _protobuf_class()(**fields).SerializeToString(deterministic=True)
                return self._head + _FIRST_MESSAGE + body
            case _:
                return self.around(json.dumps(fields).encode())

    def read(self, value: bytes) -> dict[str, Any]:
        """Return the fields of a value that `write` gave; those without a value are left out."""
        match self.format:
            case EventFormat.AVRO:
                return {name: field for name, field in _avro_fields(value[5:]).items() if field is not None}
            case EventFormat.PROTOBUF:
                message = _protobuf_class().FromString(value[6:])
                left_out = [name for name in _OPTIONAL if not message.HasField(name)]
                names = [one["name"] for one in AVRO_SCHEMA["fields"] if one["name"] not in left_out]
                return {name: getattr(message, name) for name in names}
            case EventFormat.JSON_SCHEMA:
                return dict(json.loads(value[5:]))
            case EventFormat.DEBEZIUM:
                return dict(json.loads(value)["payload"]["after"])
            case EventFormat.ENVELOPE:
                return dict(json.loads(value)["data"]["order"])
            case EventFormat.JSON:
                return dict(json.loads(value))

    def around(self, text: bytes) -> bytes:
        """Return JSON, sound or not, as a record of this format has it; a binary format has it bare, and unreadable."""
        match self.format:
            case EventFormat.JSON_SCHEMA:
                return self._head + text
            case EventFormat.DEBEZIUM:
                return b'{"schema": null, "payload": {"op": "c", "before": null, "after": %s}}' % text
            case EventFormat.ENVELOPE:
                return b'{"specversion": "1.0", "id": "envelope", "data": {"order": %s}}' % text
            case _:
                return text

    def headers(self, leg: str) -> dict[str, str]:
        """Return what of an event stands in its record's headers."""
        return {LEG_HEADER: leg} if self.format is EventFormat.ENVELOPE else {}

    @property
    def _head(self) -> bytes:
        return b"\0" + self.schema_id.to_bytes(4, "big")


def written_as() -> WrittenAs:
    """Return the format of this process."""
    return WrittenAs.parse(os.environ.get(VARIABLE, EventFormat.JSON))


@contextmanager
def writing(written: WrittenAs) -> Iterator[None]:
    """Let this process, and what it starts, write events so for the length of a block."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = written.setting
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def _avro_bytes(fields: Fields) -> bytes:
    from fastavro import schemaless_writer  # the rules' tests run where no such library is

    stream = io.BytesIO()
    schemaless_writer(stream, _avro_schema(), fields)
    return stream.getvalue()


def _avro_fields(body: bytes) -> dict[str, Any]:
    from fastavro import schemaless_reader

    fields = schemaless_reader(io.BytesIO(body), _avro_schema(), None)
    assert isinstance(fields, dict)
    return fields


@cache
def _avro_schema() -> Any:
    from fastavro import parse_schema

    return parse_schema(dict(AVRO_SCHEMA))


@cache
def _protobuf_class() -> Any:
    """The class of `PROTOBUF_SCHEMA`'s message, described by hand: the lab needs no protoc."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    described = descriptor_pb2.FileDescriptorProto(name="event.proto", package="lab", syntax="proto3")
    message = described.message_type.add(name="Event")
    kinds = descriptor_pb2.FieldDescriptorProto
    add = partial(message.field.add, label=kinds.LABEL_OPTIONAL)
    for number, name in enumerate(_TEXTS, 1):
        add(name=name, number=number, type=kinds.TYPE_STRING)
    for number, name in enumerate(_NUMBERS, 1 + len(_TEXTS)):
        add(name=name, number=number, type=kinds.TYPE_INT64)
    for place, (name, kind) in enumerate(_OPTIONAL.items()):
        message.oneof_decl.add(name=f"_{name}")  # proto3's optional is a oneof of one field
        add(
            name=name,
            number=1 + len(_TEXTS) + len(_NUMBERS) + place,
            type=kinds.TYPE_STRING if kind == "string" else kinds.TYPE_INT64,
            proto3_optional=True,
            oneof_index=place,
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(described)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("lab.Event"))
