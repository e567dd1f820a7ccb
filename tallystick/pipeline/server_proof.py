"""The protection of each connection of a contract on the network: the server's proof of identity, and encryption.

Reads addresses and settings, never a secret, and opens nothing. The config check judges what is said here.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from tallystick.alerting.sinks.connection import sink_connection
from tallystick.connections.connections import (
    ConnectionNotGiven,
    Connections,
    HttpAccount,
    KafkaSettings,
    connection_text,
    http_account,
    kafka_settings,
)
from tallystick.connections.postgres_address import as_asked, as_asked_of_psycopg, proves_server
from tallystick.contract.alerts import AlertSinkSection
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.state import ServerProof
from tallystick.ledger.jdbc_connection import JdbcSettings, jdbc_settings

_ENCRYPTED_MAIL = ("starttls", "tls")
_JDBC_PARAMETER = re.compile(r"[?&](\w+)=([\w-]*)")


def proofs_of_run(contract: Contract, connections: Connections) -> tuple[ServerProof, ...]:
    """Return the proofs of the connections that a run reads. Raises ConnectionNotGiven."""
    proofs = (_kafka(contract.kafka.connection, connections.kafka), *_ledger(contract, connections.ledger_dsn))
    primary = contract.ledger.primary_connection
    if primary is None or connections.primary_dsn is None:
        return proofs
    return (*proofs, _postgres(primary, as_asked(connections.primary_dsn)))


def proofs_from_environment(contract: Contract, environment: Mapping[str, str]) -> tuple[ServerProof, ...]:
    """Return the proofs of every connection that the contract names, by the environment; of an absent one nothing is
    known.
    """
    rules = contract.compensation
    post, trigger = (rules.post, rules.trigger) if rules else (None, None)
    named: list[tuple[str, Callable[[str], tuple[ServerProof, ...]]]] = [
        (contract.kafka.connection, lambda text: (_kafka_text(contract.kafka.connection, text),)),
        (contract.ledger.connection, lambda text: _ledger(contract, text)),
    ]
    if primary := contract.ledger.primary_connection:
        named.append((primary, lambda text: (_postgres(primary, as_asked(text)),)))
    if post:
        named.append((post.connection, lambda text: (_postgres(post.connection, as_asked(text)),)))
    if trigger:
        named.append((trigger.connection, lambda text: (_account(trigger.connection, http_account(text, "")),)))
    found = [proof for name, read in named for proof in _read(name, read, environment)]
    return (*found, *(proof for sink in contract.alert.sinks for proof in _sink(sink, environment)))


def _read(
    name: str, read: Callable[[str], tuple[ServerProof, ...]], environment: Mapping[str, str]
) -> tuple[ServerProof, ...]:
    try:
        return read(connection_text(name, environment))
    except ConnectionNotGiven:
        return (ServerProof(connection=name, setting="connection", value="", needs="one that proves its server"),)


def _ledger(contract: Contract, address: str) -> tuple[ServerProof, ...]:
    """None of files: their place says how they are reached."""
    name = contract.ledger.connection
    match contract.ledger.kind:
        case "postgres":
            return (_postgres(name, as_asked(address)),)
        case "topic":
            return (_kafka_text(name, address),)
        case "jdbc":
            settings = jdbc_settings(address)
            if settings.url.get_backend_name() == "postgresql":
                return (_as_spark_reads_too(_postgres(name, as_asked_of_psycopg(settings.url)), settings),)
            if settings.url.host:
                return (ServerProof(connection=name, setting="TLS", value="", needs="a server that is proven"),)
    return ()


def _kafka_text(name: str, text: str) -> ServerProof:
    return _kafka(name, kafka_settings(text, connection_id=name))


def _kafka(name: str, kafka: KafkaSettings) -> ServerProof:
    protocol = kafka.protocol
    servers = [server.rpartition("://")[2] for server in kafka.bootstrap_servers.split(",")]
    return ServerProof(
        connection=name,
        setting="security.protocol",
        value=protocol if kafka.checks_host else f"{protocol} for a host of any name",
        needs="SSL or SASL_SSL" if kafka.checks_host else "ssl.endpoint.identification.algorithm=https",
        proven=protocol in ("SSL", "SASL_SSL") and kafka.checks_host,
        is_local=all(_is_here(server.strip().rpartition(":")[0]) for server in servers),
    )


def _postgres(name: str, asked: Mapping[str, str]) -> ServerProof:
    return ServerProof(
        connection=name,
        setting="sslmode",
        value=asked.get("sslmode") or "prefer",
        needs="verify-full, or verify-ca",
        proven=proves_server(asked),
        is_local=not asked.get("service") and all(map(_is_here, _hosts(asked))),
    )


def _as_spark_reads_too(proof: ServerProof, settings: JdbcSettings) -> ServerProof:
    """Proven only where Spark proves the server too: a jdbc_url of its own may ask less (ssl=true is verify-full)."""
    asked = dict(_JDBC_PARAMETER.findall(settings.jdbc_url))
    said = settings.more.get("sslmode") or asked.get("sslmode", "verify-full" if asked.get("ssl") == "true" else "")
    if not proof.proven or said in ("verify-ca", "verify-full"):
        return proof
    return replace(proof, value=said or "not said by jdbc_url", proven=False)


def _hosts(asked: Mapping[str, str]) -> list[str]:
    """Where libpq goes: to the address that stands beside a host's name, if one does."""
    return (asked.get("hostaddr") or asked.get("host", "")).split(",")


def _account(name: str, account: HttpAccount) -> ServerProof:
    return _http(name, account.address)


def _http(name: str, address: str) -> ServerProof:
    asked = urlsplit(address)
    return ServerProof(
        connection=name,
        setting="address",
        value=asked.scheme,
        needs="https",
        proven=asked.scheme == "https",
        is_local=_is_here(asked.hostname or " "),
    )


def _sink(sink: AlertSinkSection, environment: Mapping[str, str]) -> Iterator[ServerProof]:
    """Of Apprise's address all is secret, its scheme too; a file is written here."""
    if sink.connection is None or sink.kind == "apprise":
        return
    connection = sink_connection(sink.connection, environment)
    if sink.kind == "email" and not connection.fault:
        encryption = connection.settings.get("encryption", "starttls")
        yield ServerProof(
            connection=sink.connection,
            setting="encryption",
            value=encryption,
            needs=" or ".join(_ENCRYPTED_MAIL),
            proven=encryption in _ENCRYPTED_MAIL,
            is_local=_is_here(urlsplit(connection.address).hostname or " "),
        )
    elif connection.address or sink.kind != "pagerduty":  # whose own address is https
        yield _http(sink.connection, connection.address)


def _is_here(host: str) -> bool:
    """Does it name this machine: a loopback address, or a socket in a folder? What goes there is on no network."""
    if not host or host == "localhost" or host.startswith(("/", "@")):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
