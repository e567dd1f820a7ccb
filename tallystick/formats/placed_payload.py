"""One JSON object out of a record whose event does not stand in its value alone: value, headers and key side by side.

So every way of reading an event reads such a record by paths, as it reads a value: `value.data.id`, `header.ce_id`,
`key`. A value is put in only if it is one JSON value by itself, so that none can write the members beside it.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from tallystick.contract.event import EventFields
from tallystick.contract.field_path import names_of, path_of
from tallystick.contract.field_types import HeaderPlace, KeyPlace

_PLACEABLE = ("match_key", "transaction_key", "leg", "currency")
_IN_VALUE = (*_PLACEABLE, "amount_minor", "ordering_key", "sequence")
VALUE = "value"
"""The member that holds the record's value."""

_one_json = msgspec.json.Decoder(msgspec.Raw).decode
_as_json = msgspec.json.encode


class PlacedRecord(Protocol):
    """A record's key, value and headers. Of several headers of a name the last counts, as Kafka's lastHeader has it."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Iterable[tuple[str, bytes | None]]: ...


@dataclass(frozen=True)
class Placed:
    """A contract's fields as paths into such objects, and what is put into them."""

    fields: EventFields
    headers: frozenset[str]
    reads_key: bool
    reads_value: bool

    def payload(self, record: PlacedRecord, *, opened: Callable[[bytes], bytes]) -> bytes | None:
        """Return the object of one record; None of a tombstone. opened: gives a value as JSON.

        Raises Undecodable, RegistryUnreachable as `opened` does, and msgspec's errors of a value that is no JSON.
        """
        if record.value is None:
            return None
        members = []
        if self.reads_key:
            members.append(b'"key":%b' % _text(record.key))
        if self.headers:
            said = {name: text for name, text in record.headers if name in self.headers}
            inside = b",".join(b"%b:%b" % (_as_json(name), _text(text)) for name, text in said.items())
            members.append(b'"header":{%b}' % inside)
        if self.reads_value:
            members.append(b'"value":%b' % bytes(_one_json(opened(record.value).removeprefix(BOM_UTF8))))
        return b"{%b}" % b",".join(members)


def placed_of(fields: EventFields) -> Placed | None:
    """Return how a contract's records are read; None where all its fields stand in the value, which is read alone."""
    places = {name: place for name in _PLACEABLE if isinstance(place := getattr(fields, name), HeaderPlace | KeyPlace)}
    if not places:
        return None
    headers = {name: place.header for name, place in places.items() if isinstance(place, HeaderPlace)}
    paths = {name: path for name in _IN_VALUE if isinstance(path := getattr(fields, name), str)}
    changed = (
        {name: path_of(("header", header)) for name, header in headers.items()}
        | dict.fromkeys(places.keys() - headers.keys(), "key")
        | {name: path_of((VALUE, *names_of(path))) for name, path in paths.items()}
    )
    return Placed(
        fields=fields.model_copy(update=changed).comparing(fields.compared.inside(VALUE)),
        headers=frozenset(headers.values()),
        reads_key=len(headers) < len(places),
        reads_value=bool(paths or fields.compared),
    )


def _text(written: bytes | None) -> bytes:
    """Return bytes as a JSON string; null where they are no text, which is then missing."""
    try:
        return b"null" if written is None else _as_json(written.decode())
    except UnicodeDecodeError:
        return b"null"
