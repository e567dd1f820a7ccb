"""Names of columns and tables as a contract spells them, and as a schema knows them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.contract.sql_names import NAME_PATTERN, TABLE_PATTERN, bare, outermost, parts_of, spelled

NAMES = st.text(
    st.characters(blacklist_characters='"\\%?`', min_codepoint=0x20, max_codepoint=0x24F), min_size=1, max_size=63
)


@given(name=NAMES)
def test_a_name_that_is_spelled_is_read_back(name: str) -> None:
    assert re.fullmatch(NAME_PATTERN, spelled(name))
    assert bare(spelled(name)) == name


@given(names=st.lists(NAMES, min_size=2, max_size=3))
def test_a_table_is_taken_apart_where_its_names_meet_and_nowhere_else(names: list[str]) -> None:
    table = ".".join(map(spelled, names))
    assert re.fullmatch(TABLE_PATTERN, table)
    assert list(parts_of(table)) == names


@pytest.mark.parametrize("name", ["Order", "order id", 'a"b', '"a""b"', '""', '"a%b"', '"a`b"', "1a", '"a', "a;b"])
def test_what_sql_would_read_otherwise_is_no_name(name: str) -> None:
    assert not re.fullmatch(NAME_PATTERN, name)


def test_the_first_name_of_a_table_is_found_as_it_is_spelled() -> None:
    assert [outermost(one) for one in ("shop.orders", '"My.Shop".x', 'db.dbo."T"')] == ["shop", '"My.Shop"', "db"]


@pytest.mark.parametrize("table", ["posting", "a.b.c.d", "a..b", 'a."b"c', "a.b;", 'a.b"c"'])
def test_what_is_no_table_is_none(table: str) -> None:
    assert not re.fullmatch(TABLE_PATTERN, table)
