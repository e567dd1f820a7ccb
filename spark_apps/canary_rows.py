"""Planted events and rows as DataFrames of the same shape as what is read, to be scanned with it."""

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tallystick.canaries import CanaryEvent, CanaryRow
from tallystick.slice_scan import CANARY_PARTITION

_ROW = (
    "row_id string, match_key string, transaction_key string, leg string, amount_minor bigint, currency string, "
    "written_ms bigint"
)


def canary_records(source: DataFrame, planted: Sequence[CanaryEvent], *, written_at: datetime) -> DataFrame:
    """Planted records. Shape: as Kafka's rows in `source`; columns that a canary does not fill are null."""
    rows = [
        (event.topic, CANARY_PARTITION, event.kafka_offset, bytearray(event.value), written_at) for event in planted
    ]
    shape = "topic string, partition int, offset bigint, value binary, timestamp timestamp"
    canaries = source.sparkSession.createDataFrame(rows, shape)
    missing = [field for field in source.schema if field.name not in canaries.columns]
    filled = canaries.withColumns({field.name: F.lit(None).cast(field.dataType) for field in missing})
    return filled.select(source.columns)


def canary_ledger_rows(ledger: DataFrame, planted: Sequence[CanaryRow]) -> DataFrame:
    """Planted rows. Shape: as the ledger's."""
    rows = [
        (row.row_id, row.match_key, row.transaction_key, row.leg, row.amount_minor, row.currency, None)
        for row in planted
    ]
    return ledger.sparkSession.createDataFrame(rows, _ROW)
