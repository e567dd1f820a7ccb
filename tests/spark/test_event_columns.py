"""Numpy's columns and Spark's frame say of every payload what `tallystick.kafka_log.event_decoder` says of it."""

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tallystick.contract.event import EventFields
from tallystick.kafka_log.event_decoder import EventDecoder
from tallystick_spark.readers.event_columns import WholeEvents, read_columns, readable_among
from tallystick_spark.readers.topic_frame import parse_events
from tests.unit.event_payloads import (
    COMPARING,
    EVERY_KIND,
    FIELDS,
    NAMES,
    NESTED,
    PAYLOADS,
    SAID,
    WHOLE,
    WHOLE_NESTED,
    by_the_rule,
    fields_and_values,
    payloads_of,
)


def columns_of(events: WholeEvents) -> tuple[Any, ...]:
    texts = events.compared_texts
    texts = None if texts is None else texts.to_pylist()
    return events.match_keys, events.amounts_minor.tolist(), events.currencies, texts


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=fields_and_values(), several_legs=st.booleans())
@example(drawn=(FIELDS, EVERY_KIND), several_legs=True)
@example(drawn=(FIELDS, [WHOLE, WHOLE]), several_legs=True)
@example(drawn=(NESTED, [WHOLE_NESTED, WHOLE_NESTED]), several_legs=False)
def test_columns_hold_what_the_rule_reads(drawn: tuple[EventFields, list[bytes | None]], several_legs: bool) -> None:
    fields, values = drawn
    decoder = EventDecoder(fields, several_legs=several_legs)
    places, whole = readable_among(decoder, values)
    expected = by_the_rule(values, fields, several_legs=several_legs)
    found: list[tuple[Any, ...] | None] = [None] * len(values)
    texts = [""] * len(places) if whole.compared_texts is None else whole.compared_texts.to_pylist()
    for place, event, text in zip(places, whole.events, texts, strict=True):
        found[place] = (*(getattr(event, name) for name in NAMES), text)
    assert found == expected
    readable = [one for one in expected if one is not None]
    columns = (whole.match_keys, whole.amounts_minor.tolist(), whole.currencies)
    assert columns == (
        [one[0].encode() for one in readable],
        [one[3] for one in readable],
        [one[4] for one in readable],
    )
    assert (whole.compared_texts is None) is not bool(fields.compared)
    quick = decoder.read_whole(values)
    at_once = read_columns(decoder, values)
    assert at_once is None or columns_of(at_once) == columns_of(whole)
    assert (at_once is None) == (quick is None)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    values=st.lists(PAYLOADS | payloads_of(NESTED) | st.none(), min_size=30, max_size=60),
    fields=st.sampled_from([FIELDS, NESTED, COMPARING]),
    several_legs=st.booleans(),
)
@example(values=EVERY_KIND, fields=FIELDS, several_legs=True)
@example(values=EVERY_KIND, fields=FIELDS, several_legs=False)
@example(values=[WHOLE_NESTED, WHOLE], fields=NESTED, several_legs=True)
@example(values=EVERY_KIND, fields=COMPARING, several_legs=False)
def test_sparks_frame_reads_bytes_as_the_rule_does(
    spark: SparkSession, values: Sequence[bytes | None], fields: EventFields, several_legs: bool
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
    rows = parse_events(source, fields, several_legs=several_legs).orderBy("kafka_offset").collect()
    names = SAID if fields.compared else NAMES
    by_spark = [tuple(row[name] for name in names) if row["readable"] else None for row in rows]
    expected = by_the_rule(values, fields, several_legs=several_legs)
    assert by_spark == [None if one is None else one[: len(names)] for one in expected]
