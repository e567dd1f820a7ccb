"""Decode payloads: read the contract's fields of one, or say why it is unreadable. All readers of payloads use this.

`EventDecoder` is the one interface. The reader of the log and Spark's frame read many payloads by it (`read_simple`,
`read_whole`, `read_each`), look-ups read single ones (`read`) or only their keys (`decode_keys`). `read` is the rule;
the quick ways say what it says, only sooner.

What stands in a header or in the record's key is brought into one object with its value (`placed_payload`).
A value of another format is opened first (`tallystick.formats`): all of what follows then holds for the JSON inside.

One file, since all ways of reading must say the same.

A readable event is one JSON object (RFC 8259) in UTF-8, with nothing but white space behind it and not more than
DEPTH_MAX deep, whose fields are of the right kinds. A field whose path has several keys lies in objects inside it. Its
texts are JSON strings, or whole numbers, whose digits are the text; they hold no NUL and not more than TEXT_LENGTH_MAX
characters. What is compared besides money (`tallystick.contract.compare`) makes none unreadable, whatever it is.
Nothing is replaced, rounded or cut. A name that an object has twice counts as its last value says; a byte order mark
before the payload is passed over.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from operator import attrgetter
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, Protocol, Union, cast

import msgspec
from msgspec import Meta

from tallystick.contract.compare import ComparedColumns, text_of_json
from tallystick.contract.equality import LONG_MAX, LONG_MIN, TEXT_LENGTH_MAX
from tallystick.contract.event import EventFields
from tallystick.contract.field_path import names_of
from tallystick.formats.avro import AvroOpener
from tallystick.formats.opener import Opener, opener_of
from tallystick.formats.placed_payload import VALUE, PlacedRecord, placed_of
from tallystick.formats.prefix import Undecodable
from tallystick.formats.protobuf import ProtobufOpener
from tallystick.text.money import minor_unit_digits

try:
    from tallystick.kafka_log._simple_events import read_simple as _read_simple
except ImportError:  # no compiler was there when Tallystick was installed: Python reads the same, in more time
    _read_simple = None  # type: ignore[assignment]

DEPTH_MAX = 100
"""Objects and arrays inside each other. Deeper, a parser ends where its stack does: each time at another depth."""

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, TypeError, RecursionError, Undecodable)
"""The errors of msgspec's JSON decoder for bytes that it refuses; a TypeError where there are none. And of openers."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKET = re.compile(rb"[][{}]")
_WHOLE_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"(-?[0-9]+)(?:\.([0-9]+))?", re.ASCII)
_KEY_OF_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,4299}", re.ASCII)
"""The text of a JSON integer that is a key. Python reads none of more digits."""
_NUL_ESCAPE = rb"\u0000"
_TEXTS = ("match_key", "transaction_key", "leg", "currency")


class EventReading(NamedTuple):
    """An event's fields; None where the payload has none, or none that is sound.

    problem: why the record is unreadable, as a clause about it without its content; "" of a readable one. What an
    unreadable one says nevertheless may be known: its key, say, where only its amount is wrong.
    """

    match_key: str | None = None
    transaction_key: str | None = None
    leg: str | None = None
    amount_minor: int | None = None
    currency: str | None = None
    ordering_key: str | None = None
    sequence: int | None = None
    compared_text: str = ""
    problem: str = ""


class Event(Protocol):
    """A readable event: what `EventReading` has, and all of it is there."""

    @property
    def match_key(self) -> str: ...
    @property
    def transaction_key(self) -> str: ...
    @property
    def leg(self) -> str: ...
    @property
    def amount_minor(self) -> int: ...
    @property
    def currency(self) -> str: ...


class SimpleEvents(NamedTuple):
    """Readable events by column. match_keys: as UTF-8. amounts_minor: 64-bit integers of this machine's order.

    compared: of each column that is compared besides money, where the JSON of each event ends, behind a zero, as 32-bit
    integers; and the JSON of all, as `EventDecoder.read_compared` has it.
    """

    match_keys: list[bytes]
    amounts_minor: bytes
    currencies: list[str]
    compared: tuple[tuple[bytes, bytes], ...]


class EventKeys(Protocol):
    """The two keys of a payload as they are written: a text, a number, or nothing."""

    @property
    def match_key(self) -> str | int | None: ...
    @property
    def transaction_key(self) -> str | int | None: ...


