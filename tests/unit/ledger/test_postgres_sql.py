"""The slicing expressions, computed: PostgreSQL's integer arithmetic on 32-bit row ids against plain 64-bit ones.

The texts themselves are evaluated here; that PostgreSQL means the same by them is tested on a real server.
"""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.contract.field_types import CurrencyConstant, LegConstant
from tallystick.contract.ledger import LedgerSection
from tallystick.ledger import postgres_sql
from tests.unit.builders import LAW

LEDGER = LedgerSection(connection="ledger_billing", table="ledger.posting", where="side = 'credit'")
BY_XMIN, BY_COLUMN = LEDGER, LEDGER.model_copy(update={"slice_by": "written_xid"})
WRAP, HALF = 2**32, 2**31


def compute(text: str, **row: int) -> object:
    """Evaluate an expression of integers as SQL would: &, <, AND and CASE mean the same in both."""
    case = re.fullmatch(r"CASE WHEN (.*) THEN (.*) ELSE (.*) END", text)
    if case:
        text = f"({case[2]}) if ({case[1]}) else ({case[3]})"
    return eval(text.replace("xmin::text::bigint", "xmin").replace(" AND ", " and "), {"__builtins__": {}}, row)


def in_slice(xid: int, start: int, end: int) -> object:
    return compute(postgres_sql.slice_condition(BY_XMIN, xid_start=start, xid_end=end), xmin=xid % WRAP)


def is_normal(xid: int) -> bool:
    """PostgreSQL never gives out the ids 0, 1 and 2 of an epoch."""
    return xid % WRAP >= 3


NEAR_WRAP = st.integers(1, 3).map(lambda epoch: epoch * WRAP)
HORIZONS = st.one_of(st.integers(HALF, 2**40), st.tuples(NEAR_WRAP, st.integers(-50, 50)).map(sum))
WIDTHS = st.one_of(st.integers(0, 100), st.integers(0, HALF))
DISTANCES = st.one_of(st.integers(-100, 100), st.integers(-HALF + 1, HALF - 1))


@LAW
@given(HORIZONS, WIDTHS, DISTANCES)
def test_a_row_is_in_the_slice_exactly_when_its_64_bit_id_is(start: int, width: int, distance: int) -> None:
    xid = start + distance
    if is_normal(xid):
        assert in_slice(xid, start, start + width) == (start <= xid < start + width)


@LAW
@given(HORIZONS, st.lists(st.integers(0, 60), min_size=1, max_size=5), st.integers(-80, 400))
def test_every_row_is_in_one_of_the_slices_that_tile(start: int, widths: list[int], distance: int) -> None:
    xid, bounds = start + distance, [start]
    for width in widths:
        bounds.append(bounds[-1] + width)
    if is_normal(xid):
        times = sum(bool(in_slice(xid, low, high)) for low, high in pairwise(bounds))
        assert times == (start <= xid < bounds[-1])


@LAW
@given(HORIZONS, DISTANCES)
def test_the_64_bit_id_is_found_again_from_the_32_bits_of_a_row(near: int, distance: int) -> None:
    xid = near + distance
    if is_normal(xid):
        assert compute(postgres_sql.row_xid(BY_XMIN, near_xid=near), xmin=xid % WRAP) == xid


@pytest.mark.parametrize("frozen", [1, 2])
def test_a_bootstrap_or_frozen_row_is_in_no_slice_and_older_than_anybody_can_say(frozen: int) -> None:
    assert not in_slice(frozen, 0, 100)
    assert compute(postgres_sql.row_xid(BY_XMIN, near_xid=100), xmin=frozen) == 0
    assert in_slice(3, 0, 100)
    assert compute(postgres_sql.row_xid(BY_XMIN, near_xid=100), xmin=3) == 3


def test_a_slice_over_the_wrap_holds_both_its_ends() -> None:
    start, end = WRAP - 2, WRAP + 5
    held = [xid for xid in range(WRAP - 5, WRAP + 9) if is_normal(xid) and in_slice(xid, start, end)]
    assert held == [WRAP - 2, WRAP - 1, WRAP + 3, WRAP + 4]


def test_rows_just_2_32_ids_apart_cannot_be_told_apart() -> None:
    """The stated limit: a row that old has the same 32 bits."""
    assert in_slice(500, 500 + WRAP, 501 + WRAP)


def test_an_empty_slice_holds_nothing() -> None:
    assert not in_slice(500, 500, 500)


@LAW
@given(st.integers(0, 2**63 - 1), st.integers(0, 2**40), st.integers(0, 2**40))
def test_the_owners_column_needs_no_arithmetic(xid: int, start: int, width: int) -> None:
    condition = postgres_sql.slice_condition(BY_COLUMN, xid_start=start, xid_end=start + width)
    assert compute(condition, written_xid=xid) == (start <= xid < start + width)


# The statements around them.


