"""The hook of a Kafka connection, where Airflow's Kafka provider is not installed."""

from airflow.sdk import BaseHook

from tallystick.connections.connections import KafkaSettings
from tallystick_airflow.connections import get_connection, kafka_settings
from tallystick_airflow.hooks.refusal import ConnectionRefused

_SECONDS = 5.0


class KafkaClusterHook(BaseHook):
    """Read the settings of a cluster, and ask it whether they are good."""

    conn_name_attr = "kafka_conn_id"
    default_conn_name = "kafka_default"
    conn_type = "kafka"
    hook_name = "Apache Kafka"

    def __init__(self, kafka_conn_id: str = default_conn_name) -> None:
        super().__init__()
        self.kafka_conn_id = kafka_conn_id

    def get_conn(self) -> KafkaSettings:
        """Read the settings. Raises ConnectionRefused."""
        return kafka_settings(get_connection(self.kafka_conn_id))

    def test_connection(self) -> tuple[bool, str]:
        """Ask the cluster for its topics. Airflow calls this for the button of its form."""
        from confluent_kafka import KafkaException  # Kafka's client: not in every process of Airflow
        from confluent_kafka.admin import AdminClient

        from tallystick.connections.kafka_failures import why_unreachable

        try:
            settings = self.get_conn()
        except ConnectionRefused as refused:
            return False, str(refused)
        try:
            found = AdminClient(settings.for_confluent() | {"log_level": 0}).list_topics(timeout=_SECONDS)
        except KafkaException:
            return False, f"Kafka at {settings.bootstrap_servers}: {why_unreachable(settings)}"
        return True, f"Kafka answers: {len(found.brokers)} brokers, {len(found.topics)} topics that this account sees"
