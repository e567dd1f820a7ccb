"""Compared columns of ledger rows: from a JSON list of values, as a reader brings it, to the text that is compared."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tallystick.contract.compare import ComparedColumns

TEXT = "compared_text"


def as_written(columns: Iterable[Column]) -> Column:
    """Return the values of these columns as a JSON list of texts."""
    return F.to_json(F.array(*(column.cast("string") for column in columns))).alias(TEXT)


def with_compared_text(rows: pa.RecordBatch, compared: ComparedColumns) -> pa.RecordBatch:
    """Return rows whose list of values is the text that is compared; without compared columns the rows as they are."""
    if not compared:
        return rows
    texts = pa.array(map(compared.text_of_row, rows[TEXT].to_pylist()), pa.string())
    return pa.record_batch({name: texts if name == TEXT else rows[name] for name in rows.schema.names})


def in_frame(rows: DataFrame, compared: ComparedColumns) -> DataFrame:
    """Return the same of a frame."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (with_compared_text(batch, compared) for batch in batches)

    return rows.mapInArrow(run, rows.schema) if compared else rows


def in_row(row: Mapping[str, Any], compared: ComparedColumns) -> Mapping[str, Any]:
    """Return the same of one row by name."""
    return {**row, TEXT: compared.text_of_row(row[TEXT])} if compared else row