class EventDecoder:
    """Reads the events of one contract's topic. several_legs: its transactions are told apart by their key."""

    def __init__(self, fields: EventFields, *, several_legs: bool = False) -> None:
        self._placed = placed_of(fields)
        self._value_opener: Opener | None = opener_of(fields)
        self._value_paths = fields.paths
        self._opener = None if self._placed else self._value_opener
        if self._placed:
            fields = self._placed.fields
        self._fields, self._several_legs = fields, several_legs
        self._constants = fields.constants
        self._names = _paths_of_texts(fields)
        if fields.ordering_key is not None:
            self._names["ordering_key"] = fields.ordering_key
        self._never_empty = {"match_key", "currency"} | ({"transaction_key"} if several_legs else set())
        self._amount = fields.amount_minor if isinstance(fields.amount_minor, str) else None
        self._is_major = fields.amount_unit == "major"
        self._sequence = fields.sequence
        self._compared = fields.compared
        self._decode = _raw_decoder({path: names_of(path) for path in (*fields.paths, *self._compared.paths)})
        self._opened: tuple[Sequence[bytes | None], Sequence[bytes | None]] = ((), ())

    def read(self, value: bytes | None) -> EventReading:
        """Read the event of a record's value. Raises RegistryUnreachable, as all ways of reading do."""
        if value is None or self._opener is None:
            return self._read(value)
        try:
            reading = self._read(self._opener.to_json(value))
        except Undecodable as error:
            return EventReading(problem=str(error))
        if not reading.problem:
            return reading
        return reading._replace(problem=self._reason(value, reading.problem))

    @property
    def has_places(self) -> bool:
        """Return whether a field stands outside of a record's value. Then `payload` is what all other methods read."""
        return self._placed is not None

    @property
    def compared(self) -> ComparedColumns:
        """Return what is compared besides money."""
        return self._compared

    def read_compared(self, values: Sequence[bytes | None]) -> list[list[bytes]]:
        """Read what is compared besides money: for each column the JSON that each value has for it; b"" where none.

        Of a value that is no JSON object it says nothing: nobody reads its event.
        """
        opened, paths = self._all_opened(values), self._compared.paths
        whole = self._compared_at_once(opened)
        if whole is not None:
            return whole
        decode = _raw_decoder({path: names_of(path) for path in paths})
        found: list[list[bytes]] = [[] for _ in paths]
        for value in opened:
            try:
                raw = decode((value or b"").removeprefix(BOM_UTF8))
            except DECODE_ERRORS:
                raw = {}
            for column, path in zip(found, paths, strict=True):
                column.append(raw.get(path, b""))
        return found

    def _compared_at_once(self, opened: Sequence[bytes | None]) -> list[list[bytes]] | None:
        """Read the same of values that are all JSON objects, for columns at their top; otherwise None."""
        columns = [names_of(path) for path in self._compared.paths]
        if any(len(names) > 1 for names in columns):
            return None
        fields = {name: f"compared_{number}" for number, (name,) in enumerate(columns)}  # two may be one value
        keys = {field: name for name, field in fields.items()}
        shape = msgspec.defstruct(
            "Compared", [(name, msgspec.Raw, msgspec.Raw()) for name in keys], rename=keys, gc=False
        )
        try:
            events = list(map(msgspec.json.Decoder(shape).decode, opened))  # type: ignore[arg-type]  # or a TypeError
        except DECODE_ERRORS:
            return None
        return [list(map(bytes, map(attrgetter(fields[name]), events))) for (name,) in columns]

    def payload(self, record: PlacedRecord) -> bytes | None:
        """Return what is read of a record: its value, or one JSON object with its headers and its key (ADR 45).

        None where there is none, or none that can be read. Raises RegistryUnreachable.
        """
        if self._placed is None:
            return record.value
        try:
            return self._placed.payload(record, opened=self._as_json)
        except DECODE_ERRORS:
            return None

    def read_record(self, record: PlacedRecord) -> EventReading:
        """Read the event of a record. Raises RegistryUnreachable."""
        if self._placed is None:
            return self.read(record.value)
        try:
            reading = self._read(self._placed.payload(record, opened=self._as_json))
        except Undecodable as error:
            return EventReading(problem=str(error))
        except DECODE_ERRORS:
            return EventReading(problem="its value is not one JSON object and nothing else")
        if not reading.problem:
            return reading
        return reading._replace(problem=self._reason(record.value, reading.problem.removeprefix(f"{VALUE}.")))

    def _reason(self, value: bytes | None, problem: str) -> str:
        """Return why a value's schema gives no field at a path of it, or else the problem that was found."""
        opener = self._value_opener
        if opener is None or value is None:
            return problem
        return next(filter(None, (opener.why_unusable(value, path) for path in self._value_paths)), problem)

    def _as_json(self, value: bytes) -> bytes:
        return value if self._value_opener is None else self._value_opener.to_json(value)

    def _read(self, value: bytes | None) -> EventReading:
        """Read the event of a JSON value."""
        if value is None:
            return EventReading(problem="it has no value")
        if problem := unsound(value):
            return EventReading(problem=problem)
        try:
            raw = self._decode(value.removeprefix(BOM_UTF8))
        except DECODE_ERRORS as error:
            where = f" ({error})" if str(error).startswith("JSON is malformed") else ""
            return EventReading(problem=f"it is not one JSON object and nothing else{where}")
        problems: list[str] = []
        texts = {name: self._text(raw, name, problems) for name in self._names}
        known = {**self._constants, **texts}
        known.setdefault("amount_minor", self._amount_minor(raw, known["currency"], problems))
        return EventReading(
            **known,
            sequence=self._whole_number(raw, self._sequence, problems) if self._sequence else None,
            compared_text=_compared_text(self._compared, raw) if self._compared else "",
            problem=problems[0] if problems else "",
        )

    def read_simple(self, values: Sequence[bytes | None]) -> SimpleEvents | None:
        """Read all events by compiled code, if each is simple (decision record 33); otherwise None.

        None too where legs are told apart, and where that code was not compiled.
        """
        if _read_simple is None or self._several_legs or self._amount is None or not _is_plain(self._fields):
            return None
        columns = _read_simple(list(self._all_opened(values)), self._simple_names, TEXT_LENGTH_MAX)
        if columns is None:
            return None
        events = SimpleEvents(*columns)
        currency = self._constants.get("currency")
        return events if currency is None else events._replace(currencies=[currency] * len(events.currencies))

    @cached_property
    def _simple_names(self) -> tuple[tuple[bytes, ...], ...]:
        """The keys on the way to each field, and to what is compared besides money.

        In place of a constant the match key is read: an event has it anyhow.
        """
        fields = self._fields
        named = (fields.match_key, fields.transaction_key, fields.leg, fields.currency, fields.amount_minor)
        paths = (one if isinstance(one, str) else str(fields.match_key) for one in named)
        return tuple(tuple(name.encode() for name in names_of(path)) for path in (*paths, *self._compared.paths))

    def read_whole(self, values: Sequence[bytes | None]) -> list[Event] | None:
        """Read all events if each is readable and all texts are strings, which is nearly always so; otherwise None."""
        values = self._all_opened(values)
        try:
            events = list(map(self._of_strings, values))
        except DECODE_ERRORS:  # a record without a value is a TypeError
            return None
        return events if _are_sound([value for value in values if value is not None]) else None

    def read_each(self, values: Sequence[bytes | None]) -> list[Event | None]:
        """Read the event of each value, None where it is unreadable."""
        values = self._all_opened(values)
        are_sound = _are_sound([value for value in values if value is not None])
        return [self._event(value, is_sound=are_sound) for value in values]

    def _event(self, value: bytes | None, *, is_sound: bool) -> Event | None:
        """is_sound: known of its bytes."""
        if value is not None and (is_sound or _are_sound([value])):
            try:
                return _Texts(self._of_numbers(value))
            except (*DECODE_ERRORS, OverflowError):
                pass
        reading = self._read(value)
        return None if reading.problem else cast("Event", reading)

    def _all_opened(self, values: Sequence[bytes | None]) -> Sequence[bytes | None]:
        """Return the values as JSON, None where one cannot be opened. The same ones are opened once, for all ways."""
        if self._opener is None:
            return values
        if values is not self._opened[0]:
            opener = self._opener
            at_once = opener.open_all(values) if isinstance(opener, AvroOpener | ProtobufOpener) else None
            self._opened = values, at_once or list(map(self._json_or_none, values))
        return self._opened[1]

    def _json_or_none(self, value: bytes | None) -> bytes | None:
        try:
            return self._opener.to_json(value) if self._opener and value is not None else None
        except Undecodable:
            return None

    @cached_property
    def decode_keys(self) -> Callable[[bytes], EventKeys]:
        """Decode only the keys of a payload, as `written_keys` has them. Raises DECODE_ERRORS where it may have any."""
        decode = cast("Callable[[bytes], EventKeys]", msgspec.json.Decoder(_two_keys(self._fields)).decode)
        opener = self._opener
        return decode if opener is None else lambda value: decode(opener.to_json(value))

    @property
    def keeps_text(self) -> bool:
        """Return whether a key's text stands in a value's bytes as JSON writes it."""
        return self._value_opener is None or self._value_opener.keeps_text

    @cached_property
    def _of_strings(self) -> Callable[[bytes | None], Event]:
        return self._quick(())

    @cached_property
    def _of_numbers(self) -> Callable[[bytes | None], Event]:
        return self._quick((int,))

    def _quick(self, others: tuple[type, ...]) -> Callable[[bytes | None], Event]:
        if not _is_plain(self._fields):
            return _refuse
        return _quick_decoder(self._fields, others, several_legs=self._several_legs)

    def _text(self, raw: Mapping[str, bytes], name: str, problems: list[str]) -> str | None:
        json_name = self._names[name]
        written = raw.get(json_name, b"")
        text = _as_text(written)
        if text is None:
            problem = f"{json_name} is missing" if written in _NOTHING else f"{json_name} is no text"
        elif not text and name in self._never_empty:
            problem = f"{json_name} is empty"
        else:
            problem = unfit(text, json_name)
        if problem:
            problems.append(problem)
            return None
        return text

    def _amount_minor(self, raw: Mapping[str, bytes], currency: str | None, problems: list[str]) -> int | None:
        if self._amount is None:
            return 0
        if not self._is_major:
            return self._whole_number(raw, self._amount, problems)
        written = raw.get(self._amount, b"")
        text = _as_text(written) if written.startswith(b'"') else written.decode()
        amount = minor_units(text or "", currency or "")
        if amount is None:
            problems.append(f"{self._amount} is no whole number of its currency's minor units that 64 bits hold")
        return amount

    def _whole_number(self, raw: Mapping[str, bytes], json_name: str, problems: list[str]) -> int | None:
        written = raw.get(json_name, b"")
        number = int(written) if len(written) <= 20 and _WHOLE_NUMBER.fullmatch(written) else None
        if number is not None and LONG_MIN <= number <= LONG_MAX:
            return number
        what = "is missing" if written in _NOTHING else "is no whole number that 64 bits hold"
        problems.append(f"{json_name} {what}")
        return None


