"""Reads a topic's committed records up to a fixed end: below the LSO every producer transaction has ended.

Through librdkafka's read_committed, and so by another hand than the census.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tallystick.connections import KafkaSettings
from tallystick.cut import PartitionSnapshot
from tallystick.log_fetch import BrokerUnreachable, open_admin
from tallystick.topic_snapshot import read_topic_snapshot

_SILENCE_SECONDS_MAX = 30
"""A broker that says nothing for so long is down for us."""
_LOOK_AGAIN_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class CommittedRecord:
    """One record. key, value: b"" where the record has none."""

    topic: str
    partition: int
    kafka_offset: int
    key: bytes
    value: bytes
    headers: Mapping[str, bytes]


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
    """Every committed record from each log start up to the LSO of the snapshot, once, in offset order per partition.

    Raises BrokerUnreachable, and KafkaException where retention takes what is being read.
    """
    filled = [part for part in partitions if part.log_start < part.lso]
    consumer = Consumer(_settings(kafka))
    try:
        consumer.assign([TopicPartition(part.topic, part.partition, part.log_start) for part in filled])
        yield from _until_ends(consumer, {(part.topic, part.partition): part.lso for part in filled})
    finally:
        consumer.close()


def _until_ends(consumer: Any, ends: dict[tuple[str, int], int]) -> Iterator[CommittedRecord]:
    """A partition has ended at the end-of-partition event at or past its end: its last offset is usually a marker."""
    heard = time.monotonic()
    while ends:
        messages = consumer.consume(500, timeout=_LOOK_AGAIN_SECONDS)
        if messages:
            heard = time.monotonic()
        elif time.monotonic() - heard > _SILENCE_SECONDS_MAX:
            raise BrokerUnreachable(f"{', '.join(f'{topic}[{n}]' for topic, n in ends)}: no record and no end came")
        for message in messages:
            part, error = (message.topic(), message.partition()), message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            if part not in ends:
                continue
            if message.offset() >= ends[part]:
                del ends[part]
            elif error is None:
                yield _record_of(message)


def _record_of(message: Any) -> CommittedRecord:
    return CommittedRecord(
        topic=message.topic(),
        partition=message.partition(),
        kafka_offset=message.offset(),
        key=message.key() or b"",
        value=message.value() or b"",
        headers=_headers_of(message),
    )


def _headers_of(message: Any) -> dict[str, bytes]:
    """None of a record that has a name which is no UTF-8: the client gives all or none."""
    try:
        return {name: value or b"" for name, value in message.headers() or ()}
    except UnicodeDecodeError:
        return {}


def _settings(kafka: KafkaSettings) -> dict[str, Any]:
    return kafka.for_confluent() | {
        "client.id": "tallystick-compensation",
        # librdkafka asks for a group; partitions are assigned by hand, and nothing is saved under it.
        "group.id": "tallystick-compensation",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "check.crcs": True,
        "fetch.wait.max.ms": 100,
    }
