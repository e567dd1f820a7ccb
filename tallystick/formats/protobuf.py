"""Protobuf behind a schema's id and the place of its message: protoc compiles the registry's text, protobuf reads.

Decides what each type of Protobuf is at the end of a path:

- string, and an enum's name: a text. Every kind of integer: a whole number.
- google.type.Money, or a message that has its three fields: an object with these, and with one key more, `amount`: the
  number that units and nanos make. Its units alone are nothing that a contract can use, since cents would be lost.
- float, double, bytes, lists, maps and whole messages: nothing that a key or an amount can be. What is compared besides
  money may be a floating point number or a google.protobuf.Timestamp, too (`comparable`).
- A field that was not set: missing where the schema tells that from its default; else its default, as Protobuf says.

Fields are found by their names in the schema that wrote the record.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from tallystick.contract.field_path import document_of, names_of
from tallystick.formats.avro import EXPECTED, UNUSABLE, decimal_number, encode
from tallystick.formats.comparable import moment_of, not_comparable, number_of
from tallystick.formats.prefix import HEAD_BYTES, Undecodable, schema_id_of
from tallystick.formats.schema_cache import SchemaCache, SchemaText
from tallystick.host.extras import require

try:
    from tallystick.formats._flat_protobuf import open_flat as _open_flat
except ImportError:  # no compiler was there when Tallystick was installed: protobuf reads the same, in more time
    _open_flat = None  # type: ignore[assignment]

_PROTOC_SECONDS = 60
_MAIN = "of_the_registry.proto"
_INDEXES_MAX = 100
"""Of messages inside each other."""
_FIRST_MESSAGE = b"\0"
_NANOS = 1_000_000_000
_MONEY = {"currency_code": "string", "units": "int64", "nanos": "int32"}

Get = Callable[[Any], Any]
"""From a message to what stands at a path; None where nothing does."""
FlatFields = tuple[tuple[tuple[int, int, bool, int], ...], tuple[bytes, ...]]
"""Of a flat message: its fields, and the names that are written (`_flat_protobuf.pyi`)."""


class ProtobufOpener:
    """Opens the values of one contract's topic. paths: its fields. compared: what it compares besides money."""

    keeps_text = False

    def __init__(self, schemas: SchemaCache, paths: Sequence[str], compared: Sequence[str] = ()) -> None:
        require("grpc_tools")  # which brings protobuf
        self._schemas, self._paths, self._compared = schemas, paths, compared
        self._readers: dict[tuple[int, bytes], Callable[[bytes], dict[str, Any]]] = {}
        self._flat: dict[bytes, FlatFields | None] = {}

    def to_json(self, value: bytes) -> bytes:
        """Return the contract's paths as one JSON object. Raises Undecodable, RegistryUnreachable."""
        schema_id = schema_id_of(value)
        at = _end_of_indexes(value)
        place = schema_id, value[HEAD_BYTES:at]
        read = self._readers.get(place)
        if read is None:
            schema, indexes = self._schema(schema_id), _indexes(place[1])
            read = self._readers[place] = schema.reader_of(indexes, self._paths, self._compared)
        return encode(read(value[at:]))

    def open_all(self, values: Sequence[bytes | None]) -> list[bytes] | None:
        """Return what `to_json` returns of each, by compiled code, if all are plain values of one flat message
        (decision record 51); otherwise None, and where that code was not compiled. Raises RegistryUnreachable.
        """
        first = values[0] if values else None
        if _open_flat is None or first is None or self._compared:
            return None
        try:
            schema_id, head = schema_id_of(first), first[: _end_of_indexes(first)]
            if head not in self._flat:
                self._flat[head] = self._schema(schema_id).flat_fields(_indexes(head[HEAD_BYTES:]), self._paths)
        except Undecodable:
            return None
        flat = self._flat[head]
        return None if flat is None else _open_flat(list(values), head, *flat)

    def why_unusable(self, value: bytes, path: str) -> str:
        """Return why the value's schema gives no field at a path."""
        indexes = _indexes(value[HEAD_BYTES : _end_of_indexes(value)])
        return self._schema(schema_id_of(value)).why_unusable(indexes, path)

    def _schema(self, schema_id: int) -> "ProtobufSchema":
        return self._schemas.get("PROTOBUF", schema_id, ProtobufSchema)


