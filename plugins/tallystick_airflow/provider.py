"""Tallystick as a provider of Airflow: its connection types with their forms. Found by the package's entry point.

Each command of Airflow reads this, so it imports nothing that is heavy; a hook is imported when its button is pressed.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

_TEXT: dict[str, Any] = {"type": ["string", "null"]}

_TLS: dict[str, Any] = {
    "sslmode": {
        "label": "TLS (sslmode)",
        "description": "verify-full proves that the server is the one it is said to be",
        "schema": _TEXT | {"enum": ["verify-full", "verify-ca", "require", "prefer", "disable", None]},
    },
    "sslrootcert": {
        "label": "Certificates of its CAs (sslrootcert)",
        "description": "a file in PEM, where tasks run",
        "schema": _TEXT,
    },
}

_STORE: dict[str, Any] = {
    "connection-type": "tallystick_store",
    "hook-class-name": "tallystick_airflow.hooks.store_hook.VerdictStoreHook",
    "hook-name": "Tallystick verdict store",
    "ui-field-behaviour": {
        "hidden-fields": [],
        "relabeling": {"schema": "Database", "login": "Working role"},
        "placeholders": {"port": "5432", "login": "not the owner of the database"},
    },
    "conn-fields": _TLS,
}

_LEDGER: dict[str, Any] = {
    "connection-type": "tallystick_ledger",
    "hook-class-name": "tallystick_airflow.hooks.ledger_hook.LedgerHook",
    "hook-name": "Tallystick ledger",
    "ui-field-behaviour": {
        "hidden-fields": [],
        "relabeling": {"schema": "Database", "login": "Reader"},
        "placeholders": {"port": "5432"},
    },
    "conn-fields": _TLS
    | {
        "url": {
            "label": "Address of another database, or a folder",
            "description": "kind jdbc: an SQLAlchemy URL without user and password. kind parquet: a path or URI. "
            "kind iceberg: beside type and warehouse, the address of the catalog is `uri`. "
            "Empty for PostgreSQL, which has host and database above",
            "schema": _TEXT,
        },
        "jdbc_url": {
            "label": "JDBC URL",
            "description": "kind jdbc: the same database in the words of its JDBC driver",
            "schema": _TEXT,
        },
        "driver": {"label": "Class of the JDBC driver", "description": "kind jdbc", "schema": _TEXT},
    },
}

_KAFKA: dict[str, Any] = {
    "connection-type": "kafka",
    "hook-class-name": "tallystick_airflow.hooks.kafka_hook.KafkaClusterHook",
    "hook-name": "Apache Kafka",
    "ui-field-behaviour": {
        "hidden-fields": ["host", "schema", "login", "password", "port"],
        "relabeling": {"extra": "Settings of librdkafka, as JSON"},
        "placeholders": {"extra": '{"bootstrap.servers": "broker:9092", "security.protocol": "SASL_SSL"}'},
    },
}

_HTTP: dict[str, Any] = {
    "connection-type": "http",
    "hook-class-name": "tallystick_airflow.hooks.http_hook.HttpSinkHook",
    "hook-name": "HTTP",
    "ui-field-behaviour": {
        "hidden-fields": [],
        "relabeling": {"schema": "http or https", "password": "Secret of the sink"},
        "placeholders": {"host": "hooks.example.org", "extra": '{"endpoint": "/path/of/the/sink"}'},
    },
}

_ELSEWHERE = (("apache-airflow-providers-apache-kafka", _KAFKA), ("apache-airflow-providers-http", _HTTP))
"""Types that another provider has too. Its connections serve as they are; Airflow takes one provider of a type."""


def get_provider_info() -> dict[str, Any]:
    """Return what Airflow's `provider_info.schema.json` describes."""
    missing = [connection_type for package, connection_type in _ELSEWHERE if not _is_installed(package)]
    return {
        "package-name": "tallystick",
        "name": "Tallystick",
        "description": "Proves, window after window, that a Kafka log and a ledger agree exactly once",
        "versions": [version("tallystick")],
        "connection-types": [_STORE, _LEDGER, *missing],
    }


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True
