"""What a readable event is: a payload in, the contract's fields out, or why not. All ways of reading ask here.

A readable event is one JSON object (RFC 8259) in UTF-8, with nothing but white space behind it and not more than
DEPTH_MAX deep, whose fields are of the right kinds. Its texts are JSON strings, or whole numbers, whose digits are the
text; they hold no NUL and not more than TEXT_LENGTH_MAX characters. Nothing is replaced, rounded or cut. A name that
the object has twice counts as its last value says; a byte order mark before the object is passed over.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from tallystick.contract.event import EventFields
from tallystick.text.money import minor_unit_digits

DEPTH_MAX = 100
"""Objects and arrays inside each other. Deeper, a parser ends where its stack does: each time at another depth."""
TEXT_LENGTH_MAX = 500
"""Characters of a key, leg or currency: at most 2,000 bytes, which PostgreSQL still takes into an index."""
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, TypeError, RecursionError)
"""What msgspec's JSON decoder raises of bytes that it does not take; a TypeError where there are none."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKET = re.compile(rb"[][{}]")
_WHOLE_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"(-?[0-9]+)(?:\.([0-9]+))?", re.ASCII)


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
    problem: str = ""


class EventReader:
    """Reads the events of one contract's topic. several_legs: its transactions are told apart by their key."""

    def __init__(self, fields: EventFields, *, several_legs: bool = False) -> None:
        self._names = {
            "match_key": fields.match_key,
            "transaction_key": fields.transaction_key,
            "leg": fields.leg,
            "currency": fields.currency,
        }
        if fields.ordering_key is not None:
            self._names["ordering_key"] = fields.ordering_key
        self._never_empty = {"match_key", "currency"} | ({"transaction_key"} if several_legs else set())
        self._amount, self._is_major = fields.amount_minor, fields.amount_unit == "major"
        self._sequence = fields.sequence
        named = (*self._names.values(), self._amount, self._sequence)
        self._decode = _raw_decoder({name for name in named if name is not None})

    def read(self, value: bytes | None) -> EventReading:
        """The event that a record's value is."""
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
        return EventReading(
            **texts,
            amount_minor=self._amount_minor(raw, texts["currency"], problems),
            sequence=self._whole_number(raw, self._sequence, problems) if self._sequence else None,
            problem=problems[0] if problems else "",
        )

    def _text(self, raw: Callable[[str], bytes], name: str, problems: list[str]) -> str | None:
        json_name = self._names[name]
        text = _as_text(raw(json_name))
        if text is None:
            problem = f"{json_name} is missing" if raw(json_name) in _NOTHING else f"{json_name} is no text"
        elif not text and name in self._never_empty:
            problem = f"{json_name} is empty"
        else:
            problem = unfit(text, json_name)
        if problem:
            problems.append(problem)
            return None
        return text

    def _amount_minor(self, raw: Callable[[str], bytes], currency: str | None, problems: list[str]) -> int | None:
        if not self._is_major:
            return self._whole_number(raw, self._amount, problems)
        written = raw(self._amount)
        text = _as_text(written) if written.startswith(b'"') else written.decode()
        amount = minor_units(text or "", currency or "")
        if amount is None:
            problems.append(f"{self._amount} is no whole number of its currency's minor units that 64 bits hold")
        return amount

    def _whole_number(self, raw: Callable[[str], bytes], json_name: str, problems: list[str]) -> int | None:
        written = raw(json_name)
        number = int(written) if len(written) <= 20 and _WHOLE_NUMBER.fullmatch(written) else None
        if number is not None and LONG_MIN <= number <= LONG_MAX:
            return number
        what = "is missing" if written in _NOTHING else "is no whole number that 64 bits hold"
        problems.append(f"{json_name} {what}")
        return None


_NOTHING = (b"", b"null")


@lru_cache
def reader_of(fields: EventFields) -> EventReader:
    """Of a look-up, which asks what single records say, whatever is asked of transactions."""
    return EventReader(fields)


def unsound(value: bytes) -> str:
    """What is wrong with a payload whatever it should say; "" if nothing is."""
    if not value.isascii():
        try:
            value.decode()
        except UnicodeDecodeError as error:
            return f"its bytes are not UTF-8 (byte {error.start})"
    if value.count(b"{") + value.count(b"[") > DEPTH_MAX and depth_of(value) > DEPTH_MAX:
        return f"it is nested more than {DEPTH_MAX} deep"
    return ""


def depth_of(value: bytes) -> int:
    """How many objects and arrays stand inside each other at most. Brackets in strings are none.

    Of a payload that is nested too deep so many as are too many.
    """
    depth = deepest = 0
    for bracket in _BRACKET.finditer(_STRING.sub(b"", value)):
        depth += 1 if bracket[0] in b"[{" else -1
        deepest = max(deepest, depth)
        if deepest > DEPTH_MAX:
            break
    return deepest


def unfit(text: str, name: str) -> str:
    """What keeps a key, a leg or a currency from being compared and kept; "" if nothing does.

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


def _raw_decoder(json_names: set[str]) -> Callable[[bytes], Callable[[str], bytes]]:
    """Of one JSON object: by name how a field is written, b"" where it is not there."""
    names = sorted(json_names)
    shape = msgspec.defstruct(
        "RawEvent",
        [(f"field_{number}", msgspec.Raw, msgspec.Raw()) for number in range(len(names))],
        rename={f"field_{number}": name for number, name in enumerate(names)},
        gc=False,
    )
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(shape).decode
    place = {name: f"field_{number}" for number, name in enumerate(names)}

    def of(value: bytes) -> Callable[[str], bytes]:
        event = decode(value)
        return lambda name: bytes(getattr(event, place[name]))

    return of
