"""Addresses come from the environment, mean the same to all three clients, and never show a secret."""

import json

import pytest

from tallystick.connections.connections import (
    ConnectionNotGiven,
    Connections,
    KafkaSettings,
    connection_text,
    connections_from_environment,
    environment_variable,
    kafka_settings,
    store_dsn,
)

SASL = {
    "bootstrap.servers": "broker:9092",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "tally",
    "sasl.password": 'p"a\\ss é',
    "ssl.ca.location": "/etc/ca.pem",
}
ENVIRONMENT = {
    "TALLYSTICK_CONN_KAFKA_BILLING": json.dumps(SASL),
    "TALLYSTICK_CONN_LEDGER_BILLING": "postgresql://reader:secret@ledger:5432/billing",
}


def test_both_connections_are_read_from_the_environment() -> None:
    connections = connections_from_environment(
        kafka_id="kafka_billing", ledger_id="ledger_billing", environment=ENVIRONMENT
    )
    assert connections.kafka.bootstrap_servers == "broker:9092"
    assert connections.ledger_dsn.endswith("/billing")
    assert environment_variable("kafka_billing") == "TALLYSTICK_CONN_KAFKA_BILLING"


def test_no_representation_shows_a_secret() -> None:
    connections = Connections(kafka=KafkaSettings(SASL), ledger_dsn="postgresql://reader:secret@ledger/billing")
    assert "secret" not in repr(connections)
    assert "ss é" not in repr(connections)
    assert "tally" not in repr(connections.kafka)


def test_every_client_gets_the_same_words_in_its_own() -> None:
    kafka = KafkaSettings(SASL)
    assert kafka.for_confluent() == {**SASL, "enable.metrics.push": False}
    assert kafka.for_kafka_python() == {
        "bootstrap_servers": "broker:9092",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "tally",
        "sasl_plain_password": 'p"a\\ss é',
        "ssl_cafile": "/etc/ca.pem",
    }


def test_sparks_login_line_quotes_what_would_end_it_and_keeps_letters_as_they_are() -> None:
    options = KafkaSettings(SASL).for_spark()
    assert options["kafka.sasl.jaas.config"] == (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="tally" password="p\\"a\\\\ss é";'
    )
    assert options["kafka.ssl.truststore.location"] == "/etc/ca.pem"
    assert options["kafka.ssl.truststore.type"] == "PEM"


def test_a_broker_without_security_needs_its_address_only() -> None:
    assert KafkaSettings({"bootstrap.servers": "broker:9092"}).for_spark() == {"kafka.bootstrap.servers": "broker:9092"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "has no bootstrap.servers"),
        ({"bootstrap.servers": ""}, "has no bootstrap.servers"),
        ({"bootstrap.servers": "b:1", "group.id": "x"}, "'group.id'; expected only"),
        ({"bootstrap.servers": "b:1", "ssl.certificate.location": "/c.pem"}, "certificate.location'; expected only"),
        ({"bootstrap.servers": "b:1", "enable.ssl.certificate.verification": "false"}, "verification'; expected only"),
        ({"bootstrap.servers": "b:1", "sasl.username": "tally"}, "sasl.mechanism"),
        ({"bootstrap.servers": "b:1", "sasl.username": "tally", "sasl.mechanism": "PLAIN"}, "sasl.password"),
        (
            {"bootstrap.servers": "b:1", "sasl.username": "t", "sasl.password": "p", "sasl.mechanism": "GSSAPI"},
            "sasl.mechanism",
        ),
    ],
)
def test_a_kafka_connection_that_cannot_work_is_refused_with_what_was_expected(
    settings: dict[str, str], expected: str
) -> None:
    with pytest.raises(ConnectionNotGiven, match=expected):
        KafkaSettings(settings)


@pytest.mark.parametrize("text", ["", "broker:9092", "[]", '{"bootstrap.servers": 9092}', '"secret"', "{secret"])
def test_a_connection_that_is_no_json_object_of_strings_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(ConnectionNotGiven, match="connection kafka_billing: expected a JSON object of strings") as info:
        kafka_settings(text, connection_id="kafka_billing")
    assert "secret" not in str(info.value)


@pytest.mark.parametrize("environment", [{}, {"TALLYSTICK_CONN_LEDGER_BILLING": ""}])
def test_a_connection_that_is_not_given_names_its_variable(environment: dict[str, str]) -> None:
    with pytest.raises(ConnectionNotGiven, match="TALLYSTICK_CONN_LEDGER_BILLING"):
        connection_text("ledger_billing", environment)


def test_the_store_is_named_by_its_own_variable() -> None:
    assert store_dsn({"TALLYSTICK_STORE_DSN": "postgresql://store"}) == "postgresql://store"
    with pytest.raises(ConnectionNotGiven, match="TALLYSTICK_STORE_DSN"):
        store_dsn({})
