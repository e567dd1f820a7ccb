"""A connection is told to kafka-python in its own words."""

from confluent_kafka.admin import AdminClient

from tallystick.connections.connections import KafkaSettings

from .kafka_forms import CHAIN, TLS


def test_a_ca_in_pem_and_a_host_of_any_name_reach_every_client() -> None:
    kafka = KafkaSettings(TLS | {"ssl.ca.pem": CHAIN, "ssl.endpoint.identification.algorithm": "none"})
    AdminClient(kafka.for_confluent() | {"log_level": 0})
    context = kafka.for_kafka_python()["ssl_context"]
    assert (context.check_hostname, context.cert_store_stats()["x509"]) == (False, 1)
    java = kafka.for_spark()
    assert java["kafka.ssl.truststore.certificates"] == CHAIN
    assert java["kafka.ssl.endpoint.identification.algorithm"] == ""
    AdminClient(KafkaSettings(TLS | {"ssl.endpoint.identification.algorithm": ""}).for_confluent() | {"log_level": 0})


def test_timeouts_and_names_reach_the_clients_that_know_them() -> None:
    kafka = KafkaSettings({"bootstrap.servers": "b:1", "client.id": "shop", "socket.timeout.ms": "5000"})
    assert kafka.for_kafka_python() == {"bootstrap_servers": "b:1", "client_id": "shop", "request_timeout_ms": 5000}
    assert kafka.for_spark() == {
        "kafka.bootstrap.servers": "b:1",
        "kafka.client.id": "shop",
        "kafka.request.timeout.ms": "5000",
    }
