"""The names of a contract's sides and of the verdict store in lineage, by the naming rules of OpenLineage. Pure.

Host, port and name only: no account, no secret.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import URL, make_url

from tallystick.connections.connections import Connections, KafkaSettings
from tallystick.connections.postgres_address import first_server
from tallystick.contract.contract import Contract
from tallystick.contract.sql_names import parts_of
from tallystick.ledger.iceberg.catalog import catalog_properties
from tallystick.ledger.input_topics import input_kafka
from tallystick.ledger.jdbc_connection import jdbc_settings
from tallystick.store.schema import item_break, verdict

_SCHEMES = {
    "postgresql": ("postgres", 5432),
    "mysql": ("mysql", 3306),
    "mariadb": ("mysql", 3306),
    "mssql": ("mssql", 1433),
}
"""By SQLAlchemy's name of the database: OpenLineage's, and the port that a connection need not name. OpenLineage has no
name for MariaDB."""


@dataclass(frozen=True, order=True)
class DatasetName:
    """namespace: of the server. name: within it."""

    namespace: str
    name: str


def topic_side(contract: Contract, connections: Connections) -> tuple[DatasetName, ...]:
    """The contract's topics; not its stray ones."""
    return _topics(connections.kafka, contract.topics)


def ledger_side(contract: Contract, connections: Connections) -> tuple[DatasetName, ...]:
    """The ledger's table, folder or input topics; nothing for a database that has no host, such as SQLite."""
    ledger, address = contract.ledger, connections.ledger_dsn
    match ledger.kind:
        case "postgres":
            return _tables(first_server(address), [ledger.table])
        case "jdbc":
            return _tables(jdbc_settings(address).url, [ledger.table])
        case "parquet":
            return (_folder(address, ledger.table),)
        case "iceberg":
            return _iceberg(address, ledger.table)
        case "topic":
            return _topics(input_kafka(contract, connections), contract.input_topics)


def store_tables(store_dsn: str) -> tuple[DatasetName, ...]:
    """Return the tables that keep a run's verdict and breaks."""
    return _tables(make_url(store_dsn), [str(verdict), str(item_break)])


def _topics(kafka: KafkaSettings, topics: Iterable[str]) -> tuple[DatasetName, ...]:
    """Of several bootstrap servers the first one names the cluster."""
    server = kafka.bootstrap_servers.split(",")[0].strip().rpartition("://")[2]
    place = server if server.rpartition("]")[2].count(":") else f"{server}:9092"
    return tuple(DatasetName(f"kafka://{place}", topic) for topic in topics)


def _iceberg(address: str, table: str) -> tuple[DatasetName, ...]:
    """Return the table below its warehouse; nothing where the catalog alone knows that."""
    warehouse = catalog_properties(address).get("warehouse", "")
    return (_folder(warehouse, table),) if "/" in warehouse else ()


def _tables(url: URL, tables: Iterable[str]) -> tuple[DatasetName, ...]:
    """tables: schema.table. In MySQL a schema is a database."""
    backend = url.get_backend_name()
    scheme, port = _SCHEMES.get(backend, (backend, None))
    if not url.host:
        return ()
    place = f"{url.host}:{url.port or port}" if url.port or port else url.host
    prefix = "" if scheme == "mysql" else f"{url.database}."
    return tuple(DatasetName(f"{scheme}://{place}", f"{prefix}{table}") for table in tables)


def _folder(address: str, table: str) -> DatasetName:
    scheme, _, rest = address.rstrip("/").rpartition("://")
    below = "/".join(parts_of(table))
    if scheme in ("", "file"):
        return DatasetName("file", f"{rest}/{below}")
    bucket, _, path = rest.partition("/")
    return DatasetName(f"{scheme}://{bucket}", f"{path}/{below}".lstrip("/"))
