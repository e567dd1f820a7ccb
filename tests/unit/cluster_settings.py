"""Settings of a topic and of a broker that keep the promise."""

from tallystick.kafka_cluster.state import BrokerSettings, TopicSettings
from tests.unit.builders import TOPIC

KEPT = TopicSettings(
    topic=TOPIC,
    replication_factor=3,
    in_sync_replicas=3,
    min_insync_replicas=2,
    unclean_leader_election=False,
    cleanup_policy=("delete",),
    retention_ms=604_800_000,
    retention_bytes=-1,
    message_timestamp_type="CreateTime",
)
BROKER = BrokerSettings(
    transaction_max_timeout_ms=600_000,
    transactional_id_expiration_ms=604_800_000,
    producer_id_expiration_ms=86_400_000,
    transaction_version=2,
)
