"""docs/guarantees.md names tests that are there, and what is not seen stands out."""

import re

from lab.servers.process import REPOSITORY

HEADER_LINES = 2
NO_TEST = ("not tried", "as by", "tried by")


def lines_of_tables(page: str) -> list[list[str]]:
    """The cells of each line, without headers."""
    tables = re.findall(r"(?:^\|.*\n)+", page, flags=re.MULTILINE)
    lines = [line for table in tables for line in table.splitlines()[HEADER_LINES:]]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


LINES = lines_of_tables((REPOSITORY / "docs" / "guarantees.md").read_text())


def named_tests(cell: str) -> set[str]:
    return set(re.findall(r"`(test_\w+)`", cell))


def test_every_line_names_a_test_or_says_that_there_is_none() -> None:
    assert len(LINES) > 40
    without = [cells for cells in LINES if not named_tests(cells[3]) and not any(word in cells[3] for word in NO_TEST)]
    assert without == []


def test_every_test_that_is_named_is_there() -> None:
    sources = "\n".join(path.read_text() for path in (REPOSITORY / "tests").rglob("test_*.py"))
    there = set(re.findall(r"def (test_\w+)\(", sources))
    assert {name for cells in LINES for name in named_tests(cells[3])} - there == set()


def test_matched_over_wrong_money_is_told_in_bold() -> None:
    told = [cells[1] for cells in LINES if "MATCHED" in cells[1]]
    assert told
    assert [one for one in told if "MATCHED" in re.sub(r"\*\*.*?\*\*", "", one)] == []
