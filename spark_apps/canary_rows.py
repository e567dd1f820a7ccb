"""Planted events and rows as DataFrames of the same shape as what is read, to be scanned with it.

They are made of Arrow tables, which Spark keeps in its plan: rows of Python would be a job of their own to be read.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_apps.ledger_frame import LEDGER_ROWS
from tallystick.canaries import CanaryEvent, CanaryRow
from tallystick.slice_scan import CANARY_PARTITION

_RECORDS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)


def canary_records(spark: SparkSession, planted: Sequence[CanaryEvent], *, written_at: datetime) -> DataFrame:
    """Planted records. Shape: what `parse_events` takes of Kafka's rows."""
    records = [
        {
            "topic": event.topic,
            "partition": CANARY_PARTITION,
            "offset": event.kafka_offset,
            "value": event.value,
            "timestamp": written_at,
        }
        for event in planted
    ]
    return spark.createDataFrame(pa.Table.from_pylist(records, schema=_RECORDS))


def canary_ledger_rows(spark: SparkSession, planted: Sequence[CanaryRow]) -> DataFrame:
    """Planted rows. Shape: as the ledger's."""
    rows = [asdict(row) | {"written_ms": None} for row in planted]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=LEDGER_ROWS))
