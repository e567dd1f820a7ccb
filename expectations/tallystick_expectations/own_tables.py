"""The tables that a contract's own suites look at: both sides of one window in figures.

`window`, one row:
    topic_rows, ledger_rows      readable events and rows of the slices
    topic_keys, ledger_keys      distinct match keys among them
    matched_rows                 pairs of an event and an equal row
    open_items                   copies that wait for their partner after the run
    unreadable_records           committed records that do not fit the contract
    window_seconds               from the window's start to its end

`currencies`, one row for each currency that a side has:
    currency                     as it is written there
    topic_amount_minor, ledger_amount_minor, matched_amount_minor
                                 sums in minor units, with the signs of events and rows

`partitions`, one row for each partition that the run read:
    topic, partition
    records                      that a read_committed reader gets, readable or not
    earliest_ms, latest_ms       of their timestamps, in milliseconds since 1970; -1 where there is no record
    silent_seconds               from the newest timestamp to the window's end, below 0 where it lies after that;
                                 without a record the whole window

A slice ends where the log ended at the window's end, so a record's timestamp may lie outside the window. No table has a
key of an event or a row, so none has to be masked, and no column holds a null, since checks skip nulls.
"""

from collections.abc import Mapping

import pandas as pd

from tallystick.model.run_result import PartitionSummary, WindowSummary
from tallystick.model.stored_run import StoredRun
from tallystick_expectations.frames import NOT_COUNTED, typed_frame

ROWS_ARE_CALLED: Mapping[str, tuple[str, ...]] = {
    "window": (),
    "currencies": ("currency",),
    "partitions": ("topic", "partition"),
}
"""Each table with the columns that name its rows."""

_WINDOW = dict.fromkeys(
    (
        "topic_rows",
        "ledger_rows",
        "topic_keys",
        "ledger_keys",
        "matched_rows",
        "open_items",
        "unreadable_records",
        "window_seconds",
    ),
    "int64",
)
_CURRENCIES = {"currency": "string"} | dict.fromkeys(
    ("topic_amount_minor", "ledger_amount_minor", "matched_amount_minor"), "int64"
)
_PARTITIONS = {"topic": "string"} | dict.fromkeys(
    ("partition", "records", "earliest_ms", "latest_ms", "silent_seconds"), "int64"
)


def own_tables(run: StoredRun, summary: WindowSummary) -> dict[str, pd.DataFrame]:
    """Return each table of ROWS_ARE_CALLED. Raises OverflowError where a sum has no 64 bits."""
    return {
        "window": typed_frame([_window_row(run, summary)], _WINDOW),
        "currencies": typed_frame(_currency_rows(run, summary), _CURRENCIES),
        "partitions": typed_frame(_partition_rows(run, summary), _PARTITIONS),
    }


def _window_row(run: StoredRun, summary: WindowSummary) -> dict[str, object]:
    figures = run.result.figures
    return {
        "topic_rows": summary.topic.rows,
        "ledger_rows": summary.ledger.rows,
        "topic_keys": summary.topic.keys,
        "ledger_keys": summary.ledger.keys,
        "matched_rows": figures.matched_rows,
        "open_items": figures.in_flight_items,
        "unreadable_records": figures.unreadable_records,
        "window_seconds": _window_seconds(run),
    }


def _currency_rows(run: StoredRun, summary: WindowSummary) -> list[dict[str, object]]:
    topic, ledger, matched = summary.topic.money, summary.ledger.money, run.result.figures.matched_money
    return [
        {
            "currency": currency,
            "topic_amount_minor": topic.get(currency, 0),
            "ledger_amount_minor": ledger.get(currency, 0),
            "matched_amount_minor": matched.get(currency, 0),
        }
        for currency in sorted({*topic, *ledger})
    ]


def _partition_rows(run: StoredRun, summary: WindowSummary) -> list[dict[str, object]]:
    read = {(one.topic, one.partition): one for one in summary.partitions}
    for part in run.cut.topic_slices:
        place = part.offsets.topic, part.offsets.partition
        read.setdefault(place, PartitionSummary(topic=place[0], partition=place[1], rows=0))
    return [_partition_row(run, one) for _, one in sorted(read.items())]


def _partition_row(run: StoredRun, one: PartitionSummary) -> dict[str, object]:
    end_ms = int(run.window_end_utc.timestamp() * 1000)
    return {
        "topic": one.topic,
        "partition": one.partition,
        "records": one.rows,
        "earliest_ms": NOT_COUNTED if one.earliest_ms is None else one.earliest_ms,
        "latest_ms": NOT_COUNTED if one.latest_ms is None else one.latest_ms,
        "silent_seconds": _window_seconds(run) if one.latest_ms is None else (end_ms - one.latest_ms) // 1000,
    }


def _window_seconds(run: StoredRun) -> int:
    return int((run.window_end_utc - run.window_start_utc).total_seconds())
