"""One cut's events as a DataFrame, read under read_committed at explicit offsets.

Shape: topic, partition, kafka_offset, value_hash, match_key, transaction_key, leg, amount_minor, currency, readable.
"""

import json
from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tallystick.connections import KafkaSettings
from tallystick.contract import EventFields
from tallystick.cut import TopicSlice

ISOLATION = "read_committed"
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
    sources = [source for source in spark.conf.get(name).split(",") if source != "kafka"]
    spark.conf.set(name, ",".join(sources))


def read_topics(
    spark: SparkSession, kafka: KafkaSettings, slices: Iterable[TopicSlice], fields: EventFields
) -> DataFrame:
    """Read the slices' events. Raises IsolationNotReadCommitted when the plan says otherwise."""
    offsets = [part.readable for part in slices]
    use_kafka_v2_source(spark)
    source = (
        spark.read.format("kafka")
        .options(**kafka.for_spark(), **_TUNED_CONSUMER)
        .option("kafka.isolation.level", ISOLATION)
        .option("assign", _by_topic((part.topic, part.partition) for part in offsets))
        .option("startingOffsets", _by_partition((p.topic, p.partition, p.kafka_offset_start) for p in offsets))
        .option("endingOffsets", _by_partition((p.topic, p.partition, p.kafka_offset_end) for p in offsets))
        .option("failOnDataLoss", "true")
        .load()
    )
    assert_read_committed(source)
    return parse_events(source, fields)


def assert_read_committed(source: DataFrame) -> None:
    """Look the isolation level up in the plan itself, where a lost option would show."""
    leaves = source._jdf.queryExecution().analyzed().collectLeaves()
    for number in range(leaves.size()):
        leaf = leaves.apply(number)
        if leaf.nodeName() != "DataSourceV2Relation":
            raise IsolationNotReadCommitted(f"expected the V2 Kafka source, got {leaf.nodeName()}")
        level = leaf.options().get("kafka.isolation.level")
        if level != ISOLATION:
            raise IsolationNotReadCommitted(f"expected kafka.isolation.level={ISOLATION} in the plan, got {level}")


def parse_events(source: DataFrame, fields: EventFields) -> DataFrame:
    """Parse the contract's fields from JSON. A record that lacks one is kept, with readable false.

    An empty key or currency is none.
    """
    schema = ", ".join(
        f"`{name}` {kind}"
        for name, kind in (
            (fields.match_key, "string"),
            (fields.transaction_key, "string"),
            (fields.leg, "string"),
            (fields.amount_minor, "bigint"),
            (fields.currency, "string"),
        )
    )
    event = F.from_json(F.col("value").cast("string"), schema, {"allowSingleQuotes": "false"})
    columns = {
        "match_key": fields.match_key,
        "transaction_key": fields.transaction_key,
        "leg": fields.leg,
        "amount_minor": fields.amount_minor,
        "currency": fields.currency,
    }
    parsed = source.withColumn("event", event).select(
        "topic",
        "partition",
        F.col("offset").alias("kafka_offset"),
        F.xxhash64("key", "value").alias("value_hash"),
        *(F.col("event").getField(key).alias(name) for name, key in columns.items()),
    )
    complete = F.lit(True)
    for name in columns:
        complete = complete & F.col(name).isNotNull()
    for name in ("match_key", "currency"):
        complete = complete & (F.col(name) != "")
    return parsed.withColumn("readable", complete)


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
