"""Many JSON payloads as events, wherever that reads them as Spark's from_json does.

The decoder is strict where from_json is lenient: it takes no object for a string, no fraction for a whole number, no
text behind the object. What it refuses is told apart, for from_json itself to judge.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tallystick.contract_event import EventFields

_STRINGS = ("match_key", "transaction_key", "leg", "currency")
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
    """Events that lack nothing, a column each. match_keys: as UTF-8. amounts_minor: int64."""

    match_keys: list[bytes]
    transaction_keys: list[str]
    legs: list[str]
    amounts_minor: NDArray[np.int64]
    currencies: list[str]


class EventDecoder:
    """Decodes the fields of one contract, of which `can_decode` says yes."""

    def __init__(self, fields: EventFields) -> None:
        names = {name: getattr(fields, name) for name in (*_STRINGS, "amount_minor")}
        first = {json_name: name for name, json_name in reversed(names.items())}
        kinds = [(name, (int if name == "amount_minor" else str | int) | None, None) for name in first.values()]
        members = {name: property(attrgetter(first[names[name]])) for name in names if name not in first.values()}
        shape = msgspec.defstruct(
            "Event", kinds, rename={name: json_name for json_name, name in first.items()}, namespace=members, gc=False
        )
        self._decode = msgspec.json.Decoder(shape).decode

    def decode_whole(self, values: Sequence[bytes | None]) -> WholeEvents | None:
        """The events, if every one of them is whole and all their texts are text. Quick, for it is nearly always so."""
        decode = self._decode
        try:
            events = [decode(value) for value in values]  # type: ignore[arg-type]  # a tombstone ends it
            whole = _columns(events)
        except (*_REFUSED, AttributeError, OverflowError):
            return None
        is_whole = _is_text(whole) and b"" not in whole.match_keys and "" not in whole.currencies
        return whole if is_whole else None

    def decode(self, values: Sequence[bytes | None]) -> DecodedEvents:
        """Decode what is plainly one JSON object with fields of the right kinds, or without some of them."""
        events, taken, odd = [], [], []
        for place, value in enumerate(values):
            try:
                event = self._decode(value)  # type: ignore[arg-type]
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
    try:
        whole = _columns(some)
    except AttributeError:
        whole = None
    if whole is None or not _is_text(whole):
        whole = _columns([_Texts(event) for event in some])
    return places, whole


class _Texts:
    """An event whose texts are text."""

    def __init__(self, event: Any) -> None:
        self.amount_minor = event.amount_minor
        for name in _STRINGS:
            setattr(self, name, str(getattr(event, name)))


def _is_text(events: WholeEvents) -> bool:
    return all(set(map(type, texts)) <= {str} for texts in (events.transaction_keys, events.legs, events.currencies))


def _columns(events: Sequence[Any]) -> WholeEvents:
    return WholeEvents(
        match_keys=[event.match_key.encode() for event in events],
        transaction_keys=[event.transaction_key for event in events],
        legs=[event.leg for event in events],
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
