"""One cut's ledger rows as a DataFrame, by kind of ledger: from PostgreSQL in up to two parallel parts.

Shape: row_id, match_key, transaction_key, leg, amount_minor, currency, written_ms (null unless the contract names it);
and compared_text where the contract compares more than money.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tallystick.connections.connections import Connections
from tallystick.contract.compare import NO_COLUMNS, ComparedColumns
from tallystick.contract.equality import LONG_MAX, LONG_MIN, NO_MONEY, TEXT_LENGTH_MAX
from tallystick.contract.field_types import Constant
from tallystick.contract.ledger import LedgerColumns
from tallystick.contract.sql_condition import for_pgjdbc
from tallystick.contract.sql_names import bare
from tallystick.ledger import postgres_sql
from tallystick.ledger.iceberg.iceberg_ledger import IcebergLedger
from tallystick.ledger.jdbc import JdbcLedger
from tallystick.ledger.parquet import ParquetLedger
from tallystick.ledger.postgres import PostgresLedger
from tallystick.ledger.postgres_connection import jdbc_scan_options
from tallystick.ledger.protocol import Ledger, LedgerDescription
from tallystick.matching.scan_result import REPEATED_IDS_MAX
from tallystick.model.cut import LedgerSlice
from tallystick.text.money import codes_by_digits
from tallystick_spark.readers.compared_text import TEXT, in_frame, in_row
from tallystick_spark.readers.compared_text import named as compared_named

_FETCH_ROWS = "10000"

LEDGER_ROWS = pa.schema(
    [
        ("row_id", pa.string()),
        ("match_key", pa.string()),
        ("transaction_key", pa.string()),
        ("leg", pa.string()),
        ("amount_minor", pa.int64()),
        ("currency", pa.string()),
        ("written_ms", pa.int64()),
    ]
)
"""The shape above, in Arrow."""

RowsById = Callable[[Collection[int]], Sequence[Mapping[str, Any]]]
"""Row ids -> rows of the shape above."""


def read_ledger(
    spark: SparkSession,
    connections: Connections,
    ledger: Ledger,
    ledger_slice: LedgerSlice,
    described: LedgerDescription,
    snapshot: str | None,
) -> DataFrame:
    """Read the slice, under the snapshot that the caller holds until the scan is over (`Ledger.held_snapshot`)."""
    rows = _read_by_kind(spark, connections, ledger, ledger_slice, described, snapshot)
    return in_frame(rows, compared_of(ledger))


def compared_of(ledger: Ledger) -> ComparedColumns:
    """Return what is compared of its rows besides money."""
    if isinstance(ledger, PostgresLedger | JdbcLedger | ParquetLedger | IcebergLedger):
        return ledger.ledger.columns.compared
    return NO_COLUMNS


def _read_by_kind(
    spark: SparkSession,
    connections: Connections,
    ledger: Ledger,
    ledger_slice: LedgerSlice,
    described: LedgerDescription,
    snapshot: str | None,
) -> DataFrame:
    match ledger:
        case PostgresLedger():
            assert snapshot is not None
            queries = slice_queries(ledger, described, ledger_slice)
            options = jdbc_scan_options(connections.ledger_dsn, may_be_standby=ledger.primary is not None)
            return reduce(DataFrame.unionByName, (_read_query(spark, options, query, snapshot) for query in queries))
        case JdbcLedger():
            return _read_jdbc(spark, ledger, ledger_slice)
        case ParquetLedger():
            return _read_parquet(spark, ledger, ledger_slice)
        case IcebergLedger():
            return _read_iceberg(spark, ledger, ledger_slice)
        case _:
            raise TypeError(f"no reader of {type(ledger).__name__}")


def slice_queries(ledger: Ledger, described: LedgerDescription, ledger_slice: LedgerSlice) -> tuple[str, ...]:
    """Return queries that together read the slice once, in the shape above; none without PostgreSQL."""
    if not isinstance(ledger, PostgresLedger):
        return ()
    return postgres_sql.slice_queries(
        ledger.ledger,
        xid_start=ledger_slice.position_start,
        xid_end=ledger_slice.position_end,
        block_count=described.halves_by,
    )


def rows_by_id(ledger: Ledger, described: LedgerDescription, ledger_slice: LedgerSlice) -> RowsById | None:
    """Return a function that reads single rows of the slice; None where this kind of ledger or table offers none."""
    if not isinstance(ledger, PostgresLedger) or not described.row_id_is_integer:
        return None
    compared = ledger.ledger.columns.compared

    def read(ids: Collection[int]) -> Sequence[Mapping[str, Any]]:
        return [in_row(row, compared) for row in ledger.rows_by_id(ids, ledger_slice=ledger_slice)]

    return read


def repeated_row_ids(rows: DataFrame) -> tuple[str, ...]:
    """Return the first few ids, in order, that several rows have. Reads the rows once more and shuffles their ids."""
    repeated = rows.groupBy("row_id").count().where("count > 1").orderBy("row_id").limit(REPEATED_IDS_MAX)
    return tuple(str(row.row_id) for row in repeated.collect())


def input_rows(inputs: DataFrame, *, only_leg: str | None) -> DataFrame:
    """Return readable events of the input topics in a ledger's shape. only_leg: of a contract that has no other."""
    return inputs.where("readable").select(
        F.concat_ws(":", "topic", "partition", "kafka_offset").alias("row_id"),
        "match_key",
        "transaction_key",
        (F.lit(only_leg) if only_leg else F.col("leg")).alias("leg"),
        "amount_minor",
        "currency",
        F.lit(None).cast("bigint").alias("written_ms"),
        *([TEXT] if TEXT in inputs.columns else []),
    )


