"""Debezium's change events: the row as it was inserted is the event, and any other change is none.

An envelope has op, before and after, alone or as the payload beside its schema. Of op c (inserted) and r (there at a
snapshot) the event is what stands in `after`. An update or a deletion is unreadable in words: a row that changed is an
event said twice, with two meanings. Envelopes are JSON, or Avro where the contract names a schema registry.
"""

from codecs import BOM_UTF8
from collections.abc import Sequence
from typing import Any

import msgspec

from tallystick.formats.avro import AvroOpener, encode
from tallystick.formats.prefix import Undecodable
from tallystick.formats.schema_cache import SchemaCache

_INSERTED = ("c", "r")
_OTHERS = {"u": "an update", "d": "a deletion", "t": "a truncation", "m": "a message"}
_NOTHING = (b"", b"null")


class _Envelope(msgspec.Struct, gc=False):
    op: Any = None
    after: msgspec.Raw = msgspec.Raw()
    payload: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Envelope).decode


class DebeziumOpener:
    """Opens envelopes of JSON, with and without the schema around them."""

    keeps_text = True

    def to_json(self, value: bytes) -> bytes:
        """Return the row. Raises Undecodable."""
        envelope = _envelope(value.removeprefix(BOM_UTF8))
        if envelope.op is None and bytes(envelope.payload) not in _NOTHING:
            envelope = _envelope(bytes(envelope.payload))
        _refuse_no_insert(envelope.op)
        return bytes(envelope.after) or b"null"

    def why_unusable(self, value: bytes, path: str) -> str:
        """Return nothing: JSON has no schema that we read."""
        return ""


class AvroDebeziumOpener:
    """Opens envelopes of Avro. paths, compared: what the contract reads of the row."""

    keeps_text = False

    def __init__(self, schemas: SchemaCache, paths: Sequence[str], compared: Sequence[str] = ()) -> None:
        self._envelopes = AvroOpener(schemas, ["op", *map(_in_row, paths)], list(map(_in_row, compared)))

    def to_json(self, value: bytes) -> bytes:
        """Return the row. Raises Undecodable, RegistryUnreachable."""
        envelope = self._envelopes.document(value)
        _refuse_no_insert(envelope.get("op"))
        return encode(envelope.get("after"))

    def why_unusable(self, value: bytes, path: str) -> str:
        """Return why the envelope's schema gives no field at a path of the row."""
        return self._envelopes.why_unusable(value, _in_row(path))


def _in_row(path: str) -> str:
    return f"after.{path}"


def _envelope(value: bytes) -> _Envelope:
    try:
        return _decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Undecodable("it is not one JSON object with a Debezium envelope in it") from None


def _refuse_no_insert(op: Any) -> None:
    if op in _INSERTED:
        return
    if op is None:
        raise Undecodable("it is no Debezium envelope: op is missing, at its top and in payload")
    what = _OTHERS.get(op, "none of Debezium's") if isinstance(op, str) else "no text"
    raise Undecodable(f"its op is {what}; expected c or r, since a row is one event, as it was inserted")