_NOTHING = (b"", b"null")


def _paths_of_texts(fields: EventFields) -> dict[str, str]:
    """Return the path of each text that the payload has."""
    return {name: path for name in _TEXTS if isinstance(path := getattr(fields, name), str)}


@lru_cache
def decoder_of(fields: EventFields) -> EventDecoder:
    """Return the decoder for look-ups, which read single records and need no transaction key."""
    return EventDecoder(fields)


def written_keys(keys: Iterable[str]) -> frozenset[str | int]:
    """Return all that `EventDecoder.decode_keys` makes of these: the keys, and the numbers that read as one of them."""
    texts = frozenset(keys)
    return texts | {int(key) for key in texts if _KEY_OF_NUMBER.fullmatch(key)}


def unsound(value: bytes) -> str:
    """Return why no contract can read a payload; "" where nothing is wrong with it."""
    if not value.isascii():
        try:
            value.decode()
        except UnicodeDecodeError as error:
            return f"its bytes are not UTF-8 (byte {error.start})"
    if value.count(b"{") + value.count(b"[") > DEPTH_MAX and depth_of(value) > DEPTH_MAX:
        return f"it is nested more than {DEPTH_MAX} deep"
    return ""


def depth_of(value: bytes) -> int:
    """Return the greatest number of objects and arrays inside each other. Brackets in strings do not count.

    Counting ends as soon as a payload is nested too deep.
    """
    depth = deepest = 0
    for bracket in _BRACKET.finditer(_STRING.sub(b"", value)):
        depth += 1 if bracket[0] in b"[{" else -1
        deepest = max(deepest, depth)
        if deepest > DEPTH_MAX:
            break
    return deepest


