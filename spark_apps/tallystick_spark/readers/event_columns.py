"""Events that `tallystick.kafka_log.event_decoder` has read, as columns: for numpy, and for Spark's frames."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tallystick.kafka_log.event_decoder import Event, EventDecoder

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
        ("compared_text", pa.string()),
    ]
)
"""The shape that `read_events` makes of values. An unreadable one has nulls only, except `readable`."""


class WholeEvents(NamedTuple):
    """Readable events, and of each a column. match_keys: as UTF-8. events: none where only columns were read."""

    events: Sequence[Event]
    match_keys: list[bytes]
    amounts_minor: NDArray[np.int64]
    currencies: list[str]
    compared_texts: list[str]
    """None where the contract compares money alone."""


def read_columns(decoder: EventDecoder, values: Sequence[bytes | None]) -> WholeEvents | None:
    """Read all events if each is readable and all texts are strings; otherwise None. Legs are in `events`, if told."""
    simple = decoder.read_simple(values)
    if simple is not None:
        amounts = np.frombuffer(simple.amounts_minor, dtype=np.int64)
        return WholeEvents((), simple.match_keys, amounts, simple.currencies, [])
    events = decoder.read_whole(values)
    return None if events is None else _columns_of(decoder, events)


def _columns_of(decoder: EventDecoder, events: Sequence[Event]) -> WholeEvents:
    return WholeEvents(
        events=events,
        match_keys=[event.match_key.encode() for event in events],
        amounts_minor=np.array([event.amount_minor for event in events], dtype=np.int64),
        currencies=[event.currency for event in events],
        compared_texts=[event.compared_text for event in events] if decoder.compares_text else [],
    )


def readable_among(decoder: EventDecoder, values: Sequence[bytes | None]) -> tuple[list[int], WholeEvents]:
    """Return the places of the readable ones among the values, and the events."""
    events = decoder.read_each(values)
    places = [place for place, event in enumerate(events) if event is not None]
    return places, _columns_of(decoder, [event for event in events if event is not None])


def read_events(decoder: EventDecoder, values: Sequence[bytes | None]) -> pa.RecordBatch:
    """Read values. Shape: READ_EVENTS."""
    whole = decoder.read_whole(values)
    events = decoder.read_each(values) if whole is None else whole
    columns = [
        pa.array([event is not None for event in events])
        if name == "readable"
        else pa.array([getattr(event, name, None) for event in events], kind)
        for name, kind in zip(READ_EVENTS.names, READ_EVENTS.types, strict=True)
    ]
    return pa.record_batch(columns, schema=READ_EVENTS)
