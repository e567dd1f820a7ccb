"""Airflow's connections as the values that `tallystick` takes.

Decides how a connection's fields become a DSN, librdkafka settings or an address. Refuses what would only fail later,
or, worse, elsewhere: a Spark connection that is missing silently becomes YARN in the provider.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from airflow.sdk import BaseHook, Connection
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tallystick.alerting.sinks.connection import SinkConnection
from tallystick.connections.connections import (
    ConnectionNotGiven,
    Connections,
    HttpAccount,
    KafkaSettings,
    environment_variable,
    setting_texts,
)
from tallystick.connections.schema_registry import (
    RegistrySettings,
    registry_of,
    registry_settings_of,
    remember_registries,
)
from tallystick.contract.contract import Contract
from tallystick.contract.ledger import LedgerSection
from tallystick.host.artifacts import CONNECTION_VARIABLE, ArtifactsRefused, Place, artifacts_place
from tallystick_airflow.hooks.database_address import OURS as JDBC_EXTRAS
from tallystick_airflow.hooks.database_address import (
    POSTGRES_TYPES,
    given,
    postgres_address,
    require_client,
    url_of_hook,
)
from tallystick_airflow.hooks.refusal import ConnectionRefused

STORE_CONNECTION = "tallystick_store"
SPARK_CONNECTION = "spark_default"
_KUBERNETES = "apache-airflow-providers-cncf-kubernetes"
_AWS_EXTRAS = {
    "aws_session_token": "session_token",
    "endpoint_url": "endpoint_override",
    "external_id": "external_id",
    "region_name": "region",
    "role_arn": "role_arn",
}
"""Extra of a connection of Airflow's provider of Amazon, to the keyword of pyarrow's S3FileSystem."""


class SparkWay(StrEnum):
    """The way a task reaches Spark, by its connection's type: spark-submit, or as the client of a server that lives."""

    SUBMIT = "spark"
    CLIENT = "spark_connect"


def read_connections(contract: Contract) -> Connections:
    """Read the broker's and the ledger's connection of a contract. Raises ConnectionRefused."""
    if contract.kafka.schema_registry:
        remember_registries(
            {contract.kafka.schema_registry: schema_registry(get_connection(contract.kafka.schema_registry))}
        )
    return Connections(
        kafka=kafka_settings(get_connection(contract.kafka.connection)),
        ledger_dsn=_ledger_address(contract.ledger),
        primary_dsn=_primary_address(contract.ledger),
    )


def read_acting_connections(contract: Contract) -> Connections:
    """The same, and those that may write the ledger or start DAGs where the contract names them.

    Raises ConnectionRefused.
    """
    rules = contract.compensation
    post, trigger = (rules.post, rules.trigger) if rules else (None, None)
    return replace(
        read_connections(contract),
        poster_dsn=postgres_dsn(get_connection(post.connection)) if post else None,
        airflow=http_account(get_connection(trigger.connection)) if trigger else None,
    )


def _primary_address(ledger: LedgerSection) -> str | None:
    return postgres_dsn(get_connection(ledger.primary_connection)) if ledger.primary_connection else None


def _ledger_address(ledger: LedgerSection) -> str:
    connection = get_connection(ledger.connection)
    match ledger.kind:
        case "postgres":
            return postgres_dsn(connection)
        case "jdbc":
            return jdbc_address(connection)
        case "parquet":
            return folder_address(connection)
        case "iceberg":
            return catalog_address(connection)
        case "topic":
            return json.dumps(dict(kafka_settings(connection).settings))


def read_store_dsn(store_conn_id: str = STORE_CONNECTION) -> str:
    """Read a verdict store's address. Raises ConnectionRefused."""
    return postgres_dsn(get_connection(store_conn_id))


def read_spark_environment(contract: Contract, store_conn_id: str = STORE_CONNECTION) -> dict[str, str]:
    """Build what the Spark app reads from its environment, secrets included: they must not stand in argv.

    The app is a process without Airflow, so it gets the variables that the command line of `tallystick` uses, too.
    """
    connections = read_connections(contract)
    return {
        environment_variable(contract.kafka.connection): json.dumps(dict(connections.kafka.settings)),
        environment_variable(contract.ledger.connection): connections.ledger_dsn,
        **_primary_variable(contract.ledger, connections),
        **_registry_variable(contract),
        "TALLYSTICK_STORE_DSN": read_store_dsn(store_conn_id),
        **read_artifacts_account(),
    }


def read_artifacts_place() -> Place:
    """Return the place of artifacts, with the account of its connection. Raises ArtifactsRefused."""
    try:
        return artifacts_place({**os.environ, **read_artifacts_account()})
    except ConnectionRefused as refused:
        raise ArtifactsRefused(str(refused)) from None


