"""Parsed events and ledger rows as numbers: what `side_summary` takes. Hashes are Spark's xxhash64."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_apps.side_summary import PARTITIONS
from spark_apps.slice_matching import event_content, is_misrouted, row_content
from spark_apps.topic_frame import topic_number

SUMMARY_SHAPE = "kind tinyint, bucket int, blob binary"
"""`side_summary.SUMMARY`, in Spark's words."""


def hashed_events(events: DataFrame, *, topics: Sequence[str], legs: Mapping[str, str]) -> DataFrame:
    """Parsed events. topics: in the order of their numbers. Shape: HASHED_EVENTS."""
    several_legs = len(legs) > 1
    readable = F.col("readable")
    return events.select(
        (topic_number(topics) * PARTITIONS + F.col("partition") + 1).cast("bigint").alias("part"),
        F.col("kafka_offset").cast("bigint").alias("place"),
        "readable",
        key_hash().alias("key_hash"),
        _fields().alias("fields"),
        event_content().alias("content"),
        F.when(readable, F.col("amount_minor")).alias("amount_minor"),
        F.when(readable, F.col("currency")).alias("currency"),
        "written_ms",
        (F.xxhash64("transaction_key") if several_legs else F.lit(None).cast("bigint")).alias("transaction_hash"),
        (F.coalesce(is_misrouted(legs), F.lit(False)) if several_legs else F.lit(False)).alias("misrouted"),
    )


def hashed_ledger_rows(rows: DataFrame, *, placed: bool) -> DataFrame:
    """Ledger rows. placed: by their ids, which are integers. Shape: HASHED_ROWS."""
    return rows.select(
        (F.col("row_id") if placed else F.lit(0)).cast("bigint").alias("place"),
        key_hash().alias("key_hash"),
        _fields().alias("fields"),
        row_content().alias("content"),
        "amount_minor",
        "currency",
        "written_ms",
    )


def key_hash() -> Column:
    """By which a key is matched."""
    return F.xxhash64("match_key")


def _fields() -> Column:
    return F.col("amount_minor").bitwiseXOR(F.xxhash64("currency"))
