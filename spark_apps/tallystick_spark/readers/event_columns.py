"""Events that `tallystick.kafka_log.event_decoder` has read, as columns: for numpy, and for Spark's frames."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tallystick.kafka_log.event_decoder import Event, EventDecoder
from tallystick_spark.readers.compared_text import texts_of_json

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
    compared_texts: pa.StringArray | None
    """None where the contract compares money alone."""


def read_columns(decoder: EventDecoder, values: Sequence[bytes | None]) -> WholeEvents | None:
    """Read all events if each is readable and all texts are strings; otherwise None. Legs are in `events`, if told."""
    simple = decoder.read_simple(values)
    if simple is not None:
        amounts = np.frombuffer(simple.amounts_minor, dtype=np.int64)
        said = [_as_array(ends, json, len(amounts)) for ends, json in simple.compared]
        texts = texts_of_json(said, decoder.compared) if said else None
        return WholeEvents((), simple.match_keys, amounts, simple.currencies, texts)
    events = decoder.read_whole(values)
    return None if events is None else _columns_of(events, compared_texts(decoder, values))


def compared_texts(decoder: EventDecoder, values: Sequence[bytes | None]) -> pa.StringArray | None:
    """Return what each event says in the columns that are compared besides money; None where there are none."""
    if not decoder.compared:
        return None
    return texts_of_json([pa.array(some, pa.binary()) for some in decoder.read_compared(values)], decoder.compared)


def _as_array(ends: bytes, json: bytes, count: int) -> pa.BinaryArray:
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(json)])


def _columns_of(events: Sequence[Event], texts: pa.StringArray | None) -> WholeEvents:
    return WholeEvents(
        events=events,
        match_keys=[event.match_key.encode() for event in events],
        amounts_minor=np.array([event.amount_minor for event in events], dtype=np.int64),
        currencies=[event.currency for event in events],
        compared_texts=texts,
    )


def readable_among(decoder: EventDecoder, values: Sequence[bytes | None]) -> tuple[list[int], WholeEvents]:
    """Return the places of the readable ones among the values, and the events."""
    events = decoder.read_each(values)
    places = [place for place, event in enumerate(events) if event is not None]
    texts = compared_texts(decoder, values)
    some = None if texts is None else texts.take(pa.array(places, pa.int64()))
    return places, _columns_of([event for event in events if event is not None], some)


def read_events(decoder: EventDecoder, values: Sequence[bytes | None]) -> pa.RecordBatch:
    """Read values. Shape: READ_EVENTS."""
    whole = decoder.read_whole(values)
    events = decoder.read_each(values) if whole is None else whole
    readable = pa.array([event is not None for event in events])
    texts = compared_texts(decoder, values)
    made = {"readable": readable}
    if texts is not None:
        made["compared_text"] = pc.if_else(readable, texts, pa.scalar(None, pa.string()))
    columns = [
        made[name] if name in made else pa.array([getattr(event, name, None) for event in events], kind)
        for name, kind in zip(READ_EVENTS.names, READ_EVENTS.types, strict=True)
    ]
    return pa.record_batch(columns, schema=READ_EVENTS)
