"""Some of what our reader of the log read: read again by Kafka's own client, through Spark, and compared by content.

The client makes room for whatever a record says of itself, and unpacks behind its range what its poll has room for. So
a walk of our own goes first: where a batch is that `open_batch` does not read, the client is not sent.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tallystick.connections.connections import KafkaSettings
from tallystick.kafka_log.fetch import Fetch, FetchedLog, fetchers, open_admin
from tallystick.kafka_log.log_walk import DecidedBatch, Outcome, decide_batches
from tallystick.kafka_log.open_batch import Record, is_compressed, readable_records
from tallystick.kafka_log.prefetch import fetch_ahead
from tallystick.kafka_log.unpacking import UnreadableBatch
from tallystick.matching.evidence import SecondReading
from tallystick.model.cut import TopicSlice
from tallystick.model.offsets import OffsetRange, TopicPartition
from tallystick_spark.matching.frame_match import fingerprint
from tallystick_spark.readers.log_reader import seen_by_us
from tallystick_spark.readers.reader_messages import NOTHING_SEEN, RecordDigest
from tallystick_spark.readers.topic_frame import read_topics
from tallystick_spark.session import tasks_for

SAMPLE_OFFSETS = 10_000
"""A cut of no more offsets is read twice as a whole; of a larger one so many, at one place."""
CLIENT_FETCH_BYTES = 1 << 20
"""The client's default limit of a fetch from one partition, which one poll unpacks."""
CLIENT_BYTES_MAX = 128 << 20
"""Limit of unpacked bytes. Above it the client opens one packed batch at a time: it holds all that a poll brings."""
_CLIENT_TIME_MS_MAX = (2**63 - 1) // 1000
"""Spark's source holds a record's time in microseconds, in 64 bits; at a later one its task ends."""
_CONSUMER = {
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": str(CLIENT_FETCH_BYTES),
    "kafka.fetch.max.wait.ms": "20",
}
"""The wait: a client fetches ahead, and at the end of a log the broker holds that for half a second. Behind it, on the
same connection, waits the question for the log's bounds that Spark asks after each poll.
"""
_ONE_BATCH_A_POLL = _CONSUMER | {"kafka.max.partition.fetch.bytes": "1"}
"""A broker answers with one whole batch all the same (KIP-74), and a poll takes one answer of a partition."""


def choose_sample(slices: Iterable[TopicSlice], *, seed: str) -> tuple[OffsetRange, ...]:
    """Choose the ranges to read twice. The same cut gives the same choice; any offset of it may be chosen."""
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


@dataclass(frozen=True, kw_only=True)
class ReadAgain:
    """ranges: what the client was sent to. ours, clients: what either saw of them."""

    ranges: tuple[OffsetRange, ...]
    ours: Mapping[TopicPartition, RecordDigest]
    clients: Mapping[TopicPartition, RecordDigest]


def read_again(spark: SparkSession, kafka: KafkaSettings, sample: Sequence[OffsetRange]) -> ReadAgain:
    """Read a sample both ways: of each range what CLIENT_BYTES_MAX unpacks to, and nothing of one with a batch that
    nobody gets to read, which is told by itself.
    """
    if not sample:
        return ReadAgain(ranges=(), ours={}, clients={})
    with open_admin(kafka) as admin:
        fetch = fetch_ahead(*fetchers(admin), sample)
        looked = [one for part in sample if (one := look_at(fetch, part)) is not None]
    if sum(one.unpacked_bytes for one in looked) <= CLIENT_BYTES_MAX:
        clients = read_by_client(spark, kafka, [one.offsets for one in looked], _CONSUMER)
    else:
        clients = read_by_client(spark, kafka, [one.data for one in looked], _ONE_BATCH_A_POLL)
    return ReadAgain(
        ranges=tuple(one.offsets for one in looked),
        ours={one.offsets.topic_partition: one.seen for one in looked},
        clients=clients,
    )


@dataclass(frozen=True, kw_only=True)
class Looked:
    """The result of the walk that goes first over a range. offsets: as far as it went.

    data: the same up to the end of its last batch with records for a consumer: no further does the client need to go.
    unpacked_bytes: of packed batches in the range and where the client's fetch may reach behind it; more than
    CLIENT_BYTES_MAX where one of the latter is not read.
    """

    offsets: OffsetRange
    data: OffsetRange
    seen: RecordDigest
    unpacked_bytes: int


