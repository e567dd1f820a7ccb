"""A client's certificate is read from wherever a connection has it, and one that cannot be used is named."""

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tallystick.connections.connections import ConnectionNotGiven, KafkaSettings
from tallystick.connections.kafka_certificates import client_certificate

from .kafka_forms import CHAIN, PASSWORD, TLS, forms_in

Forms = dict[str, dict[str, str]]


@pytest.fixture
def forms(tmp_path: Path) -> Forms:
    return forms_in(tmp_path)


@pytest.mark.parametrize("form", ["files", "inline", "keystore"])
def test_a_clients_certificate_reaches_every_client(forms: Forms, form: str) -> None:
    kafka = KafkaSettings(forms[form])
    AdminClient(kafka.for_confluent() | {"log_level": 0})  # librdkafka reads it here, and raises where it cannot
    assert kafka.for_kafka_python()["ssl_context"].check_hostname
    java = kafka.for_spark()
    assert (java["kafka.ssl.keystore.type"], java["kafka.ssl.keystore.certificate.chain"]) == ("PEM", CHAIN)
    assert java["kafka.ssl.keystore.key"].startswith("-----BEGIN PRIVATE KEY-----")  # all that Java reads
    assert PASSWORD not in repr(client_certificate(kafka.settings))


@pytest.mark.parametrize(
    ("form", "changed", "says"),
    [
        ("files", {"ssl.key.password": "wrong"}, "k.pem: no key that can be read"),
        ("inline", {"ssl.key.password": "wrong"}, "ssl.key.pem: no key that can be read"),
        ("inline", {"ssl.key.pem": "nonsense"}, "ssl.key.pem: no key that can be read"),
        (
            "files",
            {"ssl.key.location": "/missing/k.pem"},
            "ssl.key.location: /missing/k.pem: No such file or directory",
        ),
        ("inline", {"ssl.certificate.pem": "nonsense"}, "client certificate and key do not fit"),
        ("keystore", {"ssl.keystore.password": "wrong"}, "k.p12: no certificate and key that can be read"),
        ("inline", {"ssl.ca.pem": "nonsense"}, "ssl.ca.pem has no certificate"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_named(
    forms: Forms, form: str, changed: dict[str, str], says: str
) -> None:
    with pytest.raises(ConnectionNotGiven) as raised:
        KafkaSettings(forms[form] | changed).for_kafka_python()
    assert says in str(raised.value)
    assert PASSWORD not in str(raised.value)


def test_a_key_without_its_password_is_refused_and_nobody_is_asked_for_it(forms: Forms) -> None:
    without = {name: value for name, value in forms["inline"].items() if name != "ssl.key.password"}
    with pytest.raises(ConnectionNotGiven, match=r"ssl\.key\.password to be its own"):
        KafkaSettings(without).for_spark()


def test_without_a_certificate_none_is_told() -> None:
    kafka = KafkaSettings(TLS)
    assert client_certificate(kafka.settings) is None
    assert kafka.for_spark() == {"kafka.bootstrap.servers": "broker:9093", "kafka.security.protocol": "SSL"}
