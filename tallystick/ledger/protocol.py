"""The interface of a ledger to a run, for every kind. Each kind has a module of its own; `open_ledger` picks it.

A *position* is a whole number that says where a row stands in the order in which cuts read the ledger: PostgreSQL's is
the id of the transaction that wrote the row, its xid. Stored documents call every kind's by that name.
Slices are half-open ranges of positions and tile, so a row's place is told by its position alone.
"""

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tallystick.ledger.earlier_rows import EarlierRows
from tallystick.ledger.unread_rows import UnreadCount, UnreadRows
from tallystick.model.cut import FileChange, LedgerAnchor, LedgerSlice, LedgerSnapshot
from tallystick.model.errors import TallystickError


class LedgerUnreachable(TallystickError, ConnectionError):
    """The ledger did not answer or did not let us in. A retry may cure it, so it leaves no verdict."""

    retryable = True


class LedgerReadCancelled(LedgerUnreachable):
    """The server let us in and then took a read away: a time limit, a lock, a shutdown, a conflict with recovery."""


class LedgerRefused(TallystickError):
    """The contract's table, columns or condition do not fit the ledger. A retry cures nothing."""


@dataclass(frozen=True, kw_only=True)
class HorizonHolder:
    """The holder of the horizon, such as an open transaction in any database of the server."""

    position: int
    holder: str
    since: datetime | None


@dataclass(frozen=True, kw_only=True)
class LedgerDescription:
    """The facts of a ledger that a scan needs. halves_by: blocks to cut the scan at; None where it is not cut.

    row_id_is_unique: by the database's word; where it has none, each slice is counted. row_id_is_integer: and rows can
    be read by it.
    """

    key_is_unique: bool
    row_id_is_unique: bool = True
    halves_by: int | None = None
    row_id_is_integer: bool = False


@dataclass(frozen=True, kw_only=True)
class LedgerRow:
    """One row with its position. receipt_*: the acknowledgement it holds, if any. reverses: row id of the row that it
    takes back. action_id: of the compensation that wrote it; both "" for any other row.

    was_read: False where it lies in a slice of an earlier cut, and nobody can say that the cut has seen it there.
    """

    row_id: str
    match_key: str
    transaction_key: str
    leg: str
    amount_minor: int
    currency: str
    position: int
    receipt_partition: int | None = None
    receipt_offset: int | None = None
    reverses: str = ""
    action_id: str = ""
    was_read: bool = True


def not_unique_row_id(name: str, column: str) -> str:
    """Return why a ledger whose rows may share an id is refused: of two rows with one id the second stays unseen."""
    return (
        f"{name}: column {column}, which the contract names row_id: got no unique index on it alone, over all rows and "
        "without nulls; expected one, since of two rows with one id the books would follow only one. What to do: let "
        "the contract name the table's primary key, or create a unique index and let the column be NOT NULL"
    )


class Ledger(Protocol):
    """An open ledger of one contract. Any of these raises LedgerUnreachable."""

    def describe(self) -> LedgerDescription:
        """Look at what the contract names. Raises LedgerRefused where it cannot be read as the contract says."""
        ...

    def read_snapshot(self) -> LedgerSnapshot:
        """Read the low mark (its horizon: how far it can be read now) and the high mark (above all written by now)."""
        ...

    def read_beginning(self) -> tuple[LedgerSnapshot, int | None]:
        """Read the snapshot with which books begin, and what `count_older_rows` counts below it at that very moment."""
        ...

    def fix(self, ledger_slice: LedgerSlice) -> LedgerSlice:
        """Return the slice with what it holds, where positions alone do not say it. Asked once, when a cut is made."""
        ...

    def changed_files(self, ledger_slice: LedgerSlice) -> tuple[FileChange, ...]:
        """Return the files of the slice that are not as they were when it was fixed."""
        ...

    def lost_anchors(self, ledger_slice: LedgerSlice) -> tuple[LedgerAnchor, ...]:
        """Return the slice's anchors that are gone, where no such row may be deleted, or whose row id another row has;
        none where a kind keeps no anchors.
        """
        ...

    def holder(self, *, horizon: int) -> HorizonHolder | None:
        """Return the holder of the horizon there; None where it has ended, or cannot be seen."""
        ...

    def first_position_at(self, at_utc: datetime, *, start: int, end: int) -> int | None:
        """Return the smallest position in [start, end) of a row written at or after that moment; None if unknown."""
        ...

    def count_older_rows(self, ledger_slice: LedgerSlice) -> int | None:
        """Count rows below the slice, now; None where nothing can come, go or change there unseen."""
        ...

    def count_unread(self, ledger_slice: LedgerSlice, *, below: int, before: UnreadRows | None) -> UnreadCount | None:
        """Count what no cut has read, behind where the slice starts, below a mark and in all, and how much of what was
        counted before is there still; None where a row does not move.
        """
        ...

    def count_by_place(self, ledger_slice: LedgerSlice, *, cut_n: int) -> EarlierRows | None:
        """Count rows by the place of their ids, against what earlier cuts have read; None where no column holds ids."""
        ...

    def sum_of_positions(self, *, below: int) -> int | None:
        """Return a sum over the positions of all rows below one, which tells as many rows from the same rows. None
        where no two rows can be taken for each other, or the positions cannot be summed.
        """
        ...

    def scattered_sum_of_positions(self, *, below: int) -> int | None:
        """Return the same sum over scattered positions: of rows 1 and 4 the plain one is that of 2 and 3."""
        ...

    def look_up_rows(self, match_keys: Collection[str], ledger_slice: LedgerSlice) -> dict[str, tuple[LedgerRow, ...]]:
        """Return every row of these keys in the whole ledger, seen from the slice; a key without one is left out."""
        ...

    def keys_seen_before(self, ledger_slice: LedgerSlice) -> tuple[str, ...]:
        """Return keys of the slice that also stand below it; needless where the key is unique."""
        ...

    def keys_below(self, ledger_slice: LedgerSlice, *, below: int) -> tuple[str, ...]:
        """Return keys of the slice's rows below a position; as many as rows, so it is asked of what began before."""
        ...

    def held_snapshot(self) -> AbstractContextManager[str | None]:
        """Keep what a scan of several parts reads as it is, and rows in their places; its name, for other sessions.

        None where nothing keeps it, and a scan has one part.
        """
        ...