class ProtobufSchema:
    """A writer's schema, compiled. Raises Undecodable."""

    def __init__(self, schema: SchemaText) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool

        self.schema_id = schema.schema_id
        files = descriptor_pb2.FileDescriptorSet.FromString(_compiled(schema)).file
        pool = descriptor_pool.DescriptorPool()
        try:
            for one in files:  # each comes behind what it imports
                pool.Add(one)
            self._file = pool.FindFileByName(_MAIN)
        except (TypeError, KeyError):
            raise Undecodable(f"its schema {self.schema_id} is no Protobuf schema") from None
        self._order = [one.name for one in next(one for one in files if one.name == _MAIN).message_type]

    def reader_of(
        self, indexes: Sequence[int], paths: Sequence[str], compared: Sequence[str] = ()
    ) -> Callable[[bytes], dict[str, Any]]:
        """Return what reads these paths of a message of this schema, into one document. Both raise Undecodable."""
        from google.protobuf.message import DecodeError

        kind, schema_id = self.message_class(indexes), self.schema_id
        descriptor, parse = kind.DESCRIPTOR, kind.FromString
        gets = {path: _getter(descriptor, names_of(path))[0] for path in paths}
        gets |= {path: self._comparable(descriptor, path) for path in compared}
        present = {path: get for path, get in gets.items() if get is not None}
        flat = all(len(names_of(path)) == 1 for path in present)
        made = _flat_document if flat else document_of

        def read(body: bytes) -> dict[str, Any]:
            try:
                message = parse(body)
            except DecodeError:
                raise Undecodable(f"its bytes are no message of its schema {schema_id}") from None
            found = {path: get(message) for path, get in present.items()}
            return made({path: value for path, value in found.items() if value is not None})

        return read

    def flat_fields(self, indexes: Sequence[int], paths: Sequence[str]) -> FlatFields | None:
        """Return the message's fields and the names that are written, as `open_flat` takes them; None where a field is
        not flat, or where what stands at a path is more than `open_flat` writes.
        """
        message = self._message(indexes)
        tops = [names_of(path)[0] for path in paths if len(names_of(path)) == 1]
        written = [name for name in tops if name in message.fields_by_name]
        fields = []
        for field in message.fields:
            kind = _flat_kinds().get(field.type, _NOT_FLAT)
            place = written.index(field.name) if field.name in written else -1
            is_one_of_several = field.containing_oneof is not None and len(field.containing_oneof.fields) > 1
            if field.is_repeated or field.is_required or is_one_of_several:
                return None
            if kind > (_WRITTEN_MAX if place >= 0 else _NOT_FLAT - 1):
                return None
            fields.append((field.number, kind, field.has_presence, place))
        numbers = [number for number, *_ in fields]
        if len(tops) != len(paths) or not written or max(numbers) >= _NUMBER_MAX or _is_money(message):
            return None
        return tuple(fields), tuple(encode(name) + b":" for name in written)

    def _comparable(self, descriptor: Any, path: str) -> Get | None:
        """Return what reads a value that is compared besides money; None where the schema has none."""
        get, kind = _getter(descriptor, names_of(path), comparable=True)
        if kind:
            raise not_comparable(path, kind, self.schema_id)
        return get

    def message_class(self, indexes: Sequence[int]) -> Any:
        """Return the class of the message at a place. Raises Undecodable."""
        from google.protobuf import message_factory

        return message_factory.GetMessageClass(self._message(indexes))

    def why_unusable(self, indexes: Sequence[int], path: str) -> str:
        """Return why nothing that stands at a path can be a field; "" where something may."""
        get, kind = _getter(self._message(indexes), names_of(path))
        if get is None:
            return f"its schema {self.schema_id} has no field {path}"
        return f"{path} is {kind} in its schema {self.schema_id}; {EXPECTED}" if kind else ""

    def _message(self, indexes: Sequence[int]) -> Any:
        """Return the message at a place: a number of the file, then of each message around it."""
        first, *inside = indexes
        try:
            found = self._file.message_types_by_name[self._order[first]]
            for index in inside:
                found = found.nested_types[index]
        except IndexError:
            raise Undecodable(f"its schema {self.schema_id} has no message at {list(indexes)}") from None
        return found


