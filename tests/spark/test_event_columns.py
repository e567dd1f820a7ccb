"""The quick decoder and Spark's frame say of every payload what `tallystick.kafka_log.event_decoder` says of it."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tallystick.contract.event import EventFields
from tallystick.kafka_log.event_decoder import EventReader
from tallystick_spark.readers.event_columns import EventDecoder
from tallystick_spark.readers.topic_frame import parse_events
from tests.unit.event_payloads import FIELDS, PAYLOADS, READABLE, UNREADABLE, WHOLE, with_field

NAMES = ("match_key", "transaction_key", "leg", "amount_minor", "currency")
EVERY_KIND = [*READABLE.values(), *(value for value, _ in UNREADABLE.values()), with_field(b'""', "payment_id")]
SOME_FIELDS = (
    FIELDS,
    EventFields(transaction_key="event_id"),
    EventFields(amount_unit="major"),
    EventFields(ordering_key="leg", sequence="note"),
    EventFields(leg="amount_minor"),
)


def read(values: Sequence[bytes | None], fields: EventFields, *, several_legs: bool) -> list[tuple[Any, ...] | None]:
    """By the rule itself; None of the unreadable ones."""
    reader = EventReader(fields, several_legs=several_legs)
    readings = map(reader.read, values)
    return [None if one.problem else tuple(getattr(one, name) for name in NAMES) for one in readings]


def decoded(values: Sequence[bytes | None], fields: EventFields, *, several_legs: bool) -> list[tuple[Any, ...] | None]:
    decoder = EventDecoder(fields, several_legs=several_legs)
    places, whole = decoder.decode(values)
    found: list[tuple[Any, ...] | None] = [None] * len(values)
    for place, event in zip(places, whole.events, strict=True):
        found[place] = tuple(getattr(event, name) for name in NAMES)
    quick = decoder.decode_whole(values)
    if quick is not None:
        assert [tuple(getattr(event, name) for name in NAMES) for event in quick.events] == found
        assert [list(column) for column in quick[1:]] == [list(column) for column in whole[1:]]
    return found


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    values=st.lists(PAYLOADS | st.none(), max_size=6), fields=st.sampled_from(SOME_FIELDS), several_legs=st.booleans()
)
@example(values=EVERY_KIND, fields=FIELDS, several_legs=True)
@example(values=[WHOLE, WHOLE], fields=FIELDS, several_legs=True)
def test_the_quick_decoder_reads_bytes_as_the_rule_does(
    values: list[bytes | None], fields: EventFields, several_legs: bool
) -> None:
    assert decoded(values, fields, several_legs=several_legs) == read(values, fields, several_legs=several_legs)
    for value in values:
        assert decoded([value], fields, several_legs=several_legs) == read([value], fields, several_legs=several_legs)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(values=st.lists(PAYLOADS | st.none(), min_size=30, max_size=60), several_legs=st.booleans())
@example(values=EVERY_KIND, several_legs=True)
@example(values=EVERY_KIND, several_legs=False)
def test_sparks_frame_reads_bytes_as_the_rule_does(
    spark: SparkSession, values: list[bytes | None], several_legs: bool
) -> None:
    source = spark.createDataFrame(
        [(place, None if value is None else bytearray(value)) for place, value in enumerate(values)],
        "offset bigint, value binary",
    ).withColumns(
        {
            "topic": F.lit("payments"),
            "partition": F.lit(0),
            "key": F.lit(None).cast("binary"),
            "timestamp": F.current_timestamp(),
        }
    )
    rows = parse_events(source, FIELDS, several_legs=several_legs).orderBy("kafka_offset").collect()
    by_spark = [tuple(row[name] for name in NAMES) if row["readable"] else None for row in rows]
    assert by_spark == read(values, FIELDS, several_legs=several_legs)


@pytest.mark.parametrize("value", [WHOLE, with_field('"é"'.encode()), READABLE["as long as may be"]])
def test_plain_events_are_decoded_quickly(value: bytes) -> None:
    decoder = EventDecoder(FIELDS, several_legs=True)
    assert decoder.decode_whole([value] * 3) is not None
    assert decoder.decode_whole([value, with_field(b"17")]) is None


def test_one_name_for_two_fields() -> None:
    fields = EventFields(transaction_key=FIELDS.match_key)
    whole = EventDecoder(fields, several_legs=False).decode_whole([WHOLE])
    assert whole is not None
    assert (whole.events[0].match_key, whole.events[0].transaction_key) == ("ev-1", "ev-1")
    assert EventDecoder(fields, several_legs=False).decode_whole([with_field(b'""')]) is None
