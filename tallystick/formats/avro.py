"""Avro behind a schema's id: fastavro decodes by the writer's schema, and the contract's paths are kept.

Decides what each type of Avro is at the end of a path:

- string, enum: a text. int, long, and each logical type on them: the whole number that stands there.
- bytes or fixed with the logical type decimal: the number with all digits of its scale, never rounded.
- fixed with the logical type uuid: its text of five groups.
- float, double: nothing that a key or an amount can be, and so are bytes, lists and whole records. What is compared
  besides money may be more (`comparable`): floating point numbers, moments and dates.
- null: the field is missing. A union: what was written. A map: an object.

Fields are found by their names in the schema that wrote the record, so one slice may hold records of many schemas.
Aliases and the reader's defaults are not used. A schema that contains itself, or has a list whose members take no
bytes, is refused: a few bytes could take any stack or memory.

One file, since what each type of Avro is to a contract is decided here, for a value by itself and for many at once.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import msgspec

from tallystick.contract.field_path import document_of, names_of
from tallystick.formats.comparable import moment_of, not_comparable, number_of
from tallystick.formats.prefix import HEAD_BYTES, Undecodable, schema_id_of
from tallystick.formats.schema_cache import SchemaCache, SchemaText
from tallystick.host.extras import require

try:
    from tallystick.formats._flat_avro import open_flat as _open_flat
except ImportError:  # no compiler was there when Tallystick was installed: fastavro reads the same, in more time
    _open_flat = None  # type: ignore[assignment]

DECIMAL_BYTES_MAX = 32
"""Of one decimal: 76 digits. What a contract compares has 64 bits."""
_DEPTH_MAX, _PARTS_MAX = 100, 100_000
"""Of one schema, with each named type written out where it is used."""
UNUSABLE: Mapping[str, Any] = {}
"""What stands in the JSON for a value that no contract can use: neither a text nor a number."""
_USABLE = frozenset({"text", "whole number", "decimal", "uuid"})

encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class AvroKind:
    """The type of value that a schema lets stand at a path.

    name: text, whole number, decimal, uuid, floating point number, bytes, and Avro's word for any other.
    """

    name: str
    scale: int = 0
    """Of a decimal."""
    a_second: int = 0
    """Of a whole number that is a moment, so many a second; -1 of one that counts days. 0: it is none."""
    is_single: bool = False
    """Of a floating point number: has it 32 bits?"""


FlatFields = tuple[tuple[tuple[bytes, bool, int], ...], tuple[bytes, ...]]
"""Of a flat record: its fields, and the names that are written (`_flat_avro.pyi`)."""


class AvroOpener:
    """Opens the values of one contract's topic. paths: its fields. compared: what it compares besides money."""

    keeps_text = False

    def __init__(self, schemas: SchemaCache, paths: Sequence[str], compared: Sequence[str] = ()) -> None:
        require("fastavro")
        self._schemas, self._paths, self._compared = schemas, paths, compared
        self._readers: dict[int, Callable[[bytes], dict[str, Any]]] = {}
        self._flat: dict[int, FlatFields | None] = {}

    def to_json(self, value: bytes) -> bytes:
        """Return the contract's paths as one JSON object. Raises Undecodable, RegistryUnreachable."""
        return encode(self.document(value))

    def open_all(self, values: Sequence[bytes | None]) -> list[bytes] | None:
        """Return what `to_json` returns of each, by compiled code, if all are plain values of one flat schema (decision
        record 51); otherwise None, and where that code was not compiled. Raises RegistryUnreachable.
        """
        first = values[0] if values else None
        if _open_flat is None or first is None or self._compared:
            return None
        try:
            schema_id = schema_id_of(first)
            if schema_id not in self._flat:
                self._flat[schema_id] = self._schema(schema_id).flat_fields(self._paths)
        except Undecodable:
            return None
        flat = self._flat[schema_id]
        return None if flat is None else _open_flat(list(values), first[:HEAD_BYTES], *flat)

    def document(self, value: bytes) -> dict[str, Any]:
        """Return the same before it is written as JSON. Raises Undecodable, RegistryUnreachable."""
        schema_id = schema_id_of(value)
        read = self._readers.get(schema_id)
        if read is None:
            read = self._readers[schema_id] = self._schema(schema_id).reader_of(self._paths, self._compared)
        return read(value)

    def why_unusable(self, value: bytes, path: str) -> str:
        """Return why the value's schema gives no field at a path."""
        return self._schema(schema_id_of(value)).why_unusable(path)

    def _schema(self, schema_id: int) -> "AvroSchema":
        return self._schemas.get("AVRO", schema_id, AvroSchema)


