"""Pair both sides of one cut as multisets: count what agrees, collect only what does not.

A key is simple when the cut holds one event and one row of it, their compared fields are equal, the event lies on its
leg's topic, and it is no key to include. Of many to one, when the cut holds one whole of it, and parts that add up to
that. All copies of every other key are collected.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from operator import itemgetter
from sys import intern
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from tallystick.matching.evidence import OutOfOrderEvent, RecordTimes, UnreadableRecord
from tallystick.matching.match_case import Entry
from tallystick.matching.scan_result import (
    CANARY_PARTITION,
    OUT_OF_ORDER_MAX,
    UNREADABLE_SAMPLE,
    CanaryScan,
    SliceScan,
    ledger_item_id,
    place_in_order,
    topic_item_id,
)
from tallystick.model.direction import Direction
from tallystick.model.findings import total_money
from tallystick.model.open_item import ItemSide
from tallystick_spark.matching.content_digest import content_digest
from tallystick_spark.matching.equality_forms import (
    add_up,
    are_equal,
    compared_columns,
    compared_figures,
    has_text,
    in_capitals,
    summed_figures,
)
from tallystick_spark.matching.keyed_hash import new_secret
from tallystick_spark.matching.lag_meter import LagMeter

_KEY = ["planted", "match_key"]
_PLACE_AND_KEYS = ("topic", "partition", "kafka_offset", "match_key", "transaction_key", "leg", "ordering_key")
_LOW_32_BITS = 4294967295

Total = Mapping[str, Any]
"""The figures of one group of rows, by name."""


class NamedFields(Protocol):
    """A row whose fields are read by name: one of Spark's, or a mapping."""

    def __getitem__(self, name: str, /) -> Any: ...

    def __contains__(self, name: object, /) -> bool: ...


def beside_planted(read: DataFrame, planted: DataFrame) -> DataFrame:
    """A side as `scan_slices` takes it: what was read and what was planted, told apart by the column `planted`."""
    return read.withColumn("planted", F.lit(False)).unionByName(planted.withColumn("planted", F.lit(True)))


def scan_slices(
    topic: DataFrame,
    ledger: DataFrame,
    *,
    legs: Mapping[str, str],
    keys_to_include: Collection[str],
    ignore_case: bool = False,
    possible_ms: tuple[int, int] | None = None,
    lag_of: Direction | None = None,
    inputs: DataFrame | None = None,
    parts: ItemSide | None = None,
) -> SliceScan:
    """Scan both sides once, each as `beside_planted` makes it: what is planted is compared with what is planted only.

    keys_to_include: keys that open items or older rows know; all their copies are collected. ignore_case: of
    currencies. possible_ms: first and last timestamp that the window can hold; None does not ask. lag_of: which side
    partners wait for; None does not measure how long. inputs: the parsed events that the ledger's rows are, where a
    topic plays its part. parts: the side whose copies add up to the one of the other; not with lag_of.
    """
    if ignore_case:
        topic, ledger = in_capitals(topic), in_capitals(ledger)
    lag = LagMeter(tuple(sorted(legs.values())), lag_of) if lag_of else None
    topic, ledger = topic.persist(StorageLevel.MEMORY_AND_DISK), ledger.persist(StorageLevel.MEMORY_AND_DISK)
    readable = topic.where("readable")
    paired = pair_by_key(readable, ledger, lag=lag, secret=new_secret(), parts=parts)
    keys = exceptional_keys(paired.persist() if lag else paired, keys_to_include)
    if len(legs) > 1:
        keys = keys.unionByName(misrouted_keys(readable, legs)).distinct()
    keys = keys.persist()
    try:
        all_totals = _topic_totals(topic, possible_ms)
        topic_totals = [row for row in all_totals if row["partition"] != CANARY_PARTITION]
        ledger_totals = _ledger_totals(ledger)
        topic_copies, topic_canaries = _apart(readable.join(keys, _KEY, "left_semi").collect(), topic_copy)
        ledger_copies, ledger_canaries = _apart(ledger.join(keys, _KEY, "left_semi").collect(), ledger_copy)
        several_legs = _incomplete(readable, legs).collect() if len(legs) > 1 else []
        incomplete, incomplete_canaries = _apart(several_legs, topic_copy)
        input_totals = _topic_totals(inputs, possible_ms) if inputs is not None else []
        input_unreadable = sum(row["rows"] for row in input_totals if not row["readable"])
        unreadable = sum(row["rows"] for row in topic_totals if not row["readable"])
        out_of_order, out_of_order_count = _out_of_order(readable) if "sequence" in topic.columns else ((), 0)
        totals = total_money((row["currency"], int(row["amount"])) for row in ledger_totals)
        exceptional = total_money((copy.currency, copy.amount_minor) for copy in ledger_copies)
        return SliceScan(
            rows_by_partition=rows_by_partition_of(topic_totals),
            ledger_rows=sum(row["rows"] for row in ledger_totals),
            matched_rows=sum(row["rows"] for row in ledger_totals) - len(ledger_copies),
            matched_money={currency: amount - exceptional.get(currency, 0) for currency, amount in totals.items()},
            copies=topic_copies + ledger_copies,
            incomplete=incomplete,
            unreadable_count=unreadable,
            unreadable_sample=(
                *(unreadable_sample_of(topic) if unreadable else ()),
                *(unreadable_sample_of(inputs) if inputs is not None and input_unreadable else ()),
            ),
            content_digests={"topic": content_digest(topic_totals), "ledger": content_digest(ledger_totals)}
            | ({"inputs": content_digest(input_totals)} if inputs is not None else {}),
            topic_money=total_money((row["currency"], int(row["amount"])) for row in topic_totals if row["readable"]),
            ledger_money=totals,
            differently_written=_differently_written(readable, ledger, keys) if ignore_case else 0,
            out_of_order=out_of_order,
            out_of_order_count=out_of_order_count,
            record_times=record_times_of([*topic_totals, *input_totals]) if possible_ms else (),
            lags=lag.read(paired) if lag else (),
            input_rows_by_partition=rows_by_partition_of(input_totals),
            input_unreadable_count=input_unreadable,
            canaries=CanaryScan(
                copies=topic_canaries + ledger_canaries,
                incomplete=incomplete_canaries,
                unreadable=sum(
                    row["rows"] for row in all_totals if row["partition"] == CANARY_PARTITION and not row["readable"]
                ),
            ),
        )
    finally:
        for cached in (keys, paired, ledger, topic):
            cached.unpersist()


