"""Planted events and rows as DataFrames of the same shape as what is read, to be scanned with it.

They are made of Arrow tables, which Spark keeps in its plan: rows of Python would be a job of their own to be read.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_apps.ledger_frame import LEDGER_ROWS
from tallystick.canaries import CanaryEvent, CanaryRow
from tallystick.slice_scan import CANARY_PARTITION

_RECORDS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("us", "UTC")),
    ]
)


def canary_records(source: DataFrame, planted: Sequence[CanaryEvent], *, written_at: datetime) -> DataFrame:
    """Planted records. Shape: as Kafka's rows in `source`; columns that a canary does not fill are null."""
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
    canaries = source.sparkSession.createDataFrame(pa.Table.from_pylist(records, schema=_RECORDS))
    missing = [field for field in source.schema if field.name not in canaries.columns]
    filled = canaries.withColumns({field.name: F.lit(None).cast(field.dataType) for field in missing})
    return filled.select(source.columns)


def canary_ledger_rows(spark: SparkSession, planted: Sequence[CanaryRow]) -> DataFrame:
    """Planted rows. Shape: as the ledger's."""
    rows = [asdict(row) | {"written_ms": None} for row in planted]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=LEDGER_ROWS))
