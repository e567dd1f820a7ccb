"""Many values at once are written as each is by itself."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallystick.contract.compare import ComparedColumns, CompareRule, Kind, compared_columns, text_of_json
from tallystick_spark.readers import compared_text
from tallystick_spark.readers.compared_text import in_row, texts_of_json, with_compared_text
from tests.unit.builders import MORE

KINDS: tuple[Kind, ...] = ("text", "number", "time")
COLUMNS = compared_columns({kind: CompareRule(exact=kind) for kind in KINDS})
SOME = (
    *("paid", "", "null", "true", "a b", "x" * 500, "x" * 501, 'a"b', "a\\b", "a\nb", "caf\u00e9", "\x7f", "~", "\x00"),
    *("0", "-0", "7", "7.0", "7.10", "-1.5", "0.5", "00", "01", "1e3", "1E+3", "1.", ".5", "NaN", "9" * 60, "9" * 101),
    *("2026-01-01T00:00:00Z", "2026-02-28T23:59:59Z", "2026-02-30T00:00:00Z", "0000-01-01T00:00:00Z", "2026-01-01"),
    *("0001-01-01T00:00:00Z", "9999-12-28T23:59:59Z", "2026-01-01T00:00:00+02:00", "2026-01-01T24:00:00Z"),
)
TEXTS = st.sampled_from(SOME) | st.text(max_size=8) | st.from_regex(r"-?[0-9]{1,4}(\.[0-9]{0,4})?([eE]-?[0-9]{1,2})?")
BARE = st.sampled_from([b"", b"null", b"true", b"false", b"0", b"-0", b"7", b"7.0", b"1.5", b"1e3", b"{}", b"[1]"])
IN_JSON = BARE | st.builds(
    lambda text, ascii_: json.dumps(text, ensure_ascii=ascii_).encode(errors="surrogatepass"), TEXTS, st.booleans()
)


def apart(rows: Sequence[tuple[object, ...]], kind: pa.DataType) -> list[pa.Array]:
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in COLUMNS.names]
    return [pa.array(column, kind) for column in columns]


@contextmanager
def compiled_or_not(is_compiled: bool) -> Iterator[None]:
    """As where Tallystick was installed with a compiler, or without one."""
    with pytest.MonkeyPatch.context() as patch:
        if not is_compiled:
            patch.setattr(compared_text, "_write_texts", None)
        yield


@MORE
@given(rows=st.lists(st.tuples(IN_JSON, IN_JSON, IN_JSON), max_size=6), is_compiled=st.booleans())
@example(rows=[(json.dumps(text).encode(),) * 3 for text in SOME], is_compiled=True)
def test_events_together_say_what_each_says(rows: list[tuple[bytes, ...]], is_compiled: bool) -> None:
    with compiled_or_not(is_compiled):
        together = texts_of_json(apart(rows, pa.binary()), COLUMNS).to_pylist()
    assert together == [COLUMNS.text_of([text_of_json(raw) for raw in row]) for row in rows]


@MORE
@given(rows=st.lists(st.tuples(*[st.none() | TEXTS] * 3), max_size=6), is_compiled=st.booleans())
@example(rows=[(text,) * 3 for text in SOME], is_compiled=True)
@example(rows=[(None, None, None)], is_compiled=True)
def test_rows_together_say_what_each_says(rows: list[tuple[str | None, ...]], is_compiled: bool) -> None:
    columns = {"row_id": pa.array([str(number) for number in range(len(rows))], pa.string())}
    batch = pa.record_batch(columns | dict(zip(COLUMNS.labels, apart(rows, pa.string()), strict=True)))
    with compiled_or_not(is_compiled):
        read = with_compared_text(batch, COLUMNS)
    assert read.schema.names == ["row_id", "compared_text"]
    assert read["compared_text"].to_pylist() == [COLUMNS.text_of(row) for row in rows]
    assert read.to_pylist() == [in_row(row, COLUMNS) for row in batch.to_pylist()]


def test_a_row_s_bytes_that_are_no_text_are_compared_with_their_escapes() -> None:
    columns = compared_columns({"status": "exact"})
    values = pa.array([b"caf\xe9", b"paid", None], pa.binary())
    read = with_compared_text(pa.record_batch({"compared_0": values.view(pa.string())}), columns)
    assert read["compared_text"].to_pylist() == [columns.text_of([one]) for one in ("caf\\xe9", "paid", None)]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.float32(), 397174336.0, "397174340"),
        (pa.float32(), 0.1, "0.1"),
        (pa.float64(), 2e23, "200000000000000000000000"),
        (pa.float64(), float("nan"), "NaN"),
        (pa.float64(), float("-inf"), "-Infinity"),
        (pa.float64(), None, None),
    ],
)
def test_a_floating_point_number_has_its_own_fewest_digits(kind: pa.DataType, value: float, text: str | None) -> None:
    columns = compared_columns({"fee": CompareRule(exact="number")})
    read = with_compared_text(pa.record_batch({"compared_0": pa.array([value], kind)}), columns)
    assert read["compared_text"].to_pylist() == [columns.text_of([text])]


def test_without_compared_columns_rows_are_what_they_were() -> None:
    batch = pa.record_batch({"row_id": ["1"]})
    assert with_compared_text(batch, ComparedColumns()) is batch
    assert in_row({"row_id": "1"}, ComparedColumns()) == {"row_id": "1"}


@pytest.mark.parametrize("kind", KINDS)
def test_most_values_go_together(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a column would cost many times what it does; the answer is the same."""
    columns = compared_columns({"it": CompareRule(exact=kind)})
    monkeypatch.setattr(ComparedColumns, "text_of", None)
    usual, said = {
        "text": ("paid", "paid"),
        "number": ("12.50", "12.5"),
        "time": ("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00Z"),
    }[kind]
    expected = [f'{{"it":"{said}"}}', '{"it":null}']
    in_topic = pa.array([json.dumps(usual).encode(), b"null"], pa.binary())
    assert texts_of_json([in_topic], columns).to_pylist() == expected
    in_ledger = pa.record_batch({"compared_0": pa.array([usual, None], pa.string())})
    assert with_compared_text(in_ledger, columns)["compared_text"].to_pylist() == expected
