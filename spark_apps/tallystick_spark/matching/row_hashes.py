"""Parsed events and ledger rows as numbers: what `bucket_blobs` takes. Keys are hashed in Python, under a secret."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tallystick_spark.matching.bucket_blobs import HASHED_EVENTS, HASHED_ROWS, PARTITIONS
from tallystick_spark.matching.equality_forms import compared_numbers, has_text
from tallystick_spark.matching.frame_match import event_content, is_misrouted, row_content
from tallystick_spark.matching.keyed_hash import keyed_currencies, keyed_texts
from tallystick_spark.readers.topic_frame import topic_number

_TEXT = ("compared_text",)
"""The column that both sides have where a contract compares more than money."""

SUMMARY_SHAPE = "kind tinyint, bucket int, blob binary"
"""`bucket_blobs.SUMMARY`, in Spark's words."""


def events_to_hash(events: DataFrame, *, topics: Sequence[str], legs: Mapping[str, str]) -> DataFrame:
    """Return parsed events in the shape that `hashed_events` takes. topics: in the order of their numbers."""
    several_legs = len(legs) > 1
    readable = F.col("readable")
    return events.select(
        (topic_number(topics) * PARTITIONS + F.col("partition") + 1).cast("bigint").alias("part"),
        F.col("kafka_offset").cast("bigint").alias("place"),
        "readable",
        "match_key",
        event_content().alias("content"),
        F.when(readable, F.col("amount_minor")).alias("amount_minor"),
        F.when(readable, F.col("currency")).alias("currency"),
        "written_ms",
        (F.col("transaction_key") if several_legs else F.lit(None).cast("string")).alias("transaction_key"),
        (F.coalesce(is_misrouted(legs), F.lit(False)) if several_legs else F.lit(False)).alias("misrouted"),
        *_TEXT[: has_text(events)],
    )


def rows_to_hash(rows: DataFrame, *, placed: bool) -> DataFrame:
    """Return ledger rows in the shape that `hashed_rows` takes. placed: by their ids, which are integers."""
    return rows.select(
        (F.col("row_id") if placed else F.lit(0)).cast("bigint").alias("place"),
        "match_key",
        row_content(rows).alias("content"),
        "amount_minor",
        "currency",
        "written_ms",
        *_TEXT[: has_text(rows)],
    )


def planted_events_to_hash(
    events: Sequence[Mapping[str, Any]], *, topics: Sequence[str], legs: Mapping[str, str]
) -> pa.RecordBatch:
    """Return planted events as `events_to_hash` does, without Spark. Nothing is told of their content: it is 0."""
    own_topic = legs if len(legs) > 1 else {}
    parts = [topics.index(one["topic"]) * PARTITIONS + one["partition"] + 1 for one in events]
    columns = {
        "part": pa.array(parts, pa.int64()),
        "place": pa.array([one["kafka_offset"] for one in events], pa.int64()),
        "readable": pa.array([one["readable"] for one in events], pa.bool_()),
        "match_key": _texts(events, "match_key"),
        "content": pa.array([0] * len(events), pa.int64()),
        "amount_minor": pa.array([one["amount_minor"] if one["readable"] else None for one in events], pa.int64()),
        "currency": pa.array([one["currency"] if one["readable"] else None for one in events], pa.string()),
        "written_ms": pa.array([one["written_ms"] for one in events], pa.int64()),
        "transaction_key": _texts(events, "transaction_key") if own_topic else pa.nulls(len(events), pa.string()),
        "misrouted": pa.array([own_topic.get(one["leg"], one["topic"]) != one["topic"] for one in events], pa.bool_()),
    }
    return pa.record_batch(columns | _more_texts(events))


def planted_rows_to_hash(rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """Return planted rows as `rows_to_hash` does, without Spark. Nothing is told of place and content: they are 0."""
    columns = {
        "place": pa.array([0] * len(rows), pa.int64()),
        "match_key": _texts(rows, "match_key"),
        "content": pa.array([0] * len(rows), pa.int64()),
        "amount_minor": pa.array([one["amount_minor"] for one in rows], pa.int64()),
        "currency": _texts(rows, "currency"),
        "written_ms": pa.array([one["written_ms"] for one in rows], pa.int64()),
    }
    return pa.record_batch(columns | _more_texts(rows))


def _more_texts(side: Sequence[Mapping[str, Any]]) -> dict[str, pa.Array]:
    return {name: _texts(side, name) for name in _TEXT if any(name in one for one in side)}


def _texts(side: Sequence[Mapping[str, Any]], name: str) -> pa.Array:
    return pa.array([one[name] for one in side], pa.string())


def hashed_events(batches: Iterable[pa.RecordBatch], secret: str) -> Iterator[pa.RecordBatch]:
    """Shape: `events_to_hash` -> HASHED_EVENTS."""
    for events in batches:
        transaction_hash = keyed_texts(_filled(events["transaction_key"]), secret)
        yield _hashed(events, secret, HASHED_EVENTS, {"transaction_hash": pa.array(transaction_hash)})


def hashed_rows(batches: Iterable[pa.RecordBatch], secret: str) -> Iterator[pa.RecordBatch]:
    """Shape: `rows_to_hash` -> HASHED_ROWS."""
    for rows in batches:
        yield _hashed(rows, secret, HASHED_ROWS, {})


def _hashed(side: pa.RecordBatch, secret: str, shape: pa.Schema, more: Mapping[str, pa.Array]) -> pa.RecordBatch:
    amounts = np.asarray(pc.fill_null(side["amount_minor"], 0))
    texts = [keyed_texts(_filled(side[name]), secret) for name in _TEXT if name in side.schema.names]
    figures = {
        "key_hash": pa.array(keyed_texts(_filled(side["match_key"]), secret)),
        "fields": pa.array(compared_numbers(amounts, keyed_currencies(_filled(side["currency"]), secret), *texts)),
        **more,
    }
    columns = [figures[name] if name in figures else side[name] for name in shape.names]
    return pa.record_batch(columns, schema=shape)


def _filled(texts: pa.Array) -> pa.Array:
    """Replace nulls: any text will do for unreadable events."""
    return pc.fill_null(texts, "")
