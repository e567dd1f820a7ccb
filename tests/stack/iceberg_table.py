"""A ledger in a table of Apache Iceberg, as sinks append to it and as its owner keeps it."""

import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from tests.stack.live_books import Event

NAME = "billing.posting"
_SHAPE = pa.schema(
    [
        ("entry_id", pa.string()),
        ("event_id", pa.string()),
        ("payment_id", pa.string()),
        ("leg", pa.string()),
        ("amount_minor", pa.int64()),
        ("currency", pa.string()),
    ]
)


@dataclass(frozen=True)
class IcebergSink:
    """A catalog in SQLite with one table, all of this test's own; entry ids are like a sink's Kafka places."""

    folder: Path
    name: str = field(default_factory=lambda: f"lake_{uuid.uuid4().hex}")
    """Of the catalog; other in each test, since a session of Spark keeps the catalogs that it opened."""

    @property
    def properties(self) -> dict[str, str]:
        return {"type": "sql", "uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": f"file://{self.folder}"}

    @property
    def address(self) -> str:
        return json.dumps({"name": self.name, **self.properties})

    @property
    def catalog(self) -> Catalog:
        return load_catalog(self.name, **self.properties)

    @property
    def table(self) -> Table:
        return self.catalog.load_table(NAME)

    def make(self, format_version: str = "2", *, shape: pa.Schema = _SHAPE) -> None:
        self.catalog.create_namespace("billing")
        self.catalog.create_table(NAME, schema=shape, properties={"format-version": format_version})

    def append(self, *events: Event) -> None:
        """Commit these rows as one snapshot. An event's row has the same id, however often it is written."""
        self.table.append(self._rows(events))

    def write_file(self, *events: Event) -> str:
        """Write a data file that no snapshot names yet, as a worker does before its coordinator commits."""
        path = self.folder / f"{uuid.uuid4()}.parquet"
        pq.write_table(self._rows(events), path)
        return f"file://{path}"

    def commit(self, file: str) -> None:
        """Append a data file. A coordinator does not look whether another one has committed it."""
        self.table.add_files([file], check_duplicate_files=False)

    def delete(self, event: Event) -> None:
        self.table.delete(f"event_id == '{event.event_id}'")

    def delete_by_position(self, spark: SparkSession, event: Event) -> None:
        """Delete a row as engines do that leave data files as they are, and name the row's place beside them."""
        with self.table.transaction() as transaction:
            transaction.set_properties({"write.delete.mode": "merge-on-read"})
        name = self._catalog_in(spark)
        spark.sql(f"DELETE FROM {name}.{NAME} WHERE event_id = '{event.event_id}'").collect()

    def compact(self, spark: SparkSession) -> None:
        """Rewrite all data files into one, by Iceberg's own procedure."""
        name = self._catalog_in(spark)
        table = f"table => '{NAME}', options => map('rewrite-all', 'true')"
        spark.sql(f"CALL {name}.system.rewrite_data_files({table})").collect()
        newest = self.table.current_snapshot()
        assert newest is not None
        assert newest.summary is not None
        assert newest.summary.operation.value == "replace"

    def _catalog_in(self, spark: SparkSession) -> str:
        """Let Spark know the catalog, by the name under which it keeps its tables in its database."""
        name = self.name
        for key, value in (
            ("", "org.apache.iceberg.spark.SparkCatalog"),
            (".catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog"),
            (".uri", f"jdbc:sqlite:{self.folder}/catalog.db"),
            (".warehouse", f"file://{self.folder}"),
            (".cache-enabled", "false"),
        ):
            spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
        return name

    def expire_all_but(self, kept: int) -> None:
        """Expire all snapshots but the newest few."""
        table = self.table
        ids = [one.snapshot_id for one in sorted(table.metadata.snapshots, key=lambda one: one.sequence_number or 0)]
        table.maintenance.expire_snapshots().by_ids(ids[:-kept]).commit()

    def _rows(self, events: tuple[Event, ...]) -> pa.Table:
        rows = [
            {
                "entry_id": f"{one.event_id}-row",
                "event_id": one.event_id,
                "payment_id": one.payment_id,
                "leg": one.leg,
                "amount_minor": one.amount_minor,
                "currency": one.currency,
            }
            for one in events
        ]
        return pa.Table.from_pylist(rows, _SHAPE)
