"""Compiled code writes of a row what `ComparedColumns.text_of` writes, or nothing; it reads no other bytes."""

import struct
from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallystick.contract._compared_texts import write_texts
from tallystick.contract.compare import CompareRule, Kind, compared_columns, text_of_json
from tallystick.contract.equality import TEXT_LENGTH_MAX
from tests.unit.builders import MORE

KINDS: tuple[Kind, ...] = ("text", "number", "time")
PLAIN: dict[Kind, tuple[str, ...]] = {
    "text": ("paid", "", "null", " a b ", "x" * TEXT_LENGTH_MAX, "~", "{}", "1.50"),
    "number": (
        *("0", "-0", "0.000", "-0.0", "7", "7.0", "-7.10", "100", "100.00", "0.05", "-0.50", "1.000000001"),
        "9" * 100,
    ),
    "time": (
        *("2026-01-31T23:59:59Z", "2026-02-28 00:00:00", "2026-01-01T00:00:00+00:00", "0001-01-01T00:00:00Z"),
        *("9999-12-31T23:59:59.999999Z", "2026-01-01T00:00:00.5", "2026-01-01T00:00:00.500000Z"),
        *("2026-01-01T00:00:00.0", "2026-01-01 00:00:00.050+00:00", "2000-04-30T00:00:00.000001Z"),
    ),
}
NOT_PLAIN: dict[Kind, tuple[str, ...]] = {
    "text": ("x" * (TEXT_LENGTH_MAX + 1), 'a"b', "a\\b", "a\nb", "a\x00b", "a\x7f", "caf\u00e9", "\U0001f600"),
    "number": (
        *(
            "",
            "-",
            "+1",
            "01",
            "00",
            "-01",
            "1.",
            ".5",
            "1.5.5",
            "1e3",
            "1E3",
            " 1",
            "1 ",
            "NaN",
            "Infinity",
            "paid",
            "1x",
        ),
        *("1.0x", "1-", "--1", "0x1", "\u0661", "9" * 101),
    ),
    "time": (
        *("", "2026-01-01", "2026-01-01T00:00", "2026-02-29T00:00:00Z", "2024-02-29T00:00:00Z", "2026-04-31T00:00:00Z"),
        *("2026-00-01T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-32T00:00:00Z"),
        *("0000-01-01T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T23:59:60Z"),
        *("2026-01-01t00:00:00Z", "2026-01-01T00:00:00z", "2026-01-01T00:00:00 Z", "2026-01-01T00:00:00ZZ"),
        *("2026-01-01T00:00:00+00", "2026-01-01T00:00:00+02:00", "2026-01-01T00:00:00-00:00", "2026/01-01T00:00:00Z"),
        *(
            "2026-01/01T00:00:00Z",
            "2026-01-01T00.00:00Z",
            "2026-01-01T00:00.00Z",
            "2026-01-01T00:00:00.",
            "20260101T000000Z",
        ),
        *("2026-01-01T00:00:00.1234567Z", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00,5Z", "2026-01-01T00:00:00.5x"),
        "2026-01-01T0a:00:00Z",
    ),
}


def texts_in(ends: bytes, texts: bytes) -> list[str]:
    places = memoryview(ends).cast("i").tolist()
    assert places == sorted(places) and places[0] == 0 and places[-1] == len(texts)
    return [texts[start:end].decode() for start, end in pairwise(places)]


def written_of(kind: Kind, values: Sequence[bytes | None], *, are_json: bool) -> list[str | None]:
    """What compiled code writes of one column; None of a row that it does not write."""
    column = pa.array(values, pa.binary())
    made = write_texts(
        ((b'{"it":', KINDS.index(kind), *column.buffers(), column.offset),), len(column), are_json, TEXT_LENGTH_MAX
    )
    assert made is not None
    ends, texts, others = made
    return [None if row in others else text for row, text in enumerate(texts_in(ends, texts))]


def by_the_rule(kind: Kind, value: str | None) -> str:
    return compared_columns({"it": CompareRule(exact=kind)}).text_of([value])


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, some in PLAIN.items() for value in some])
def test_a_plain_value_is_written_as_the_rule_writes_it(kind: Kind, value: str) -> None:
    expected = [by_the_rule(kind, value)]
    assert written_of(kind, [value.encode()], are_json=False) == expected
    assert written_of(kind, [b'"%b"' % value.encode()], are_json=True) == expected


@pytest.mark.parametrize(("kind", "value"), [(kind, value) for kind, some in NOT_PLAIN.items() for value in some])
def test_any_other_is_given_back_and_the_rows_around_it_are_written(kind: Kind, value: str) -> None:
    usual = PLAIN[kind][-1]
    rows = [usual.encode(), value.encode(), None, usual.encode()]
    expected = [by_the_rule(kind, usual), None, '{"it":null}', by_the_rule(kind, usual)]
    assert written_of(kind, rows, are_json=False) == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("json", [b"", b"null"])
def test_what_json_does_not_have_is_absent(kind: Kind, json: bytes) -> None:
    assert written_of(kind, [json], are_json=True) == ['{"it":null}']


