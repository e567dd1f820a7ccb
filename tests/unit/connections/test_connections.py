"""Addresses come from the environment, mean the same to all three clients, and never show a secret."""

import json
import re

import pytest

from tallystick.connections import connections
from tallystick.connections.connections import (
    ConnectionNotGiven,
    Connections,
    KafkaSettings,
    connection_text,
    connections_from_environment,
    environment_variable,
    kafka_from_environment,
    kafka_settings,
    store_dsn,
)

SASL = {
    "bootstrap.servers": "broker:9092",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "tally",
    "sasl.password": 'p"a\\ss é',
}
OIDC = {
    "bootstrap.servers": "b:1",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "reader",
    "sasl.oauthbearer.client.secret": "s3cret",
    "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
}
ENVIRONMENT = {
    "TALLYSTICK_CONN_KAFKA_BILLING": json.dumps(SASL),
    "TALLYSTICK_CONN_LEDGER_BILLING": "postgresql://reader:secret@ledger:5432/billing",
}


def test_both_connections_are_read_from_the_environment() -> None:
    found = connections_from_environment(kafka_id="kafka_billing", ledger_id="ledger_billing", environment=ENVIRONMENT)
    assert found.kafka.bootstrap_servers == "broker:9092"
    assert found.ledger_dsn.endswith("/billing")
    assert environment_variable("kafka_billing") == "TALLYSTICK_CONN_KAFKA_BILLING"


def test_no_representation_shows_a_secret() -> None:
    both = Connections(kafka=KafkaSettings(SASL), ledger_dsn="postgresql://reader:secret@ledger/billing")
    assert "secret" not in repr(both)
    assert "ss é" not in repr(both)
    assert "tally" not in repr(both.kafka)


def test_every_client_gets_the_same_words_in_its_own() -> None:
    kafka = KafkaSettings(SASL)
    assert kafka.for_confluent() == {**SASL, "enable.metrics.push": False}
    told = kafka.for_kafka_python()
    assert told.pop("ssl_context").check_hostname
    assert told == {
        "bootstrap_servers": "broker:9092",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "tally",
        "sasl_plain_password": 'p"a\\ss é',
    }


def test_sparks_login_line_quotes_what_would_end_it_and_keeps_letters_as_they_are() -> None:
    options = KafkaSettings({**SASL, "ssl.ca.location": "/etc/ca.pem"}).for_spark()
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
        ({"bootstrap.servers": "b:1", "security.protocol": "tls"}, "unknown security.protocol; expected one of"),
        ({"bootstrap.servers": "b:1", "security.protocol": "sasl_ssl"}, "a login: expected sasl.mechanism to be one"),
        ({"bootstrap.servers": "b:1", "ssl.certificate.location": "/c.pem"}, "half of a client's certificate"),
        (
            {"bootstrap.servers": "b:1", "ssl.key.pem": "k", "ssl.key.location": "/k", "ssl.certificate.pem": "c"},
            "several certificates of a client",
        ),
        (
            {"bootstrap.servers": "b:1", "ssl.keystore.location": "/k", "ssl.key.pem": "k", "ssl.certificate.pem": "c"},
            "several certificates of a client",
        ),
        ({"bootstrap.servers": "b:1", "ssl.ca.pem": "c", "ssl.ca.location": "/c"}, "expected one of them"),
        ({"bootstrap.servers": "b:1", "ssl.endpoint.identification.algorithm": "HTTP"}, "expected https or none"),
        ({"bootstrap.servers": "b:1", "enable.ssl.certificate.verification": "false"}, "verification: expected true"),
        ({"bootstrap.servers": "b:1", "isolation.level": "read_uncommitted"}, "isolation.level: expected read_commit"),
        ({"bootstrap.servers": "b:1", "sasl.username": "tally"}, "sasl.mechanism"),
        ({"bootstrap.servers": "b:1", "sasl.username": "tally", "sasl.mechanism": "PLAIN"}, "sasl.password"),
        (
            {"bootstrap.servers": "b:1", "sasl.username": "t", "sasl.password": "p", "sasl.mechanism": "GSSAPI"},
            "sasl.mechanism=GSSAPI, which is Kerberos: the librdkafka in confluent-kafka's wheel is built without it",
        ),
        ({"bootstrap.servers": "b:1", "sasl.mechanisms": "OAUTHBEARER"}, "expected sasl.oauthbearer.method=oidc"),
        (
            {"bootstrap.servers": "b:1", "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc"},
            "no sasl.oauthbearer.client.id",
        ),
        (
            OIDC | {"sasl.oauthbearer.token.endpoint.url": "http://idp/token"},
            "expected https, since the client's secret",
        ),
        ({"bootstrap.servers": "b:1", "sasl.mechanism": "AWS_MSK_IAM"}, "expected security.protocol=SASL_SSL"),
    ],
)
def test_a_kafka_connection_that_cannot_work_is_refused_with_what_was_expected(
    settings: dict[str, str], expected: str
) -> None:
    with pytest.raises(ConnectionNotGiven, match=re.escape(expected)) as raised:
        KafkaSettings(settings)
    assert "s3cret" not in str(raised.value)