def read_artifacts_account() -> dict[str, str]:
    """Return the variable that has the account for the store of artifacts; none where no connection is named.

    Of a connection of type aws the fields that Airflow's own hook reads; of another one the extra, as keywords of
    pyarrow's file system. Raises ConnectionRefused.
    """
    connection_id = os.environ.get(CONNECTION_VARIABLE)
    if not connection_id:
        return {}
    connection = get_connection(connection_id)
    options = given(connection.extra_dejson)
    if connection.conn_type == "aws":
        unknown = sorted(set(options) - set(_AWS_EXTRAS))
        if unknown:
            raise ConnectionRefused(
                f"connection {connection_id}: the extra has {', '.join(unknown)}; expected at most "
                f"{', '.join(_AWS_EXTRAS)}"
            )
        options = {_AWS_EXTRAS[name]: value for name, value in options.items()}
        account = {"access_key": connection.login, "secret_key": connection.password}
        options |= {name: value for name, value in account.items() if value}
    return {environment_variable(connection_id): json.dumps(options)}


def _primary_variable(ledger: LedgerSection, connections: Connections) -> dict[str, str]:
    if ledger.primary_connection is None or connections.primary_dsn is None:
        return {}
    return {environment_variable(ledger.primary_connection): connections.primary_dsn}


def _registry_variable(contract: Contract) -> dict[str, str]:
    named = contract.kafka.schema_registry
    return {environment_variable(named): json.dumps(dict(registry_of(named).settings))} if named else {}


def check_spark_connection(connection_id: str) -> SparkWay:
    """Return how the Spark of a connection is reached; refuse one whose driver is not this task's own child.

    Raises ConnectionRefused.
    """
    connection = get_connection(connection_id)
    if connection.conn_type not in tuple(SparkWay) or not connection.host:
        raise ConnectionRefused(
            f"connection {connection_id}: got type {connection.conn_type!r}, host {connection.host!r}; "
            "expected type 'spark' with a master as host, such as local[2] or spark://master, or type 'spark_connect' "
            "with the host of a Spark Connect server"
        )
    if connection.conn_type == SparkWay.CLIENT:
        return SparkWay.CLIENT
    deploy_mode = connection.extra_dejson.get("deploy-mode", "client")
    if deploy_mode != "client":
        raise ConnectionRefused(
            f"connection {connection_id}: got master {connection.host!r}, deploy mode {deploy_mode!r}; expected deploy "
            "mode client, since a driver elsewhere would get its addresses and secrets by the command line"
        )
    if connection.host.startswith("k8s://") and not _is_distributed(_KUBERNETES):
        raise ConnectionRefused(
            f"connection {connection_id}: got master {connection.host!r}, for which Airflow's provider of Spark needs "
            f"another one; pip install {_KUBERNETES}"
        )
    return SparkWay.SUBMIT


def _is_distributed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


def get_connection(connection_id: str) -> Connection:
    """Get a connection that exists. Raises ConnectionRefused."""
    try:
        return BaseHook.get_connection(connection_id)
    except AirflowNotFoundException:
        raise ConnectionRefused(
            f"connection {connection_id}: not defined in Airflow; expected it under Admin, Connections "
            f"or as AIRFLOW_CONN_{connection_id.upper()}"
        ) from None


def postgres_dsn(connection: Connection) -> str:
    """Write a connection as a PostgreSQL URI, its extra as parameters. Raises ConnectionRefused, AccountNotGiven."""
    _expect_type(connection, *POSTGRES_TYPES)
    return postgres_address(connection)


def jdbc_address(connection: Connection) -> str:
    """Write a connection as what `tallystick.ledger.jdbc_connection.jdbc_settings` reads.

    One whose extra has a `url`, which is SQLAlchemy's, without the account, which is the connection's own; one of type
    postgres; or one of any database, by its provider's hook. The extra's `jdbc_url` and `driver` stand beside it where
    the database is another than PostgreSQL or SQLite. Raises ConnectionRefused, AccountNotGiven.
    """
    extra = _strings(given(connection.extra_dejson))
    if "url" in extra:
        url = _url_in_extra(connection, extra["url"])
    elif connection.conn_type in POSTGRES_TYPES:
        return postgres_dsn(connection)
    else:
        url = url_of_hook(connection)
        require_client(connection, url)
    address = url.render_as_string(hide_password=False)
    mask_secret(address)  # Airflow knows the plain password only; here it may be quoted
    return json.dumps({"url": address} | {name: extra[name] for name in JDBC_EXTRAS if name in extra})


def _url_in_extra(connection: Connection, text: str) -> URL:
    try:
        url = make_url(text)
    except ArgumentError:
        raise ConnectionRefused(
            f"connection {connection.conn_id}: expected an SQLAlchemy URL without user and password in its extra, such "
            'as {"url": "mysql+pymysql://host/database"}'
        ) from None
    return url.set(username=connection.login or None, password=connection.password or None)  # None keeps what is there