def _apart(rows: Iterable[Row], copy_of: Callable[[Row], Entry]) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Return the real copies, and the planted ones."""
    home = list(rows)
    read, planted = (tuple(copy_of(row) for row in home if row["planted"] is which) for which in (False, True))
    return read, planted


def pair_by_key(
    topic: DataFrame,
    ledger: DataFrame,
    *,
    secret: str,
    lag: LagMeter | None = None,
    parts: ItemSide | None = None,
) -> DataFrame:
    """Return keys that are not simple. Shape: planted, match_key; with `lag` also what it counts.

    One shuffle over both sides; the compared fields travel as longs, so that the aggregation stays a hash one. secret:
    what currencies are hashed with, as `keyed_hash.new_secret` makes it.
    """
    in_topic, in_ledger = ((F.lit(side).alias("in_topic"),) for side in (True, False))
    events = topic.select(*_KEY, *in_topic, *compared_columns(topic, secret), *(lag.event_columns() if lag else ()))
    rows = ledger.select(*_KEY, *in_ledger, *compared_columns(ledger, secret), *(lag.row_columns() if lag else ()))
    counted = (
        events.unionByName(rows)
        .groupBy(*_KEY)
        .agg(
            F.count_if("in_topic").alias("topic_copies"),
            F.count_if(~F.col("in_topic")).alias("ledger_copies"),
            *(summed_figures() if parts else compared_figures()),
            *(lag.figures() if lag else ()),
        )
    )
    events_fit = F.col("topic_copies") >= 1 if parts is ItemSide.TOPIC else F.col("topic_copies") == 1
    rows_fit = F.col("ledger_copies") >= 1 if parts is ItemSide.LEDGER else F.col("ledger_copies") == 1
    simple = events_fit & rows_fit & (add_up() if parts else are_equal())
    simple = F.coalesce(simple, F.lit(False))
    return lag.fold(counted, simple) if lag else counted.where(~simple).select(*_KEY)


def exceptional_keys(paired: DataFrame, keys_to_include: Collection[str]) -> DataFrame:
    """Return keys whose copies are collected: those that `pair_by_key` could not pair, and the keys to include.

    Shape: planted, match_key.
    """
    exceptional = paired.where("match_key IS NOT NULL").select(*_KEY)
    if not keys_to_include:
        return exceptional
    included = paired.sparkSession.createDataFrame(
        [(False, key) for key in sorted(keys_to_include)], "planted boolean, match_key string"
    )
    return exceptional.unionByName(included).distinct()


def misrouted_keys(topic: DataFrame, legs: Mapping[str, str]) -> DataFrame:
    """Return keys of events that name a leg of another topic. Shape: planted, match_key. A filter: no shuffle."""
    return topic.where(is_misrouted(legs)).select(*_KEY)


def is_misrouted(legs: Mapping[str, str]) -> Column:
    """Return whether an event names a leg whose topic is another one."""
    elsewhere = F.lit(False)
    for leg, name in sorted(legs.items()):
        elsewhere = elsewhere | ((F.col("leg") == leg) & (F.col("topic") != name))
    return elsewhere


def _differently_written(topic: DataFrame, ledger: DataFrame, keys: DataFrame) -> int:
    """Count simple pairs whose currency is not written the same. Shuffles only what somebody writes in another case."""
    odd = ~F.col("planted") & (F.col("currency_as_written") != F.col("currency"))
    written = [side.where(odd).select("match_key", "currency_as_written") for side in (topic, ledger)]
    by_key = (
        written[0]
        .unionByName(written[1])
        .groupBy("match_key")
        .agg(F.count("*").alias("odd"), F.bit_xor(F.xxhash64("currency_as_written")).alias("difference"))
    )
    differs = (F.col("odd") == 1) | (F.col("difference") != 0)
    return by_key.where(differs).join(keys.where(~F.col("planted")), "match_key", "left_anti").count()


def _out_of_order(topic: DataFrame) -> tuple[tuple[OutOfOrderEvent, ...], int]:
    """Return the first events by place below a higher sequence of their ordering key and partition, and count all.

    A shuffle and a sort of their own, where the contract names a sequence.
    """
    before = (
        Window.partitionBy("topic", "partition", "ordering_key")
        .orderBy("kafka_offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    highest = F.max(F.struct("sequence", "kafka_offset")).over(before)
    real = topic.where(F.col("partition") != CANARY_PARTITION)
    found = real.withColumn("highest", highest).where(F.col("sequence") < F.col("highest.sequence"))
    rows = found.orderBy("topic", "partition", "kafka_offset").limit(OUT_OF_ORDER_MAX).collect()
    events = tuple(
        OutOfOrderEvent(
            **{name: row[name] for name in _PLACE_AND_KEYS},
            sequence=row["sequence"],
            highest_before=row["highest"]["sequence"],
            highest_offset=row["highest"]["kafka_offset"],
        )
        for row in rows
    )
    return events, found.count() if len(events) == OUT_OF_ORDER_MAX else len(events)


def _topic_totals(topic: DataFrame, possible_ms: tuple[int, int] | None) -> list[Total]:
    """Return a row per partition, readable or not, and currency; that of an unreadable record is nobody's word."""
    figures = [
        F.count("*").alias("rows"),
        F.sum(F.when(F.col("readable"), F.col("amount_minor")).cast("decimal(38,0)")).alias("amount"),
        *fingerprint(event_content(), "xor", "sum"),
    ]
    if possible_ms is not None:
        first, last = possible_ms
        figures += [
            F.min("written_ms").alias("earliest_ms"),
            F.max("written_ms").alias("latest_ms"),
            F.count_if(F.col("written_ms") < first).alias("early"),
            F.count_if(F.col("written_ms") > last).alias("late"),
        ]
    currency = F.when(F.col("readable"), F.col("currency")).alias("currency")
    totals = topic.groupBy("topic", "partition", "readable", currency).agg(*figures)
    return topic_totals_in_order(row.asDict() for row in totals.collect())


