"""What somebody with WRITE on a topic controls where values are no plain JSON; and what a registry says is Avro."""

import json
from contextlib import suppress
from unittest.mock import patch

from tallystick.contract.event import EventFields
from tallystick.formats.avro import AvroOpener
from tallystick.formats.prefix import Undecodable
from tallystick.formats.schema_cache import SchemaCache, SchemaText
from tallystick.kafka_log.event_decoder import EventDecoder
from tests.avro_values import FLAT, WHOLE, changed, prefixed, record_of, schemas_with, written
from tests.protobuf_values import FLAT as FLAT_PROTO
from tests.protobuf_values import WHOLE as WHOLE_PROTO
from tests.protobuf_values import written as written_proto

from .log_targets import found_by_its_key, same_by_columns, sound_or_said
from .pieces import Pieces

_ROW = record_of(*FLAT, name="Value")
_ENVELOPE = record_of(
    {"name": "after", "type": ["null", _ROW]}, {"name": "op", "type": ["null", "string"]}, name="Envelope"
)
_KEYS = ["null", "long", "string", "bytes", "double", {"type": "array", "items": "string"}]
_SCHEMAS = schemas_with(
    s7=record_of(*FLAT),
    s8=changed("event_id", _KEYS),
    s9=_ENVELOPE,
    s11=SchemaText(11, "PROTOBUF", FLAT_PROTO),
)
_REGISTRY = "schemas"
_EVENT = {name: value for name, value in WHOLE.items() if name != "occurred_at"}
_SOUND = (
    (EventFields(format="avro").asking(_REGISTRY), written(record_of(*FLAT), WHOLE)),
    (EventFields(format="protobuf").asking(_REGISTRY), written_proto(FLAT_PROTO, WHOLE_PROTO, schema_id=11)),
    (EventFields(format="debezium"), json.dumps({"op": "c", "after": _EVENT}).encode()),
    (EventFields(format="debezium").asking(_REGISTRY), written(_ENVELOPE, {"after": WHOLE, "op": "c"}, schema_id=9)),
    (EventFields(format="json_schema"), prefixed(7, json.dumps(_EVENT).encode())),
)


def formats(data: bytes) -> None:
    """The first byte picks the format, the rest is a value: all ways say the same of it."""
    pieces = Pieces(data)
    picked = pieces.byte()
    (fields, sound), several_legs = _SOUND[picked % len(_SOUND)], picked >= 0x80
    value = pieces.rest()
    with patch("tallystick.formats.opener.schemas_of", lambda _: _SCHEMAS):
        decoder = EventDecoder(fields, several_legs=several_legs)
        assert not decoder.read(sound).problem
        reading = decoder.read(value)
        sound_or_said(reading)
        for values in ([value], [sound, value, sound]):
            same_by_columns(decoder, values, len(values) // 2, reading)
        found_by_its_key(fields, value)


def avro_schemas(data: bytes) -> None:
    """The first half, by its length in two bytes, is a schema; what is left are values of it."""
    pieces = Pieces(data)
    text = (pieces.sized() or b"").decode(errors="replace")
    opener = AvroOpener(SchemaCache(lambda schema_id: SchemaText(schema_id, "AVRO", text)), ["a", "b.c"])
    with suppress(Undecodable):
        assert json.loads(opener.to_json(prefixed(7, pieces.rest()))).keys() <= {"a", "b"}
        opener.why_unusable(prefixed(7, b""), "a")
