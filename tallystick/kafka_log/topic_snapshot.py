"""Read the topics' current bounds and identity from the brokers.

Where a leader's log ends: above the high watermark stand records that too few replicas have yet. No consumer sees
those, and a producer with acks=1 has been told that they are there. While fewer replicas are in sync than
min.insync.replicas asks for, the high watermark stands still and they stay out of sight. Source: KIP-966.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kafka import TopicPartition as ClientTopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidRequestError,
    KafkaError,
    LeaderNotAvailableError,
    UnsupportedVersionError,
    for_code,
)
from kafka.protocol.consumer.offsets import IsolationLevel, ListOffsetsRequest, OffsetSpec

from tallystick.kafka_log.fetch import BrokerUnreachable, until_led
from tallystick.model.cut import PartitionSnapshot
from tallystick.model.errors import TallystickError
from tallystick.model.offsets import TopicPartition


class TopicNotFound(TallystickError):
    """A contract names a topic that the cluster does not have."""

    retryable = True


def read_topic_snapshot(admin: KafkaAdminClient, topics: Sequence[str]) -> tuple[PartitionSnapshot, ...]:
    """Read bounds and identity of every partition, in order. Raises TopicNotFound, BrokerUnreachable.

    Where the logs end is asked first: on a busy topic the LSO has passed that a moment later, so that a mark taken from
    the same snapshot is reached, unless something holds it back. The leader's epoch is at least that of each answer:
    who describes the topics may not have heard of the newest leader, and no batch below an answer has a later one.
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
            leader_epoch=max(
                epoch
                for epoch in (
                    parts[part.topic, part.partition].get("leader_epoch", -1),
                    stable[part].leader_epoch,
                    highest[part].leader_epoch,
                )
                if epoch is not None
            ),
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
    """Return each partition's first offset with a timestamp at or after that moment; none for one without such.

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
        raise TopicNotFound(
            f"topic {topic}: the cluster has no such topic, or this client may not describe it. Check its name in the "
            "contract, and grant DESCRIBE: `tallystick grants CONTRACT_FILE --for kafka` prints the rights"
        )


_ANY_REPLICA = -2
"""The id that Kafka's own debugging tools use: the answer is the log's end; a consumer (-1) gets the high watermark."""


_VERSIONS = {"min_version": 4, "max_version": 9}
"""4 is the first that names the leader's epoch, so that nobody but the leader answers. Source: KIP-320."""


_REFUSED = (InvalidRequestError, UnsupportedVersionError, ClusterAuthorizationFailedError)


def read_log_ends(admin: KafkaAdminClient, topics: Sequence[str]) -> dict[TopicPartition, int]:
    """Read the end of each partition's log, as its leader has it; none where the brokers tell it to no client.

    Raises kafka.errors.KafkaError.
    """
    try:
        return until_led()(_ask_leaders, admin, topics)
    except _REFUSED:
        return {}


def _ask_leaders(admin: KafkaAdminClient, topics: Sequence[str]) -> dict[TopicPartition, int]:
    epochs: dict[int, dict[TopicPartition, int]] = {}
    for topic in admin.describe_topics(list(topics)):
        for part in topic["partitions"]:
            place = TopicPartition(topic=topic["name"], partition=part["partition_index"])
            if part["leader_id"] < 0:
                raise LeaderNotAvailableError(f"{place} has no leader")
            epochs.setdefault(part["leader_id"], {})[place] = part.get("leader_epoch", -1)
    return {place: end for node, led in epochs.items() for place, end in _ask(admin, node, led).items()}


def _ask(admin: KafkaAdminClient, node: int, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return the log ends of the partitions that one broker leads, as it answers."""
    response = admin._manager.run(_send, admin._manager, node, epochs)
    ends = {}
    for topic in response.topics:
        for answer in topic.partitions:
            place = TopicPartition(topic=topic.name, partition=answer.partition_index)
            if answer.error_code:
                raise for_code(answer.error_code)(f"log end of {place}")
            ends[place] = answer.offset
    return ends


async def _send(manager: Any, node: int, epochs: Mapping[TopicPartition, int]) -> Any:
    topics: dict[str, list[Any]] = {}
    for place, epoch in epochs.items():
        partition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
            partition_index=place.partition, current_leader_epoch=epoch, timestamp=OffsetSpec.LATEST
        )
        topics.setdefault(place.topic, []).append(partition)
    request = ListOffsetsRequest(
        replica_id=_ANY_REPLICA,
        isolation_level=0,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=asked) for name, asked in topics.items()],
        **_VERSIONS,
    )
    return await manager.send(request, node_id=node)