def _read_query(spark: SparkSession, options: Mapping[str, str], query: str, snapshot: str) -> DataFrame:
    """Read by sessions that import the snapshot first: each has a transaction by then, as its fetches need one."""
    return (
        spark.read.format("jdbc")
        .options(**options)
        .option("fetchsize", _FETCH_ROWS)
        .option("sessionInitStatement", "; ".join(postgres_sql.at_snapshot(snapshot)))
        .option("query", for_pgjdbc(query))
        .load()
    )


def _read_jdbc(spark: SparkSession, ledger: JdbcLedger, ledger_slice: LedgerSlice) -> DataFrame:
    """Read all as text, so that no driver changes a value: SQLite's cuts an integer to 32 bits if its type says so."""
    reader = spark.read.format("jdbc").options(**ledger.settings.for_spark)
    compared = ledger.ledger.columns.compared
    rows = (
        reader.option("query", ledger.slice_query(ledger_slice))
        .option("fetchsize", _FETCH_ROWS)
        .option("customSchema", ", ".join(f"{name} string" for name in (*_TEXTS, *compared.labels)))
        .load()
    )
    return as_ledger_rows(rows, in_major=ledger.in_major, beside=compared.labels)


def _read_parquet(spark: SparkSession, ledger: ParquetLedger, ledger_slice: LedgerSlice) -> DataFrame:
    """Read the files of the slice's manifest, and no others that may lie beside them."""
    files, columns = ledger.files_to_scan(ledger_slice), ledger.ledger.columns
    if not files:
        return _no_rows(spark, columns)
    named = _named(columns)
    reader = spark.read.option("recursiveFileLookup", "true")  # a folder named day=7 gives its rows no column
    return as_ledger_rows(reader.parquet(*map(without_glob, files)).select(*named), beside=columns.compared.labels)


def _named(columns: LedgerColumns) -> list[Column]:
    """Return the contract's columns of a file's table under our names."""
    named = [_source(getattr(columns, name)).alias(name) for name in _TEXTS]
    written = [_source(columns.written_at).alias("written_at")] if columns.written_at else []
    return [*named, *written, *compared_named(map(_source, columns.compared.columns), columns.compared)]


def _no_rows(spark: SparkSession, columns: LedgerColumns) -> DataFrame:
    names = (*_TEXTS, *columns.compared.labels)
    empty = spark.createDataFrame([], ", ".join(f"{name} string" for name in names))
    return as_ledger_rows(empty, beside=columns.compared.labels)


def _source(column: str | Constant) -> Column:
    """Return a column, or the constant in its place."""
    return F.col(f"`{bare(column)}`") if isinstance(column, str) else F.lit(column.constant)


def _read_iceberg(spark: SparkSession, ledger: IcebergLedger, ledger_slice: LedgerSlice) -> DataFrame:
    """Read what the slice's snapshots appended, by Iceberg's own incremental scan of the table's metadata file.

    Spark needs no catalog, and so none of its secrets.
    """
    ids, columns = ledger.appended_range(ledger_slice), ledger.ledger.columns
    if ids is None:
        return _no_rows(spark, columns)
    named = _named(columns)
    for name, value in _PATHS_ALONE.items():
        if spark.conf.get(name, None) is None:
            spark.conf.set(name, value)
    frames = []
    if ids.first_id is not None:
        at_first = spark.read.format("iceberg").option("versionAsOf", ids.first_id).load(ids.metadata_location)
        frames.append(at_first.where(F.col("_file").isin(*ids.first_files)))
    if ids.last_id is not None:
        between = {"start-snapshot-id": ids.after_id, "end-snapshot-id": ids.last_id}
        frames.append(spark.read.format("iceberg").options(**between).load(ids.metadata_location))
    read = reduce(DataFrame.unionByName, (one.select(*named) for one in frames))
    return as_ledger_rows(read, beside=columns.compared.labels)


