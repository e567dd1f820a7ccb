"""Avro values and schemas of them, as a producer with Confluent's serializer writes them."""

import io
import json
from collections.abc import Mapping
from typing import Any

from fastavro import parse_schema, schemaless_writer

from tallystick.formats.prefix import Undecodable
from tallystick.formats.schema_cache import SchemaCache, SchemaText

FLAT = [
    {"name": "event_id", "type": "string"},
    {"name": "payment_id", "type": "string"},
    {"name": "leg", "type": {"type": "enum", "name": "Leg", "symbols": ["payment", "invoice"]}},
    {"name": "amount_minor", "type": "long"},
    {"name": "currency", "type": "string"},
    {"name": "occurred_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
WHOLE = {
    "event_id": "ev-1",
    "payment_id": "pay-1",
    "leg": "payment",
    "amount_minor": 1000,
    "currency": "EUR",
    "occurred_at": 1_767_225_600_000,
}


def record_of(*fields: Mapping[str, Any], name: str = "Payment") -> dict[str, Any]:
    """A record's schema."""
    return {"type": "record", "name": name, "namespace": "shop", "fields": list(fields)}


def changed(name: str, kind: Any) -> dict[str, Any]:
    """The flat record's schema, with another type for one field."""
    return record_of(*({**one, "type": kind} if one["name"] == name else one for one in FLAT))


def prefixed(schema_id: int, body: bytes) -> bytes:
    """Confluent's wire format."""
    return b"\0" + schema_id.to_bytes(4, "big") + body


def written(schema: Mapping[str, Any], value: Any, *, schema_id: int = 7, **others: Any) -> bytes:
    """A value under a schema, behind its id. others: what the schema refers to, by name."""
    stream, named = io.BytesIO(), dict[str, Any]()
    for one in others.values():
        parse_schema(one, named_schemas=named)
    schemaless_writer(stream, parse_schema(schema, named_schemas=named), value)
    return prefixed(schema_id, stream.getvalue())


def schemas_with(**texts: Any) -> SchemaCache:
    """A cache that knows these schemas, each by the number behind its s, and has nobody to ask."""

    def read(schema_id: int) -> SchemaText:
        schema = texts.get(f"s{schema_id}")
        if schema is None:
            raise Undecodable(f"its schema {schema_id} is not in the schema registry")
        return schema if isinstance(schema, SchemaText) else SchemaText(schema_id, "AVRO", json.dumps(schema))

    return SchemaCache(read)
