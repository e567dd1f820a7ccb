"""Addresses and credentials, as values. Where they come from is the edge's business: Airflow, or the environment.

Outside Airflow the connection `ledger_billing` is the environment variable TALLYSTICK_CONN_LEDGER_BILLING.
"""

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tallystick.connections.kafka_setting_names import NO_KERBEROS, KafkaSettingRefused, sort_settings, why_ignored
from tallystick.model.errors import TallystickError


class ConnectionNotGiven(TallystickError):
    """A connection id has no usable value. The message names the variable, never the value."""


MSK_IAM = "AWS_MSK_IAM"
"""Amazon's name for a login by IAM, which all clients but Java's do by OAUTHBEARER with a token that they sign."""

WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_OF_OIDC = ("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.token.endpoint.url")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_HERE = ("localhost", "127.0.0.1", "[::1]")

log = logging.getLogger("tallystick.connections")


@dataclass(frozen=True)
class KafkaSettings:
    """The way to reach a cluster, in librdkafka's words; the same for the three clients that read it.

    settings: those that are taken, by their own names (`sasl.mechanism`, not `sasl.mechanisms`), the protocol and the
    mechanism in capitals. Those of other programs that share the connection are left out, with one line in the log.
    Raises ConnectionNotGiven for what cannot be honoured, without a value. Opens nothing.
    """

    settings: Mapping[str, str] = field(repr=False)

    def __post_init__(self) -> None:
        try:
            found = sort_settings(self.settings)
        except KafkaSettingRefused as refused:
            raise ConnectionNotGiven(f"a Kafka connection has {refused}") from None
        if found.ignored:
            _tell_ignored(found.ignored)
        settings = dict(found.taken)
        for name in ("security.protocol", "sasl.mechanism"):  # librdkafka writes them small, Java in capitals
            if name in settings:
                settings[name] = settings[name].upper()
        object.__setattr__(self, "settings", settings)
        fault = _fault_of_address(self) or _fault_of_login(self) or _fault_of_tls(settings)
        if fault:
            raise ConnectionNotGiven(f"a Kafka connection has {fault}")

    @property
    def bootstrap_servers(self) -> str:
        return self.settings["bootstrap.servers"]

    @property
    def protocol(self) -> str:
        """Return security.protocol, in capitals."""
        return self.settings.get("security.protocol", "PLAINTEXT")

    @property
    def mechanism(self) -> str:
        """Return how we log in, or nothing. AWS_MSK_IAM also where MSK is asked by OAUTHBEARER without an endpoint."""
        said = self.settings.get("sasl.mechanism", "")
        asks_msk = said == "OAUTHBEARER" and not any(name in self.settings for name in _OF_OIDC)
        return MSK_IAM if asks_msk and ".amazonaws.com" in self.bootstrap_servers else said

    @property
    def checks_host(self) -> bool:
        """Return whether the broker's certificate must be for its host's name."""
        return self.settings.get("ssl.endpoint.identification.algorithm", "https") == "https"

    def for_confluent(self) -> dict[str, Any]:
        """Return settings of confluent-kafka. Raises ConnectionNotGiven where MSK's tokens cannot be signed here."""
        ours: dict[str, Any] = {"enable.metrics.push": False}
        if self.settings.get("ssl.endpoint.identification.algorithm") == "":
            ours["ssl.endpoint.identification.algorithm"] = "none"
        if self.mechanism == MSK_IAM:
            from tallystick.connections.kafka_tokens import msk_signer

            ours |= {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": msk_signer(self.bootstrap_servers)}
        return {**self.settings, **ours}

    def for_kafka_python(self) -> dict[str, Any]:
        """Return keywords of kafka-python's clients. Reads the certificates that are named.

        Raises ConnectionNotGiven, TokenNotGiven.
        """
        from tallystick.connections.kafka_in_python import kafka_python_settings

        return kafka_python_settings(self)

    def for_spark(self) -> dict[str, str]:
        """Options of Spark's Kafka source; set on the reader, so that no secret reaches argv.

        Raises ConnectionNotGiven.
        """
        from tallystick.connections.kafka_in_java import java_settings

        return {f"kafka.{name}": value for name, value in java_settings(self).items()}


@cache
def _tell_ignored(names: tuple[str, ...]) -> None:
    """Say once in a process which settings of a shared connection have no effect here."""
    by_reason: dict[str, list[str]] = {}
    for name in names:
        by_reason.setdefault(why_ignored(name), []).append(name)
    told = "; ".join(f"{', '.join(those)} ({why})" for why, those in by_reason.items())
    log.warning("a Kafka connection has settings that are ignored: %s", told)


def _fault_of_address(kafka: KafkaSettings) -> str:
    if not kafka.settings.get("bootstrap.servers"):
        return "no bootstrap.servers"
    if kafka.protocol not in _PROTOCOLS:
        return f"an unknown security.protocol; expected one of {list(_PROTOCOLS)}"
    return ""


def _fault_of_login(kafka: KafkaSettings) -> str:
    settings, mechanism = kafka.settings, kafka.mechanism
    if mechanism == "GSSAPI":
        return f"sasl.mechanism=GSSAPI, which is {NO_KERBEROS}"
    if mechanism not in (*WITH_PASSWORD, "OAUTHBEARER", MSK_IAM):
        if mechanism or "sasl.username" in settings or kafka.protocol.startswith("SASL_"):
            return f"a login: expected sasl.mechanism to be one of {[*WITH_PASSWORD, 'OAUTHBEARER', MSK_IAM]}"
        return ""
    if mechanism in WITH_PASSWORD:
        return next(
            (
                f"sasl.mechanism={mechanism} and no {name}"
                for name in ("sasl.username", "sasl.password")
                if not settings.get(name)
            ),
            "",
        )
    if mechanism == MSK_IAM:
        return "" if kafka.protocol == "SASL_SSL" else f"sasl.mechanism={MSK_IAM}; expected security.protocol=SASL_SSL"
    if settings.get("sasl.oauthbearer.method") != "oidc":
        return "sasl.mechanism=OAUTHBEARER; expected sasl.oauthbearer.method=oidc, " + " and ".join(_OF_OIDC)
    missing = next((name for name in _OF_OIDC if not settings.get(name)), None)
    if missing:
        return f"sasl.oauthbearer.method=oidc and no {missing}"
    endpoint = urlsplit(settings["sasl.oauthbearer.token.endpoint.url"])
    if endpoint.scheme != "https" and not (endpoint.scheme == "http" and endpoint.netloc.rpartition(":")[0] in _HERE):
        return "sasl.oauthbearer.token.endpoint.url: expected https, since the client's secret goes there"
    return ""


def _fault_of_tls(settings: Mapping[str, str]) -> str:
    if settings.get("ssl.endpoint.identification.algorithm", "https") not in ("https", "none", ""):
        return "an unknown ssl.endpoint.identification.algorithm; expected https or none"
    for kinds in (("ssl.ca.location", "ssl.ca.pem"), ("https.ca.location", "https.ca.pem")):
        if all(name in settings for name in kinds):
            return f"{kinds[0]} and {kinds[1]}; expected one of them"
    certificates, keys = (
        [name for name in settings if name in (f"ssl.{part}.location", f"ssl.{part}.pem")]
        for part in ("certificate", "key")
    )
    if len(certificates) > 1 or len(keys) > 1 or ("ssl.keystore.location" in settings and [*certificates, *keys]):
        return "several certificates of a client; expected one, of a file, in PEM, or in a keystore"
    if len(certificates) != len(keys):
        return (
            "half of a client's certificate; expected ssl.certificate.location (or .pem) and ssl.key.location (or .pem)"
        )
    return ""


@dataclass(frozen=True, kw_only=True)
class HttpAccount:
    """An HTTP interface, and who we are there."""

    address: str = field(repr=False)
    login: str = field(repr=False)
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Connections:
    """The connections of one run.

    ledger_dsn: a PostgreSQL URI; for a ledger of kind jdbc what `jdbc_settings` reads, for input topics the JSON of
    librdkafka settings; empty without a connection.
    """

    kafka: KafkaSettings
    ledger_dsn: str = field(repr=False)
    primary_dsn: str | None = field(default=None, repr=False)
    """Of the primary, where the ledger is read on a standby."""
    poster_dsn: str | None = field(default=None, repr=False)
    """Where a contract lets the ledger be written."""
    airflow: HttpAccount | None = None
    """Where a contract lets DAGs be started."""


def environment_variable(connection_id: str) -> str:
    return f"TALLYSTICK_CONN_{connection_id.upper()}"


def connections_from_environment(
    *,
    kafka_id: str,
    ledger_id: str,
    primary_id: str | None = None,
    poster_id: str | None = None,
    airflow_id: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Connections:
    """Read the connections of a contract. Raises ConnectionNotGiven."""
    return Connections(
        kafka=kafka_from_environment(kafka_id, environment),
        ledger_dsn=connection_text(ledger_id, environment) if ledger_id else "",
        primary_dsn=connection_text(primary_id, environment) if primary_id else None,
        poster_dsn=connection_text(poster_id, environment) if poster_id else None,
        airflow=http_account(connection_text(airflow_id, environment), airflow_id) if airflow_id else None,
    )


def http_account(text: str, connection_id: str) -> HttpAccount:
    """Read a JSON object with address, login and secret. Raises ConnectionNotGiven, without the value."""
    try:
        given = json.loads(text)
    except json.JSONDecodeError:
        given = None
    names = ("address", "login", "secret")
    if not isinstance(given, dict) or not all(isinstance(given.get(name), str) and given[name] for name in names):
        raise ConnectionNotGiven(
            f"connection {connection_id}: expected a JSON object of strings such as "
            '{"address": "https://airflow.example.org", "login": "...", "secret": "..."}'
        )
    return HttpAccount(**{name: given[name] for name in names})


def kafka_from_environment(kafka_id: str, environment: Mapping[str, str] = os.environ) -> KafkaSettings:
    """Read one Kafka connection. Raises ConnectionNotGiven."""
    return kafka_settings(connection_text(kafka_id, environment), connection_id=kafka_id)


def kafka_settings(text: str, *, connection_id: str) -> KafkaSettings:
    """Read librdkafka settings from a JSON object; numbers and truth values as they are. Raises ConnectionNotGiven."""
    settings, fault = _json_of(text)
    if fault := fault or _fault_of_values(settings):
        raise ConnectionNotGiven(
            f"connection {connection_id}: expected a JSON object of strings such as "
            f'{{"bootstrap.servers": "broker:9092"}} in {environment_variable(connection_id)}; {fault}'
        )
    try:
        return KafkaSettings(setting_texts(settings))
    except ConnectionNotGiven as error:
        raise ConnectionNotGiven(f"connection {connection_id}: {error}") from None


def _json_of(text: str) -> tuple[Any, str]:
    """Return what a JSON text says, or its fault without any of the text."""
    try:
        return json.loads(text), ""
    except json.JSONDecodeError as error:
        return None, f"got no JSON: {error.msg} at line {error.lineno}, column {error.colno}"


def _fault_of_values(settings: Any) -> str:
    if not isinstance(settings, dict):
        return "got JSON that is no object"
    kinds = {name: str if name == "bootstrap.servers" else str | int | float for name in settings}
    odd = next((name for name, kind in kinds.items() if not isinstance(settings[name], kind)), None)
    return f"got no text for {odd}" if odd is not None else ""


def setting_texts(settings: Mapping[str, Any]) -> dict[str, str]:
    """Write values as librdkafka reads them: true and false in small letters."""
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in settings.items()}


def store_dsn(environment: Mapping[str, str] = os.environ) -> str:
    """PostgreSQL URI of the verdict store. Raises ConnectionNotGiven."""
    if not environment.get("TALLYSTICK_STORE_DSN"):
        raise ConnectionNotGiven(
            "the verdict store is not named: expected TALLYSTICK_STORE_DSN=postgresql://user:password@host:port/database"
        )
    return environment["TALLYSTICK_STORE_DSN"]


def artifacts_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return this machine's folder for logs and the Spark server's file, and for all artifacts that go to no store."""
    text = environment.get("TALLYSTICK_ARTIFACTS_DIR") or "build/artifacts"
    return Path("build/artifacts" if "://" in text else text).absolute()


def runbook_links(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the address of a class's page, as `deliver_pending` fills it in: below an address, or in
    this repository.
    """
    base = environment.get("TALLYSTICK_RUNBOOKS_URL") or "docs/runbooks"
    return {"runbook": f"{base.rstrip('/')}/{{alert}}.md"}


def filled_link(text: str, **values: object) -> str:
    """Put values in their places. Any other brace is the address's own."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def connection_text(connection_id: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the text of a connection in the environment. Raises ConnectionNotGiven."""
    name = environment_variable(connection_id)
    if not environment.get(name):
        raise ConnectionNotGiven(f"connection {connection_id}: expected the environment variable {name}")
    return environment[name]
