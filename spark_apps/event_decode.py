"""Many JSON payloads as events, wherever that reads them as Spark's from_json does.

The decoder is strict where from_json is lenient: it takes no object for a string, no fraction for a whole number, no
text behind the object. What it refuses is told apart, for from_json itself to judge.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from tallystick.contract_event import EventFields

_NEVER_EMPTY = ("match_key", "currency")
_STRINGS = ("transaction_key", "leg", *_NEVER_EMPTY)
_REFUSED = (msgspec.MsgspecError, UnicodeDecodeError, TypeError)


class DecodedEvents(NamedTuple):
    """events: objects with match_key, transaction_key, leg, amount_minor and currency, each None where it was null.

    A text may be a whole number; its digits are the text that from_json reads. taken: places of these among the values;
    odd: all other places.
    """

    events: list[Any]
    taken: list[int]
    odd: list[int]


class WholeEvents(NamedTuple):
    """Events that lack nothing and of which all texts are text, and of each a column. match_keys: as UTF-8."""

    events: Sequence[Any]
    match_keys: list[bytes]
    amounts_minor: NDArray[np.int64]
    currencies: list[str]


class EventDecoder:
    """Decodes the fields of one contract, of which `can_decode` says yes."""

    def __init__(self, fields: EventFields) -> None:
        self._decode = _decoder(fields, {"amount_minor": int | None} | dict.fromkeys(_STRINGS, str | int | None), None)
        text = dict.fromkeys(_STRINGS, str) | dict.fromkeys(_NEVER_EMPTY, Annotated[str, Meta(min_length=1)])
        self._decode_whole = _decoder(fields, {"amount_minor": Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]} | text)

    def decode_whole(self, values: Sequence[bytes | None]) -> WholeEvents | None:
        """The events, if every one of them is whole and all their texts are text. Quick, for it is nearly always so."""
        try:
            return _columns(list(map(self._decode_whole, values)))
        except _REFUSED:  # a tombstone is a TypeError
            return None

    def decode(self, values: Sequence[bytes | None]) -> DecodedEvents:
        """Decode what is plainly one JSON object with fields of the right kinds, or without some of them."""
        events, taken, odd = [], [], []
        for place, value in enumerate(values):
            try:
                event = self._decode(value)
            except _REFUSED:
                event = None
            if event is not None and _is_long(event.amount_minor):
                events.append(event)
                taken.append(place)
            else:
                odd.append(place)
        return DecodedEvents(events, taken, odd)


def can_decode(fields: EventFields) -> bool:
    """Whether the contract's fields are strings, and one whole number under a name of its own."""
    strings = {getattr(fields, name) for name in _STRINGS}
    return fields.amount_unit == "minor" and fields.sequence is None and fields.amount_minor not in strings


def whole_of(events: Sequence[Any]) -> tuple[list[int], WholeEvents]:
    """Places of the events that lack nothing, and these. An empty key or currency is none."""
    places = [place for place, event in enumerate(events) if _is_whole(event)]
    some = [events[place] for place in places]
    is_text = all(isinstance(getattr(event, name), str) for event in some for name in _STRINGS)
    return places, _columns(some if is_text else [_Texts(event) for event in some])


def _decoder(fields: EventFields, kinds: Mapping[str, Any], *default: None) -> Callable[[bytes | None], Any]:
    """Of one JSON object as an object with the contract's names; a field under two names is of the last one's kind."""
    json_names = {name: getattr(fields, name) for name in kinds}
    named = {json_name: name for name, json_name in json_names.items()}
    shape = msgspec.defstruct(
        "Event",
        [(name, kinds[name], *default) for name in named.values()],
        rename={name: json_name for json_name, name in named.items()},
        namespace={
            name: property(attrgetter(named[json_name]))
            for name, json_name in json_names.items()
            if name not in named.values()
        },
        gc=False,
    )
    decode: Callable[[bytes | None], Any] = msgspec.json.Decoder(shape).decode
    return decode


class _Texts:
    """An event whose texts are text."""

    def __init__(self, event: Any) -> None:
        self.amount_minor = event.amount_minor
        for name in _STRINGS:
            setattr(self, name, str(getattr(event, name)))


def _columns(events: Sequence[Any]) -> WholeEvents:
    return WholeEvents(
        events=events,
        match_keys=[event.match_key.encode() for event in events],
        amounts_minor=np.array([event.amount_minor for event in events], dtype=np.int64),
        currencies=[event.currency for event in events],
    )


def _is_whole(event: Any) -> bool:
    return (
        event.match_key is not None
        and event.match_key != ""
        and event.currency is not None
        and event.currency != ""
        and event.amount_minor is not None
        and event.transaction_key is not None
        and event.leg is not None
    )


def _is_long(amount: int | None) -> bool:
    return amount is None or -(2**63) <= amount < 2**63
