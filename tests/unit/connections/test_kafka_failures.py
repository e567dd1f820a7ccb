"""What is said of a broker that cannot be reached: one sentence each, by the word of librdkafka that says most."""

from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError

from tallystick.connections import kafka_failures
from tallystick.connections.connections import KafkaSettings
from tallystick.connections.kafka_failures import _Listener


def told(monkeypatch: pytest.MonkeyPatch, *errors: tuple[int, str], **settings: str) -> str:
    monkeypatch.setattr(kafka_failures, "_ask", lambda _: list(errors))
    given = {"bootstrap.servers": "b:1"} | {name.replace("_", "."): value for name, value in settings.items()}
    return kafka_failures.why_unreachable(KafkaSettings(given))


def test_the_word_that_says_most_goes_before_the_one_that_came_first(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = (KafkaError._TRANSPORT, "Connect to ipv4#127.0.0.1:1 failed: Connection refused")
    unknown = (KafkaError._AUTHENTICATION, "Authentication failed: Invalid username or password")
    account = {"sasl_mechanism": "PLAIN", "sasl_username": "reader", "sasl_password": "s3cret"}
    assert "refuses the account reader" in told(monkeypatch, refused, unknown, **account)
    assert "nothing listens there" in told(monkeypatch, refused)
    assert "s3cret" not in told(monkeypatch, unknown, **account)


def test_a_word_without_a_sentence_of_ours_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    said = 'Invalid value "x" for configuration property "broker.address.family"'
    assert told(monkeypatch, (KafkaError._INVALID_ARG, said)) == said


DISCONNECTED = (KafkaError._TRANSPORT, "Disconnected: SSL connection closed by peer")


@pytest.mark.parametrize("said", [(), (DISCONNECTED,)], ids=["silent", "disconnected"])
@pytest.mark.parametrize(
    ("protocol", "listener", "says"),
    [
        ("PLAINTEXT", _Listener.TLS, "speaks TLS, and security.protocol is PLAINTEXT; expected SSL"),
        ("SASL_PLAINTEXT", _Listener.TLS, "speaks TLS, and security.protocol is SASL_PLAINTEXT; expected SASL_SSL"),
        ("SSL", _Listener.PLAINTEXT, "does not speak TLS, and security.protocol is SSL; take"),
        ("SASL_SSL", _Listener.PLAINTEXT, "TLS listener, or SASL_PLAINTEXT"),
        ("PLAINTEXT", _Listener.PLAINTEXT, "may ask for an account, which security.protocol PLAINTEXT does not offer"),
        ("SSL", _Listener.TLS, "may ask for an account, which security.protocol SSL does not offer"),
        ("SASL_SSL", _Listener.TLS, "it does not answer; expected a Kafka broker that speaks SASL_SSL there"),
        ("SASL_PLAINTEXT", _Listener.PLAINTEXT, "expected a Kafka broker that speaks SASL_PLAINTEXT there"),
        ("SSL", _Listener.NONE, "nothing answers there"),
        ("PLAINTEXT", _Listener.NONE, "nothing answers there"),
    ],
)
def test_a_broker_that_hangs_up_without_a_word_is_asked_whether_it_speaks_tls(
    monkeypatch: pytest.MonkeyPatch,
    protocol: str,
    listener: _Listener,
    says: str,
    said: tuple[tuple[int, str], ...],
) -> None:
    monkeypatch.setattr(kafka_failures, "_listener", Mock(return_value=listener))
    account = {"sasl_mechanism": "PLAIN", "sasl_username": "r", "sasl_password": "p"} if "SASL" in protocol else {}
    assert says in told(monkeypatch, *said, security_protocol=protocol, **account)


@pytest.mark.parametrize(
    ("servers", "addresses"),
    [
        ("b:1", [("b", 1)]),
        ("b", [("b", 9092)]),
        ("SASL_SSL://b:9093, [::1]:9094", [("b", 9093), ("::1", 9094)]),
    ],
)
def test_bootstrap_servers_are_read_as_kafkas_clients_read_them(servers: str, addresses: list[tuple[str, int]]) -> None:
    assert list(kafka_failures._addresses(KafkaSettings({"bootstrap.servers": servers}))) == addresses


def test_a_port_that_cannot_be_is_no_error_of_ours() -> None:
    assert kafka_failures._listener("127.0.0.1", 99_999) is _Listener.NONE
