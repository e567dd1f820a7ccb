"""Pair both sides of one cut as multisets: count what agrees, bring home only what does not.

A key is simple when the cut holds one event and one row of it, their compared fields are equal, and nothing is known of
it from elsewhere. All copies of every other key come home.
"""

from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from tallystick.evidence import UnreadableRecord
from tallystick.pairing import Copy
from tallystick.run_result import ItemSide, total_money
from tallystick.slice_scan import UNREADABLE_SAMPLE, SliceScan, ledger_item_id, topic_item_id

_COMPARED = ("amount_minor", "currency")
_LOW_32_BITS = 4294967295


def scan_slices(
    topic: DataFrame, ledger: DataFrame, *, legs: Mapping[str, str], known_elsewhere: Collection[str]
) -> SliceScan:
    """Scan both sides once.

    known_elsewhere: keys that open items or older rows know; they come home whatever they look like.
    """
    topic, ledger = topic.persist(StorageLevel.MEMORY_AND_DISK), ledger.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        topic_totals = _topic_totals(topic)
        ledger_totals = _ledger_totals(ledger)
        readable = topic.where("readable")
        keys = exceptional_keys(readable, ledger, known_elsewhere).persist()
        topic_copies = tuple(map(_topic_copy, readable.join(keys, "match_key", "left_semi").collect()))
        ledger_copies = tuple(map(_ledger_copy, ledger.join(keys, "match_key", "left_semi").collect()))
        unreadable = sum(row["rows"] for row in topic_totals if not row["readable"])
        totals = total_money((row["currency"], int(row["amount"])) for row in ledger_totals)
        exceptional = total_money((copy.currency, copy.amount_minor) for copy in ledger_copies)
        return SliceScan(
            rows_by_partition=_rows_by_partition(topic_totals),
            ledger_rows=sum(row["rows"] for row in ledger_totals),
            matched_rows=sum(row["rows"] for row in ledger_totals) - len(ledger_copies),
            matched_money={currency: amount - exceptional.get(currency, 0) for currency, amount in totals.items()},
            copies=topic_copies + ledger_copies,
            incomplete=tuple(map(_topic_copy, _incomplete(readable, legs).collect())) if len(legs) > 1 else (),
            unreadable_count=unreadable,
            unreadable_sample=_unreadable_sample(topic) if unreadable else (),
            content_digests={"topic": _digest(topic_totals), "ledger": _digest(ledger_totals)},
        )
    finally:
        topic.unpersist()
        ledger.unpersist()


def exceptional_keys(topic: DataFrame, ledger: DataFrame, known_elsewhere: Collection[str]) -> DataFrame:
    """Keys that are not one event and one equal row. Shape: match_key.

    One shuffle over both sides; the compared fields travel as longs, so that the aggregation stays a hash one.
    """
    fields = F.xxhash64(*_COMPARED)
    rows = topic.select("match_key", F.lit(True).alias("in_topic"), "amount_minor", fields.alias("fields")).unionByName(
        ledger.select("match_key", F.lit(False).alias("in_topic"), "amount_minor", fields.alias("fields"))
    )
    counted = rows.groupBy("match_key").agg(
        F.count_if("in_topic").alias("topic_copies"),
        F.count_if(~F.col("in_topic")).alias("ledger_copies"),
        F.bit_xor("fields").alias("difference"),
        F.max(F.when(F.col("in_topic"), F.col("amount_minor"))).alias("topic_amount"),
        F.max(F.when(~F.col("in_topic"), F.col("amount_minor"))).alias("ledger_amount"),
    )
    simple = (
        (F.col("topic_copies") == 1)
        & (F.col("ledger_copies") == 1)
        & (F.col("difference") == 0)
        & (F.col("topic_amount") == F.col("ledger_amount"))
    )
    exceptional = counted.where(~F.coalesce(simple, F.lit(False))).select("match_key")
    if not known_elsewhere:
        return exceptional
    known = topic.sparkSession.createDataFrame([(key,) for key in sorted(known_elsewhere)], "match_key string")
    return exceptional.unionByName(known).distinct()


def _topic_totals(topic: DataFrame) -> list[Row]:
    return (
        topic.groupBy("topic", "partition", "readable")
        .agg(F.count("*").alias("rows"), *_fingerprint(F.xxhash64("topic", "partition", "kafka_offset", "value_hash")))
        .orderBy("topic", "partition", "readable")
        .collect()
    )


def _ledger_totals(ledger: DataFrame) -> list[Row]:
    row_hash = F.xxhash64("row_id", "match_key", "transaction_key", "leg", "amount_minor", "currency")
    amount = F.sum(F.col("amount_minor").cast("decimal(38,0)")).alias("amount")
    totals = ledger.groupBy("currency").agg(F.count("*").alias("rows"), amount, *_fingerprint(row_hash))
    return totals.orderBy("currency").collect()


def _fingerprint(row_hash: object) -> tuple[object, object]:
    """Order-free and multiset-safe: xor alone would cancel a doubled row."""
    return F.bit_xor(row_hash).alias("xor"), F.sum(row_hash.bitwiseAND(F.lit(_LOW_32_BITS))).alias("sum")


def _digest(totals: list[Row]) -> str:
    return "|".join(",".join(str(value) for value in row) for row in totals)


def _rows_by_partition(totals: list[Row]) -> dict[tuple[str, int], int]:
    rows: dict[tuple[str, int], int] = {}
    for row in totals:
        part = (row["topic"], row["partition"])
        rows[part] = rows.get(part, 0) + row["rows"]
    return rows


def _incomplete(topic: DataFrame, legs: Mapping[str, str]) -> DataFrame:
    """All events of transactions that lack a leg in this cut. Which leg an event is, its topic says."""
    leg_bit = F.lit(0)
    for number, leg in enumerate(sorted(legs)):
        leg_bit = F.when(F.col("topic") == legs[leg], F.lit(1 << number)).otherwise(leg_bit)
    seen = topic.groupBy("transaction_key").agg(F.bit_or(leg_bit).alias("legs"))
    lacking = seen.where(F.col("legs") != (1 << len(legs)) - 1).select("transaction_key")
    return topic.join(lacking, "transaction_key", "left_semi")


def _topic_copy(row: Row) -> Copy:
    return Copy(
        side=ItemSide.TOPIC,
        item_id=topic_item_id(row["topic"], row["partition"], row["kafka_offset"]),
        match_key=row["match_key"],
        transaction_key=row["transaction_key"],
        leg=row["leg"],
        amount_minor=row["amount_minor"],
        currency=row["currency"],
        order=row["kafka_offset"],
    )


def _ledger_copy(row: Row) -> Copy:
    return Copy(
        side=ItemSide.LEDGER,
        item_id=ledger_item_id(row["row_id"]),
        match_key=row["match_key"],
        transaction_key=row["transaction_key"],
        leg=row["leg"],
        amount_minor=row["amount_minor"],
        currency=row["currency"],
        order=int(row["row_id"]) if row["row_id"].isdecimal() else 0,
    )


def _unreadable_sample(topic: DataFrame) -> tuple[UnreadableRecord, ...]:
    rows = topic.where(~F.col("readable")).orderBy("topic", "partition", "kafka_offset").limit(UNREADABLE_SAMPLE)
    return tuple(
        UnreadableRecord(topic=row["topic"], partition=row["partition"], kafka_offset=row["kafka_offset"])
        for row in rows.collect()
    )