def unfit(text: str, name: str) -> str:
    """Return why a key, a leg or a currency cannot be compared and kept; "" where it can.

    A text too long is named by its hash, so that its like is found, and never written out.
    """
    if "\0" in text:
        return f"{name} holds a NUL"
    if len(text) > TEXT_LENGTH_MAX:
        digest = sha256(text.encode()).hexdigest()[:16]
        return f"{name} has {len(text):,} characters (SHA-256 {digest}), and at most {TEXT_LENGTH_MAX} are compared"
    return ""


def minor_units(amount: str, currency: str) -> int | None:
    """A decimal in major units as a whole number of minor ones; None if it is none, or the currency has none.

    By its digits alone; an exponent, or a number that 64 bits do not hold, is none.
    """
    written = _DECIMAL.fullmatch(amount) if len(amount) <= TEXT_LENGTH_MAX else None
    if written is None:
        return None
    try:
        digits = minor_unit_digits(currency.upper())
    except LookupError:
        return None
    fraction = (written[2] or "").rstrip("0")
    minor = int(written[1] + fraction.ljust(digits, "0")) if len(fraction) <= digits else None
    return minor if minor is not None and LONG_MIN <= minor <= LONG_MAX else None


def _as_text(written: bytes) -> str | None:
    """A JSON string's text, or a whole number's digits; None of anything else."""
    if written.startswith(b'"'):
        text: str = _DECODE_TEXT(written)
        return text
    if _WHOLE_NUMBER.fullmatch(written):
        return "0" if written == b"-0" else written.decode()
    return None


