"""What is planted becomes the same numbers without Spark that it becomes by Spark."""

from collections.abc import Mapping

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tallystick.matching.scan_result import CANARY_PARTITION
from tallystick_spark.matching.row_hashes import (
    events_to_hash,
    planted_events_to_hash,
    planted_rows_to_hash,
    rows_to_hash,
)
from tests.spark.match_frames import INVOICES, LEGS, PAYMENTS, event, frames, in_arrow, row

EVENTS = (
    event(0, "pair", -5, partition=CANARY_PARTITION, payment="pay-1"),
    event(1, "of the other leg", leg="invoice", partition=CANARY_PARTITION),
    event(2, None, 7, "EUR", partition=CANARY_PARTITION, readable=False),
    (PAYMENTS, CANARY_PARTITION, 3, 5, 9, "misrouted", "pay", "invoice", 1, "EUR", True),
    (INVOICES, CANARY_PARTITION, 4, 5, 9, "of no leg", "pay", "refund", 1, "EUR", True),
)
ROWS = (row(1, "pair", -5), row(2, "later", written_ms=12))


@pytest.mark.parametrize("text", [None, "as written"], ids=["money", "text"])
@pytest.mark.parametrize("legs", [LEGS, {"payment": PAYMENTS}], ids=["two legs", "one leg"])
def test_planted_events_and_rows(spark: SparkSession, legs: Mapping[str, str], text: str | None) -> None:
    events, rows = (
        side if text is None else side.withColumn("compared_text", F.lit(text)) for side in frames(spark, EVENTS, ROWS)
    )
    topics = sorted({PAYMENTS, INVOICES})
    here = planted_events_to_hash(in_arrow(events), topics=topics, legs=legs)
    assert here.to_pylist() == without_content(events_to_hash(events, topics=topics, legs=legs))
    here = planted_rows_to_hash(in_arrow(rows))
    assert here.to_pylist() == without_content(rows_to_hash(rows, placed=False))


def without_content(by_spark: DataFrame) -> list[dict[str, object]]:
    return [one.asDict() | {"content": 0} for one in by_spark.collect()]
