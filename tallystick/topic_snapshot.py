"""What the broker says of the topics right now: bounds, identity, and who holds the LSO back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kafka import TopicPartition as ClientTopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.protocol.consumer.offsets import IsolationLevel, OffsetSpec

from tallystick.cut import PartitionSnapshot
from tallystick.log_fetch import BrokerUnreachable
from tallystick.offsets import TopicPartition


class TopicNotFound(ValueError):
    """A contract names a topic that the cluster does not have."""


@dataclass(frozen=True, kw_only=True)
class OpenTransaction:
    """A producer transaction that is open on one partition, and what its coordinator knows of it.

    transactional_id "" and started_ms None: no coordinator lists it.
    """

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    kafka_offset_start: int
    transactional_id: str
    started_ms: int | None
    timeout_ms: int | None


def read_topic_snapshot(admin: KafkaAdminClient, topics: Sequence[str]) -> tuple[PartitionSnapshot, ...]:
    """Bounds and identity of every partition, in order. Raises TopicNotFound, BrokerUnreachable."""
    try:
        described = {topic["name"]: topic for topic in admin.describe_topics(list(topics))}
        for topic in topics:
            _refuse_missing(topic, described.get(topic))
        partitions = [
            ClientTopicPartition(topic, part["partition_index"])
            for topic in topics
            for part in described[topic]["partitions"]
        ]
        starts = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
        stable = admin.list_partition_offsets(
            dict.fromkeys(partitions, OffsetSpec.LATEST), IsolationLevel.READ_COMMITTED
        )
        highest = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    except KafkaError as error:
        raise BrokerUnreachable(f"topics {', '.join(topics)}: {type(error).__name__}: {error}") from error
    epochs = {
        (topic, part["partition_index"]): part.get("leader_epoch", -1)
        for topic in topics
        for part in described[topic]["partitions"]
    }
    return tuple(
        PartitionSnapshot(
            topic=part.topic,
            partition=part.partition,
            topic_id=str(described[part.topic].get("topic_id", "")),
            leader_epoch=epochs[part.topic, part.partition],
            log_start=starts[part].offset,
            lso=stable[part].offset,
            high_watermark=highest[part].offset,
        )
        for part in sorted(partitions)
    )


def _refuse_missing(topic: str, described: Any) -> None:
    if described is None or described["error_code"]:
        raise TopicNotFound(f"topic {topic}: the cluster has no such topic, or this client may not describe it")


def read_open_transactions(
    admin: KafkaAdminClient, partitions: Iterable[TopicPartition]
) -> tuple[OpenTransaction, ...]:
    """Who holds these partitions: from the partition outward, then ask the coordinators. Source: KIP-664."""
    asked = [ClientTopicPartition(part.topic, part.partition) for part in partitions]
    held = [
        (part, producer)
        for part, state in admin.describe_producers(asked).items()
        for producer in state.active_producers
        if producer.current_transaction_start_offset >= 0
    ]
    if not held:
        return ()
    listings = admin.list_transactions(producer_id_filters=sorted({producer.producer_id for _, producer in held}))
    ids = {row.producer_id: row.transactional_id for rows in listings.values() for row in rows}
    known = admin.describe_transactions(sorted(ids.values())) if ids else {}
    return tuple(
        _open_transaction(part, producer, ids.get(producer.producer_id, ""), known) for part, producer in sorted(held)
    )


def _open_transaction(part: Any, producer: Any, transactional_id: str, known: Any) -> OpenTransaction:
    described = known.get(transactional_id)
    return OpenTransaction(
        topic_partition=TopicPartition(topic=part.topic, partition=part.partition),
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        kafka_offset_start=producer.current_transaction_start_offset,
        transactional_id=transactional_id,
        started_ms=described.transaction_start_time_ms if described else None,
        timeout_ms=described.transaction_timeout_ms if described else None,
    )