def _flat_document(values: dict[str, Any]) -> dict[str, Any]:
    return {names_of(path)[0]: value for path, value in values.items()}


def _getter(message: Any, names: Sequence[str], *, comparable: bool = False) -> tuple[Get | None, str]:
    """Return what reads a path of a message, None where its schema has none; and what makes it of no use, or "".

    message: its descriptor. comparable: it is compared besides money.
    """
    name, *rest = names
    field = message.fields_by_name.get(name)
    if field is None:
        return (_money, "") if name == "amount" and not rest and _is_money(message) else (None, "")
    if field.is_repeated:
        return _unusable, "list"
    if field.message_type is not None:
        return _inside(field, rest, comparable=comparable)
    if rest:
        return None, ""
    if _is_money(message) and name in ("units", "nanos"):
        return _unusable, "a part of an amount of units and nanos (expected the key amount beside it)"
    return _leaf(field, comparable=comparable)


def _inside(field: Any, rest: Sequence[str], *, comparable: bool) -> tuple[Get | None, str]:
    name = field.name
    if not rest and comparable and field.message_type.full_name == "google.protobuf.Timestamp":
        return lambda message: _instant(getattr(message, name)) if message.HasField(name) else None, ""
    if not rest:
        return _unusable, "message"
    get, kind = _getter(field.message_type, rest, comparable=comparable)
    if get is None:
        return None, ""
    return lambda message: get(getattr(message, name)) if message.HasField(name) else None, kind


def _instant(moment: Any) -> Any:
    """Return a Timestamp's instant, to the microsecond."""
    return moment_of(moment.seconds * _NANOS + moment.nanos, a_second=_NANOS)


def _leaf(field: Any, *, comparable: bool) -> tuple[Get, str]:
    kind, name = _KINDS.get(_name_of_type(field), ""), field.name
    is_floating = kind == _FLOATING
    if kind and not (comparable and is_floating):
        return _unusable, kind
    read: Get = lambda message: getattr(message, name)  # noqa: E731 - what stands below wraps it
    if is_floating:
        is_single = _name_of_type(field) == "float"
        read = lambda message: number_of(getattr(message, name), is_single=is_single)  # noqa: E731
    if field.enum_type is not None:
        names = {one.number: one.name for one in field.enum_type.values}
        read = lambda message: names.get(getattr(message, name), getattr(message, name))  # noqa: E731
    return (lambda message: read(message) if message.HasField(name) else None) if field.has_presence else read, ""


_WRITTEN_MAX, _NOT_FLAT, _NUMBER_MAX = 7, 12, 1024


@cache
def _flat_kinds() -> dict[int, int]:
    """Return Protobuf's type to the kind of `open_flat`."""
    from google.protobuf.descriptor import FieldDescriptor as Of

    written = (Of.TYPE_INT64, Of.TYPE_INT32, Of.TYPE_SINT64, Of.TYPE_SINT32, Of.TYPE_UINT64, Of.TYPE_UINT32)
    kinds = {kind: number for number, kind in enumerate((*written, Of.TYPE_BOOL, Of.TYPE_STRING))}
    kinds |= dict.fromkeys((Of.TYPE_FLOAT, Of.TYPE_FIXED32, Of.TYPE_SFIXED32), 8)
    kinds |= dict.fromkeys((Of.TYPE_DOUBLE, Of.TYPE_FIXED64, Of.TYPE_SFIXED64), 9)
    return kinds | {Of.TYPE_BYTES: 10, Of.TYPE_ENUM: 11}


