"""Samples of both sides, as values: newest events, a table's columns, and rows that hold an event's value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Event = Mapping[str, Any]
"""One JSON payload: each value by its path (`field_path.values_by_path`), fractions as Decimal."""
Row = Mapping[str, Any]


class ColumnKind(StrEnum):
    """The kinds of columns that a contract tells apart."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    TEXT = "text"
    TIME = "time"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class TopicSample:
    """The newest events of a topic. unreadable: so many records beside them are no JSON object."""

    topic: str
    events: tuple[Event, ...]
    unreadable: int


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of the table, by the catalogue. leads_index: a look-up by it is quick."""

    name: str
    kind: ColumnKind
    has_zone: bool = False
    leads_index: bool = False
    is_unique: bool = False
    is_primary_key: bool = False


@dataclass(frozen=True, kw_only=True)
class TableSample:
    """The table. rows: some, of which nothing is promised.

    find_rows: (column, values) -> some of the rows that hold one of the values there; asked only where leads_index.
    """

    table: str
    kind: str
    """That of the contract's ledger: postgres or jdbc."""
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    find_rows: Callable[[str, Sequence[Any]], Sequence[Row]]
