"""Compared columns of many events or rows at once: from their values to the text that is compared.

`ComparedColumns.text_of` is the rule. Of most values what is compared follows from their bytes alone: those are written
together, by compiled code; each of the others by itself.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, StructType

from tallystick.contract.compare import ComparedColumns, Kind, text_of_json
from tallystick.contract.equality import TEXT_LENGTH_MAX
from tallystick.formats.comparable import text_of_float

try:
    from tallystick.contract._compared_texts import write_texts as _write_texts
except ImportError:  # no compiler was there when Tallystick was installed: Python writes the same, in more time
    _write_texts = None  # type: ignore[assignment]

TEXT = "compared_text"
_KINDS: tuple[Kind, ...] = ("text", "number", "time")
"""In the order that compiled code has them."""


def texts_of_json(columns: Sequence[pa.BinaryArray], compared: ComparedColumns) -> pa.StringArray:
    """Return the text of each event. columns: of each the JSON of all events; b"" where one has none."""
    return _written(
        columns, compared, lambda row: [text_of_json(column[row].as_py()) for column in columns], are_json=True
    )


def with_compared_text(rows: pa.RecordBatch, compared: ComparedColumns) -> pa.RecordBatch:
    """Return rows with the text that is compared in place of the values. Without compared columns the rows as they are.

    A row has each value as a text of its own, or as a floating point number, under the names of
    `ComparedColumns.labels`.
    """
    if not compared:
        return rows
    columns = [_as_texts(rows[label]) for label in compared.labels]
    texts = _written(columns, compared, lambda row: [_text(column[row]) for column in columns], are_json=False)
    kept = {name: rows[name] for name in rows.schema.names if name not in compared.labels}
    return pa.record_batch(kept | {TEXT: texts})


def _as_texts(column: pa.Array) -> pa.StringArray:
    if not pa.types.is_floating(column.type):
        return column.cast(pa.string())
    is_single = column.type.bit_width <= 32
    said = (None if value is None else text_of_float(value, is_single=is_single) for value in column.to_pylist())
    return pa.array(said, pa.string())


def _text(value: pa.StringScalar) -> str | None:
    """Return a row's text; with escapes where its bytes are none, which Arrow does not say before they are read."""
    return value.as_buffer().to_pybytes().decode(errors="backslashreplace") if value.is_valid else None


def _written(
    columns: Sequence[pa.Array],
    compared: ComparedColumns,
    values_of: Callable[[int], list[str | None]],
    *,
    are_json: bool,
) -> pa.StringArray:
    """Return the text of each row: by compiled code, or of its values where that has none."""
    count = len(columns[0])
    texts, others = _plain_texts(columns, compared, are_json=are_json) or (pa.nulls(count, pa.string()), range(count))
    if not others:
        return texts
    is_other = np.zeros(count, dtype=bool)
    is_other[others] = True
    said = pa.array([compared.text_of(values_of(row)) for row in others], pa.string())
    return pc.replace_with_mask(texts, pa.array(is_other), said)


def _plain_texts(
    columns: Sequence[pa.Array], compared: ComparedColumns, *, are_json: bool
) -> tuple[pa.StringArray, Sequence[int]] | None:
    """Return the texts that compiled code writes, and the rows of which it writes none. None where it is not there."""
    if _write_texts is None:
        return None
    heads = [f'{"," if number else "{"}"{name}":'.encode() for number, name in enumerate(compared.names)]
    kinds, count = [_KINDS.index(rule.kind) for rule in compared.rules], len(columns[0])
    given = [
        (head, kind, *column.buffers(), column.offset) for head, kind, column in zip(heads, kinds, columns, strict=True)
    ]
    made = _write_texts(tuple(given), count, are_json, TEXT_LENGTH_MAX)
    if made is None:
        return None
    ends, texts, others = made
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(ends), pa.py_buffer(texts)]), others


def named(columns: Iterable[Column], compared: ComparedColumns) -> list[Column]:
    """Return the values of these columns under their labels."""
    return [column.alias(label) for column, label in zip(columns, compared.labels, strict=True)]


def in_frame(rows: DataFrame, compared: ComparedColumns) -> DataFrame:
    """Return the same of a frame as `with_compared_text` does of a batch."""
    if not compared:
        return rows

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (with_compared_text(batch, compared) for batch in batches)

    kept = [field for field in rows.schema.fields if field.name not in compared.labels]
    others = [field.name for field in rows.schema.fields if not isinstance(field.dataType, FloatType | DoubleType)]
    texts = {label: F.col(label).cast("string") for label in compared.labels if label in others}
    return rows.withColumns(texts).mapInArrow(run, StructType(kept).add(TEXT, "string"))


def in_row(row: Mapping[str, Any], compared: ComparedColumns) -> Mapping[str, Any]:
    """Return the same of one row by name."""
    if not compared:
        return row
    kept = {name: value for name, value in row.items() if name not in compared.labels}
    return kept | {TEXT: compared.text_of([row[label] for label in compared.labels])}
