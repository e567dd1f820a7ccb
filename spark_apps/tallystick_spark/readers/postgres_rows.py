"""A PostgreSQL ledger's slice, read by COPY into Arrow on the executors and hashed there; none of it passes Java."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from tallystick.contract.compare import ComparedColumns
from tallystick.ledger.postgres_sql import at_snapshot
from tallystick_spark.matching.bucket_blobs import HASHED_ROWS, Numbers, ScanPlan, summarise_rows
from tallystick_spark.matching.equality_forms import compared_numbers
from tallystick_spark.matching.keyed_hash import keyed_currencies, keyed_texts
from tallystick_spark.matching.row_hashes import SUMMARY_SHAPE
from tallystick_spark.matching.xxhash import hash_longs, hash_texts
from tallystick_spark.readers.compared_text import TEXT, with_compared_text


@dataclass(frozen=True, kw_only=True)
class PostgresRows:
    """A scan's LedgerSource.

    address: as libpq reads it. queries: each reads a part of the slice, by a task of its own, and all under one
    snapshot. placed: row ids are integers. compared: besides money. rows_again: `rows_of`, by another reader.
    """

    spark: SparkSession
    address: str = field(repr=False)
    snapshot: str
    queries: tuple[str, ...]
    placed: bool
    compared: ComparedColumns
    rows_again: Callable[[ScanPlan, Numbers, Numbers], Sequence[Mapping[str, Any]]]

    def summaries(self, plan: ScanPlan) -> DataFrame:
        """Return the slice as `summarise_rows` makes it. Shape: SUMMARY. Raises, by the task: adbc's Error."""
        address, snapshot, queries, placed = self.address, self.snapshot, self.queries, self.placed
        compared = self.compared

        def run(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            wanted = (queries[number] for batch in numbers for number in batch.column("id").to_pylist())
            read = (rows for query in wanted for rows in read_rows(address, query, snapshot=snapshot))
            texts = (with_compared_text(rows, compared) for rows in read)
            hashed = (hashed_row_batch(rows, plan.secret, placed=placed) for rows in texts)
            return summarise_rows(hashed, plan)

        return self.spark.range(0, len(queries), 1, len(queries)).mapInArrow(run, SUMMARY_SHAPE)

    def rows_of(self, plan: ScanPlan, key_hashes: Numbers, places: Numbers) -> Sequence[Mapping[str, Any]]:
        """Read the rows of these keys and places again, as LedgerSource asks."""
        return self.rows_again(plan, key_hashes, places)


def read_rows(address: str, query: str, *, snapshot: str) -> Iterator[pa.RecordBatch]:
    """A query's rows as they come, under an exported snapshot. Shape: the query's. Raises adbc_driver_manager.Error."""
    import adbc_driver_postgresql  # of the extra `postgres`: other ledgers are read without it
    from adbc_driver_manager import AdbcConnection, AdbcStatement

    with (
        adbc_driver_postgresql.connect(address) as database,
        AdbcConnection(database) as connection,
        AdbcStatement(connection) as statement,
    ):
        for first in ("BEGIN", *at_snapshot(snapshot)):
            statement.set_sql_query(first)
            statement.execute_update()
        statement.set_sql_query(query)
        answer, _ = statement.execute_query()
        yield from pa.RecordBatchReader.from_stream(answer)


def hashed_row_batch(rows: pa.RecordBatch, secret: str, *, placed: bool) -> pa.RecordBatch:
    """Return ledger rows as numbers, as `hashed_rows` makes them of parsed ones. Shape: LEDGER_ROWS -> HASHED_ROWS."""
    amounts, currencies = rows["amount_minor"], rows["currency"]
    content = hash_longs(hash_texts(rows["match_key"]), hash_texts(rows["row_id"]))
    content = hash_texts(rows["leg"], hash_texts(rows["transaction_key"], content))
    content = hash_texts(currencies, hash_longs(amounts.to_numpy(), content))
    texts = []
    if TEXT in rows.schema.names:
        content = hash_texts(rows[TEXT], content)
        texts = [keyed_texts(rows[TEXT], secret)]
    figures = {
        "place": pc.cast(rows["row_id"], pa.int64()) if placed else pa.array(np.zeros(len(rows), dtype=np.int64)),
        "key_hash": pa.array(keyed_texts(rows["match_key"], secret)),
        "fields": pa.array(compared_numbers(amounts.to_numpy(), keyed_currencies(currencies, secret), *texts)),
        "content": pa.array(content.view(np.int64)),
        "amount_minor": amounts,
        "currency": currencies,
        "written_ms": rows["written_ms"],
    }
    return pa.record_batch([figures[name] for name in HASHED_ROWS.names], schema=HASHED_ROWS)
