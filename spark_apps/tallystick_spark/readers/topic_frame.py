"""One cut's events as a DataFrame, read by Kafka's client under read_committed at explicit offsets.

Shape: topic, partition, kafka_offset, value_hash, written_ms, match_key, transaction_key, leg, amount_minor, currency,
readable; and ordering_key, sequence, compared_text where the contract names them. A field that it does not name costs
nothing.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tallystick.connections.connections import KafkaSettings
from tallystick.connections.schema_registry import remember_registries
from tallystick.contract.event import EventFields
from tallystick.formats.schema_cache import registries_of
from tallystick.kafka_log.event_decoder import EventDecoder
from tallystick.model.offsets import OffsetRange
from tallystick_spark.readers.event_columns import read_events
from tallystick_spark.session import is_client

ISOLATION = "read_committed"
_EVENTS = (
    "topic string, partition int, kafka_offset bigint, value_hash bigint, written_ms bigint, match_key string, "
    "transaction_key string, leg string, amount_minor bigint, currency string, readable boolean"
)
_NAMED = {"ordering_key": "string", "sequence": "bigint", "compared_text": "string"}
_TUNED_CONSUMER = {
    "kafka.max.poll.records": "100000",
    "kafka.max.partition.fetch.bytes": str(16 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.receive.buffer.bytes": str(1 << 20),
}
"""Spark seeks, polls and asks for offsets twice on every poll, and polls 500 records by default."""


class IsolationNotReadCommitted(RuntimeError):
    """The plan would read aborted and open records."""


def use_kafka_v2_source(spark: SparkSession) -> None:
    """Take kafka out of the list of sources that Spark reads by its older row-by-row path."""
    name = "spark.sql.sources.useV1SourceList"
    sources = [source for source in (spark.conf.get(name) or "").split(",") if source != "kafka"]
    spark.conf.set(name, ",".join(sources))


def read_topics(
    spark: SparkSession,
    kafka: KafkaSettings,
    ranges: Sequence[OffsetRange],
    *,
    consumer: Mapping[str, str] = _TUNED_CONSUMER,
    headers: bool = False,
) -> DataFrame:
    """Read the ranges' records, unparsed. consumer: its options, by name. headers: read them too.

    Raises IsolationNotReadCommitted when the plan says otherwise.
    """
    offsets = _not_empty(ranges)
    use_kafka_v2_source(spark)
    source = (
        spark.read.format("kafka")
        .options(**kafka.for_spark(), **consumer)
        .option("kafka.isolation.level", ISOLATION)
        .option("assign", _by_topic((part.topic, part.partition) for part in offsets))
        .option("startingOffsets", _by_partition((p.topic, p.partition, p.kafka_offset_start) for p in offsets))
        .option("endingOffsets", _by_partition((p.topic, p.partition, p.kafka_offset_end) for p in offsets))
        .option("failOnDataLoss", "true")
        .option("includeHeaders", str(headers).lower())
        .load()
    )
    assert_read_committed(source)
    return source


def _not_empty(offsets: Sequence[OffsetRange]) -> Sequence[OffsetRange]:
    """Leave out empty slices, whose partitions may be gone; if all are, keep an empty one of each topic's first."""
    first = [
        OffsetRange(topic=topic, partition=0, kafka_offset_start=0, kafka_offset_end=0)
        for topic in sorted({part.topic for part in offsets})
    ]
    return [part for part in offsets if len(part)] or first


def assert_read_committed(source: DataFrame) -> None:
    """Look the isolation level up in the plan itself, where a lost option would show.

    The client of a Spark Connect server has the plan that it sends, and no other.
    """
    if is_client():
        sent: Any = source
        _assert_level(sent._plan.to_proto(sent.sparkSession.client).root.read.data_source.options)
        return
    leaves = source._jdf.queryExecution().analyzed().collectLeaves()
    for number in range(leaves.size()):
        leaf = leaves.apply(number)
        if leaf.nodeName() != "DataSourceV2Relation":
            raise IsolationNotReadCommitted(f"expected the V2 Kafka source, got {leaf.nodeName()}")
        _assert_level(leaf.options())


def _assert_level(options: Any) -> None:
    level = options.get("kafka.isolation.level")
    if level != ISOLATION:
        raise IsolationNotReadCommitted(f"expected kafka.isolation.level={ISOLATION} in the plan, got {level}")


def parse_events(source: DataFrame, fields: EventFields, *, several_legs: bool) -> DataFrame:
    """Read the contract's fields, as `EventDecoder.read` does. A record that lacks one is kept, with readable false."""
    registries = registries_of(fields)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        remember_registries(registries)
        decoder = EventDecoder(fields, several_legs=several_legs)
        for batch in batches:
            yield with_events(_with_payloads(batch, decoder), decoder, fields)

    outside = ("key", "headers") if fields.places else ()
    return source.select(
        "topic",
        "partition",
        F.col("offset").alias("kafka_offset"),
        F.xxhash64("key", "value").alias("value_hash"),
        F.unix_millis("timestamp").alias("written_ms"),
        "value",
        *outside,
    ).mapInArrow(read, events_shape(fields))


class _Row(NamedTuple):
    """A record as Spark's source has it."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    timestamp: int


def _with_payloads(records: pa.RecordBatch, decoder: EventDecoder) -> pa.RecordBatch:
    """Return records whose value is what the decoder reads of each, without what it was made of."""
    if not decoder.has_places:
        return records
    headers = [[(one["key"], one["value"]) for one in some or ()] for some in records["headers"].to_pylist()]
    times = records["written_ms"].to_pylist()
    rows = map(_Row, records["key"].to_pylist(), records["value"].to_pylist(), headers, times)
    columns = {name: records[name] for name in records.schema.names if name not in ("key", "headers", "value")}
    return pa.record_batch(columns | {"value": pa.array(map(decoder.payload, rows), pa.binary())})


def events_shape(fields: EventFields) -> str:
    """Return the shape of parsed events."""
    return ", ".join([_EVENTS, *(f"{name} {_NAMED[name]}" for name in _NAMED if name not in _unnamed(fields))])


def _unnamed(fields: EventFields) -> frozenset[str]:
    """Return the columns that this contract's events do not have."""
    named = {
        "ordering_key": fields.sequence is not None,
        "sequence": fields.sequence is not None,
        "compared_text": bool(fields.compared),
    }
    return frozenset(name for name, is_named in named.items() if not is_named)


def with_events(records: pa.RecordBatch, decoder: EventDecoder, fields: EventFields) -> pa.RecordBatch:
    """Return records whose values are read. Shape: `_EVENTS`; before, value and all that is no part of it."""
    read = read_events(decoder, records["value"].to_pylist())
    columns = {name: records[name] for name in records.schema.names if name != "value"}
    columns |= {name: read[name] for name in read.schema.names if name not in _unnamed(fields)}
    return pa.record_batch(columns)


def topic_number(topics: Sequence[str]) -> Column:
    """Return an event's topic as its place among these; -1 for any other."""
    number = F.lit(-1)
    for position, topic in enumerate(topics):
        number = F.when(F.col("topic") == topic, position).otherwise(number)
    return number


def _by_topic(partitions: Iterable[tuple[str, int]]) -> str:
    assigned: dict[str, list[int]] = {}
    for topic, partition in partitions:
        assigned.setdefault(topic, []).append(partition)
    return json.dumps(assigned)


def _by_partition(offsets: Iterable[tuple[str, int, int]]) -> str:
    by_topic: dict[str, dict[str, int]] = {}
    for topic, partition, offset in offsets:
        by_topic.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(by_topic)
