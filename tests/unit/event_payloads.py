"""Payloads that are readable events, and some that are none, each with what is wrong with it."""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tallystick.contract.compare import CompareRule, compared_columns, text_of_json
from tallystick.contract.equality import TEXT_LENGTH_MAX
from tallystick.contract.event import EventFields
from tallystick.contract.field_path import document_of, path_of
from tallystick.contract.field_types import CurrencyConstant, LegConstant
from tallystick.kafka_log.event_decoder import DEPTH_MAX, EventDecoder

FIELDS = EventFields()
NESTED = EventFields(
    match_key="data.order.id",
    transaction_key="data.payment-id",
    leg='data."leg.name"',
    amount_minor="money.amount",
    currency="money.currency",
)
_RULES = {
    "note": CompareRule(exact="text"),
    "fee": CompareRule(abs=Decimal(1), event="currency-note"),
    "at": CompareRule(within="2s", event="data.at"),
}
COMPARING = EventFields().comparing(compared_columns(_RULES))
_ONE_VALUE_TWICE = {"a": CompareRule(exact="text", event="note"), "b": CompareRule(exact="number", event="note")}
SOME_FIELDS = (
    FIELDS,
    EventFields().comparing(compared_columns(_ONE_VALUE_TWICE)),
    NESTED,
    EventFields(transaction_key="event_id"),
    EventFields(amount_unit="major"),
    EventFields(ordering_key="leg", sequence="note"),
    EventFields(leg="amount_minor"),
    EventFields(currency=CurrencyConstant(constant="EUR"), leg=LegConstant(constant="payout")),
    COMPARING,
)
NAMES = ("match_key", "transaction_key", "leg", "amount_minor", "currency")
SAID = (*NAMES, "compared_text")
WHOLE_NESTED = (
    b'{"data":{"order":{"id":"ev-1"},"payment-id":"pay-1","leg.name":"payout"},'
    b'"money":{"amount":1000,"currency":"EUR"}}'
)
WHOLE = b'{"event_id":"ev-1","payment_id":"pay-1","leg":"payout","amount_minor":1000,"currency":"EUR"}'


def with_field(written: bytes, name: str = "event_id") -> bytes:
    """The whole event, in which one field is written so."""
    fields = {"event_id": b'"ev-1"', "payment_id": b'"pay-1"', "leg": b'"payout"', "amount_minor": b"1000"}
    fields |= {"currency": b'"EUR"', name: written}
    return b"{" + b",".join(b'"%b":%b' % (key.encode(), value) for key, value in fields.items()) + b"}"


def with_note(written: bytes) -> bytes:
    """The whole event, and a field that nobody reads."""
    return with_field(written, "note")


def nested(depth: int) -> bytes:
    return b"[" * (depth - 1) + b"]" * (depth - 1)


