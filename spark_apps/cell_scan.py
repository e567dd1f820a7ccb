"""The first reader's quick way: both sides as figures per cell in one pass, and only what differs comes home.

A *cell* is a group of match keys, by hash. Each side's rows become a few figures per cell (how many, their money, an
order-free hash that is multiset-safe), so one shuffle of small rows tells which cells can differ; only their rows are
looked at one by one. One key of so many has a cell of its own: that is where lags are measured, and a slice that is
small enough has no other cells.

Two sides that agree are proven equal only where a key stands once: either every key has a cell of its own, or a unique
index on the ledger's key says so. `takes` tells where this way gives the same answers as `slice_matching.scan_slices`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from spark_apps.slice_matching import (
    Total,
    apart,
    content_digest,
    ledger_copy,
    record_times_of,
    rows_by_partition_of,
    topic_copy,
    unreadable_sample_of,
)
from tallystick.contract import Direction
from tallystick.lag import TopicLag, lags_of_pairs
from tallystick.run_result import total_money
from tallystick.slice_scan import CANARY, CANARY_PARTITION, CanaryScan, SliceScan

OWN_CELLS = 50_000
"""About so many keys have a cell of their own."""
SHARED_CELLS = 1 << 16
HOME_ROWS_MAX = 100_000
"""Rows of cells that differ, up to which they are paired in the driver."""
CACHED_OFFSETS_MAX = 200_000
"""A slice up to this size is kept after the first pass; of a larger one, what differs is read again."""

_LOW_32_BITS = 4294967295
_TOPIC, _LEDGER, _TRANSACTIONS = 0, 1, 2
_PARTITIONS = 1 << 20
"""More than a topic can have: an event's part is its topic's number times this, and its partition plus one."""
_PLANTED_ROWS = -1
"""The part of planted ledger rows; that of all others is 0."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """Parsed events or ledger rows: those that were read, and the planted ones."""

    read: DataFrame
    planted: DataFrame

    @property
    def all(self) -> DataFrame:
        return self.read.unionByName(self.planted)


@dataclass(frozen=True, kw_only=True)
class CellPlan:
    """offsets: of the topics' slices; says how many keys share a cell. topics: in the order of their numbers."""

    offsets: int
    topics: tuple[str, ...]
    partitions: int

    @property
    def one_of(self) -> int:
        """One key of so many has a cell of its own."""
        return max(1, -(-self.offsets // OWN_CELLS))

    @property
    def shared_cells(self) -> int:
        """Fewer where many partitions multiply what is counted of each."""
        return max(256, SHARED_CELLS // max(1, self.partitions // 8))

    def cell(self, key: str, *, planted: Column) -> Column:
        """A planted row never shares a cell with what was read."""
        hashed = F.xxhash64(key)
        shared = F.pmod(F.shiftright(hashed, 20), F.lit(self.shared_cells))
        own = F.pmod(hashed, F.lit(self.one_of)) == 0 if self.one_of > 1 else F.lit(True)
        among_read = F.when(own, hashed).otherwise(shared)
        return F.when(planted, F.lit(-1) - F.pmod(hashed, F.lit(SHARED_CELLS))).otherwise(among_read)


def takes(*, offsets: int, key_is_unique: bool, has_sequence: bool, ignore_case: bool, has_inputs: bool) -> bool:
    """Whether the quick way answers as the full one does."""
    if has_sequence or ignore_case or has_inputs:
        return False
    return key_is_unique or offsets <= OWN_CELLS


@dataclass(frozen=True, kw_only=True)
class _Figures:
    """groups: what was counted, by side, partition, currency and cell.

    unequal: cells whose two sides are not the same, or hold a key twice. misrouted: with an event on another leg's
    topic. incomplete: of transactions that may lack a leg.
    """

    groups: pd.DataFrame
    unequal: set[int]
    misrouted: set[int]
    incomplete: set[int]


def scan_cells(
    topic: Side,
    ledger: Side,
    *,
    legs: Mapping[str, str],
    known_elsewhere: Collection[str],
    offsets: int,
    partitions: int,
    possible_ms: tuple[int, int] | None = None,
    lag_of: Direction | None = None,
) -> SliceScan | None:
    """Scan both sides once. None where so much differs that `scan_slices` should pair it.

    offsets, partitions: of the topics' slices together. The other arguments are those of `scan_slices`.
    """
    plan = CellPlan(offsets=offsets, topics=tuple(sorted(set(legs.values()))), partitions=partitions)
    kept: list[DataFrame] = []
    if offsets <= CACHED_OFFSETS_MAX:
        kept = [side.read.persist(StorageLevel.MEMORY_AND_DISK) for side in (topic, ledger)]
        topic, ledger = replace(topic, read=kept[0]), replace(ledger, read=kept[1])
    try:
        figures = _count(plan, topic, ledger, legs, possible_ms)
        known = _cells_of_known(plan, topic.read.sparkSession, known_elsewhere)
        home = _bring_home(plan, topic, ledger, figures, known)
        if home is None:
            return None
        return _assemble(plan, topic, figures, *home, legs, frozenset(known_elsewhere), possible_ms, lag_of)
    finally:
        for frame in kept:
            frame.unpersist()


def _assemble(
    plan: CellPlan,
    topic: Side,
    figures: _Figures,
    events: Sequence[Row],
    rows: Sequence[Row],
    legs: Mapping[str, str],
    known: frozenset[str],
    possible_ms: tuple[int, int] | None,
    lag_of: Direction | None,
) -> SliceScan:
    """The same words as `scan_slices` says it in."""
    topic_totals, planted_totals = _topic_totals(plan, figures.groups)
    ledger_totals = _ledger_totals(figures.groups)
    copies = _exceptional([event for event in events if event["paired"]], rows, legs, known)
    topic_copies, topic_canaries = apart(map(topic_copy, copies[0]))
    ledger_copies, ledger_canaries = apart(map(ledger_copy, copies[1]))
    incomplete, incomplete_canaries = apart(
        map(topic_copy, _incomplete([event for event in events if event["whole"]], legs) if len(legs) > 1 else ())
    )
    unreadable = sum(total["rows"] for total in topic_totals if not total["readable"])
    money = total_money((total["currency"], total["amount"]) for total in ledger_totals)
    exceptional = total_money((copy.currency, copy.amount_minor) for copy in ledger_copies)
    ledger_rows = sum(total["rows"] for total in ledger_totals)
    return SliceScan(
        rows_by_partition=rows_by_partition_of(topic_totals),
        ledger_rows=ledger_rows,
        matched_rows=ledger_rows - len(ledger_copies),
        matched_money={currency: amount - exceptional.get(currency, 0) for currency, amount in money.items()},
        copies=topic_copies + ledger_copies,
        incomplete=incomplete,
        unreadable_count=unreadable,
        unreadable_sample=unreadable_sample_of(topic.read) if unreadable else (),
        content_digests={"topic": content_digest(topic_totals), "ledger": content_digest(ledger_totals)},
        topic_money=total_money((total["currency"], total["amount"]) for total in topic_totals if total["readable"]),
        ledger_money=money,
        record_times=record_times_of(topic_totals) if possible_ms else (),
        lags=_lags(plan, figures, lag_of) if lag_of else (),
        canaries=CanaryScan(
            copies=topic_canaries + ledger_canaries,
            incomplete=incomplete_canaries,
            unreadable=sum(total["rows"] for total in planted_totals if not total["readable"]),
        ),
    )


def _count(
    plan: CellPlan, topic: Side, ledger: Side, legs: Mapping[str, str], possible_ms: tuple[int, int] | None
) -> _Figures:
    """The one job that reads both sides."""
    sides = [_topic_figures(plan, topic.all, legs), _ledger_figures(plan, ledger.all)]
    first, last = possible_ms or (None, None)
    written = F.col("written_ms")
    money = F.coalesce(F.col("amount_minor"), F.lit(0))
    grouped = (
        reduce(DataFrame.unionByName, sides)
        .groupBy("side", "part", "readable", "currency", "cell")
        .agg(
            F.count("*").alias("rows"),
            F.sum(F.shiftright(money, 32)).alias("money_high"),
            F.sum(money.bitwiseAND(F.lit(_LOW_32_BITS))).alias("money_low"),
            F.bit_xor("compared").alias("compared_xor"),
            F.sum(F.col("compared").bitwiseAND(F.lit(_LOW_32_BITS))).alias("compared_sum"),
            F.bit_xor("content").alias("content_xor"),
            F.sum(F.col("content").bitwiseAND(F.lit(_LOW_32_BITS))).alias("content_sum"),
            F.count_if("misrouted").alias("misrouted"),
            F.min(written).alias("earliest_ms"),
            F.max(written).alias("latest_ms"),
            F.count_if(written < first if first is not None else F.lit(False)).alias("early"),
            F.count_if(written > last if last is not None else F.lit(False)).alias("late"),
        )
    )
    groups = grouped.toArrow().to_pandas()
    readable = groups[groups["readable"]]
    pairs = readable[readable["side"] != _TRANSACTIONS]
    return _Figures(
        groups=groups,
        unequal=_unequal_cells(pairs, pairs["side"] == _TOPIC, own_cells_only=plan.one_of == 1),
        misrouted=set(pairs.loc[pairs["misrouted"] > 0, "cell"]),
        incomplete=_incomplete_cells(readable[readable["side"] == _TRANSACTIONS], len(plan.topics)),
    )


def _topic_figures(plan: CellPlan, topic: DataFrame, legs: Mapping[str, str]) -> DataFrame:
    """Events by match key; with several legs each once more by its transaction, in the same scan."""
    number = F.lit(-1)
    for position, name in enumerate(plan.topics):
        number = F.when(F.col("topic") == name, position).otherwise(number)
    planted = F.col("partition") == CANARY_PARTITION
    elsewhere = reduce(
        lambda sofar, leg: sofar | ((F.col("leg") == leg) & (F.col("topic") != legs[leg])), sorted(legs), F.lit(False)
    )
    by_key = {
        "side": F.lit(_TOPIC),
        "part": (number * _PARTITIONS + F.col("partition") + 1).cast("bigint"),
        "readable": F.col("readable"),
        "currency": F.when(F.col("readable"), F.col("currency")),
        "cell": plan.cell("match_key", planted=planted),
        "amount_minor": F.col("amount_minor"),
        "compared": F.xxhash64("match_key", "amount_minor", "currency"),
        "content": F.xxhash64("topic", "partition", "kafka_offset", "value_hash"),
        "misrouted": F.coalesce(F.col("readable") & elsewhere & F.lit(len(legs) > 1), F.lit(False)),
        "written_ms": F.col("written_ms"),
    }
    if len(legs) == 1:
        return topic.select(*(column.alias(name) for name, column in by_key.items()))
    by_transaction = by_key | {
        "side": F.lit(_TRANSACTIONS),
        "part": number.cast("bigint"),
        "currency": F.lit(""),
        "cell": plan.cell("transaction_key", planted=planted),
        "amount_minor": F.lit(0).cast("bigint"),
        "compared": F.xxhash64("transaction_key"),
        "content": F.lit(0).cast("bigint"),
        "misrouted": F.lit(False),
    }
    both = [F.struct(*(column.alias(name) for name, column in one.items())) for one in (by_key, by_transaction)]
    return topic.select(F.inline(F.array(*both)))


def _ledger_figures(plan: CellPlan, ledger: DataFrame) -> DataFrame:
    planted = F.col("match_key").startswith(CANARY)
    return ledger.select(
        F.lit(_LEDGER).alias("side"),
        F.when(planted, F.lit(_PLANTED_ROWS)).otherwise(F.lit(0)).cast("bigint").alias("part"),
        F.lit(True).alias("readable"),
        "currency",
        plan.cell("match_key", planted=planted).alias("cell"),
        "amount_minor",
        F.xxhash64("match_key", "amount_minor", "currency").alias("compared"),
        F.xxhash64("row_id", "match_key", "transaction_key", "leg", "amount_minor", "currency").alias("content"),
        F.lit(False).alias("misrouted"),
        "written_ms",
    )


def _unequal_cells(pairs: pd.DataFrame, in_topic: pd.Series, *, own_cells_only: bool) -> set[int]:
    """Cells whose two sides are not the same multiset; with cells of one key, also those that hold it twice."""
    by_cell = _by_cell(pairs, sign=np.where(in_topic, 1, -1))
    differs = (
        (by_cell["rows"] != 0)
        | (by_cell["compared_xor"] != 0)
        | (by_cell["compared_sum"] != 0)
        | (by_cell["money_high"] != 0)
        | (by_cell["money_low"] != 0)
    )
    if own_cells_only:
        differs |= by_cell["rows_of_both"] > 2
    return set(by_cell.index[differs])


def _incomplete_cells(transactions: pd.DataFrame, topics: int) -> set[int]:
    """Cells in which one leg's transactions are not those of the others, copy by copy."""
    if transactions.empty:
        return set()
    legs = [_by_cell(of_leg, sign=np.ones(len(of_leg))) for _, of_leg in transactions.groupby("part")]
    figures = [leg[["rows", "compared_xor", "compared_sum"]] for leg in legs]
    cells = reduce(lambda one, other: one.union(other), (one.index for one in figures))
    if len(figures) < topics:
        return set(cells)
    first, *others = (one.reindex(cells, fill_value=0) for one in figures)
    return set(cells[reduce(lambda sofar, one: sofar | (one != first).any(axis=1), others, first["rows"] < 0)])


def _by_cell(groups: pd.DataFrame, *, sign: Any) -> pd.DataFrame:
    """Figures added up by cell, with the sign of their side; hashes are xored."""
    if groups.empty:
        return pd.DataFrame(columns=[*_ADDED, "compared_xor", "rows_of_both"], dtype="int64")
    signed = groups[[*_ADDED]].fillna(0).astype("int64").mul(np.asarray(sign, dtype="int64"), axis=0)
    signed["cell"], signed["rows_of_both"] = groups["cell"], groups["rows"]
    added = signed.groupby("cell").sum()
    ordered = groups.sort_values("cell", kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(ordered["cell"].to_numpy()) != 0])
    added["compared_xor"] = np.bitwise_xor.reduceat(ordered["compared_xor"].to_numpy(), starts)
    return added


_ADDED = ("rows", "compared_sum", "money_high", "money_low")


def _cells_of_known(plan: CellPlan, spark: SparkSession, known: Collection[str]) -> set[int]:
    if not known:
        return set()
    keys = spark.createDataFrame([(key,) for key in sorted(known)], "match_key string")
    return {row[0] for row in keys.select(plan.cell("match_key", planted=F.lit(False))).collect()}


def _bring_home(
    plan: CellPlan, topic: Side, ledger: Side, figures: _Figures, known: set[int]
) -> tuple[list[Row], list[Row]] | None:
    """Events and ledger rows of the cells that differ, and all planted ones. None where they are too many.

    All copies of a key are here where `paired` is true, and all events of a transaction where `whole` is.
    """
    cells = {cell for cell in figures.unequal | figures.misrouted | known if not _is_planted(cell)}
    transactions = {cell for cell in figures.incomplete if not _is_planted(cell)}
    groups = figures.groups
    of_transactions = groups["side"] == _TRANSACTIONS
    wanted = (groups["cell"].isin(cells) & ~of_transactions) | (groups["cell"].isin(transactions) & of_transactions)
    if int(groups.loc[wanted, "rows"].sum()) > HOME_ROWS_MAX:
        return None
    events = [topic.planted.where("readable").withColumns({"paired": F.lit(True), "whole": F.lit(True)})]
    rows = [ledger.planted.withColumn("paired", F.lit(True))]
    if cells or transactions:
        paired, whole = F.col("cell").isin(cells), F.col("transaction_cell").isin(transactions)
        by_cell = topic.read.where("readable").withColumns(
            {
                "cell": plan.cell("match_key", planted=F.lit(False)),
                "transaction_cell": plan.cell("transaction_key", planted=F.lit(False)),
            }
        )
        events.append(
            by_cell.where(paired | whole)
            .withColumns({"paired": paired, "whole": whole})
            .drop("cell", "transaction_cell")
        )
        by_cell = ledger.read.withColumn("cell", plan.cell("match_key", planted=F.lit(False)))
        rows.append(by_cell.where(paired).withColumn("paired", F.lit(True)).drop("cell"))
    home = reduce(
        lambda one, other: one.unionByName(other, allowMissingColumns=True),
        [frame.withColumn("side", F.lit(side)) for side, some in ((_TOPIC, events), (_LEDGER, rows)) for frame in some],
    ).collect()
    return [row for row in home if row["side"] == _TOPIC], [row for row in home if row["side"] == _LEDGER]


def _is_planted(cell: int) -> bool:
    return -SHARED_CELLS <= cell < 0


def _exceptional(
    events: Iterable[Row], rows: Iterable[Row], legs: Mapping[str, str], known: frozenset[str]
) -> tuple[list[Row], list[Row]]:
    """Copies of the keys that are not one event and one equal row, lie on another leg's topic, or are known."""
    by_key: dict[str, tuple[list[Row], list[Row]]] = {}
    for event in events:
        by_key.setdefault(event["match_key"], ([], []))[0].append(event)
    for row in rows:
        by_key.setdefault(row["match_key"], ([], []))[1].append(row)
    copies: tuple[list[Row], list[Row]] = ([], [])
    for key, (in_topic, in_ledger) in by_key.items():
        if key in known or not _is_simple(in_topic, in_ledger, legs):
            copies[0].extend(in_topic)
            copies[1].extend(in_ledger)
    return copies


def _is_simple(in_topic: Sequence[Row], in_ledger: Sequence[Row], legs: Mapping[str, str]) -> bool:
    if len(in_topic) != 1 or len(in_ledger) != 1:
        return False
    (event,), (row,) = in_topic, in_ledger
    misrouted = len(legs) > 1 and legs.get(event["leg"], event["topic"]) != event["topic"]
    return not misrouted and all(event[name] == row[name] for name in ("amount_minor", "currency"))


def _incomplete(events: Iterable[Row], legs: Mapping[str, str]) -> list[Row]:
    """All events of transactions that lack a leg. Which leg an event is, its topic says."""
    by_transaction: dict[str, list[Row]] = {}
    for event in events:
        by_transaction.setdefault(event["transaction_key"], []).append(event)
    lacking = (some for some in by_transaction.values() if len({one["topic"] for one in some}) < len(legs))
    return [event for some in lacking for event in some]


def _topic_totals(plan: CellPlan, groups: pd.DataFrame) -> tuple[list[Total], list[Total]]:
    """By partition, readable or not, and currency, as `scan_slices` has them: what was read, and what was planted."""
    events = groups[groups["side"] == _TOPIC]
    totals = [
        {"topic": plan.topics[total["part"] // _PARTITIONS], "partition": int(total["part"]) % _PARTITIONS - 1, **total}
        for total in _totals(events, ("part", "readable", "currency"))
    ]
    for total in totals:
        del total["part"]
    totals.sort(key=lambda total: (total["topic"], total["partition"]))
    read = [total for total in totals if total["partition"] != CANARY_PARTITION]
    return read, [total for total in totals if total["partition"] == CANARY_PARTITION]


def _ledger_totals(groups: pd.DataFrame) -> list[Total]:
    rows = groups[(groups["side"] == _LEDGER) & (groups["part"] != _PLANTED_ROWS)]
    wanted = ("currency", "rows", "amount", "xor", "sum")
    return [{name: total[name] for name in wanted} for total in _totals(rows, ("currency",))]


def _totals(groups: pd.DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    """Figures added up over the cells, in the order of `names`, nulls first."""
    totals = []
    for values, some in groups.groupby(list(names), dropna=False):
        named = {name: None if pd.isna(value) else value for name, value in zip(names, values, strict=True)}
        money = (int(some["money_high"].sum()) << 32) + int(some["money_low"].sum())
        totals.append(
            named
            | {
                "rows": int(some["rows"].sum()),
                "amount": money if named.get("readable", True) else None,
                "xor": int(np.bitwise_xor.reduce(some["content_xor"].to_numpy())),
                "sum": int(some["content_sum"].sum()),
                "earliest_ms": _whole(some["earliest_ms"].min()),
                "latest_ms": _whole(some["latest_ms"].max()),
                "early": int(some["early"].sum()),
                "late": int(some["late"].sum()),
            }
        )
    return sorted(totals, key=lambda total: [(total[name] is not None, total[name]) for name in names])


def _whole(value: Any) -> int | None:
    return None if pd.isna(value) else int(value)


def _lags(plan: CellPlan, figures: _Figures, direction: Direction) -> tuple[TopicLag, ...]:
    """Of the cells that are one event and one equal row: all pairs of a small slice, a sample of a large one."""
    groups = figures.groups[figures.groups["rows"] == 1]
    groups = groups[groups["readable"] & groups["latest_ms"].notna() & ~groups["cell"].isin(figures.unequal)]
    events = groups[groups["side"] == _TOPIC].set_index("cell")
    rows = groups[groups["side"] == _LEDGER].set_index("cell")
    alone = events.index[~events.index.duplicated(keep=False)].intersection(
        rows.index[~rows.index.duplicated(keep=False)]
    )
    first, second = (events, rows) if direction is Direction.TOPIC_TO_LEDGER else (rows, events)
    lag_ms = second.loc[alone, "latest_ms"] - first.loc[alone, "latest_ms"]
    topics = events.loc[alone, "part"] // _PARTITIONS
    return lags_of_pairs((plan.topics[topic], int(lag)) for topic, lag in zip(topics, lag_ms, strict=True))
