"""Some of what our reader of the log read: read again by Kafka's own client, through Spark, and compared by content."""

import random
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_apps.log_blobs import NOTHING_SEEN, Seen
from spark_apps.slice_matching import fingerprint
from spark_apps.topic_frame import read_topics
from tallystick.connections import KafkaSettings
from tallystick.cut import TopicSlice
from tallystick.evidence import SecondReading
from tallystick.offsets import OffsetRange, TopicPartition

SAMPLE_OFFSETS = 10_000
"""A cut of no more offsets is read twice as a whole; of a larger one so many, at one place."""


def choose_sample(slices: Iterable[TopicSlice], *, seed: str) -> tuple[OffsetRange, ...]:
    """What to read twice. The same cut gives the same choice; any offset of it may be chosen."""
    ranges = [part.readable for part in slices if len(part.readable)]
    if sum(map(len, ranges)) <= SAMPLE_OFFSETS:
        return tuple(ranges)
    chance = random.Random(seed)
    (chosen,) = chance.choices(ranges, weights=[len(part) for part in ranges])
    first = chosen.kafka_offset_start
    start = chance.randint(first, max(first, chosen.kafka_offset_end - SAMPLE_OFFSETS))
    end = min(start + SAMPLE_OFFSETS, chosen.kafka_offset_end)
    return (
        OffsetRange(topic=chosen.topic, partition=chosen.partition, kafka_offset_start=start, kafka_offset_end=end),
    )


def read_by_client(
    spark: SparkSession, kafka: KafkaSettings, sample: Sequence[OffsetRange]
) -> dict[TopicPartition, Seen]:
    """What Kafka's client sees of each range, as Spark drives it."""
    if not sample:
        return {}
    content = F.xxhash64("topic", "partition", "offset", F.xxhash64("key", "value"))
    tasks = min(len(sample), spark.sparkContext.defaultParallelism)
    seen = (
        read_topics(spark, kafka, sample)
        .coalesce(tasks)
        .groupBy("topic", "partition")
        .agg(F.count("*").alias("rows"), *fingerprint(content, "xor", "total"))
    )
    return {
        TopicPartition(topic=row["topic"], partition=row["partition"]): Seen(row["rows"], row["xor"], row["total"])
        for row in seen.collect()
    }


def compare(
    sample: Iterable[OffsetRange],
    ours: Mapping[TopicPartition, Seen],
    clients: Mapping[TopicPartition, Seen],
) -> tuple[SecondReading, ...]:
    """The two readings of each range."""
    pairs = (
        (part, ours.get(part.topic_partition, NOTHING_SEEN), clients.get(part.topic_partition, NOTHING_SEEN))
        for part in sample
    )
    return tuple(
        SecondReading(offsets=part, rows=one.rows, client_rows=other.rows, is_same=one == other)
        for part, one, other in pairs
    )
