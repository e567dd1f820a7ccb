"""What the quick decoder takes, it reads as Spark's from_json does; what it does not take, it leaves alone."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_apps.event_decode import EventDecoder, can_decode, whole_of
from spark_apps.topic_frame import parse_events
from tallystick.contract_event import EventFields

FIELDS = EventFields()
NAMES = ("match_key", "transaction_key", "leg", "amount_minor", "currency")
NUMBERS = st.integers(-(2**65), 2**65) | st.floats()
TEXTS = st.text(max_size=6)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXTS
ANYTHING = st.recursive(LEAVES, lambda some: st.lists(some, max_size=2) | st.dictionaries(TEXTS, some, max_size=2))
RIGHT = st.fixed_dictionaries(
    {},
    optional={
        FIELDS.match_key: TEXTS | st.none(),
        FIELDS.transaction_key: TEXTS,
        FIELDS.leg: TEXTS | st.integers(),
        FIELDS.amount_minor: st.integers(-(2**63), 2**63 - 1) | st.none(),
        FIELDS.currency: TEXTS,
        "note": ANYTHING,
    },
)
SOME_TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
WHOLE = st.fixed_dictionaries(
    {
        FIELDS.match_key: SOME_TEXT,
        FIELDS.transaction_key: SOME_TEXT,
        FIELDS.leg: SOME_TEXT,
        FIELDS.amount_minor: st.integers(-(2**63), 2**63 - 1),
        FIELDS.currency: SOME_TEXT,
    }
)
WRONG = st.dictionaries(st.sampled_from([getattr(FIELDS, name) for name in NAMES]), ANYTHING)
WRITTEN = st.sampled_from(
    [
        lambda one: json.dumps(one).encode(),
        lambda one: json.dumps(one, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass"),
        lambda one: b" " + json.dumps(one).encode() + b"\n",
        lambda one: json.dumps(one).encode() + b" and more",
        lambda one: json.dumps(one).encode()[:-1],
        lambda one: b"[" + json.dumps(one).encode() + b"]",
        lambda one: b"\xef\xbb\xbf" + json.dumps(one).encode(),
        lambda one: json.dumps(one).replace('"', "'").encode(),
        lambda one: json.dumps(one).encode().replace(b"{", b'{"leg":"first","amount_minor":1,', 1),
        lambda one: json.dumps(one).encode("utf-16"),
    ]
)
VALUES = st.builds(lambda one, write: write(one), RIGHT | WRONG, WRITTEN)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(values=st.lists(VALUES | st.none() | st.binary(max_size=5), min_size=1, max_size=60))
@example(values=[b'{"amount_minor":1.0}', b'{"amount_minor":1e2}', b'{"amount_minor":-0}', b'{"amount_minor":"1"}'])
@example(values=[b'{"event_id":"a\xff"}', b'{"event_id":"\\ud800"}', b'{"event_id":"a\tb"}', b'{"event_id":"\\u0000"}'])
@example(values=[b'{"leg":"x","leg":null}', b'{"leg":null,"leg":"x"}', b'{"note":NaN}', b'{"note":01}', b"{}", b"null"])
@example(values=[b'{"event_id":-0}', b'{"event_id":12345678901234567890123}', b'{"event_id":1.50}'])
@example(
    values=[b'{"event_id":1}', b'{"event_id":true}', b'{"event_id":{}}', b'{"note":{"leg":"x"}}', b'{"leg":"a"}{}']
)
def test_what_is_taken_is_read_alike(spark: SparkSession, values: list[bytes | None]) -> None:
    decoded = EventDecoder(FIELDS).decode(values)
    assert sorted([*decoded.taken, *decoded.odd]) == list(range(len(values)))
    assert [_fields(event) for event in decoded.events] == [
        row for place, row in enumerate(_by_spark(spark, values)) if place in set(decoded.taken)
    ]


@settings(max_examples=50)
@given(events=st.lists(RIGHT, min_size=1))
def test_what_is_right_is_taken(events: list[dict[str, Any]]) -> None:
    decoded = EventDecoder(FIELDS).decode([json.dumps(event).encode() for event in events])
    assert not decoded.odd or any(_has_surrogate_or_not_finite(event) for event in events)


@settings(max_examples=200)
@given(values=st.lists(VALUES | st.builds(lambda one: json.dumps(one).encode(), RIGHT | WHOLE), max_size=8))
def test_the_quick_decoder_says_the_same_or_nothing(values: list[bytes]) -> None:
    decoder = EventDecoder(FIELDS)
    quick, decoded = decoder.decode_whole(values), decoder.decode(values)
    places, whole = whole_of(decoded.events)
    if quick is not None:
        assert len(places) == len(values)
        assert list(map(_fields, quick.events)) == list(map(_fields, whole.events))
        assert [list(column) for column in quick[1:]] == [list(column) for column in whole[1:]]


@settings(max_examples=50)
@given(events=st.lists(WHOLE, min_size=1))
def test_whole_events_are_decoded_quickly(events: list[dict[str, Any]]) -> None:
    assert EventDecoder(FIELDS).decode_whole([json.dumps(event).encode() for event in events]) is not None


def test_one_name_for_two_fields() -> None:
    fields = EventFields(transaction_key=FIELDS.match_key)
    assert can_decode(fields)
    (event,) = EventDecoder(fields).decode([b'{"event_id":"e","leg":"payment"}']).events
    assert (event.match_key, event.transaction_key, event.leg) == ("e", "e", "payment")
    whole = b'{"event_id":"e","leg":"payment","amount_minor":1,"currency":"EUR"}'
    assert EventDecoder(fields).decode_whole([whole]) is not None
    assert EventDecoder(fields).decode_whole([whole.replace(b'"e"', b'""')]) is None


@pytest.mark.parametrize(
    ("fields", "is_possible"),
    [
        (FIELDS, True),
        (EventFields(amount_unit="major"), False),
        (EventFields(ordering_key="account", sequence="number"), False),
        (EventFields(leg=FIELDS.amount_minor), False),
    ],
)
def test_what_can_be_decoded(fields: EventFields, is_possible: bool) -> None:
    assert can_decode(fields) is is_possible


def _fields(event: Any) -> tuple[Any, ...]:
    texts = (getattr(event, name) for name in NAMES if name != "amount_minor")
    return event.amount_minor, *(None if text is None else str(text) for text in texts)


def _by_spark(spark: SparkSession, values: list[bytes | None]) -> list[tuple[Any, ...]]:
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
    return [_fields(row) for row in parse_events(source, FIELDS).orderBy("kafka_offset").collect()]


def _has_surrogate_or_not_finite(event: dict[str, Any]) -> bool:
    text = json.dumps(event)
    return "\\ud" in text or "NaN" in text or "Infinity" in text
