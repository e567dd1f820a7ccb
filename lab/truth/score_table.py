"""How a score is shown to people: one row a class, and the sum."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from lab.servers.process import REPOSITORY


def score_table(title: str, figures: dict[str, Any], *, columns: Sequence[str]) -> Table:
    """The counts under `classes`, and those of all of them. figures: as they are stored as JSON."""
    table = Table(title=title)
    table.add_column("class")
    for heading in columns:
        table.add_column(heading, justify="right")
    for name, counts in figures["classes"].items():
        table.add_row(name, *(str(counts[column]) for column in columns))
    table.add_section()
    table.add_row("all", *(str(figures[column]) for column in columns))
    return table


def shown(path: Path) -> str:
    """A path as people read it: from the repository, where it lies in it."""
    return str(path.relative_to(REPOSITORY)) if path.is_relative_to(REPOSITORY) else str(path)