READABLE = {
    "as the contract says": WHOLE,
    "white space around it": b" \r\n\t" + WHOLE + b" \n",
    "a byte order mark before it": b"\xef\xbb\xbf" + WHOLE,
    "as deep as may be": with_note(nested(DEPTH_MAX)),
    "many brackets in a text": with_note(b'"' + b"[{" * 3 * DEPTH_MAX + b'"'),
    "many brackets side by side": with_note(b"[" + b",".join([b"{}"] * 3 * DEPTH_MAX) + b"]"),
    "a whole number for a key": with_field(b"17"),
    "as long as may be": with_field(b'"' + b"x" * TEXT_LENGTH_MAX + b'"'),
    "an emoji in two escapes": with_field(rb'"\ud83d\ude00"'),
    "letters as they are": with_field('"café €"'.encode()),
    "a NUL that nobody reads": with_note(rb'"\u0000"'),
    "a number that nobody could hold": with_note(b"1e999999"),
    "the largest amount": with_field(b"9223372036854775807", "amount_minor"),
    "an empty leg": with_field(b'""', "leg"),
    "a name twice": WHOLE[:-1] + b',"event_id":"ev-1"}',
}
UNREADABLE = {
    "nothing": (None, "it has no value"),
    "no bytes": (b"", "not one JSON object"),
    "text behind it": (WHOLE + b" x", "not one JSON object"),
    "an event behind it": (WHOLE + WHOLE, "not one JSON object"),
    "a NUL behind it": (WHOLE + b"\0", "not one JSON object"),
    "a list": (b"[" + WHOLE + b"]", "not one JSON object"),
    "two byte order marks": (b"\xef\xbb\xbf" * 2 + WHOLE, "not one JSON object"),
    "NaN": (with_note(b"NaN"), "not one JSON object"),
    "half a surrogate pair in a key": (with_field(rb'"\ud800"'), "not one JSON object"),
    "half a surrogate pair that nobody reads": (with_note(rb'"\udc00"'), "not one JSON object"),
    "a surrogate in UTF-8": (with_field(b'"\xed\xa0\x80"'), "not UTF-8"),
    "Latin-1": (with_field(b'"caf\xe9"'), "not UTF-8"),
    "Latin-1 that nobody reads": (with_note(b'"caf\xe9"'), "not UTF-8"),
    "UTF-16": (WHOLE.decode().encode("utf-16"), "not UTF-8"),
    "an amount of 200,000 digits in eight bytes": (with_field(b"1e200000", "amount_minor"), "amount_minor is no whole"),
    "an amount of a million digits": (with_field(b"1e999990", "amount_minor"), "amount_minor is no whole number"),
    "an amount of 5,000 digits": (with_field(b"9" * 5_000, "amount_minor"), "amount_minor is no whole number"),
    "deeper than Python's stack": (with_note(nested(1_100)), "nested more than 100 deep"),
    "too deep": (with_note(nested(DEPTH_MAX + 1)), "nested more than 100 deep"),
    "far too deep": (with_note(nested(100_000)), "nested more than 100 deep"),
    "too deep and not closed": (WHOLE[:-1] + b',"note":' + b'{"a":' * 5_000, "nested more than 100 deep"),
    "a NUL in the key": (with_field(rb'"a\u0000"'), "event_id holds a NUL"),
    "a NUL in the transaction's key": (with_field(rb'"\u0000"', "payment_id"), "payment_id holds a NUL"),
    "a NUL in the leg": (with_field(rb'"\u0000"', "leg"), "leg holds a NUL"),
    "a NUL in the currency": (with_field(rb'"E\u0000R"', "currency"), "currency holds a NUL"),
    "an endless key": (with_field(b'"' + b"x" * 6_000 + b'"'), "event_id has 6,000 characters"),
    "an endless number for a key": (with_field(b"9" * 6_000), "event_id has 6,000 characters"),
    "an endless currency": (with_field(b'"' + b"x" * 6_000 + b'"', "currency"), "currency has 6,000 characters"),
    "an endless leg": (with_field(b'"' + b"x" * 501 + b'"', "leg"), "leg has 501 characters"),
    "a fraction for a key": (with_field(b"1.50"), "event_id is no text"),
    "an object for a key": (with_field(b'{"a":1}'), "event_id is no text"),
    "no key": (with_field(b"null"), "event_id is missing"),
    "an empty key": (with_field(b'""'), "event_id is empty"),
    "an amount above a bigint": (with_field(b"9223372036854775808", "amount_minor"), "amount_minor is no whole number"),
    "a fraction of a unit": (with_field(b"10.50", "amount_minor"), "amount_minor is no whole number"),
    "no amount": (with_field(b"null", "amount_minor"), "amount_minor is missing"),
}

_TEXTS = [b'"ev-1"', b'""', rb'"\u0000"', rb'"\ud800"', rb'"\ud83d\ude00"', b'"caf\xe9"', '"é"'.encode(), b'"EUR"']
_ODD_TEXTS = [b'"' + b"x" * 501 + b'"', b'"\x00"', b'"a\tb"', b'"[{"', rb'"\"}"']
_NUMBERS = [b"17", b"-0", b"1.5", b"1e2", b"01", b"NaN", b"9223372036854775807", b"9223372036854775808"]
_OTHERS = [b"null", b"true", b"{}", b"[]", b"", nested(99), nested(100), nested(101)]
_SMALL = st.sampled_from([*_TEXTS, *_ODD_TEXTS, *_NUMBERS, *_OTHERS])
_NAMES = st.sampled_from([b"event_id", b"payment_id", b"leg", b"amount_minor", b"currency", b"note", rb"\u006eote"])
_OBJECTS = st.lists(st.tuples(_NAMES, _SMALL), max_size=8).map(
    lambda fields: b"{" + b",".join(b'"%b":%b' % field for field in fields) + b"}"
)
_WITH_ONE_CHANGED = st.builds(
    with_field, _SMALL, st.sampled_from(["event_id", "payment_id", "leg", "currency", "note"])
)
_JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists).map(
    lambda one: json.dumps({"note": one}).encode()
)


def _spoilt(value: bytes, place: int, put: bytes, length: int) -> bytes:
    at = place % (len(value) + 1)
    return value[:at] + put + value[at + length :]


_SOUND = st.sampled_from(list(READABLE.values())) | _WITH_ONE_CHANGED | _OBJECTS
PAYLOADS = (
    _SOUND
    | _JSON
    | st.binary(max_size=8)
    | st.builds(_spoilt, _SOUND, st.integers(0, 10_000), st.binary(max_size=3), st.integers(0, 2))
    | st.builds(lambda one, other: one + other, _SOUND, _SOUND | st.sampled_from([b" x", b"\n", b"\xef\xbb\xbf", b","]))
    | st.sampled_from([value for value, _ in UNREADABLE.values() if value is not None])
)
"""Bytes: events, nearly events, and anything."""

