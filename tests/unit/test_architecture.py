"""The map names every class, so that nobody meets one that is not on it."""

from pathlib import Path

import pytest

from tallystick.break_class import BreakClass, Doubt, Notice

ARCHITECTURE = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text()


@pytest.mark.parametrize("name", [*BreakClass, *Doubt, *Notice], ids=str)
def test_every_break_doubt_and_notice_has_its_row(name: str) -> None:
    rows = [line for line in ARCHITECTURE.splitlines() if line.startswith("|")]
    assert any(f"`{name}`" in row for row in rows)