_FLOATING = "floating point number"
_KINDS = {"float": _FLOATING, "double": _FLOATING, "bytes": "bytes"}


def _name_of_type(field: Any) -> str:
    kind = type(field)
    names = {kind.TYPE_FLOAT: "float", kind.TYPE_DOUBLE: "double", kind.TYPE_BYTES: "bytes", kind.TYPE_STRING: "string"}
    names |= {kind.TYPE_INT64: "int64", kind.TYPE_INT32: "int32"}
    return names.get(field.type, "")


def _is_money(message: Any) -> bool:
    fields = {field.name: _name_of_type(field) for field in message.fields if not field.is_repeated}
    return fields == _MONEY


def _money(message: Any) -> Any:
    """Return units and nanos as one number. Of different signs, or with more than a unit of nanos, they are none."""
    units, nanos = message.units, message.nanos
    if abs(nanos) >= _NANOS or (units > 0 > nanos) or (units < 0 < nanos):
        return UNUSABLE
    return decimal_number(units * _NANOS + nanos, 9)


def _unusable(_: Any) -> Any:
    return UNUSABLE


def _end_of_indexes(value: bytes) -> int:
    """Return where the message begins, behind the place of its type. Raises Undecodable."""
    if value[HEAD_BYTES : HEAD_BYTES + 1] == _FIRST_MESSAGE:
        return HEAD_BYTES + 1
    count, at = _varint(value, HEAD_BYTES)
    if not 0 <= count <= _INDEXES_MAX:
        raise Undecodable("it does not say which message of its schema it is")
    for _ in range(count):
        _, at = _varint(value, at)
    return at


@lru_cache(maxsize=1024)
def _indexes(written: bytes) -> tuple[int, ...]:
    """Return the place of a message's type; of the first one, no number at all is written."""
    count, at = _varint(written, 0)
    found = []
    for _ in range(count):
        index, at = _varint(written, at)
        if index < 0:
            raise Undecodable("it does not say which message of its schema it is")
        found.append(index)
    return tuple(found) or (0,)


def _varint(value: bytes, at: int) -> tuple[int, int]:
    """Return a number in zig-zag, and where it ends. Raises Undecodable."""
    number = shift = 0
    while at < len(value) and shift < 35:
        number |= (value[at] & 0x7F) << shift
        at += 1
        if value[at - 1] < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
    raise Undecodable("it does not say which message of its schema it is")


def _compiled(schema: SchemaText) -> bytes:
    """Let protoc compile a schema with all that it imports, in a process of its own. Raises Undecodable."""
    with tempfile.TemporaryDirectory(prefix="tallystick-proto-") as folder:
        for name, text in (*schema.imports, (_MAIN, schema.text)):
            place = PurePosixPath(name)
            if place.is_absolute() or ".." in place.parts:
                raise Undecodable(f"its schema {schema.schema_id} imports a file outside of it")
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        made = Path(folder, "compiled")
        known = [f"-I{path}" for path in (folder, *_well_known())]
        command = [sys.executable, "-m", "grpc_tools.protoc", *known, "--include_imports"]
        done = subprocess.run(
            [*command, f"--descriptor_set_out={made}", _MAIN],
            capture_output=True,
            timeout=_PROTOC_SECONDS,
            check=False,
        )
        if done.returncode:
            raise Undecodable(f"its schema {schema.schema_id} is no Protobuf schema that protoc compiles")
        return made.read_bytes()


def _well_known() -> list[str]:
    """Return the folders of what each registry knows by itself: google/protobuf, and google/type if it is installed."""
    tools, types = find_spec("grpc_tools"), find_spec("google.type")
    return [
        *(str(Path(folder, "_proto")) for folder in (tools.submodule_search_locations or () if tools else ())),
        *(str(Path(folder).parents[1]) for folder in (types.submodule_search_locations or () if types else ())),
    ]
