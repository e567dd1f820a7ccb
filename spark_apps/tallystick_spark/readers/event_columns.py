"""Many JSON payloads as columns, just as `tallystick.kafka_log.event_decoder` reads each of them, only quicker.

What is plainly one object with fields of the right kinds is decoded at once; of all else the reader says what it is.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, Union, cast

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Meta
from numpy.typing import NDArray

from tallystick.contract.event import EventFields
from tallystick.kafka_log.event_decoder import (
    DECODE_ERRORS,
    DEPTH_MAX,
    LONG_MAX,
    LONG_MIN,
    TEXT_LENGTH_MAX,
    EventReader,
    unsound,
)

_TEXTS = ("match_key", "transaction_key", "leg", "currency")
_NUL_ESCAPE = rb"\u0000"

READ_EVENTS = pa.schema(
    [
        ("match_key", pa.string()),
        ("transaction_key", pa.string()),
        ("leg", pa.string()),
        ("amount_minor", pa.int64()),
        ("currency", pa.string()),
        ("readable", pa.bool_()),
        ("ordering_key", pa.string()),
        ("sequence", pa.int64()),
    ]
)
"""What `read_events` makes of values. Of an unreadable one all is null but that it is."""


class WholeEvents(NamedTuple):
    """Readable events, and of each a column. match_keys: as UTF-8."""

    events: Sequence[Any]
    match_keys: list[bytes]
    amounts_minor: NDArray[np.int64]
    currencies: list[str]


class EventDecoder:
    """Decodes the fields of one contract. several_legs: as `EventReader` has it."""

    def __init__(self, fields: EventFields, *, several_legs: bool) -> None:
        self._reader = EventReader(fields, several_legs=several_legs)
        quick = partial(_quick_decoder, fields, several_legs=several_legs) if _is_plain(fields) else None
        self._of_strings = quick(()) if quick else _refuse
        self._of_numbers = quick((int,)) if quick else _refuse

    def decode_whole(self, values: Sequence[bytes | None]) -> WholeEvents | None:
        """The events, if every one of them is readable and all their texts are strings: it is nearly always so."""
        try:
            events = list(map(self._of_strings, values))
        except DECODE_ERRORS:  # a record without a value is a TypeError
            return None
        return _columns(events) if _are_sound([value for value in values if value is not None]) else None

    def decode(self, values: Sequence[bytes | None]) -> tuple[list[int], WholeEvents]:
        """Places of the readable ones among the values, and these."""
        are_sound = _are_sound([value for value in values if value is not None])
        places, events = [], []
        for place, value in enumerate(values):
            event = self._read(value, is_sound=are_sound)
            if event is not None:
                places.append(place)
                events.append(event)
        return places, _columns(events)

    def _read(self, value: bytes | None, *, is_sound: bool) -> Any:
        """The event, None where the record is unreadable. is_sound: known of its bytes."""
        if value is not None and (is_sound or _are_sound([value])):
            try:
                return _Texts(self._of_numbers(value))
            except (*DECODE_ERRORS, OverflowError):
                pass
        reading = self._reader.read(value)
        return None if reading.problem else reading


def read_events(decoder: EventDecoder, values: Sequence[bytes | None]) -> pa.RecordBatch:
    """Values as READ_EVENTS."""
    whole = decoder.decode_whole(values)
    events: list[Any] = [None] * len(values)
    if whole is not None:
        events = list(whole.events)
    else:
        places, some = decoder.decode(values)
        for place, event in zip(places, some.events, strict=True):
            events[place] = event
    columns = [
        pa.array([event is not None for event in events])
        if name == "readable"
        else pa.array([getattr(event, name, None) for event in events], kind)
        for name, kind in zip(READ_EVENTS.names, READ_EVENTS.types, strict=True)
    ]
    return pa.record_batch(columns, schema=READ_EVENTS)


class _Texts:
    """An event whose texts are text. Raises OverflowError where a number has too many digits for one."""

    __slots__ = ("amount_minor", *_TEXTS)

    def __init__(self, event: Any) -> None:
        self.amount_minor = event.amount_minor
        for name in _TEXTS:
            text = getattr(event, name)
            if not isinstance(text, str):
                text = str(text)
                if len(text) > TEXT_LENGTH_MAX:
                    raise OverflowError
            setattr(self, name, text)


def _refuse(value: bytes | None) -> Any:
    raise TypeError("the contract's fields need the reader itself")


def _is_plain(fields: EventFields) -> bool:
    """Are the contract's fields strings, and one whole number under a name of its own?"""
    texts = {getattr(fields, name) for name in _TEXTS}
    return fields.amount_unit == "minor" and fields.sequence is None and fields.amount_minor not in texts


def _are_sound(values: Sequence[bytes]) -> bool:
    """Do they hold nothing that msgspec takes and the reader does not? Asked of all at once, for it is seldom no."""
    together = b"\n".join(values)
    if b"\\" in together and _NUL_ESCAPE in together:
        return False
    if together.isascii() and _are_shallow(values, together):
        return True
    return not any(map(unsound, values))


def _are_shallow(values: Sequence[bytes], together: bytes) -> bool:
    """Is none of them too deep, as can be told at a glance? An object inside another one adds five bytes at least."""
    if b"[" not in together and max(map(len, values), default=0) < 5 * DEPTH_MAX:
        return True
    return together.count(b"{") + together.count(b"[") < DEPTH_MAX + len(values)


def _quick_decoder(
    fields: EventFields, others: tuple[type, ...], *, several_legs: bool
) -> Callable[[bytes | None], Any]:
    """Of one JSON object as an object with the contract's names. Takes no event that lacks anything.

    others: what may stand where a text is asked for.
    """
    never_empty = ("match_key", "currency", *(["transaction_key"] if several_legs else []))
    text = Annotated[str, Meta(max_length=TEXT_LENGTH_MAX)]
    some_text = Annotated[str, Meta(min_length=1, max_length=TEXT_LENGTH_MAX)]
    kinds: Mapping[str, Any] = (
        {"amount_minor": Annotated[int, Meta(ge=LONG_MIN, le=LONG_MAX)]}
        | dict.fromkeys(_TEXTS, Union[text, *others])
        | dict.fromkeys(never_empty, Union[some_text, *others])
    )
    json_names = {name: getattr(fields, name) for name in kinds}
    named = {json_names[name]: name for name in sorted(kinds, key=lambda name: name in never_empty)}
    shape = msgspec.defstruct(
        "Event",
        [(name, kinds[name]) for name in named.values()],
        rename={name: json_name for json_name, name in named.items()},
        namespace={
            name: property(attrgetter(named[json_name]))
            for name, json_name in json_names.items()
            if name not in named.values()
        },
        gc=False,
    )
    # Of None it raises TypeError, for which `decode_whole` waits: a test before each call would cost a call more.
    return cast("Callable[[bytes | None], Any]", msgspec.json.Decoder(shape).decode)


def _columns(events: Sequence[Any]) -> WholeEvents:
    return WholeEvents(
        events=events,
        match_keys=[event.match_key.encode() for event in events],
        amounts_minor=np.array([event.amount_minor for event in events], dtype=np.int64),
        currencies=[event.currency for event in events],
    )