def look_at(fetch: Fetch, inside: OffsetRange) -> Looked | None:
    """Walk a range up to a record that the client cannot take; None where a batch of it is not read, or nothing is
    left. Raises OffsetNotInLog.
    """
    answers: list[FetchedLog] = []

    def remembered(topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        answers[:] = [fetch(topic_partition, offset, read_committed)]
        return answers[0]

    seen, unpacked_bytes, data_end = NOTHING_SEEN, 0, inside.kafka_offset_start
    try:
        for batch, of_batch in seen_by_us(remembered, inside):
            records = readable_records(batch)
            is_beyond = any(abs(record.timestamp) > _CLIENT_TIME_MS_MAX for record in records)
            if is_beyond and data_end == inside.kafka_offset_start:
                return None
            if is_beyond or unpacked_bytes > CLIENT_BYTES_MAX:
                inside = replace(inside, kafka_offset_end=data_end)
                break
            seen, unpacked_bytes = seen.plus(of_batch), unpacked_bytes + _unpacked_bytes(batch, records)
            data_end = min(batch.header.next_offset, inside.kafka_offset_end)
    except UnreadableBatch:
        return None
    for batch in _behind(fetch, inside, answers[0]) if answers else ():
        try:
            unpacked_bytes += _unpacked_bytes(batch, readable_records(batch))
        except UnreadableBatch:
            unpacked_bytes += CLIENT_BYTES_MAX + 1
    data = replace(inside, kafka_offset_end=data_end)
    return Looked(offsets=inside, data=data, seen=seen, unpacked_bytes=unpacked_bytes)


def _behind(fetch: Fetch, inside: OffsetRange, last: FetchedLog) -> list[DecidedBatch]:
    """Return the batches behind a range that one fetch of the client reaches. last: the last answer about the range."""
    batches = list(decide_batches(last, True))
    position = batches[-1].header.next_offset if batches else inside.kafka_offset_end
    if position < last.lso and sum(len(batch.raw) for batch in batches) < CLIENT_FETCH_BYTES:
        batches += decide_batches(fetch(inside.topic_partition, position, True), True)
    behind = [
        batch
        for batch in batches
        if batch.header.base_offset >= inside.kafka_offset_end and batch.outcome in (Outcome.COMMITTED, Outcome.PLAIN)
    ]
    reach = accumulate((len(batch.raw) for batch in behind), initial=0)
    return [batch for batch, before in zip(behind, reach, strict=False) if before <= CLIENT_FETCH_BYTES]


def _unpacked_bytes(batch: DecidedBatch, records: Sequence[Record]) -> int:
    """Return the unpacked bytes of a packed batch, of which these are the records; 0 for any other."""
    return sum(len(record.key or b"") + len(record.value or b"") for record in records) if is_compressed(batch) else 0


def read_by_client(
    spark: SparkSession, kafka: KafkaSettings, ranges: Sequence[OffsetRange], consumer: Mapping[str, str]
) -> dict[TopicPartition, RecordDigest]:
    """Read each range by Kafka's client, as Spark drives it. consumer: its options, by name."""
    if not ranges:
        return {}
    content = F.xxhash64("topic", "partition", "offset", F.xxhash64("key", "value"))
    tasks = tasks_for(spark, len(ranges))
    seen = (
        read_topics(spark, kafka, ranges, consumer=consumer)
        .coalesce(tasks)
        .groupBy("topic", "partition")
        .agg(F.count("*").alias("rows"), *fingerprint(content, "xor", "total"))
    )
    return {
        TopicPartition(topic=row["topic"], partition=row["partition"]): RecordDigest(
            row["rows"], row["xor"], row["total"]
        )
        for row in seen.collect()
    }


def compare(
    sample: Iterable[OffsetRange],
    ours: Mapping[TopicPartition, RecordDigest],
    clients: Mapping[TopicPartition, RecordDigest],
) -> tuple[SecondReading, ...]:
    """Return the two readings of each range."""
    pairs = (
        (part, ours.get(part.topic_partition, NOTHING_SEEN), clients.get(part.topic_partition, NOTHING_SEEN))
        for part in sample
    )
    return tuple(
        SecondReading(offsets=part, rows=one.rows, client_rows=other.rows, is_same=one == other)
        for part, one, other in pairs
    )