_DECODE_TEXT = msgspec.json.Decoder(str).decode


def _raw_decoder(paths: Mapping[str, Sequence[str]]) -> Callable[[bytes], dict[str, bytes]]:
    """Return a decoder that gives the raw text of each field of one JSON object, by path; of an absent one none.

    paths: the keys on the way to each field.
    """
    keys = sorted({names[0] for names in paths.values()})
    attributes = {key: f"field_{number}" for number, key in enumerate(keys)}
    shape = msgspec.defstruct(
        "RawEvent",
        [(attribute, msgspec.Raw, msgspec.Raw()) for attribute in attributes.values()],
        rename={attribute: key for key, attribute in attributes.items()},
        gc=False,
    )
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(shape).decode
    here = {path: attributes[names[0]] for path, names in paths.items() if len(names) == 1}
    inside = {attributes[key]: _raw_decoder(some) for key, some in _by_first(paths).items()}

    def of(value: bytes) -> dict[str, bytes]:
        event = decode(value)
        fields = {path: bytes(getattr(event, attribute)) for path, attribute in here.items()}
        for attribute, decode_inside in inside.items():
            written = bytes(getattr(event, attribute))
            if written.startswith(b"{"):
                fields |= decode_inside(written)
        return fields

    return of


def _by_first(paths: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Sequence[str]]]:
    """Return the paths that lead into an object, without its key, by that key."""
    inside: dict[str, dict[str, Sequence[str]]] = {}
    for name, (key, *rest) in paths.items():
        if rest:
            inside.setdefault(key, {})[name] = rest
    return inside


def _shape(
    title: str,
    paths: Mapping[str, Sequence[str]],
    kinds: Mapping[str, Any],
    *,
    may_lack: bool = False,
    more: Mapping[str, property] = MappingProxyType({}),
) -> Any:
    """Return msgspec's type for an object with these fields, each an attribute of its name, however deep it lies.

    may_lack: what is absent is None. more: attributes beside them.
    """
    absent = (None,) if may_lack else ()
    members: list[Any] = [(name, kinds[name], *absent) for name, names in paths.items() if len(names) == 1]
    keys, deep = {name: paths[name][0] for name, *_ in members}, dict(more)
    for number, (key, some) in enumerate(sorted(_by_first(paths).items())):
        attribute = f"inside_{number}"
        inside = _shape(f"{title}Inside", some, kinds, may_lack=may_lack)
        members.append((attribute, inside | None if may_lack else inside, *absent))
        keys[attribute] = key
        deep |= {
            name: property(_or_none(attribute, name) if may_lack else attrgetter(f"{attribute}.{name}"))
            for name in some
        }
    return msgspec.defstruct(title, members, rename=keys, namespace=deep, gc=False)


def _or_none(attribute: str, name: str) -> Callable[[Any], Any]:
    """Return a getter of a field of an object inside, or None where that is absent."""

    def get(event: Any) -> Any:
        inside = getattr(event, attribute)
        return None if inside is None else getattr(inside, name)

    return get


