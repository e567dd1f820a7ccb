"""The settings of the cluster: how topics are configured and replicated, and what transactional producers may do.

Asked with every run. Decides nothing: the rules of the config check and the classes do.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.errors import KafkaError

from tallystick.kafka_cluster.state import BrokerSettings, TopicSettings
from tallystick.kafka_log.fetch import BrokerUnreachable

_TOPIC_KEYS = (
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "message.timestamp.type",
)
_BROKER_KEYS = ("transaction.max.timeout.ms", "transactional.id.expiration.ms", "producer.id.expiration.ms")
_TRANSACTION_VERSION = "transaction.version"


def read_topic_settings(admin: KafkaAdminClient, topics: Sequence[str]) -> tuple[TopicSettings, ...]:
    """One per topic, in order; a topic whose settings this client may not describe is left out.

    Raises BrokerUnreachable.
    """
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic, _TOPIC_KEYS) for topic in topics]
    try:
        described = {topic["name"]: topic["partitions"] for topic in admin.describe_topics(list(topics))}
        configured = admin.describe_configs(resources, config_filter="all").get("topic", {})
    except KafkaError as error:
        raise BrokerUnreachable(f"settings of {', '.join(topics)}: {type(error).__name__}: {error}") from error
    return tuple(
        _topic_settings(topic, described[topic], _values(configured[topic]))
        for topic in topics
        if described.get(topic) and configured.get(topic)
    )


def read_broker_settings(admin: KafkaAdminClient) -> BrokerSettings | None:
    """Read the first broker's settings; None where this client may not describe them. Raises BrokerUnreachable."""
    try:
        # Not describe_cluster, which this client cannot read from a broker before 3.7.
        first = min(broker.node_id for broker in admin._manager.cluster.brokers())
        resource = ConfigResource(ConfigResourceType.BROKER, str(first), _BROKER_KEYS)
        configured = admin.describe_configs([resource], config_filter="all").get("broker", {}).get(str(first))
        features = admin.describe_features()
    except KafkaError as error:
        raise BrokerUnreachable(f"settings of the brokers: {type(error).__name__}: {error}") from error
    values = _values(configured or {})
    if not set(_BROKER_KEYS) <= set(values):
        return None
    return BrokerSettings(
        transaction_max_timeout_ms=int(values["transaction.max.timeout.ms"]),
        transactional_id_expiration_ms=int(values["transactional.id.expiration.ms"]),
        producer_id_expiration_ms=int(values["producer.id.expiration.ms"]),
        transaction_version=features.get(_TRANSACTION_VERSION, {}).get("finalized", (0, 0))[1],
    )


def _topic_settings(topic: str, partitions: Iterable[Mapping[str, Any]], values: Mapping[str, str]) -> TopicSettings:
    return TopicSettings(
        topic=topic,
        replication_factor=min(len(part["replica_nodes"]) for part in partitions),
        in_sync_replicas=min(len(part["isr_nodes"]) for part in partitions),
        min_insync_replicas=int(values["min.insync.replicas"]),
        unclean_leader_election=values["unclean.leader.election.enable"] == "true",
        cleanup_policy=tuple(sorted(part.strip() for part in values["cleanup.policy"].split(","))),
        retention_ms=int(values["retention.ms"]),
        retention_bytes=int(values["retention.bytes"]),
        message_timestamp_type=values["message.timestamp.type"],
    )


def _values(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    return {name: entry["value"] for name, entry in entries.items()}
