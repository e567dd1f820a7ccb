"""Addresses and credentials, as values. Where they come from is the edge's business: Airflow, or the environment.

Outside Airflow the connection `ledger_billing` is the environment variable TALLYSTICK_CONN_LEDGER_BILLING.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tallystick.model.errors import TallystickError


class ConnectionNotGiven(TallystickError):
    """A connection id has no usable value. The message names the variable, never the value."""


_FOR_KAFKA_PYTHON = {
    "bootstrap.servers": "bootstrap_servers",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
}
"""librdkafka setting to kafka-python keyword: the settings a connection may carry."""

_JAAS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@dataclass(frozen=True)
class KafkaSettings:
    """The way to reach a cluster, in librdkafka's words; the same for the three clients that read it."""

    settings: Mapping[str, str] = field(repr=False)

    def __post_init__(self) -> None:
        if not self.settings.get("bootstrap.servers"):
            raise ConnectionNotGiven("a Kafka connection has no bootstrap.servers")
        unknown = sorted(set(self.settings) - set(_FOR_KAFKA_PYTHON))
        if unknown:
            raise ConnectionNotGiven(
                f"a Kafka connection has {unknown[0]!r}; expected only {sorted(_FOR_KAFKA_PYTHON)}"
            )
        if "sasl.username" in self.settings:
            if self.settings.get("sasl.mechanism") not in _JAAS:
                raise ConnectionNotGiven(
                    f"a Kafka connection has a user: expected sasl.mechanism to be one of {list(_JAAS)}"
                )
            if not self.settings.get("sasl.password"):
                raise ConnectionNotGiven("a Kafka connection has a user and no sasl.password")

    @property
    def bootstrap_servers(self) -> str:
        return self.settings["bootstrap.servers"]

    def for_confluent(self) -> dict[str, Any]:
        return {**self.settings, "enable.metrics.push": False}

    def for_kafka_python(self) -> dict[str, Any]:
        return {_FOR_KAFKA_PYTHON[name]: value for name, value in self.settings.items()}

    def for_spark(self) -> dict[str, str]:
        """Options of Spark's Kafka source; set on the reader, so that no secret reaches argv."""
        options = {
            f"kafka.{name}": self.settings[name]
            for name in ("bootstrap.servers", "security.protocol", "sasl.mechanism")
            if name in self.settings
        }
        if "ssl.ca.location" in self.settings:
            options |= {
                "kafka.ssl.truststore.type": "PEM",
                "kafka.ssl.truststore.location": self.settings["ssl.ca.location"],
            }
        if "sasl.username" in self.settings:
            module = _JAAS[self.settings["sasl.mechanism"]]
            user, password = (_quoted(self.settings[name]) for name in ("sasl.username", "sasl.password"))
            options["kafka.sasl.jaas.config"] = f"{module} required username={user} password={password};"
        return options


def _quoted(text: str) -> str:
    """As a login line quotes: backslashes before quotes and backslashes; letters as they are, it knows no \\u."""
    return json.dumps(text, ensure_ascii=False)


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
    poster_id: str | None = None,
    airflow_id: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Connections:
    """Read the connections of a contract. Raises ConnectionNotGiven."""
    return Connections(
        kafka=kafka_from_environment(kafka_id, environment),
        ledger_dsn=connection_text(ledger_id, environment) if ledger_id else "",
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
    """Read librdkafka settings from a JSON object. Raises ConnectionNotGiven."""
    try:
        settings = json.loads(text)
    except json.JSONDecodeError:
        settings = None
    if not isinstance(settings, dict) or not all(isinstance(value, str) for value in settings.values()):
        raise ConnectionNotGiven(
            f"connection {connection_id}: expected a JSON object of strings such as "
            '{"bootstrap.servers": "broker:9092"}'
        )
    return KafkaSettings(settings)


def store_dsn(environment: Mapping[str, str] = os.environ) -> str:
    """PostgreSQL URI of the verdict store. Raises ConnectionNotGiven."""
    if not environment.get("TALLYSTICK_STORE_DSN"):
        raise ConnectionNotGiven(
            "the verdict store is not named: expected TALLYSTICK_STORE_DSN=postgresql://user:password@host:port/database"
        )
    return environment["TALLYSTICK_STORE_DSN"]


def artifacts_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for reports, Data Docs and Parquet files."""
    return Path(environment.get("TALLYSTICK_ARTIFACTS_DIR") or "build/artifacts")


def runbook_links(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the address of a class's page, as `deliver_pending` fills it in: below an address, or in
    this repository.
    """
    base = environment.get("TALLYSTICK_RUNBOOKS_URL") or "docs/runbooks"
    return {"runbook": f"{base.rstrip('/')}/{{alert}}.md"}


def connection_text(connection_id: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the text of a connection in the environment. Raises ConnectionNotGiven."""
    name = environment_variable(connection_id)
    if not environment.get(name):
        raise ConnectionNotGiven(f"connection {connection_id}: expected the environment variable {name}")
    return environment[name]