class _Texts:
    """An event whose texts are text. Raises OverflowError where a number has too many digits for one."""

    __slots__ = ("amount_minor", *_TEXTS)
    match_key: str
    transaction_key: str
    leg: str
    currency: str

    def __init__(self, event: Any) -> None:
        self.amount_minor: int = event.amount_minor
        for name in _TEXTS:
            text = getattr(event, name)
            if not isinstance(text, str):
                text = str(text)
                if len(text) > TEXT_LENGTH_MAX:
                    raise OverflowError
            setattr(self, name, text)


def _refuse(value: bytes | None) -> Event:
    raise TypeError("the contract's fields need the reader itself")


def _is_plain(fields: EventFields) -> bool:
    """Return whether the contract's fields are strings, and one whole number under a name of its own."""
    texts = _paths_of_texts(fields).values()
    is_minor = fields.amount_unit == "minor" or "amount_minor" in fields.constants
    return is_minor and fields.sequence is None and fields.amount_minor not in texts


def _are_sound(values: Sequence[bytes]) -> bool:
    """Return whether none holds what msgspec takes and the reader does not. Tests all at once: it is seldom false."""
    together = b"\n".join(values)
    if b"\\" in together and _NUL_ESCAPE in together:
        return False
    if together.isascii() and _are_shallow(values, together):
        return True
    return not any(map(unsound, values))


def _are_shallow(values: Sequence[bytes], together: bytes) -> bool:
    """Return whether a quick look shows that none is too deep. An object inside another adds five bytes at least."""
    if b"[" not in together and max(map(len, values), default=0) < 5 * DEPTH_MAX:
        return True
    objects = sum(b"{" in value for value in values)
    return together.count(b"{") + together.count(b"[") < DEPTH_MAX + objects


def _quick_decoder(
    fields: EventFields, others: tuple[type, ...], *, several_legs: bool
) -> Callable[[bytes | None], Event]:
    """Return a decoder of one JSON object into an object with the contract's names. It refuses an incomplete event.

    others: what may stand where a text is asked for.
    """
    texts = _paths_of_texts(fields)
    never_empty = texts.keys() & {"match_key", "currency", *(["transaction_key"] if several_legs else [])}
    text = Annotated[str, Meta(max_length=TEXT_LENGTH_MAX)]
    some_text = Annotated[str, Meta(min_length=1, max_length=TEXT_LENGTH_MAX)]
    amount = {"amount_minor": Annotated[int, Meta(ge=LONG_MIN, le=LONG_MAX)]}
    kinds: Mapping[str, Any] = (
        ({} if "amount_minor" in fields.constants else amount)
        | dict.fromkeys(texts, Union[text, *others])
        | dict.fromkeys(never_empty, Union[some_text, *others])
    )
    paths = {name: names_of(getattr(fields, name)) for name in kinds}
    named = {paths[name]: name for name in sorted(kinds, key=lambda name: name in never_empty)}
    others_names = {
        name: property(attrgetter(named[path])) for name, path in paths.items() if name not in named.values()
    }
    stated = {name: property(partial(_stated, constant)) for name, constant in fields.constants.items()}
    shape = _shape("Event", {name: path for path, name in named.items()}, kinds, more=others_names | stated)
    # Of None it raises TypeError, for which `read_whole` waits: a test before each call would cost a call more.
    return cast("Callable[[bytes | None], Event]", msgspec.json.Decoder(shape).decode)


def _stated(constant: Any, event: Any) -> Any:
    return constant


def _compared_text(compared: ComparedColumns, raw: Mapping[str, bytes]) -> str:
    return compared.text_of([text_of_json(raw.get(path, b"")) for path in compared.paths])


def _two_keys(fields: EventFields) -> Any:
    kind = str | int | None
    match_key, transaction_key = fields.match_key, fields.transaction_key
    assert isinstance(match_key, str) and isinstance(transaction_key, str)  # a placed field is a path by now
    paths = {"match_key": names_of(match_key)}
    if match_key == transaction_key:
        other = {"transaction_key": property(attrgetter("match_key"))}
        return _shape("Keys", paths, {"match_key": kind}, may_lack=True, more=other)
    paths["transaction_key"] = names_of(transaction_key)
    return _shape("Keys", paths, dict.fromkeys(paths, kind), may_lack=True)
