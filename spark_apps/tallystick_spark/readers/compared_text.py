"""Compared columns of many events or rows at once: from their values to the text that is compared.

`ComparedColumns.text_of` is the rule. Most values are written already as they are compared: those go there together, by
Arrow; each of the others by itself.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType, StructType

from tallystick.contract.compare import ComparedColumns, text_of_json
from tallystick.contract.equality import TEXT_LENGTH_MAX
from tallystick.formats.comparable import text_of_float

TEXT = "compared_text"
_AS_WRITTEN = {
    "text": r"[ !#-\[\]-~]{0,500}",
    "number": r"0|-?[1-9][0-9]{0,60}(?:\.[0-9]{0,60}[1-9])?|-?0\.[0-9]{0,60}[1-9]",
    "time": r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z",
}
"""By kind: texts of which JSON is the text in quotes, and that are compared as they are."""
_BARE = {"text": r"true|false|-?[0-9][0-9.eE+-]{0,400}", "number": _AS_WRITTEN["number"], "time": r"[^\s\S]"}
"""By kind: JSON without quotes, to which that applies, too."""


def texts_of_json(raws: Sequence[Sequence[bytes]], compared: ComparedColumns) -> pa.StringArray:
    """Return the text of each event. raws: by column, the JSON of each event; b"" where it has none."""
    columns = [pa.array(some, pa.binary()) for some in raws]
    parts = []
    for column, rule in zip(columns, compared.rules, strict=True):
        if rule.kind == "text" and _are_simple(column, in_quotes=True):
            parts.append(column)
            continue
        quoted = pc.match_substring_regex(column, f'^"(?:{_AS_WRITTEN[rule.kind]})"$')
        bare = pc.match_substring_regex(column, f"^(?:{_BARE[rule.kind]})$")
        absent = pc.is_in(column, pa.array([b"", b"null"], pa.binary()))
        in_quotes = pc.binary_join_element_wise(b'"', column, b'"', b"")
        parts.append(pc.case_when(pc.make_struct(absent, quoted, bare), pa.scalar(b"null"), column, in_quotes))
    return _joined(parts, compared, lambda row: [text_of_json(some[row]) for some in raws])


def with_compared_text(rows: pa.RecordBatch, compared: ComparedColumns) -> pa.RecordBatch:
    """Return rows with the text that is compared in place of the values. Without compared columns the rows as they are.

    A row has each value as a text of its own, or as a floating point number, under the names of
    `ComparedColumns.labels`.
    """
    if not compared:
        return rows
    columns = [_as_texts(rows[label]) for label in compared.labels]
    parts = []
    for column, rule in zip(columns, compared.rules, strict=True):
        in_quotes = pc.binary_join_element_wise('"', column, '"', "")
        if rule.kind == "text" and _are_simple(column, in_quotes=False):
            parts.append(pc.fill_null(in_quotes, "null"))
            continue
        plain = pc.fill_null(pc.match_substring_regex(column, f"^(?:{_AS_WRITTEN[rule.kind]})$"), False)
        parts.append(pc.case_when(pc.make_struct(pc.is_null(column), plain), pa.scalar("null"), in_quotes))
    texts = _joined(parts, compared, lambda row: [_text(column[row]) for column in columns])
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


def _are_simple(column: pa.Array, *, in_quotes: bool) -> bool:
    """Return whether all are short printable ASCII that JSON writes as it stands. in_quotes: each as a JSON string.

    By their bytes together: a regular expression takes ten times as long, and nearly always says the same.
    """
    ends = np.frombuffer(column.buffers()[1], dtype="<i4")[column.offset :][: len(column) + 1]
    data = np.frombuffer(column.buffers()[2] or b"", dtype=np.uint8)[ends[0] : ends[-1]]
    lengths, firsts, lasts = np.diff(ends), ends[:-1] - ends[0], ends[1:] - ends[0] - 1
    if (lengths > TEXT_LENGTH_MAX + 2 * in_quotes).any():
        return False
    if ((data < 0x20) | (data > 0x7E) | (data == _BACKSLASH)).any():
        return False
    quotes = int((data == _QUOTE).sum())
    if not in_quotes:
        return quotes == 0
    stand_around = (lengths > 1).all() and (data[firsts] == _QUOTE).all() and (data[lasts] == _QUOTE).all()
    return bool(stand_around) and quotes == 2 * len(column)


_QUOTE, _BACKSLASH = 0x22, 0x5C


def _joined(
    parts: Sequence[pa.Array], compared: ComparedColumns, values_of: Callable[[int], list[str | None]]
) -> pa.StringArray:
    """Return each row's parts as one text; of a row that lacks one, the text of its values."""
    words: list[Any] = []
    for name, part in zip(compared.names, parts, strict=True):
        words += [pa.scalar(f'{"," if words else "{"}"{name}":', part.type), part]
    joined = pc.binary_join_element_wise(*words, pa.scalar("}", parts[0].type), pa.scalar("", parts[0].type))
    joined = joined.cast(pa.string())
    if not joined.null_count:
        return joined
    lacking = pc.indices_nonzero(pc.is_null(joined)).to_pylist()
    return pc.replace_with_mask(
        joined, pc.is_null(joined), pa.array([compared.text_of(values_of(row)) for row in lacking], pa.string())
    )


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
