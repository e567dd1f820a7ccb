"""Open a record's value: from the bytes of its format to one JSON object, which the rule of all readers then reads.

The rule itself is `tallystick.kafka_log.event_decoder.EventDecoder`: which fields an event has, and what is sound in
them. A format decides only what stands at a path. JSON needs no opening, so it has no opener.
"""

from typing import Protocol

from tallystick.contract.event import EventFields
from tallystick.formats.avro import AvroOpener
from tallystick.formats.debezium import AvroDebeziumOpener, DebeziumOpener
from tallystick.formats.prefix import PrefixedJsonOpener
from tallystick.formats.protobuf import ProtobufOpener
from tallystick.formats.schema_cache import SchemaCache, schemas_of


class Opener(Protocol):
    """One contract's way into the values of a topic."""

    @property
    def keeps_text(self) -> bool:
        """Return whether a key's text stands in the value as JSON writes it, so that its bytes can be searched for."""

    def to_json(self, value: bytes) -> bytes:
        """Return the value as one JSON object. Raises Undecodable, RegistryUnreachable."""

    def why_unusable(self, value: bytes, path: str) -> str:
        """Return why this value's schema can give no field at a path; "" where it may, or where there is no schema."""


def opener_of(fields: EventFields) -> Opener | None:
    """Return the opener of a contract's events; None where the value is JSON as it stands.

    Raises LibraryMissing, ConnectionNotGiven.
    """
    paths, compared = sorted(set(fields.paths)), fields.compared.paths
    match fields.format:
        case "json":
            return None
        case "json_schema":
            return PrefixedJsonOpener()
        case "avro":
            return AvroOpener(_schemas(fields), paths, compared)
        case "protobuf":
            return ProtobufOpener(_schemas(fields), paths, compared)
        case "debezium":
            if fields.registry is None:
                return DebeziumOpener()
            return AvroDebeziumOpener(_schemas(fields), paths, compared)


def _schemas(fields: EventFields) -> SchemaCache:
    assert fields.registry is not None  # a contract with such a format names one
    return schemas_of(fields.registry)
