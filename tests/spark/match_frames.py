"""Events and ledger rows as frames of Spark."""

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

_TOPIC = (
    "topic string, partition int, kafka_offset long, value_hash long, written_ms long, match_key string, "
    "transaction_key string, leg string, amount_minor long, currency string, readable boolean"
)
_LEDGER = (
    "row_id string, match_key string, transaction_key string, leg string, amount_minor long, currency string, "
    "written_ms long"
)
PAYMENTS, INVOICES = "billing.payments", "billing.invoices"
LEGS = {"payment": PAYMENTS, "invoice": INVOICES}

Event = tuple[object, ...]
LedgerRow = tuple[object, ...]


def event(
    offset: int,
    key: str | None,
    amount_minor: int | None = 1_000,
    currency: str | None = "EUR",
    *,
    payment: str = "pay",
    leg: str = "payment",
    partition: int = 0,
    value_hash: int = 5,
    written_ms: int = 0,
    readable: bool = True,
) -> Event:
    return (
        LEGS[leg], partition, offset, value_hash + offset, written_ms, key, payment, leg, amount_minor, currency,
        readable,
    )  # fmt: skip


def row(
    row_id: int, key: str, amount_minor: int = 1_000, currency: str = "EUR", *, written_ms: int | None = None
) -> LedgerRow:
    return (str(row_id), key, "pay", "payment", amount_minor, currency, written_ms)


BIG = 2**53
EVENTS: tuple[Event, ...] = (
    event(0, "equal"),
    event(1, "negative", -500),
    event(2, "equal and big", BIG + 1),
    event(3, "one cent off", 10_000_000_000),
    event(4, "big by one", BIG + 1),
    event(5, "sign", -500),
    event(6, "currency"),
    event(7, "no row"),
    event(8, "twice in the topic"),
    event(9, "twice in the topic"),
    event(10, "twice on both"),
    event(11, "twice on both"),
    event(12, "known"),
    event(13, "swapped 1", 1_000),
    event(14, "swapped 2", 2_000),
    event(15, None, None, None, readable=False),
    event(16, "unreadable", 1_000, None, readable=False),
    event(17, "Equal"),
    event(22, "three to one"),
    event(23, "three to one"),
    event(24, "three to one"),
    event(25, "one to three"),
    event(0, "other partition", partition=1),
    event(18, "torn", payment="pay-1"),
    event(19, "whole/payment", payment="pay-2"),
    event(0, "whole/invoice", payment="pay-2", leg="invoice"),
    event(1, "whole of three/invoice", payment="pay-3", leg="invoice"),
    event(20, "whole of three/payment", payment="pay-3"),
    event(21, "whole of three/payment", payment="pay-3"),
)
ROWS: tuple[LedgerRow, ...] = (
    row(1, "equal"),
    row(2, "negative", -500),
    row(3, "equal and big", BIG + 1),
    row(4, "one cent off", 10_000_000_399),
    row(5, "big by one", BIG),
    row(6, "sign", 500),
    row(7, "currency", currency="USD"),
    row(8, "no event"),
    row(9, "twice in the topic"),
    row(10, "twice on both"),
    row(11, "twice on both"),
    row(12, "twice in the ledger"),
    row(13, "twice in the ledger"),
    row(14, "known"),
    row(15, "swapped 1", 2_000),
    row(16, "swapped 2", 1_000),
    row(17, "unreadable"),
    row(19, "three to one"),
    row(20, "one to three"),
    row(21, "one to three"),
    row(22, "one to three"),
    row(18, "other partition"),
)


def frames(spark: SparkSession, events: Iterable[Event], rows: Iterable[LedgerRow]) -> tuple[DataFrame, DataFrame]:
    """Both sides, with nothing planted."""
    topic, ledger = spark.createDataFrame(list(events), _TOPIC), spark.createDataFrame(list(rows), _LEDGER)
    return topic.withColumn("planted", F.lit(False)), ledger.withColumn("planted", F.lit(False))


def in_arrow(frame: DataFrame) -> pa.RecordBatch:
    """What a small frame holds, here: one batch, whatever its parts."""
    table = frame.toArrow()
    return pa.RecordBatch.from_pylist(table.to_pylist(), schema=table.schema)