_PATHS_ALONE = {
    "spark.sql.catalog.default_iceberg": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.default_iceberg.type": "hadoop",
    "spark.sql.catalog.default_iceberg.warehouse": "file:///nowhere",
}
"""The catalog that Iceberg's source asks for a path: one that knows no tables and asks no server. By default Hive."""


def without_glob(path: str) -> str:
    """Escape a path so that it means that file alone to Spark. Source: Hadoop, FileSystem.globStatus."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


_TEXTS = ("row_id", "match_key", "transaction_key", "leg", "amount_minor", "currency")


def as_ledger_rows(rows: DataFrame, *, in_major: bool = False, beside: Iterable[str] = ()) -> DataFrame:
    """Return the shape above, without nulls, by the rules of `postgres_sql.column_list`, money as `row_money`.

    written_at may be absent. in_major: amounts count major units of their currency. beside: columns kept as they are.
    """
    digits = _currency_digits() if in_major else F.lit(0)
    written_amount = F.expr("try_cast(amount_minor AS decimal(38, 9))")
    inside = F.when(written_amount.between(LONG_MIN, LONG_MAX), written_amount.cast("decimal(24, 4)"))
    amount = inside * F.pow(F.lit(10), digits).cast("decimal(5, 0)")
    is_whole = F.coalesce(
        (_last_figure(F.col("amount_minor").cast("string")) + digits >= 0) & amount.between(LONG_MIN, LONG_MAX),
        F.lit(False),
    )
    written = F.unix_millis(F.col("written_at").cast("timestamp")) if "written_at" in rows.columns else F.lit(None)
    return rows.select(
        F.coalesce(F.col("row_id").cast("string"), F.lit("")).alias("row_id"),
        F.coalesce(_fit("match_key"), F.lit("")).alias("match_key"),
        F.coalesce(_fit("transaction_key"), F.lit("")).alias("transaction_key"),
        F.coalesce(_fit("leg"), F.lit("")).alias("leg"),
        F.when(is_whole, amount.cast("bigint")).otherwise(NO_MONEY.amount_minor).cast("bigint").alias("amount_minor"),
        F.when(is_whole, F.coalesce(_fit("currency"), F.lit(""))).otherwise(NO_MONEY.currency).alias("currency"),
        written.cast("bigint").alias("written_ms"),
        *beside,
    )


_FIGURES = r"^\s*[+-]?(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,9}))?\s*$"
"""A number's figures before and behind the point, and its exponent. Java's own digits and spaces are those of ASCII."""


def _last_figure(number: Column) -> Column:
    """Return the place of a number's last figure that is not 0: -2 of 0.25, and 0 or more of a whole number.

    By its text: a cast would round a figure away that no decimal of Spark has room for. Null of what is no number.
    """
    before, behind, exponent = (F.regexp_extract(number, _FIGURES, group) for group in (1, 2, 3))
    figures = F.concat(before, behind)
    zeros = F.length(figures) - F.length(F.rtrim(figures, F.lit("0")))
    place = F.when(exponent == "", F.lit(0)).otherwise(exponent.try_cast("int")) - F.length(behind) + zeros
    is_plain = ~number.rlike("[.eE]")
    return F.when(is_plain, F.lit(0)).when(
        number.rlike(_FIGURES), F.when(zeros == F.length(figures), F.lit(0)).otherwise(place)
    )


def _currency_digits() -> Column:
    """Return the digits of the minor unit of the row's currency; null where ISO 4217 gives it none."""
    code = F.upper(F.col("currency").cast("string"))
    digits = F.lit(None).cast("int")
    for number, codes in codes_by_digits().items():
        digits = F.when(code.isin(*codes), F.lit(number)).otherwise(digits)
    return digits


def _fit(name: str) -> Column:
    """Return the text as `equality.fit_text` does; null where it holds a NUL, which no readable event has either."""
    text = F.col(name).cast("string")
    return F.when((F.length(text) <= TEXT_LENGTH_MAX) & (F.instr(text, "\0") == 0), text)