@pytest.mark.parametrize("ledger", [BY_XMIN, BY_COLUMN], ids=["xmin", "written_xid"])
def test_no_statement_asks_for_an_age_or_a_snapshot(ledger: LedgerSection) -> None:
    """Both move while a scan runs, so a row between two windows would be read by neither."""
    texts = [
        *postgres_sql.slice_queries(ledger, xid_start=200, xid_end=300, block_count=8),
        postgres_sql.older_rows_query(ledger, xid_start=200, snapshot_xmax=400),
        postgres_sql.row_xid(ledger, near_xid=300),
    ]
    for text in texts:
        assert not re.search(r"age\(|pg_visible|pg_current_snapshot|now\(", text)


def test_a_slice_is_read_once_whole_or_in_two_halves_of_its_blocks() -> None:
    (whole,) = postgres_sql.slice_queries(BY_XMIN, xid_start=200, xid_end=300, block_count=None)
    assert "ctid" not in whole
    low, high = postgres_sql.slice_queries(BY_XMIN, xid_start=200, xid_end=300, block_count=9)
    assert (low, high) == (f"{whole} AND ctid < '(4,0)'::tid", f"{whole} AND ctid >= '(4,0)'::tid")


@pytest.mark.parametrize("block_count", [0, 1])
def test_a_table_too_small_to_halve_is_read_whole(block_count: int) -> None:
    assert len(postgres_sql.slice_queries(BY_XMIN, xid_start=200, xid_end=300, block_count=block_count)) == 1


def test_the_contracts_condition_stands_in_every_statement_in_brackets() -> None:
    either = LEDGER.model_copy(update={"where": "side = 'credit' OR side = 'fee'"})
    assert postgres_sql.pairing_condition(either) == "(side = 'credit' OR side = 'fee')"
    assert postgres_sql.pairing_condition(LedgerSection(connection="c", table="a.b")) == "true"
    (query,) = postgres_sql.slice_queries(either, xid_start=200, xid_end=300, block_count=None)
    assert query.endswith("AND (side = 'credit' OR side = 'fee')")
    assert postgres_sql.older_rows_query(either, xid_start=200, snapshot_xmax=400).endswith(
        "AND (side = 'credit' OR side = 'fee')"
    )
    unread = postgres_sql.unread_rows_query(either, xid_start=200, xid_end=300, below=400, snapshot=None)
    assert "WHERE (side = 'credit' OR side = 'fee')) AS unread" in unread


def test_the_guard_counts_what_is_not_between_the_slices_start_and_the_snapshot() -> None:
    query = postgres_sql.older_rows_query(BY_XMIN, xid_start=200, snapshot_xmax=400)
    inside = postgres_sql.slice_condition(BY_XMIN, xid_start=200, xid_end=400)
    assert query == f"SELECT count(*) FROM ledger.posting WHERE NOT {inside} AND (side = 'credit')"


def test_the_contracts_columns_are_read_under_the_products_names() -> None:
    columns = LEDGER.columns.model_copy(update={"match_key": "reference", "amount_minor": "cents"})
    named = postgres_sql.column_list(LEDGER.model_copy(update={"columns": columns}))
    assert re.search(r"reference::text.* AS match_key", named)
    assert re.search(r"cents::bigint.* AS amount_minor", named)


def test_a_constant_stands_in_place_of_its_column() -> None:
    stated = {"currency": CurrencyConstant(constant="JPY"), "leg": LegConstant(constant="payout")}
    columns = LEDGER.columns.model_copy(update=stated)
    read = postgres_sql.column_list(LEDGER.model_copy(update={"columns": columns, "amount_unit": "major"}))
    assert "'payout'::text END, '') AS leg" in read
    assert "'JPY'::text END, '') ELSE '' END AS currency" in read
    assert "upper('JPY'::text)" in read
    assert not re.search(r"\bcurrency\b(?!$)", read)


def test_major_units_are_multiplied_by_what_their_currency_has_and_never_rounded() -> None:
    """mod() exists for whole numbers and numeric alone: a column of floating point is refused by the server."""
    major = postgres_sql.column_list(LEDGER.model_copy(update={"amount_unit": "major"}))
    scale = re.search(r"amount_minor \* \(CASE (.*?) END\)::numeric", major)
    assert scale is not None
    for code, units in (("JPY", 1), ("EUR", 100), ("BHD", 1_000), ("CLF", 10_000)):
        assert re.search(rf"WHEN upper\(currency::text\) IN \([^)]*'{code}'[^)]*\) THEN {units}\b", scale[1])
    assert "mod(" in major
    assert "round" not in major
    assert "mod(" not in postgres_sql.column_list(LEDGER)


def test_no_column_is_ever_null() -> None:
    """A null key would vanish in a join, and its row be counted as matched."""
    columns = postgres_sql.column_list(LEDGER).split(" AS ")
    never_null = ("coalesce(", "entry_id::text", "ELSE 0 END")
    assert [any(part in column for part in never_null) for column in columns[:-1]] == [True] * 6
