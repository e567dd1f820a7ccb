"""A round whose events are written in one of the formats: its schema registered, its contracts told of it."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from lab.servers.schema_registry import SchemaRegistry
from lab.services.event_format import (
    AVRO_SCHEMA,
    LEG_HEADER,
    PROTOBUF_SCHEMA,
    EventFormat,
    WrittenAs,
    writing,
    written_as,
)

REGISTRY = "registry_lab"
_CONNECTION = f"TALLYSTICK_CONN_{REGISTRY.upper()}"
_SCHEMAS = {
    EventFormat.AVRO: ("AVRO", json.dumps(AVRO_SCHEMA)),
    EventFormat.PROTOBUF: ("PROTOBUF", PROTOBUF_SCHEMA),
}
_IN_THE_VALUE = {"match_key": "event_id", "amount_minor": "amount_minor", "currency": "currency"}
_ORDERED = {"ordering_key", "sequence"}
_ELSEWHERE = {"leg": {"header": LEG_HEADER}, "transaction_key": {"record": "key"}}
_ID_OF_NO_SCHEMA = 7
"""JSON behind a schema's id is read without a registry."""


@contextmanager
def written_events(event_format: EventFormat, folder: Path) -> Iterator[None]:
    """Let the lab write events so for the length of a block, with a registry in `folder` where the format needs one."""
    with ExitStack() as cleanup:
        schema_id = _ID_OF_NO_SCHEMA
        if event_format in _SCHEMAS:
            registry = SchemaRegistry(folder)
            cleanup.callback(registry.stop)
            registry.start()
            kind, schema = _SCHEMAS[event_format]
            schema_id = registry.register("lab-events", schema, kind=kind)
            os.environ[_CONNECTION] = json.dumps({"url": registry.url})
            cleanup.callback(os.environ.pop, _CONNECTION)
        cleanup.enter_context(writing(WrittenAs(event_format, schema_id)))
        yield


def format_in(contract: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contract with the format in which this process writes events; JSON needs no word.

    Of an envelope: with the paths to what it names else by a bare key, the leg in a header, and the payment's id as the
    record's key.
    """
    written, event = written_as().format, contract.get("event", {})
    if written is EventFormat.JSON:
        return dict(contract)
    if written is EventFormat.ENVELOPE:
        keys = _IN_THE_VALUE | {name: key for name, key in event.items() if name in _ORDERED}
        deeper = {name: f"data.order.{key}" for name, key in keys.items()}
        return {**contract, "event": {**event, **deeper, **_ELSEWHERE}}
    registry = {"schema_registry": REGISTRY} if written in _SCHEMAS else {}
    return {
        **contract,
        "event": {**event, "format": str(written)},
        "kafka": {**contract["kafka"], **registry},
    }