def test_a_token_endpoint_on_this_machine_may_be_asked_in_clear_text() -> None:
    here = OIDC | {"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:8080/token"}
    assert KafkaSettings(here).mechanism == "OAUTHBEARER"


CONFLUENT_CLOUD = """{
    "bootstrap.servers": "pkc-abcde.eu-west-1.aws.confluent.cloud:9092",
    "security.protocol": "SASL_SSL",
    "sasl.mechanisms": "PLAIN",
    "sasl.username": "KEY",
    "sasl.password": "s3cret",
    "session.timeout.ms": 45000,
    "client.id": "ccloud-python-client-5d2b",
    "enable.auto.commit": false,
    "isolation.level": "read_committed"
}"""


def test_confluent_clouds_own_snippet_is_taken_and_what_is_a_consumers_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connections._tell_ignored.cache_clear()
    for _ in range(2):
        kafka = kafka_settings(CONFLUENT_CLOUD, connection_id="kafka_billing")
    assert kafka.settings["sasl.mechanism"] == "PLAIN"
    assert not {"sasl.mechanisms", "session.timeout.ms", "isolation.level"} & set(kafka.settings)
    (told,) = caplog.messages
    assert "ignored: enable.auto.commit, session.timeout.ms (of a consumer: Tallystick joins no group" in told
    assert "s3cret" not in told


def test_a_connection_without_settings_of_others_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    KafkaSettings(SASL)
    assert caplog.messages == []


def test_words_are_taken_as_librdkafka_and_as_java_write_them() -> None:
    written = {"metadata.broker.list": "b:1", "security.protocol": "sasl_ssl", "sasl.mechanism": "scram-sha-256"}
    kafka = KafkaSettings(written | {"sasl.username": "u", "sasl.password": "p"})
    assert (kafka.bootstrap_servers, kafka.protocol, kafka.mechanism) == ("b:1", "SASL_SSL", "SCRAM-SHA-256")


@pytest.mark.parametrize("text", ["", "broker:9092", "[]", '{"bootstrap.servers": 9092}', '"secret"', "{secret"])
def test_a_connection_that_is_no_json_object_of_strings_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(ConnectionNotGiven, match="connection kafka_billing: expected a JSON object of strings") as info:
        kafka_settings(text, connection_id="kafka_billing")
    assert "secret" not in str(info.value)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{secret", "no JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        ('{"bootstrap.servers": "b:1",\n"secret" 1}', "no JSON: Expecting ':' delimiter at line 2, column 10"),
        ('["secret"]', "JSON that is no object"),
        ('{"bootstrap.servers": 9092}', "no text for bootstrap.servers"),
        ('{"bootstrap.servers": "b:1", "client.id": ["secret"]}', "no text for client.id"),
    ],
)
def test_a_malformed_connection_is_refused_with_its_variable_and_its_fault(text: str, fault: str) -> None:
    with pytest.raises(ConnectionNotGiven) as info:
        kafka_from_environment("kafka_billing", {"TALLYSTICK_CONN_KAFKA_BILLING": text})
    assert str(info.value) == (
        "connection kafka_billing: expected a JSON object of strings such as "
        f'{{"bootstrap.servers": "broker:9092"}} in TALLYSTICK_CONN_KAFKA_BILLING; got {fault}'
    )


def test_a_number_is_a_setting_as_it_is() -> None:
    text = '{"bootstrap.servers": "b:1", "socket.timeout.ms": 500}'
    kafka = kafka_from_environment("kafka_billing", {"TALLYSTICK_CONN_KAFKA_BILLING": text})
    assert kafka.settings["socket.timeout.ms"] == "500"


@pytest.mark.parametrize("environment", [{}, {"TALLYSTICK_CONN_LEDGER_BILLING": ""}])
def test_a_connection_that_is_not_given_names_its_variable(environment: dict[str, str]) -> None:
    with pytest.raises(ConnectionNotGiven, match="TALLYSTICK_CONN_LEDGER_BILLING"):
        connection_text("ledger_billing", environment)


def test_the_store_is_named_by_its_own_variable() -> None:
    assert store_dsn({"TALLYSTICK_STORE_DSN": "postgresql://store"}) == "postgresql://store"
    with pytest.raises(ConnectionNotGiven, match="TALLYSTICK_STORE_DSN"):
        store_dsn({})