def topic_totals_in_order(totals: Iterable[Total]) -> list[Total]:
    """Sort as a content digest takes them: by partition, the unreadable first, and currency."""
    place = itemgetter("topic", "partition", "readable")
    return sorted(totals, key=lambda one: (place(one), _nulls_first(one["currency"])))


def ledger_totals_in_order(totals: Iterable[Total]) -> list[Total]:
    """Sort as a content digest takes them: by currency."""
    return sorted(totals, key=lambda one: _nulls_first(one["currency"]))


def _nulls_first(text: str | None) -> tuple[bool, str]:
    return text is not None, text or ""


def record_times_of(totals: list[Total]) -> tuple[RecordTimes, ...]:
    by_part: dict[tuple[str, int], list[Total]] = {}
    for row in totals:
        by_part.setdefault((row["topic"], row["partition"]), []).append(row)
    return tuple(
        RecordTimes(
            topic=topic,
            partition=partition,
            early=sum(row["early"] for row in rows),
            late=sum(row["late"] for row in rows),
            earliest_ms=min(row["earliest_ms"] for row in rows),
            latest_ms=max(row["latest_ms"] for row in rows),
        )
        for (topic, partition), rows in by_part.items()
    )


def _ledger_totals(ledger: DataFrame) -> list[Total]:
    amount = F.sum(F.col("amount_minor").cast("decimal(38,0)")).alias("amount")
    real = ledger.where(~F.col("planted"))
    totals = real.groupBy("currency").agg(
        F.count("*").alias("rows"), amount, *fingerprint(row_content(ledger), "xor", "sum")
    )
    return ledger_totals_in_order(row.asDict() for row in totals.collect())