_PARENTS = ("data", "order", "meta.data", "in-side", "Größe")
_LEAVES = ("id", "orderId", "order.id", "order-id", "menge", "größe", "event_id", "amount_minor")
_PATHS = st.builds(
    lambda parents, leaf: path_of([*parents, leaf]),
    st.lists(st.sampled_from(_PARENTS), max_size=3),
    st.sampled_from(_LEAVES),
)
SCHEMAS = st.fixed_dictionaries(
    dict.fromkeys(NAMES, _PATHS)
    | {
        "amount_unit": st.sampled_from(["minor", "minor", "major"]),
        "currency": _PATHS | st.sampled_from(["EUR", "JPY", "KWD"]).map(lambda code: CurrencyConstant(constant=code)),
        "leg": _PATHS | st.just(LegConstant(constant="payout")),
    }
).map(lambda names: EventFields(**names))
"""Contracts' fields at any paths, or constants; some share a path, none lies inside another."""


@st.composite
def comparing(draw: st.DrawFn) -> EventFields:
    """Such fields, and up to three columns that are compared besides; two may be one value of the payload."""
    fields = draw(SCHEMAS)
    paths = draw(st.lists(_PATHS, max_size=3))
    rules = {f"column_{number}": CompareRule(exact="number", event=path) for number, path in enumerate(paths)}
    columns = compared_columns(rules)
    try:
        fields.refuse_to_compare(columns)
    except ValueError:
        return fields
    return fields.comparing(columns)


@st.composite
def payloads_of(draw: st.DrawFn, fields: EventFields) -> bytes:
    """A payload with these fields, of which one may be odd, other members between them, and a member twice."""
    odd = draw(st.sampled_from([None, None, *fields.paths]))
    sound = dict.fromkeys(fields.paths, b'"EUR"') | {fields.amount_minor: draw(st.sampled_from([b"1000", b"-0", b"7"]))}
    values = {path: draw(_SMALL) if path == odd else value for path, value in sound.items()}
    values |= {path: draw(_SMALL) for path in fields.compared.paths if draw(st.booleans())}
    return _written(draw, document_of(values))


def _written(draw: st.DrawFn, document: dict[str, Any]) -> bytes:
    members = [(key, _written(draw, value) if isinstance(value, dict) else value) for key, value in document.items()]
    more = draw(st.sampled_from([None, None, "note", *document]))
    if more is not None:
        members.insert(draw(st.integers(0, len(members))), (more, draw(_SMALL | st.just(b'{"id":"EUR"}'))))
    as_it_is = draw(st.booleans())
    keys = [json.dumps(key, ensure_ascii=not as_it_is).encode() for key, _ in members]
    return b"{" + b",".join(b"%b:%b" % (key, value) for key, (_, value) in zip(keys, members, strict=True)) + b"}"


@st.composite
def fields_and_values(draw: st.DrawFn) -> tuple[EventFields, list[bytes | None]]:
    """A contract's fields, and values of its topic: most of them events, some nearly events or anything."""
    fields = draw(st.sampled_from(SOME_FIELDS) | SCHEMAS | comparing())
    own = payloads_of(fields)
    spoilt = st.builds(_spoilt, own, st.integers(0, 10_000), st.binary(max_size=3), st.integers(0, 2))
    return fields, draw(st.lists(own | own | spoilt | PAYLOADS | st.none(), max_size=4))


def as_said(
    decoder: EventDecoder, values: Sequence[bytes | None], events: Sequence[Any]
) -> list[tuple[Any, ...] | None]:
    """What events of these values say, by SAID; None of an unreadable one."""
    columns = decoder.read_compared(values)
    texts = [
        decoder.compared.text_of([text_of_json(column[row]) for column in columns]) if columns else ""
        for row in range(len(values))
    ]
    return [
        None if event is None else (*(getattr(event, name) for name in NAMES), text)
        for event, text in zip(events, texts, strict=True)
    ]


EVERY_KIND = [*READABLE.values(), *(value for value, _ in UNREADABLE.values()), with_field(b'""', "payment_id")]


def by_the_rule(
    values: Sequence[bytes | None], fields: EventFields, *, several_legs: bool
) -> list[tuple[Any, ...] | None]:
    """What each value says, read by itself: its fields by SAID; None of an unreadable one."""
    decoder = EventDecoder(fields, several_legs=several_legs)
    readings = map(decoder.read, values)
    return [None if one.problem else tuple(getattr(one, name) for name in SAID) for one in readings]
