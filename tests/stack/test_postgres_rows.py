"""A slice read by COPY is the slice that Spark reads, row by row, whatever types the ledger has."""

import pytest
from pyspark.sql import SparkSession

from tallystick.ledger.postgres_connection import scan_address
from tallystick.pipeline.open_ledger import open_ledger_of
from tallystick_spark.readers.ledger_frame import LEDGER_ROWS, read_ledger, slice_queries
from tallystick_spark.readers.postgres_rows import read_rows
from tests.stack.live_books import payment, payments

from .live import NewBooks

CHANGES = (
    "ALTER TABLE {table} ALTER COLUMN event_id DROP NOT NULL, ALTER COLUMN amount_minor DROP NOT NULL",
    "UPDATE {table} SET event_id = NULL WHERE entry_id % 3 = 0",
    "UPDATE {table} SET amount_minor = NULL, currency = 'J''PÝ' WHERE entry_id % 4 = 0",
)


@pytest.mark.parametrize("kind", ["bigint", "numeric(20, 2)"])
@pytest.mark.parametrize("columns", [{}, {"written_at": "occurred_at"}])
def test_each_row_as_spark_reads_it(
    new_books: NewBooks, spark: SparkSession, kind: str, columns: dict[str, str]
) -> None:
    with new_books(direction="topic_to_ledger", ledger={"columns": columns} if columns else {}) as books:
        books.take_cut()
        books.ledger.execute(f"ALTER TABLE {books.table} ALTER COLUMN amount_minor TYPE {kind}")
        for one in payments(*"abcdefgh"):
            books.post(one)
        for change in CHANGES:
            books.ledger.execute(change.format(table=books.table))
        if kind != "bigint":
            books.ledger.execute(
                f"UPDATE {books.table} SET amount_minor = 0.5 WHERE event_id = %s", [payment("a").event_id]
            )
        cut = books.take_cut()
        with (
            open_ledger_of(books.store, books.contract, books.connections) as ledger,
            ledger.held_snapshot() as snapshot,
        ):
            assert snapshot is not None
            described = ledger.describe()
            read = read_ledger(spark, books.connections, ledger, cut.ledger_slice, described, snapshot)
            by_spark = read.toArrow().to_pylist()
            queries = slice_queries(ledger, described, cut.ledger_slice)
            copied = [
                row
                for query in queries
                for batch in read_rows(scan_address(books.connections.ledger_dsn), query, snapshot=snapshot)
                for row in batch.to_pylist()
            ]
    assert len(copied) == 8
    assert list(copied[0]) == LEDGER_ROWS.names
    assert sorted(copied, key=lambda row: row["row_id"]) == sorted(by_spark, key=lambda row: row["row_id"])
