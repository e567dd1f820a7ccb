"""A stored run as the tables that the suites look at.

pandas, not Spark: the run is in the verdict store already, a few rows per partition and one per break, and a JVM would
cost ten times what the suites do. No column may hold a null: a count that nobody took is NOT_COUNTED.
"""

from collections.abc import Sequence

import pandas as pd

from tallystick.model.census_values import PartitionCensus
from tallystick.model.findings import Break, money_at_stake
from tallystick.model.stored_run import StoredRun

NOT_COUNTED = -1

BREAK_COLUMNS = {
    "break_id": "string",
    "break_class": "string",
    "match_key": "string",
    "leg": "string",
    "amount_minor": "int64",
    "currency": "string",
    "copies": "int64",
}


def breaks_frame(breaks: Sequence[Break]) -> pd.DataFrame:
    """One row per break; the columns are there also when there is none."""
    return typed_frame([_break_row(item_break) for item_break in breaks], BREAK_COLUMNS)


def _break_row(item_break: Break) -> dict[str, object]:
    return {
        "break_id": str(item_break.break_id),
        "break_class": str(item_break.break_class),
        "match_key": item_break.match_key,
        "leg": item_break.leg,
        "amount_minor": item_break.amount_minor,
        "currency": item_break.currency,
        "copies": item_break.copies,
    }


CENSUS_COLUMNS = {
    "topic": "string",
    "partition": "int64",
    "kafka_offset_start": "int64",
    "kafka_offset_end": "int64",
    "offsets": "int64",
    "committed": "int64",
    "aborted": "int64",
    "plain": "int64",
    "markers": "int64",
    "compacted": "int64",
    "named_offsets": "int64",
    "unexplained": "int64",
    "readable_records": "int64",
    "spark_rows": "int64",
    "lso": "int64",
    "high_watermark": "int64",
}


def census_frame(census: Sequence[PartitionCensus]) -> pd.DataFrame:
    """One row per partition. offsets: the slice's length; named_offsets: those the census has a name for."""
    return typed_frame([_census_row(part) for part in census], CENSUS_COLUMNS)


def _census_row(part: PartitionCensus) -> dict[str, object]:
    markers = part.commit_markers + part.abort_markers
    return {
        "topic": part.topic,
        "partition": part.partition,
        "kafka_offset_start": part.kafka_offset_start,
        "kafka_offset_end": part.kafka_offset_end,
        "offsets": part.kafka_offset_end - part.kafka_offset_start,
        "committed": part.committed,
        "aborted": part.aborted,
        "plain": part.plain,
        "markers": markers,
        "compacted": part.compacted,
        "named_offsets": part.committed + part.aborted + part.plain + markers + part.compacted,
        "unexplained": part.unexplained,
        "readable_records": part.readable_records,
        "spark_rows": NOT_COUNTED if part.spark_rows is None else part.spark_rows,
        "lso": part.lso,
        "high_watermark": part.high_watermark,
    }


FIGURE_COLUMNS = {
    "verdict": "string",
    "breaks": "int64",
    "doubts": "int64",
    "money_at_stake_minor_max": "int64",
    "topic_rows": "int64",
    "ledger_rows": "int64",
    "matched_rows": "int64",
    "in_flight_items": "int64",
    "undecidable_items": "int64",
    "unreadable_records": "int64",
}


def figures_frame(run: StoredRun) -> pd.DataFrame:
    """The run on one row. money_at_stake_minor_max: of the currency with the most minor units; two are never added."""
    result, figures = run.result, run.result.figures
    row = {
        "verdict": str(result.verdict),
        "breaks": len(result.breaks),
        "doubts": len(result.doubts),
        "money_at_stake_minor_max": max(money_at_stake(result.breaks).values(), default=0),
        "topic_rows": figures.topic_rows,
        "ledger_rows": figures.ledger_rows,
        "matched_rows": figures.matched_rows,
        "in_flight_items": figures.in_flight_items,
        "undecidable_items": figures.undecidable_items,
        "unreadable_records": figures.unreadable_records,
    }
    return typed_frame([row], FIGURE_COLUMNS)


def typed_frame(rows: list[dict[str, object]], columns: dict[str, str]) -> pd.DataFrame:
    """Return the rows under these columns, which are there also without a row. columns: name to type."""
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)
