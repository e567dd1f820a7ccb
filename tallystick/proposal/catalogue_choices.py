"""Proposes what the table's catalogue alone can say: its own key, its times, how it is sliced, and who writes first."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tallystick.model.direction import Direction
from tallystick.proposal.samples import Column, ColumnKind

_SENT = re.compile(r"(publish|sent|relay|dispatch)")
_WRITTEN = re.compile(r"(written|created|inserted|posted|booked|recorded)_?(at|on|time)?$")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One further value of a contract, and what it rests on."""

    value: str
    why: str


def propose_direction(asked: Direction | None, columns: Sequence[Column]) -> Choice:
    """Return the one that was asked for, or what the columns suggest."""
    if asked is not None:
        return Choice(value=asked, why="as asked")
    relay = next((column.name for column in columns if _SENT.search(column.name)), None)
    if relay:
        return Choice(value=Direction.LEDGER_TO_TOPIC, why=f"{relay} looks like a relay's mark: an outbox; check it")
    return Choice(value=Direction.TOPIC_TO_LEDGER, why="not to be seen in data: check which side is written first")


def propose_row_id(columns: Sequence[Column]) -> Choice | None:
    """Return a column that is unique by itself."""
    for column in columns:
        if column.is_primary_key and column.is_unique:
            return Choice(value=column.name, why="the table's primary key")
    for column in columns:
        if column.is_unique:
            return Choice(value=column.name, why="unique, by an index")
    return None


def propose_written_at(columns: Sequence[Column]) -> Choice | None:
    """Return a time of writing with its zone."""
    for column in columns:
        if column.kind is ColumnKind.TIME and column.has_zone and _WRITTEN.search(column.name):
            return Choice(value=column.name, why="measures how late rows come; check that it is set once")
    return None


def propose_order_by(columns: Sequence[Column]) -> Choice | None:
    """Return a column that grows."""
    for column in columns:
        if column.is_primary_key and column.is_unique and column.kind is ColumnKind.INTEGER:
            return Choice(value=column.name, why="the primary key grows; check that no writer gives ids of its own")
    for column in columns:
        if column.kind is ColumnKind.TIME and column.leads_index and _WRITTEN.search(column.name):
            return Choice(value=column.name, why="an indexed time of writing; check that it is set once")
    return None


def propose_slice_by(columns: Sequence[Column]) -> Choice:
    """Return by what a PostgreSQL table is sliced."""
    if any(column.name == "written_xid" for column in columns):
        return Choice(value="written_xid", why="the table has the column: rows may be updated")
    return Choice(
        value="xmin", why="for a table whose rows nobody updates; otherwise add written_xid, as docs/install.md says"
    )