class AvroSchema:
    """A writer's schema, without the logical types that fastavro would turn into objects. Raises Undecodable."""

    def __init__(self, schema: SchemaText) -> None:
        self.schema_id = schema.schema_id
        named: dict[str, Any] = {}
        try:
            for _, text in schema.imports:
                self._parse(text, named)
            self._root = self._parse(schema.text, named)
            self._named = named
            _Measure(named).of(self._root)
        except _Dangerous as error:
            raise Undecodable(f"its schema {self.schema_id} {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, self._refusals) as error:
            raise Undecodable(f"its schema {self.schema_id} is no Avro schema ({type(error).__name__})") from None

    def _parse(self, text: str, named: dict[str, Any]) -> Any:
        from fastavro import parse_schema

        return parse_schema(_prepared(json.loads(text)), named_schemas=named)

    @property
    def _refusals(self) -> type[Exception]:
        from fastavro.schema import SchemaParseException

        return SchemaParseException

    def reader_of(self, paths: Sequence[str], compared: Sequence[str] = ()) -> Callable[[bytes], dict[str, Any]]:
        """Return what reads these paths of a value of this schema, into one document. It raises Undecodable."""
        from fastavro import schemaless_reader

        root, schema_id = self._root, self.schema_id
        pick = _picker(
            {path: self.kinds_at(path) for path in paths},
            {path: _comparable(path, self.kinds_at(path), schema_id) for path in compared},
        )

        def read(value: bytes) -> dict[str, Any]:
            stream = BytesIO(value)
            stream.seek(HEAD_BYTES)
            try:
                record = schemaless_reader(stream, root)
            except Exception as error:  # fastavro lets pass what Python raises for bytes that are no such value
                raise Undecodable(
                    f"its bytes are no value of its schema {schema_id} ({type(error).__name__})"
                ) from None
            if stream.read(1) or not isinstance(record, dict):
                what = "no record" if not isinstance(record, dict) else "a value and more behind it"
                raise Undecodable(f"its bytes are {what} of its schema {schema_id}")
            return pick(record)

        return read

    def flat_fields(self, paths: Sequence[str]) -> FlatFields | None:
        """Return the record's fields and the names that are written, as `open_flat` takes them; None where a field is
        not flat, or where what stands at a path is more than `open_flat` writes.
        """
        if not isinstance(self._root, dict) or self._root["type"] != "record":
            return None
        tops = [names_of(path)[0] for path in paths if len(names_of(path)) == 1]
        fields = []
        for member in self._root["fields"]:
            branches = member["type"] if isinstance(member["type"], list) else [member["type"]]
            kinds = [_flat_kind(one) for one in branches]
            place = tops.index(member["name"]) if member["name"] in tops else -1
            if not kinds or max(kinds) > (_WRITTEN_MAX if place >= 0 else max(_FLAT.values())):
                return None
            fields.append((bytes(kinds), isinstance(member["type"], list), place))
        places = sorted(place for _, _, place in fields if place >= 0)
        if len(tops) != len(paths) or places != list(range(len(tops))):
            return None
        if len(fields) > _FIELDS_MAX or any(len(kinds) > _BRANCHES_MAX for kinds, _, _ in fields):
            return None
        return tuple(fields), tuple(encode(name) + b":" for name in tops)

    def kinds_at(self, path: str) -> frozenset[AvroKind]:
        """Return all that may stand at a path; empty where no record of this schema has it."""
        found = [self._root]
        for name in names_of(path):
            found = [inside for one in found for inside in self._inside(one, name)]
        return frozenset(_kind_of(one) for each in found for one in self._branches(each))

    def why_unusable(self, path: str) -> str:
        """Return why nothing that stands at a path can be a field; "" where something may."""
        kinds = {kind for kind in self.kinds_at(path) if kind.name != "null"}
        if not kinds:
            return f"its schema {self.schema_id} has no field {path}"
        names = {kind.name for kind in kinds}
        if not names & _USABLE:
            return f"{path} is {' or '.join(sorted(names))} in its schema {self.schema_id}; {EXPECTED}"
        if _bytes_kind(kinds) is None and names <= {"decimal", "uuid", "bytes"}:
            return f"{path} may be bytes of several kinds in its schema {self.schema_id}; {EXPECTED}"
        return ""

    def _inside(self, schema: Any, name: str) -> Iterator[Any]:
        for one in self._branches(schema):
            if isinstance(one, dict) and one["type"] in ("record", "error"):
                yield from (member["type"] for member in one["fields"] if member["name"] == name)
            elif isinstance(one, dict) and one["type"] == "map":
                yield one["values"]

    def _branches(self, schema: Any) -> Iterator[Any]:
        for one in schema if isinstance(schema, list) else [schema]:
            yield self._named.get(one, one) if isinstance(one, str) else one


EXPECTED = "expected a text, a whole number or a decimal"
_FLAT = {"null": 0, "boolean": 1, "int": 2, "long": 2, "string": 3, "float": 4, "double": 5}
"""Avro's type to the kind of `open_flat`."""
_WRITTEN_MAX, _NOT_FLAT, _FIELDS_MAX, _BRANCHES_MAX = 3, 255, 256, 4


def _flat_kind(schema: Any) -> int:
    name = schema["type"] if isinstance(schema, dict) else schema
    return _FLAT.get(name, _NOT_FLAT) if isinstance(name, str) else _NOT_FLAT


class _Dangerous(Exception):
    """A schema by which a few bytes take any stack or memory."""


class _Measure:
    """Measures a schema: the fewest bytes of a value, and how many parts it has. Raises _Dangerous."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named, self._known, self._open = named, dict[str, tuple[int, int]](), list[str]()

    def of(self, schema: Any, depth: int = 0) -> tuple[int, int]:
        """Return the fewest bytes, and the number of parts."""
        if depth > _DEPTH_MAX:
            raise _Dangerous(f"is nested more than {_DEPTH_MAX} deep")
        bytes_min, parts = self._of(schema, depth + 1)
        if parts > _PARTS_MAX:
            raise _Dangerous(f"has more than {_PARTS_MAX:,} parts")
        return bytes_min, parts

    def _of(self, schema: Any, depth: int) -> tuple[int, int]:
        if isinstance(schema, list):
            return 1, 1 + sum(self.of(one, depth)[1] for one in schema)
        if isinstance(schema, str):
            return self._of_named(schema, depth) if schema in self._named else (_BYTES_MIN.get(schema, 1), 1)
        match schema["type"]:
            case "array" | "map" as kind:
                bytes_min, parts = self.of(schema["items" if kind == "array" else "values"], depth)
                if kind == "array" and not bytes_min:
                    raise _Dangerous("has a list whose members take no bytes")
                return 1, 1 + parts
            case "fixed":
                return schema["size"], 1
            case "record" | "error":
                return self._of_named(schema["name"], depth)
            case kind:
                return _BYTES_MIN.get(kind, 1), 1

    def _of_named(self, name: str, depth: int) -> tuple[int, int]:
        if name in self._open:
            raise _Dangerous(f"has the record {name} inside itself")
        if name not in self._known:
            self._open.append(name)
            one = self._named[name]
            fields = one.get("fields")
            if fields is None:
                self._known[name] = self.of({**one, "name": ""}, depth) if one["type"] != "enum" else (1, 1)
            else:
                sizes = [self.of(member["type"], depth) for member in fields]
                self._known[name] = sum(size for size, _ in sizes), 1 + sum(parts for _, parts in sizes)
            self._open.pop()
        return self._known[name]


_BYTES_MIN = {"null": 0, "float": 4, "double": 8}


def _prepared(schema: Any) -> Any:
    """Return a schema without logical types: fastavro rounds decimals to their precision, and times become objects.

    A decimal's is kept under another name, by which `_kind_of` finds it.
    """
    if isinstance(schema, list):
        return [_prepared(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _prepared(value) if name in ("type", "items", "values") else value for name, value in schema.items()}
    if isinstance(schema.get("fields"), list):
        kept["fields"] = [_prepared(member) for member in schema["fields"]]
    logical, kind = kept.pop("logicalType", None), kept.get("type")
    of_bytes = logical in ("decimal", "uuid") and kind in ("bytes", "fixed")
    if of_bytes or (kind in ("int", "long") and isinstance(logical, str) and logical in _MOMENTS):
        kept[_LOGICAL] = logical
    return kept


_LOGICAL = "tallystickLogical"
_MOMENTS = {
    **dict.fromkeys(("timestamp-millis", "local-timestamp-millis"), 1_000),
    **dict.fromkeys(("timestamp-micros", "local-timestamp-micros"), 1_000_000),
    **dict.fromkeys(("timestamp-nanos", "local-timestamp-nanos"), 1_000_000_000),
    "date": -1,
}
"""Logical type to `AvroKind.a_second`. Source: Avro specification, logical types."""
_FLOATING = "floating point number"
_NAMES = {
    "string": "text",
    "enum": "text",
    "int": "whole number",
    "long": "whole number",
    "double": _FLOATING,
    "record": "record",
    "error": "record",
    "array": "list",
}


def _kind_of(schema: Any) -> AvroKind:
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind in ("bytes", "fixed") and isinstance(schema, dict):
        logical, scale = schema.get(_LOGICAL), schema.get("scale", 0)
        if logical == "decimal" and isinstance(scale, int) and 0 <= scale <= _DEPTH_MAX:
            return AvroKind("decimal", scale)
        if logical == "uuid" and schema.get("size") == 16:
            return AvroKind("uuid")
    if kind in ("int", "long") and isinstance(schema, dict):
        return AvroKind("whole number", a_second=_MOMENTS.get(schema.get(_LOGICAL, ""), 0))
    if kind == "float":
        return AvroKind(_FLOATING, is_single=True)
    return AvroKind("bytes" if kind == "fixed" else _NAMES.get(str(kind), str(kind)))


def _bytes_kind(kinds: frozenset[AvroKind] | set[AvroKind]) -> AvroKind | None:
    """Return what bytes at a path are; None where that is not known, or nothing of use."""
    of_bytes = {kind for kind in kinds if kind.name in ("decimal", "uuid", "bytes")}
    return next(iter(of_bytes)) if len(of_bytes) == 1 and AvroKind("bytes") not in of_bytes else None


def _picker(
    kinds: Mapping[str, frozenset[AvroKind]], compared: Mapping[str, Callable[[Any], Any]]
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return what picks these paths out of a record, each value as the rule reads it. compared: by path, what makes a
    value comparable.
    """
    as_they_are = {"text", "whole number", "boolean", "null"}
    plain = [path for path, some in kinds.items() if {kind.name for kind in some} <= as_they_are]
    if (
        not compared
        and len(plain) == len(kinds)
        and all(len(names_of(path)) == 1 and some for path, some in kinds.items())
    ):
        tops = [names_of(path)[0] for path in kinds]
        return lambda record: {name: record[name] for name in tops}
    usable = {path: _converter(some) for path, some in kinds.items()} | dict(compared)

    def pick(record: dict[str, Any]) -> dict[str, Any]:
        found = {path: convert(_at(record, path)) for path, convert in usable.items()}
        return document_of({path: value for path, value in found.items() if value is not None})

    return pick


def _at(record: Any, path: str) -> Any:
    for name in names_of(path):
        if not isinstance(record, dict):
            return None
        record = record.get(name)
    return record


def _converter(kinds: frozenset[AvroKind]) -> Callable[[Any], Any]:
    of_bytes = _bytes_kind(kinds)

    def convert(value: Any) -> Any:
        if value is None or isinstance(value, str | int):
            return value
        if isinstance(value, bytes) and of_bytes is not None:
            return _decimal(value, of_bytes.scale) if of_bytes.name == "decimal" else _uuid(value)
        return UNUSABLE

    return convert


def _comparable(path: str, kinds: frozenset[AvroKind], schema_id: int) -> Callable[[Any], Any]:
    """Return what makes a value of these kinds comparable. It raises Undecodable where none can be."""
    convert, moments = _converter(kinds), {kind.a_second for kind in kinds if kind.name == "whole number"}
    a_second = moments.pop() if len(moments) == 1 else None
    is_single = {kind.is_single for kind in kinds if kind.name == _FLOATING} == {True}

    def comparable(value: Any) -> Any:
        if isinstance(value, float):
            return number_of(value, is_single=is_single)
        if isinstance(value, int) and not isinstance(value, bool) and a_second != 0:
            if a_second is None:
                raise not_comparable(path, "whole numbers of several meanings", schema_id)
            return moment_of(value * _DAY_SECONDS, a_second=1) if a_second < 0 else moment_of(value, a_second=a_second)
        found = convert(value)
        if found is UNUSABLE:
            named = sorted({kind.name for kind in kinds if kind.name != "null"})
            raise not_comparable(path, " or ".join(named), schema_id)
        return found

    return comparable


_DAY_SECONDS = 86_400


def _decimal(unscaled: bytes, scale: int) -> Any:
    """Return a JSON number with all digits: two's complement, most significant byte first."""
    if len(unscaled) > DECIMAL_BYTES_MAX:
        return UNUSABLE
    return decimal_number(int.from_bytes(unscaled, "big", signed=True), scale)


def decimal_number(unscaled: int, scale: int) -> msgspec.Raw:
    """Return unscaled / 10**scale as a JSON number, with `scale` digits behind the point and no exponent."""
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :]
    return msgspec.Raw(f"{'-' if unscaled < 0 else ''}{whole}{'.' if scale else ''}{fraction}".encode())


def _uuid(value: bytes) -> str:
    text = value.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
