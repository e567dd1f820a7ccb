"""All three clients come in by SCRAM, by a certificate and by a token, over TLS, with the rights that are granted to
them; and who does not come in is told why. Real listeners, on one broker.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from kafka.admin import KafkaAdminClient
from pyspark.sql import SparkSession

from lab.doors.door import READER, Door, Security, open_door
from lab.servers.broker import Broker
from lab.servers.ports import free_port
from tallystick.connections import kafka_failures
from tallystick.connections.connections import KafkaSettings
from tallystick.kafka_log import fetch
from tallystick.kafka_log.fetch import BrokerUnreachable, open_admin
from tallystick.kafka_log.topic_snapshot import TopicNotFound, read_topic_snapshot
from tallystick.model.offsets import OffsetRange
from tallystick_spark.readers.topic_frame import read_topics

TOPIC, SECRET_TOPIC = "shop.orders", "shop.salaries"
GRANTED = f"kafka-acls.sh --add --allow-principal User:{READER} --operation Read --topic {TOPIC}"


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Security, Door]]:
    """Three on one broker, with a record behind them."""
    folder = tmp_path_factory.mktemp("doors")
    with ExitStack() as stack:
        opened = {each: stack.enter_context(open_door(each, folder / each, brokers=1)) for each in Security}
        broker = Broker(folder / "broker", proxied_port=free_port())
        for door in opened.values():
            broker.settings |= door.broker_settings()
            broker.listeners = {**broker.listeners, door.listener: (door.protocol, door.ports[0])}
            broker.java_options += door.java_options
        broker.initialise()
        stack.callback(broker.stop)
        broker.start()
        servers = broker.bootstrap_servers
        opened[Security.SCRAM].make_accounts(servers)
        opened[Security.SCRAM].grant(servers, GRANTED)
        admin = AdminClient({"bootstrap.servers": servers})
        for made in admin.create_topics([NewTopic(name, num_partitions=1) for name in (TOPIC, SECRET_TOPIC)]).values():
            made.result(30)
        producer = Producer({"bootstrap.servers": servers})
        producer.produce(TOPIC, b"an order")
        producer.flush(30)
        yield opened


def reader_at(door: Door, **changed: str) -> KafkaSettings:
    return KafkaSettings(door.client(READER, brokers=1) | {name.replace("_", "."): it for name, it in changed.items()})


@pytest.mark.parametrize("security", Security)
def test_all_three_clients_come_in_and_see_what_was_granted(
    doors: dict[Security, Door], spark: SparkSession, security: Security
) -> None:
    kafka = reader_at(doors[security])
    with open_admin(kafka) as admin:
        assert [part.high_watermark for part in read_topic_snapshot(admin, [TOPIC])] == [1]
        with pytest.raises(TopicNotFound):
            read_topic_snapshot(admin, [SECRET_TOPIC])
    seen = AdminClient(kafka.for_confluent()).list_topics(timeout=30).topics
    assert set(seen) == {TOPIC}
    order = OffsetRange(topic=TOPIC, partition=0, kafka_offset_start=0, kafka_offset_end=1)
    (row,) = read_topics(spark, kafka, [order]).collect()
    assert bytes(row["value"]) == b"an order"


def test_certificates_in_the_connection_itself_need_no_file(doors: dict[Security, Door], spark: SparkSession) -> None:
    door = doors[Security.MTLS]
    certificate, key = door.certificates.of(READER)
    kafka = KafkaSettings(
        {
            "bootstrap.servers": f"127.0.0.1:{door.ports[0]}",
            "security.protocol": "SSL",
            "ssl.ca.pem": door.certificates.ca.read_text(),
            "ssl.certificate.pem": certificate.read_text(),
            "ssl.key.pem": key.read_text(),
        }
    )
    with open_admin(kafka) as admin:
        assert read_topic_snapshot(admin, [TOPIC])
    assert TOPIC in AdminClient(kafka.for_confluent()).list_topics(timeout=30).topics
    order = OffsetRange(topic=TOPIC, partition=0, kafka_offset_start=0, kafka_offset_end=1)
    assert read_topics(spark, kafka, [order]).count() == 1


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's clients give up after a second or two."""

    def impatient(**settings: object) -> KafkaAdminClient:
        return KafkaAdminClient(**{**settings, "bootstrap_timeout_ms": 1_000})

    monkeypatch.setattr(fetch, "KafkaAdminClient", impatient)
    monkeypatch.setattr(kafka_failures, "_SECONDS_TO_ASK", 2.5)


def refusal(door: Door, **changed: str) -> str:
    kafka = reader_at(door, **changed)
    with pytest.raises(BrokerUnreachable) as raised, open_admin(kafka):
        pass
    said = str(raised.value)
    assert not any(secret in said for secret in (*door.passwords.values(), "wr0ng"))
    return said


@pytest.mark.usefixtures("soon")
def test_who_does_not_come_in_is_told_why(doors: dict[Security, Door]) -> None:
    scram, mtls, oauth = doors[Security.SCRAM], doors[Security.MTLS], doors[Security.OAUTH]
    assert "it refuses the account reader (" in refusal(scram, sasl_password="wr0ng")
    assert "it does not take sasl.mechanism PLAIN (" in refusal(scram, sasl_mechanisms="PLAIN")
    asks = replace(oauth, ports=mtls.ports)
    assert "it asks for a client's certificate (" in (refusal(asks, ssl_ca_location=str(mtls.certificates.ca)))
    assert "refuses client reader (401 invalid_client); correct" in (
        refusal(oauth, sasl_oauthbearer_client_secret="wr0ng")
    )
    assert "refuses client reader (400 invalid_scope); correct" in refusal(oauth, sasl_oauthbearer_scope="payroll")
    nowhere = f"https://127.0.0.1:{free_port()}/token"
    assert f"{nowhere} does not answer (Connection refused)" in (
        refusal(oauth, sasl_oauthbearer_token_endpoint_url=nowhere)
    )
    assert "is not proven (" in refusal(oauth, https_ca_location=str(oauth.certificates.other_ca))


@pytest.mark.usefixtures("soon")
def test_a_token_that_the_broker_does_not_believe_is_named(doors: dict[Security, Door], tmp_path: Path) -> None:
    with open_door(Security.OAUTH, tmp_path, brokers=1) as other:
        believed = doors[Security.OAUTH]
        stranger = replace(other, ports=believed.ports, certificates=believed.certificates)
        said = refusal(stranger, https_ca_location=str(other.certificates.ca))
    assert "it refuses the token of client reader (" in said
    assert "let the broker expect this identity provider's issuer, audience and keys" in said


def test_a_connection_names_no_secret_in_sparks_plan(doors: dict[Security, Door], spark: SparkSession) -> None:
    order = OffsetRange(topic=TOPIC, partition=0, kafka_offset_start=0, kafka_offset_end=1)
    for door in doors.values():
        frame = read_topics(spark, reader_at(door), [order])
        plan = frame._jdf.queryExecution().toString()  # type: ignore[operator]
        assert not any(secret in plan for secret in door.passwords.values())
        assert json.dumps(door.certificates.of(READER)[1].read_text())[1:-1] not in plan
        assert "PRIVATE KEY" not in plan
