"""Reads a topic's committed records up to a fixed end: below the LSO every producer transaction has ended.

By the walk that the census takes, which opens no batch further than `open_batch` allows. Kafka's own clients make room
for whatever a batch says of itself. Source: ADR 27.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kafka.errors import KafkaError

from tallystick.connections.connections import KafkaSettings
from tallystick.formats.placed_payload import PlacedRecord
from tallystick.kafka_log.fetch import BrokerUnreachable, Fetch, OffsetNotInLog, fetchers, open_admin
from tallystick.kafka_log.log_walk import Outcome, walk_batches
from tallystick.kafka_log.offset_census import take_census
from tallystick.kafka_log.open_batch import Record, is_whole, readable_records
from tallystick.kafka_log.prefetch import fetch_ahead
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.kafka_log.unpacking import UnreadableBatch
from tallystick.model.cut import PartitionSnapshot
from tallystick.model.offsets import OffsetRange, TopicPartition

_LOOK_AGAIN_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class CommittedRecord:
    """One record. key, value: b"" where the record has none. problem: why nobody gets to read the batch at this offset,
    as a clause about a record of it; then it is all that is known. written: the record as its batch has it.
    """

    topic: str
    partition: int
    kafka_offset: int
    key: bytes
    value: bytes
    headers: Mapping[str, bytes]
    problem: str = ""
    written: PlacedRecord | None = None


@dataclass(frozen=True, kw_only=True)
class SettledTopics:
    """Topics as they were once the LSO had passed all that was written at first, or the wait had ended.

    held: topics where it had not: an open producer transaction may still add to what was written by then, or too few
    replicas have it for anybody to read it.
    """

    partitions: tuple[PartitionSnapshot, ...]
    held: frozenset[str]

    def of(self, topic: str) -> tuple[PartitionSnapshot, ...]:
        return tuple(part for part in self.partitions if part.topic == topic)


def settle_topics(kafka: KafkaSettings, topics: Iterable[str], *, wait_seconds: float) -> SettledTopics:
    """Mark how far the logs are written and wait until the LSO has passed that. Raises TopicNotFound,
    BrokerUnreachable.
    """
    names = sorted(set(topics))
    if not names:
        return SettledTopics(partitions=(), held=frozenset())
    deadline = time.monotonic() + wait_seconds
    with open_admin(kafka) as admin:
        partitions = read_topic_snapshot(admin, names)
        marks = {part.topic_partition: part.written_end for part in partitions}
        while True:
            held = frozenset(part.topic for part in partitions if part.lso < marks.get(part.topic_partition, 0))
            if not held or time.monotonic() >= deadline:
                return SettledTopics(partitions=partitions, held=held)
            time.sleep(_LOOK_AGAIN_SECONDS)
            partitions = read_topic_snapshot(admin, names)


def read_committed(kafka: KafkaSettings, partitions: Iterable[PartitionSnapshot]) -> Iterator[CommittedRecord]:
    """Yield every committed record from each log start to the snapshot's LSO once, in offset order per partition.

    Of a batch that nobody gets to read one, which says why. Raises BrokerUnreachable, also where retention takes what
    is being read.
    """
    ranges = [part.stable_from(part.log_start) for part in partitions if part.log_start < part.lso]
    if not ranges:
        return
    with _reading(kafka, ranges) as fetch:
        for inside in ranges:
            yield from committed_in(fetch, inside)


def cleaned_partitions(kafka: KafkaSettings, ranges: Iterable[OffsetRange]) -> frozenset[TopicPartition]:
    """Return the partitions in whose range offsets are gone that a cleaner has taken: what stood there shows nowhere.

    ranges: below the LSO, one per partition. Raises BrokerUnreachable, also where retention takes what is being read.
    """
    asked = [inside for inside in ranges if len(inside)]
    if not asked:
        return frozenset()
    with _reading(kafka, asked) as fetch:
        return frozenset(inside.topic_partition for inside in asked if take_census(fetch, inside).holes)


@contextmanager
def _reading(kafka: KafkaSettings, ranges: Sequence[OffsetRange]) -> Iterator[Fetch]:
    with open_admin(kafka) as admin:
        try:
            yield fetch_ahead(*fetchers(admin), ranges)
        except (KafkaError, OffsetNotInLog, OSError) as error:
            topics = ", ".join(sorted({part.topic for part in ranges}))
            raise BrokerUnreachable(f"records of {topics}: {type(error).__name__}: {error}") from error


def committed_in(fetch: Fetch, inside: OffsetRange) -> Iterator[CommittedRecord]:
    """Yield the same of one range below the LSO. Raises OffsetNotInLog, kafka.errors.KafkaError."""
    for batch in walk_batches(fetch, inside):
        if batch.outcome not in (Outcome.COMMITTED, Outcome.PLAIN):
            continue
        try:
            records = readable_records(batch) if is_whole(batch) else _refuse_corrupt()
        except UnreadableBatch as error:
            offset = max(batch.header.base_offset, inside.kafka_offset_start)
            yield CommittedRecord(
                topic=inside.topic,
                partition=inside.partition,
                kafka_offset=offset,
                key=b"",
                value=b"",
                headers={},
                problem=str(error),
            )
            continue
        for record in records:
            if inside.kafka_offset_start <= record.offset < inside.kafka_offset_end:
                yield _committed(inside, record)


def _refuse_corrupt() -> Sequence[Record]:
    raise UnreadableBatch("its batch is not the one that its checksum was made of")


def _committed(inside: OffsetRange, record: Record) -> CommittedRecord:
    return CommittedRecord(
        topic=inside.topic,
        partition=inside.partition,
        kafka_offset=record.offset,
        key=record.key or b"",
        value=record.value or b"",
        headers={name: text or b"" for name, text in record.headers},
        written=record,
    )
