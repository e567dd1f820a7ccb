"""Parsed events and ledger rows as numbers: what `bucket_blobs` takes. Keys are hashed in Python, under a secret."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

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


def planted_events_to_hash(events: pa.RecordBatch, *, topics: Sequence[str], legs: Mapping[str, str]) -> pa.RecordBatch:
    """Return planted events as `events_to_hash` does, without Spark. Nothing is told of their content: it is 0."""
    own_topic = legs if len(legs) > 1 else {}
    readable, of_topics = events["readable"], events["topic"].to_pylist()
    parts = zip(of_topics, events["partition"].to_pylist(), strict=True)
    legs_of_topics = zip(events["leg"].to_pylist(), of_topics, strict=True)
    columns = {
        "part": pa.array([topics.index(topic) * PARTITIONS + partition + 1 for topic, partition in parts], pa.int64()),
        "place": events["kafka_offset"],
        "content": _zeros(events),
        "amount_minor": pc.if_else(readable, events["amount_minor"], None),
        "currency": pc.if_else(readable, events["currency"], None),
        "transaction_key": events["transaction_key"] if own_topic else pa.nulls(len(events), pa.string()),
        "misrouted": pa.array([own_topic.get(leg, topic) != topic for leg, topic in legs_of_topics], pa.bool_()),
    }
    return pa.record_batch(_kept(events, "readable", "match_key", "written_ms") | columns)


def planted_rows_to_hash(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return planted rows as `rows_to_hash` does, without Spark. Nothing is told of place and content: they are 0."""
    columns = {"place": _zeros(rows), "content": _zeros(rows)}
    return pa.record_batch(_kept(rows, "match_key", "amount_minor", "currency", "written_ms") | columns)


def _kept(side: pa.RecordBatch, *names: str) -> dict[str, pa.Array]:
    return {name: side[name] for name in (*names, *_TEXT) if name in side.schema.names}


def _zeros(side: pa.RecordBatch) -> pa.Array:
    return pa.array(np.zeros(len(side), dtype=np.int64))


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
