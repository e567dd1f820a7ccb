"""What the broker says of the topics right now: bounds and identity."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from kafka import TopicPartition as ClientTopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.protocol.consumer.offsets import IsolationLevel, OffsetSpec

from tallystick.kafka_log.fetch import BrokerUnreachable
from tallystick.kafka_log.log_end import read_log_ends
from tallystick.model.cut import PartitionSnapshot
from tallystick.model.offsets import TopicPartition


class TopicNotFound(ValueError):
    """A contract names a topic that the cluster does not have."""


def read_topic_snapshot(admin: KafkaAdminClient, topics: Sequence[str]) -> tuple[PartitionSnapshot, ...]:
    """Bounds and identity of every partition, in order. Raises TopicNotFound, BrokerUnreachable.

    Where the logs end is asked first: on a busy topic the LSO has passed that a moment later, so that a mark taken from
    the same snapshot is reached, unless something holds it back.
    """
    try:
        described = {topic["name"]: topic for topic in admin.describe_topics(list(topics))}
        for topic in topics:
            _refuse_missing(topic, described.get(topic))
        partitions = [
            ClientTopicPartition(topic, part["partition_index"])
            for topic in topics
            for part in described[topic]["partitions"]
        ]
        ends = read_log_ends(admin, topics)
        starts = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
        stable = admin.list_partition_offsets(
            dict.fromkeys(partitions, OffsetSpec.LATEST), IsolationLevel.READ_COMMITTED
        )
        highest = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    except KafkaError as error:
        raise BrokerUnreachable(f"topics {', '.join(topics)}: {type(error).__name__}: {error}") from error
    parts = {(topic, part["partition_index"]): part for topic in topics for part in described[topic]["partitions"]}
    return tuple(
        PartitionSnapshot(
            topic=part.topic,
            partition=part.partition,
            topic_id=str(described[part.topic].get("topic_id", "")),
            leader_epoch=parts[part.topic, part.partition].get("leader_epoch", -1),
            log_start=starts[part].offset,
            lso=stable[part].offset,
            high_watermark=highest[part].offset,
            log_end=ends.get(TopicPartition(topic=part.topic, partition=part.partition)),
            replicas=tuple(sorted(parts[part.topic, part.partition]["replica_nodes"])),
            in_sync=tuple(sorted(parts[part.topic, part.partition]["isr_nodes"])),
        )
        for part in sorted(partitions)
    )


def read_offsets_at(
    admin: KafkaAdminClient, partitions: Iterable[TopicPartition], *, at_utc: datetime
) -> dict[TopicPartition, int]:
    """Offset of each partition's first record with a timestamp at or after that moment; none for one without such.

    Raises BrokerUnreachable.
    """
    asked = {ClientTopicPartition(part.topic, part.partition): part for part in partitions}
    moment_ms = int(at_utc.timestamp() * 1000)
    try:
        found = admin.list_partition_offsets(dict.fromkeys(asked, moment_ms))
    except KafkaError as error:
        raise BrokerUnreachable(f"offsets at {at_utc.isoformat()}: {type(error).__name__}: {error}") from error
    return {asked[part]: answer.offset for part, answer in found.items() if answer.offset >= 0}


def _refuse_missing(topic: str, described: Any) -> None:
    if described is None or described["error_code"]:
        raise TopicNotFound(f"topic {topic}: the cluster has no such topic, or this client may not describe it")
