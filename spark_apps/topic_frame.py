"""One cut's events as a DataFrame, read under read_committed at explicit offsets.

Shape: topic, partition, kafka_offset, value_hash, written_ms, match_key, transaction_key, leg, amount_minor, currency,
readable; and ordering_key, sequence where the contract names them. A field that it does not name costs nothing.
"""

import json
from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tallystick.connections import KafkaSettings
from tallystick.contract_event import EventFields
from tallystick.money_text import codes_by_digits
from tallystick.offsets import OffsetRange

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


def read_topics(spark: SparkSession, kafka: KafkaSettings, ranges: Sequence[OffsetRange]) -> DataFrame:
    """Read the ranges' records, unparsed. Raises IsolationNotReadCommitted when the plan says otherwise."""
    offsets = _not_empty(ranges)
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
    return source


def _not_empty(offsets: Sequence[OffsetRange]) -> Sequence[OffsetRange]:
    """Without empty slices, whose partitions may be gone; if all are empty, nothing of each topic's first partition."""
    first = [
        OffsetRange(topic=topic, partition=0, kafka_offset_start=0, kafka_offset_end=0)
        for topic in sorted({part.topic for part in offsets})
    ]
    return [part for part in offsets if len(part)] or first


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
    is_major = fields.amount_unit == "major"
    columns = {
        "match_key": (fields.match_key, "string"),
        "transaction_key": (fields.transaction_key, "string"),
        "leg": (fields.leg, "string"),
        "amount_minor": (fields.amount_minor, "variant" if is_major else "bigint"),
        "currency": (fields.currency, "string"),
    }
    if fields.ordering_key is not None and fields.sequence is not None:
        columns |= {"ordering_key": (fields.ordering_key, "string"), "sequence": (fields.sequence, "bigint")}
    kinds = dict(columns.values())
    schema = ", ".join(f"`{key}` {kind}" for key, kind in kinds.items())
    event = F.from_json(F.col("value").cast("string"), schema, {"allowSingleQuotes": "false"})
    parsed = source.withColumn("event", event).select(
        "topic",
        "partition",
        F.col("offset").alias("kafka_offset"),
        F.xxhash64("key", "value").alias("value_hash"),
        F.unix_millis("timestamp").alias("written_ms"),
        *(F.col("event").getField(key).alias(name) for name, (key, _) in columns.items()),
    )
    if is_major:
        parsed = parsed.withColumn("amount_minor", minor_units(F.col("amount_minor"), F.col("currency")))
    complete = F.lit(True)
    for name in columns:
        complete = complete & F.col(name).isNotNull()
    for name in ("match_key", "currency"):
        complete = complete & (F.col(name) != "")
    return parsed.withColumn("readable", complete)


def topic_number(topics: Sequence[str]) -> Column:
    """An event's topic as its place among these; -1 for any other."""
    number = F.lit(-1)
    for position, topic in enumerate(topics):
        number = F.when(F.col("topic") == topic, position).otherwise(number)
    return number


_DECIMAL = r"^(-?[0-9]+)(?:\.(?=[0-9])([0-9]*[1-9])?0*)?$"
"""Whole part, and fraction without the zeros at its end."""


def minor_units(amount: Column, currency: Column) -> Column:
    """A variant in major units as a whole number of minor ones; null where it is none, or the currency is unknown.

    By its decimal digits alone. A variant keeps a JSON number without exponent digit by digit; a string column would
    take it through a double, and a decimal one would round what is beyond its scale.
    """
    kind = F.schema_of_variant(amount)
    exact = kind.isin("STRING", "BIGINT") | kind.startswith("DECIMAL(")
    text = F.when(exact, F.try_variant_get(amount, "$", "string"))
    whole, fraction = F.regexp_extract(text, _DECIMAL, 1), F.regexp_extract(text, _DECIMAL, 2)
    digits = F.lit(None)
    for number, codes in codes_by_digits().items():
        digits = F.when(F.upper(currency).isin(*codes), number).otherwise(digits)
    shifted = F.concat(whole, F.rpad(fraction, digits, F.lit("0"))).try_cast("bigint")
    return F.when((whole != "") & (F.length(fraction) <= digits), shifted)


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