def event_content() -> Column:
    """Return the hash of an event for the content digest of a topic."""
    return F.xxhash64("topic", "partition", "kafka_offset", "value_hash")


def row_content(rows: DataFrame) -> Column:
    """Return the hash of a row for the content digest of a ledger."""
    compared = ("amount_minor", "currency", *(("compared_text",) if has_text(rows) else ()))
    return F.xxhash64("row_id", F.xxhash64("match_key"), "transaction_key", "leg", *compared)


def fingerprint(row_hash: Column, xor: str, total: str) -> tuple[Column, Column]:
    """Return two figures under these names. Order-free and multiset-safe: xor alone would cancel a doubled row."""
    return F.bit_xor(row_hash).alias(xor), F.sum(low_32_bits(row_hash)).alias(total)


def low_32_bits(number: Column) -> Column:
    """Keep so few bits that a sum does not overflow a long."""
    return number.bitwiseAND(F.lit(_LOW_32_BITS))


def rows_by_partition_of(totals: list[Total]) -> dict[tuple[str, int], int]:
    rows: dict[tuple[str, int], int] = {}
    for row in totals:
        part = (row["topic"], row["partition"])
        rows[part] = rows.get(part, 0) + row["rows"]
    return rows


def _incomplete(topic: DataFrame, legs: Mapping[str, str]) -> DataFrame:
    """Return all events of transactions that lack a leg in this cut. Which leg an event is, its topic says."""
    leg_bit = F.lit(0)
    for number, leg in enumerate(sorted(legs)):
        leg_bit = F.when(F.col("topic") == legs[leg], F.lit(1 << number)).otherwise(leg_bit)
    transaction = ("planted", "transaction_key")
    seen = topic.groupBy(*transaction).agg(F.bit_or(leg_bit).alias("legs"))
    lacking = seen.where(F.col("legs") != (1 << len(legs)) - 1).select(*transaction)
    return topic.join(lacking, list(transaction), "left_semi")


def topic_copy(row: NamedFields) -> Entry:
    return Entry(
        side=ItemSide.TOPIC,
        item_id=topic_item_id(row["topic"], row["partition"], row["kafka_offset"]),
        match_key=row["match_key"],
        transaction_key=row["transaction_key"],
        leg=_shared(row["leg"]),
        amount_minor=row["amount_minor"],
        currency=_shared(row["currency"]),
        order=row["kafka_offset"],
        written_ms=row["written_ms"],
        compared_text=_compared_text(row),
    )


def ledger_copy(row: NamedFields) -> Entry:
    return Entry(
        side=ItemSide.LEDGER,
        item_id=ledger_item_id(row["row_id"]),
        match_key=row["match_key"],
        transaction_key=row["transaction_key"],
        leg=_shared(row["leg"]),
        amount_minor=row["amount_minor"],
        currency=_shared(row["currency"]),
        order=place_in_order(row["row_id"]),
        written_ms=row["written_ms"],
        compared_text=_compared_text(row),
    )


def _compared_text(row: NamedFields) -> str:
    name = "compared_text"
    return row[name] if name in row else ""  # noqa: SIM401  # a row of Spark has no get


def _shared(text: str) -> str:
    """Return one value for all rows that say the same."""
    return intern(text) if text else text


def unreadable_sample_of(topic: DataFrame) -> tuple[UnreadableRecord, ...]:
    real = topic.where(F.col("partition") != CANARY_PARTITION)
    rows = real.where(~F.col("readable")).orderBy("topic", "partition", "kafka_offset").limit(UNREADABLE_SAMPLE)
    return tuple(
        UnreadableRecord(topic=row["topic"], partition=row["partition"], kafka_offset=row["kafka_offset"])
        for row in rows.collect()
    )
