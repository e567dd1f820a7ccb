"""One cut's ledger rows as a DataFrame, by kind of ledger: from PostgreSQL in up to two parallel parts.

Shape: row_id, match_key, transaction_key, leg, amount_minor, currency, written_ms (null unless the contract names it).
"""

from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sqlalchemy import make_url

from tallystick import ledger_sql
from tallystick.connections import Connections
from tallystick.contract import LedgerSide
from tallystick.cut import LedgerSlice
from tallystick.ledger import LedgerDescription

_FETCH_ROWS = "10000"


def read_ledger(
    spark: SparkSession,
    connections: Connections,
    ledger: LedgerSide,
    ledger_slice: LedgerSlice,
    described: LedgerDescription,
) -> DataFrame:
    """Read the slice. The caller keeps rows in place (`Ledger.held_in_place`) until the scan is over."""
    match ledger.kind:
        case "postgres":
            return _read_postgres(spark, connections.ledger_dsn, ledger, ledger_slice, described)
        case "topic":
            raise ValueError("input topics have no slice of positions; expected `input_rows` of their events")


def input_rows(inputs: DataFrame, *, only_leg: str | None) -> DataFrame:
    """Readable events of the input topics in a ledger's shape. only_leg: of a contract that has no other."""
    return inputs.where("readable").select(
        F.concat_ws(":", "topic", "partition", "kafka_offset").alias("row_id"),
        "match_key",
        "transaction_key",
        (F.lit(only_leg) if only_leg else F.col("leg")).alias("leg"),
        "amount_minor",
        "currency",
        F.lit(None).cast("bigint").alias("written_ms"),
    )


def _read_postgres(
    spark: SparkSession, dsn: str, ledger: LedgerSide, ledger_slice: LedgerSlice, described: LedgerDescription
) -> DataFrame:
    queries = ledger_sql.slice_queries(
        ledger, xid_start=ledger_slice.xid_start, xid_end=ledger_slice.xid_end, block_count=described.halves_by
    )
    return reduce(DataFrame.unionByName, (_read_query(spark, dsn, query) for query in queries))


def _read_query(spark: SparkSession, dsn: str, query: str) -> DataFrame:
    url = make_url(dsn)
    return (
        spark.read.format("jdbc")
        .option("url", f"jdbc:postgresql://{url.host}:{url.port or 5432}/{url.database}")
        .option("user", url.username or "")
        .option("password", url.password or "")
        .option("driver", "org.postgresql.Driver")
        .option("fetchsize", _FETCH_ROWS)
        .option("targetServerType", "primary")
        .option("options", f"-c {ledger_sql.HIDE_NOTHING}")
        .option("query", query)
        .load()
    )