@pytest.mark.parametrize("json", [b"true", b"-1.50", b"1e3", b"[1]", b"{}", b"nul", b"nulls"])
def test_json_without_quotes_is_the_text_that_stands_there(json: bytes) -> None:
    assert written_of("text", [json], are_json=True) == [by_the_rule("text", text_of_json(json))]


@pytest.mark.parametrize("json", [b'"', b'"a', b'a"', b'"a"b"', b'"a\\"', b'{"a":1}', b'"\\u0041"'])
def test_quotes_that_are_not_around_a_plain_text_are_given_back(json: bytes) -> None:
    assert written_of("text", [json], are_json=True) == [None]


SOME = st.sampled_from([value.encode() for some in (*PLAIN.values(), *NOT_PLAIN.values()) for value in some])
VALUES = st.none() | SOME | st.binary(max_size=24) | st.from_regex(rb"-?[0-9]{1,4}(\.[0-9]{0,4})?Z?", fullmatch=True)
TIMES = st.from_regex(rb"[0-9]{4}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,7})?(Z|\+00:00)?")
QUOTED = (VALUES | TIMES).map(lambda value: b"null" if value is None else b'"%b"' % value)


@MORE
@given(kind=st.sampled_from(KINDS), values=st.lists(VALUES | TIMES | QUOTED, max_size=6), are_json=st.booleans())
def test_whatever_is_written_is_what_the_rule_writes(kind: Kind, values: list[bytes | None], are_json: bool) -> None:
    written = written_of(kind, values, are_json=are_json)
    assert len(written) == len(values)
    for value, text in zip(values, written, strict=True):
        if text is not None:
            said = text_of_json(value or b"") if are_json else value.decode() if value is not None else None
            assert text == by_the_rule(kind, said)


def test_columns_stand_in_their_order_and_one_that_is_not_plain_gives_its_row_back() -> None:
    columns = compared_columns({"a": "exact", "b": CompareRule(exact="number")})
    rows = [("x", "1.50"), (None, None), ("é", "1"), ("x", "many"), ("", "0.0")]
    one, other = (pa.array(some, pa.string()) for some in zip(*rows, strict=True))
    given_ = ((b'{"a":', 0, *one.buffers(), 0), (b',"b":', 1, *other.buffers(), 0))
    made = write_texts(given_, len(rows), False, TEXT_LENGTH_MAX)
    assert made is not None and made[2] == [2, 3]
    expected = ["" if row in made[2] else columns.text_of(said) for row, said in enumerate(rows)]
    assert texts_in(*made[:2]) == expected


def test_rows_in_the_middle_of_longer_buffers() -> None:
    column = pa.array(["a", None, "b", "c" * 9, None, "d"], pa.string())
    for first in range(len(column)):
        some = column.slice(first, 3)
        made = write_texts(((b"", 0, *some.buffers(), some.offset),), len(some), False, TEXT_LENGTH_MAX)
        assert made is not None
        expected = ["null}" if text is None else f'"{text}"}}' for text in some.to_pylist()]
        assert texts_in(*made[:2]) == expected


@MORE
@given(
    places=st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 30), max_size=9),
    valid=st.none() | st.binary(max_size=2),
    data=st.none() | st.binary(max_size=20),
    first=st.integers(-2, 10),
    rows=st.integers(-1, 10),
    kind=st.integers(-1, 3),
)
@example(places=[0, 20, 0, 20, 0, 20, 0, 20], valid=None, data=b"x" * 20, first=0, rows=7, kind=0)
@example(places=[2**31 - 1, 0], valid=None, data=b"", first=0, rows=1, kind=0)
def test_buffers_that_do_not_fit_are_refused_or_their_rows_given_back(
    places: list[int], valid: bytes | None, data: bytes | None, first: int, rows: int, kind: int
) -> None:
    ends = struct.pack(f"{len(places)}i", *places)
    try:
        made = write_texts(((b"{", kind, valid, ends, data, first),), rows, False, TEXT_LENGTH_MAX)
    except ValueError:
        return
    if made is not None:
        assert len(texts_in(*made[:2])) == rows
        assert made[2] == sorted(set(made[2]))


@pytest.mark.parametrize(
    ("columns", "rows"),
    [((), 1), (((b"{", 0, None, b"\0" * 8, None, 0),), -1), ((7,), 1), (((b"{", 3, None, b"\0" * 8, None, 0),), 1)],
    ids=["no column", "less than no rows", "no tuple", "no kind"],
)
def test_a_plan_that_is_none_is_refused(columns: tuple[object, ...], rows: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        write_texts(columns, rows, False, TEXT_LENGTH_MAX)  # type: ignore[arg-type]


def test_many_columns_are_given_back() -> None:
    column = (b"{", 0, None, b"\0" * 8, b"", 0)
    assert write_texts((column,) * 64, 1, False, TEXT_LENGTH_MAX) is not None
    assert write_texts((column,) * 65, 1, False, TEXT_LENGTH_MAX) is None
