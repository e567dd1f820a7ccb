"""The tables of docs/ name every class, change and attempt with its test, so that nobody meets one not on them."""

import re
from pathlib import Path

import pytest

from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.open_item import ItemState

ROOT = Path(__file__).parents[2]
FINDINGS = (ROOT / "docs" / "findings.md").read_text()
LIFE = (ROOT / "docs" / "open-items.md").read_text()
TRIED = (ROOT / "docs" / "failure-cases.md").read_text().partition("## Approval attempts")[2]


def rows_of(part: str) -> list[list[str]]:
    return [line.strip("|").split("|") for line in part.splitlines() if line.startswith("| ")]


ROWS = rows_of(LIFE)
DIRECTIONS = ("direction", "ledger to topic", "topic to ledger", "topic to topic", "both")
TRANSITIONS = [row for row in ROWS if row[0].strip() not in ("from", *DIRECTIONS)]


@pytest.mark.parametrize("name", [*BreakClass, *Doubt, *Notice], ids=str)
def test_every_break_doubt_and_notice_has_its_row(name: str) -> None:
    rows = [line for line in FINDINGS.splitlines() if line.startswith("|")]
    assert any(f"`{name}`" in row for row in rows)


SHOWN = [row for row in (*ROWS, *rows_of(TRIED)) if "shown by" not in row[-1]]


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: " ".join(row[:2]))
def test_what_becomes_of_an_item_and_of_an_approval_names_tests_that_there_are(row: list[str]) -> None:
    named = re.findall(r"`(test_\w+)`", row[-1])
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert named
    assert [name for name in named if f"def {name}(" not in tests] == []


def test_the_approvals_that_are_tried_have_their_table() -> None:
    assert len(rows_of(TRIED)) > 7


def test_every_state_of_an_item_has_a_transition() -> None:
    states = " ".join(f"{row[0]} {row[1]}" for row in TRANSITIONS).replace("written off", "written_off")
    assert [state for state in ItemState if state not in states] == []
