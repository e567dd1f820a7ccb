"""One JSON object out of a record whose event does not stand in its value alone: value, headers, key and timestamp.

So every way of reading an event reads such a record by paths, as it reads a value: `value.data.id`, `header.ce_id`,
`key`, `timestamp`. A value is put in only if it is one JSON value by itself, so that none can write the members beside
it.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Protocol

import msgspec

from tallystick.contract.event import EventFields
from tallystick.contract.field_path import names_of, path_of
from tallystick.contract.field_types import HeaderPlace, Place

_FIELDS = ("match_key", "transaction_key", "leg", "currency", "amount_minor", "ordering_key", "sequence")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
VALUE = "value"
"""The member that holds the record's value."""

_one_json = msgspec.json.Decoder(msgspec.Raw).decode
_as_json = msgspec.json.encode


class PlacedRecord(Protocol):
    """A record's key, value, headers, and timestamp in milliseconds since 1970, negative where it has none.

    Of several headers of a name the last counts, as Kafka's lastHeader has it.
    """

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Iterable[tuple[str, bytes | None]]: ...
    @property
    def timestamp(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A contract's fields as paths into such objects, and what is put into them."""

    fields: EventFields
    headers: frozenset[str]
    compared_headers: frozenset[str]
    reads_key: bool
    compares_key: bool
    reads_timestamp: bool
    reads_value: bool

    def payload(self, record: PlacedRecord, *, opened: Callable[[bytes], bytes]) -> bytes | None:
        """Return the object of one record; None of a tombstone. opened: gives a value as JSON.

        Raises Undecodable, RegistryUnreachable as `opened` does, and msgspec's errors of a value that is no JSON.
        """
        if record.value is None:
            return None
        members = []
        if self.reads_key:
            members.append(b'"key":%b' % _text(record.key, is_compared=self.compares_key))
        if self.reads_timestamp:
            members.append(b'"timestamp":%b' % _moment(record.timestamp))
        if self.headers:
            said = {name: text for name, text in record.headers if name in self.headers}
            inside = (
                b"%b:%b" % (_as_json(name), _text(text, is_compared=name in self.compared_headers))
                for name, text in said.items()
            )
            members.append(b'"header":{%b}' % b",".join(inside))
        if self.reads_value:
            members.append(b'"value":%b' % bytes(_one_json(opened(record.value).removeprefix(BOM_UTF8))))
        return b"{%b}" % b",".join(members)


def placed_of(fields: EventFields) -> Placed | None:
    """Return how a contract's records are read; None where all its fields stand in the value, which is read alone."""
    if not fields.places:
        return None
    stated = ((name, getattr(fields, name)) for name in _FIELDS)
    moved = {name: _path(one) for name, one in stated if isinstance(one, str | Place)}
    records = {one.record for one in fields.places if not isinstance(one, HeaderPlace)}
    compared = fields.compared.places
    return Placed(
        fields=fields.model_copy(update=moved).comparing(fields.compared.moved(_path)),
        headers=frozenset(one.header for one in fields.places if isinstance(one, HeaderPlace)),
        compared_headers=frozenset(one.header for one in compared if isinstance(one, HeaderPlace)),
        reads_key="key" in records,
        compares_key=any(one.record == "key" for one in compared if not isinstance(one, HeaderPlace)),
        reads_timestamp="timestamp" in records,
        reads_value=bool(fields.paths or fields.compared.paths),
    )


def _path(field: str | Place) -> str:
    """Return where a field of the value, or a place beside it, stands in such an object."""
    if isinstance(field, str):
        return path_of((VALUE, *names_of(field)))
    return path_of(("header", field.header)) if isinstance(field, HeaderPlace) else field.record


def _moment(timestamp_ms: int) -> bytes:
    """Return a time as a JSON string; what is beyond the year 9999 is the number that stands there."""
    if timestamp_ms < 0:
        return b"null"
    try:
        return _as_json((_EPOCH + timedelta(milliseconds=timestamp_ms)).isoformat(timespec="milliseconds"))
    except OverflowError:
        return _as_json(str(timestamp_ms))


def _text(written: bytes | None, *, is_compared: bool) -> bytes:
    """Return bytes as a JSON string. Where they are no text a field is missing, and their digest is compared."""
    if written is None:
        return b"null"
    try:
        return _as_json(written.decode())
    except UnicodeDecodeError:
        return _as_json(f"SHA-256 {sha256(written).hexdigest()} of {len(written)} bytes") if is_compared else b"null"