def folder_address(connection: Connection) -> str:
    """The folder of a ledger of files: the extra's `url`, an absolute path or a URI. Raises ConnectionRefused."""
    url = _strings(given(connection.extra_dejson)).get("url", "")
    if not url:
        raise ConnectionRefused(
            f'connection {connection.conn_id}: expected a folder in its extra, such as {{"url": "s3://bucket/ledger"}}'
        )
    return url


def catalog_address(connection: Connection) -> str:
    """Write the properties of an Iceberg catalog, the extra of a connection, as JSON. Raises ConnectionRefused.

    The password, where there is one, is the property `credential`, as REST catalogs take it: `login:password`.
    """
    properties = _strings(given(connection.extra_dejson))
    if connection.password:
        properties["credential"] = ":".join(filter(None, (connection.login, connection.password)))
    if not properties:
        raise ConnectionRefused(
            f"connection {connection.conn_id}: expected the properties of an Iceberg catalog in its extra, such as "
            '{"type": "rest", "uri": "https://catalog.example", "warehouse": "lake"}'
        )
    for name, value in properties.items():
        if any(word in name for word in _OPENS_A_CATALOG):
            mask_secret(value)
    return json.dumps(properties)


_OPENS_A_CATALOG = ("uri", "credential", "token", "secret", "password", "key")
"""Parts of the names of properties that may hold a secret; others, such as `type`, are words of any log."""


def kafka_settings(connection: Connection) -> KafkaSettings:
    """Read librdkafka settings from a connection's extra. Raises ConnectionRefused."""
    _expect_type(connection, "kafka")
    try:
        return KafkaSettings(setting_texts(connection.extra_dejson))
    except ConnectionNotGiven as error:
        raise ConnectionRefused(f"connection {connection.conn_id}: {error}") from None


def schema_registry(connection: Connection) -> RegistrySettings:
    """Read a registry: type http, with host, login and password, and TLS in its extra. Raises ConnectionRefused."""
    address = http_address(connection)
    settings = {"url": address} | {
        name: value for name, value in _strings(connection.extra_dejson).items() if name != "endpoint"
    }
    if connection.login and connection.password:
        settings["basic.auth.user.info"] = f"{connection.login}:{connection.password}"
        mask_secret(settings["basic.auth.user.info"])
    try:
        return registry_settings_of(settings, connection_id=connection.conn_id)
    except ConnectionNotGiven as error:
        raise ConnectionRefused(str(error)) from None


def sink_connection(connection: Connection, kind: str) -> SinkConnection:
    """Read where alerts go, and the secret that opens it: always the connection's password. Raises ConnectionRefused.

    email: type smtp, and in its extra `from`, `to` (a comma between two) and `encryption`. apprise: type generic, all
    of its address as password. The others: type http; PagerDuty's may have no host.
    """
    login, secret = connection.login or "", connection.password or ""
    if kind == "email":
        _expect_type(connection, "smtp")
        port = f":{connection.port}" if connection.port else ""
        settings = _strings(connection.extra_dejson)
        return SinkConnection(
            address=f"smtp://{connection.host or ''}{port}", login=login, secret=secret, settings=settings
        )
    if kind == "apprise":
        _expect_type(connection, "generic")
        return SinkConnection(secret=secret)
    address = http_address(connection) if connection.host or kind != "pagerduty" else ""
    return SinkConnection(address=address, login=login, secret=secret)


def http_account(connection: Connection) -> HttpAccount:
    """An HTTP interface with an account, such as Airflow's own. Raises ConnectionRefused."""
    if not (connection.host and connection.login and connection.password):
        raise ConnectionRefused(f"connection {connection.conn_id}: expected a host, a login and a password")
    return HttpAccount(address=http_address(connection), login=connection.login, secret=connection.password)


def http_address(connection: Connection) -> str:
    """Write a connection as the address that alerts are posted to.

    Path: the extra's `endpoint`; or the connection's schema, which is where Airflow keeps the path of one that was
    given as an address, while one that was typed in has "http" or "https" there. Raises ConnectionRefused.
    """
    _expect_type(connection, "http", "https")
    host, schema = connection.host or "", connection.schema or ""
    scheme, path = (schema, "") if schema in ("http", "https") else (connection.conn_type, schema)
    base = host if "://" in host else f"{scheme}://{host}"
    port = f":{connection.port}" if connection.port else ""
    path = connection.extra_dejson.get("endpoint", path)
    return f"{base}{port}/{path.removeprefix('/')}"


def _expect_type(connection: Connection, expected: str, *also: str) -> None:
    if connection.conn_type not in (expected, *also):
        raise ConnectionRefused(
            f"connection {connection.conn_id}: got type {connection.conn_type!r}; expected {expected!r}"
        )


def _strings(extra: Mapping[str, Any]) -> dict[str, str]:
    return {name: value if isinstance(value, str) else str(value) for name, value in extra.items()}
