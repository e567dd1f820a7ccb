"""A ledger in a table of Apache Iceberg: each cut reads the rows that its own snapshots appended.

A snapshot is a cut that the table's writer made itself, and its sequence number, which only grows, is the position of
the rows that it appended. Of the table's history three things are told apart: a compaction (`replace`) leaves the rows
as they are and is no change; an `overwrite` or `delete` changes rows and is said; a snapshot that was expired before
a cut had read it is said too, since what it appended cannot be told from other rows any more.

Spark reads the slice by Iceberg's own incremental append scan; what is looked up is read here, as of the snapshots
before the slice and before the books (time travel), so that a row has a place whatever file it has been moved to.
"""

from collections import Counter
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tallystick.contract.equality import row_money
from tallystick.contract.ledger import LedgerSection
from tallystick.contract.sql_names import bare, parts_of
from tallystick.host.extras import require
from tallystick.ledger.iceberg.catalog import catalog_properties, failures
from tallystick.ledger.iceberg.history import (
    appends,
    as_file,
    as_told,
    change_text,
    expired_part,
    is_inside,
    lineage_of,
    position_of,
    rolled_back,
)
from tallystick.ledger.iceberg.rows import COLUMNS, AppendedRange, CountedRow, RowsOfTable
from tallystick.ledger.protocol import (
    HorizonHolder,
    LedgerDescription,
    LedgerRefused,
    LedgerRow,
)
from tallystick.ledger.unread_rows import UnreadRows
from tallystick.model.cut import FileChange, LedgerAnchor, LedgerSlice, LedgerSnapshot

if TYPE_CHECKING:
    from pyiceberg.table import Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def open_iceberg_ledger(
    address: str, ledger: LedgerSection, *, stored_slices: Callable[[], tuple[LedgerSlice, ...]]
) -> "IcebergLedger":
    """Open the table. address: the catalog's properties as a JSON object, as pyiceberg names them,
    and its `name`, under which a catalog in a database keeps its tables.

    Raises LedgerRefused, LedgerUnreachable, LibraryMissing.
    """
    require("pyiceberg")
    from pyiceberg.catalog import load_catalog

    with failures(ledger.table):
        properties = catalog_properties(address)
        catalog = load_catalog(properties.pop("name", "default"), **properties)
        return IcebergLedger(
            table=catalog.load_table(parts_of(ledger.table)), ledger=ledger, stored_slices=stored_slices
        )


@dataclass(frozen=True, kw_only=True)
class IcebergLedger:
    """The ledger of one contract in a table of Iceberg. stored_slices: those of all cuts, in order."""

    table: "Table"
    ledger: LedgerSection
    stored_slices: Callable[[], tuple[LedgerSlice, ...]]

    def describe(self) -> LedgerDescription:
        """Look at the table's format and columns."""
        from pyiceberg.types import DoubleType, FloatType, TimestamptzType

        table, columns = self._refreshed(), self.ledger.columns
        if table.metadata.format_version < 2:
            raise LedgerRefused(
                f"ledger table {self.ledger.table}: got format version 1, whose snapshots have no sequence numbers; "
                "expected 2 or more. What to do: set the table's property format-version to 2"
            )
        types = {field.name: field.field_type for field in table.schema().fields}
        wanted = columns.named(COLUMNS)
        written_at = bare(columns.written_at or "")
        for name in (*wanted, *columns.compared_names, *([written_at] if written_at else [])):
            if name not in types:
                raise LedgerRefused(
                    f"ledger table {self.ledger.table}: has no column {name}; it has {', '.join(types)}"
                )
        amount = next(iter(columns.named(["amount_minor"])), None)
        if amount and isinstance(types[amount], FloatType | DoubleType):
            raise LedgerRefused(
                f"ledger table {self.ledger.table}: column {amount}, which the contract names "
                f"amount_minor: got {types[amount]}; expected an integer or a decimal, since floating "
                "point does not hold money"
            )
        if written_at and not isinstance(types[written_at], TimestamptzType):
            raise LedgerRefused(
                f"ledger table {self.ledger.table}: column {written_at}, which the contract names written_at: "
                f"got {types[written_at]}; expected timestamptz"
            )
        return LedgerDescription(key_is_unique=False, row_id_is_unique=False)

    def read_snapshot(self) -> LedgerSnapshot:
        """Read both marks, which are one: a snapshot is in sight when it is committed, and none is open."""
        table = self._refreshed()
        newest = table.current_snapshot()
        end = 1 + (newest.sequence_number or 0 if newest else 0)
        return LedgerSnapshot(
            low_mark=end, high_mark=end, system_identifier=str(table.metadata.table_uuid), timeline=0, lsn="0/0"
        )

    def read_beginning(self) -> tuple[LedgerSnapshot, int | None]:
        return self.read_snapshot(), None

    def fix(self, ledger_slice: LedgerSlice) -> LedgerSlice:
        """Name the snapshots that the slice reads, and say what it cannot read or what changed."""
        table = self._refreshed()
        inside = [one for one in lineage_of(table) if is_inside(one, ledger_slice)]
        taken = tuple(as_file(one) for one in inside if appends(one))
        told = [*expired_part(table, ledger_slice), *(as_told(one, why) for one in inside if (why := change_text(one)))]
        earlier = self.stored_slices()
        known = {change.after.path for one in earlier for change in one.changed if change.after}
        told += [one for one in rolled_back(table, earlier) if one.path not in known]
        return replace(ledger_slice, files=taken, changed=tuple(FileChange(before=None, after=one) for one in told))

    def changed_files(self, ledger_slice: LedgerSlice) -> tuple[FileChange, ...]:
        """Return the slice's snapshots that went since it was fixed."""
        there = {f"snapshot {one.snapshot_id}" for one in lineage_of(self._refreshed())}
        gone = (file for file in ledger_slice.files if file.path not in there)
        return tuple(
            FileChange(before=file, after=replace(file, path=f"{file.path} was expired or rolled back since the cut"))
            for file in gone
        )

    def lost_anchors(self, ledger_slice: LedgerSlice) -> tuple[LedgerAnchor, ...]:
        return ()

    def holder(self, *, horizon: int) -> HorizonHolder | None:
        return None

    def first_position_at(self, at_utc: datetime, *, start: int, end: int) -> int | None:
        """Return the position of the first snapshot that was committed then or later."""
        at_ms = (at_utc - _EPOCH) // timedelta(milliseconds=1)
        later = (
            position_of(one)
            for one in lineage_of(self._refreshed())
            if start <= position_of(one) < end and one.timestamp_ms >= at_ms
        )
        return min(later, default=None)

    def count_older_rows(self, ledger_slice: LedgerSlice) -> int | None:
        return None

    def count_unread(self, ledger_slice: LedgerSlice, *, below: int, before: UnreadRows | None) -> None:
        return None

    def count_by_place(self, ledger_slice: LedgerSlice, *, cut_n: int) -> None:
        return None

    def sum_of_positions(self, *, below: int) -> None:
        return None

    def scattered_sum_of_positions(self, *, below: int) -> None:
        return None

    def look_up_rows(self, match_keys: Collection[str], ledger_slice: LedgerSlice) -> dict[str, tuple[LedgerRow, ...]]:
        """Read what the table holds of these keys now, and place each row by what it held at earlier snapshots."""
        table = self._refreshed()
        newest = table.current_snapshot()
        wanted = self._filter(table, match_keys)
        if newest is None or wanted is None:
            return {}
        rows_at = RowsOfTable(table=table, ledger=self.ledger, wanted=wanted)
        with failures(self.ledger.table):
            live = rows_at.snapshot(newest)
            before_books = rows_at.before(ledger_slice.baseline_position)
            before_slice = rows_at.before(ledger_slice.position_start)
            appended = rows_at.appended(self._range(table, ledger_slice))
        is_sure = before_books is not None and not any(one.changed for one in self.stored_slices())
        start, behind = ledger_slice.position_start, ledger_slice.position_end
        unknown = start - 1 if before_slice is None and start > ledger_slice.baseline_position else behind
        places = (
            (before_books, ledger_slice.baseline_position - 1, True),
            ((before_slice or Counter()) - (before_books or Counter()), start - 1, is_sure),
            (appended, start, True),
            (live, unknown, False),
        )
        found: dict[str, list[LedgerRow]] = {}
        for row, count in live.items():
            left = count
            for counted, position, was_read in places:
                here = min(left, counted[row]) if counted else 0
                left -= here
                one = self._ledger_row(row, position=position, was_read=was_read)
                found.setdefault(one.match_key, []).extend([one] * here)
        return {key: tuple(rows) for key, rows in found.items()}

    def keys_seen_before(self, ledger_slice: LedgerSlice) -> tuple[str, ...]:
        """Read the keys of the slice, and of all rows before it, and hold those of the slice in memory."""
        table = self._refreshed()
        own = self.appended_range(ledger_slice)
        every = RowsOfTable(table=table, ledger=self.ledger, wanted=None, columns=("match_key",))
        with failures(self.ledger.table):
            inside = every.appended(own)
            older = replace(every, only=[row[0] for row in inside if row[0] is not None])
            before = older.before(ledger_slice.position_start) if inside else None
        return tuple(sorted(_text(row[0]) for row in inside if before and before[row]))

    def keys_below(self, ledger_slice: LedgerSlice, *, below: int) -> tuple[str, ...]:
        table = self._refreshed()
        part = replace(
            ledger_slice, position_end=max(ledger_slice.position_start, min(below, ledger_slice.position_end))
        )
        every = RowsOfTable(table=table, ledger=self.ledger, wanted=None, columns=("match_key",))
        with failures(self.ledger.table):
            rows = every.appended(self._range(table, part))
        return tuple(sorted({_text(row[0]) for row in rows if row[0] is not None}))

    def held_snapshot(self) -> AbstractContextManager[None]:
        return nullcontext()

    def appended_range(self, ledger_slice: LedgerSlice) -> AppendedRange | None:
        """Return the snapshots of the slice that the table still has; None where it has none of them."""
        return self._range(self._refreshed(), ledger_slice)

    def _range(self, table: "Table", ledger_slice: LedgerSlice) -> AppendedRange | None:
        inside = sorted((one for one in lineage_of(table) if is_inside(one, ledger_slice)), key=position_of)
        if not inside:
            return None
        first, last = inside[0], inside[-1]
        is_root = first.parent_snapshot_id is None
        files: tuple[str, ...] = ()
        if is_root and appends(first):
            with failures(self.ledger.table):
                plan = table.incremental_append_scan(to_snapshot_id_inclusive=first.snapshot_id).plan_files()
                files = tuple(task.file.file_path for task in plan)
        if first == last and is_root and not files:
            return None
        return AppendedRange(
            metadata_location=table.metadata_location,
            first_id=first.snapshot_id if files else None,
            first_files=files,
            after_id=first.snapshot_id if is_root else first.parent_snapshot_id,
            last_id=None if is_root and first == last else last.snapshot_id,
        )

    def _refreshed(self) -> "Table":
        with failures(self.ledger.table):
            return self.table.refresh()

    def _filter(self, table: "Table", match_keys: Collection[str]) -> Any:
        """Return the expression for these keys, without those that a value of the column's type cannot have."""
        from pyiceberg.expressions import In
        from pyiceberg.expressions.literals import literal

        name = bare(self.ledger.columns.match_key)
        kind = table.schema().find_field(name).field_type
        fitting = []
        for key in match_keys:
            try:
                fitting.append(literal(key).to(kind).value)
            except (ValueError, TypeError, ArithmeticError):
                continue
        return In(term=name, literals=set(fitting)) if fitting else None

    def _ledger_row(self, row: CountedRow, *, position: int, was_read: bool) -> LedgerRow:
        values = dict(zip(COLUMNS, row, strict=True))
        money = row_money(values["amount_minor"], values["currency"])
        return LedgerRow(
            row_id=_text(values["row_id"]),
            match_key=_text(values["match_key"]),
            transaction_key=_text(values["transaction_key"]),
            leg=_text(values["leg"]),
            currency=money.currency,
            amount_minor=money.amount_minor,
            position=position,
            was_read=was_read,
        )


def _text(value: Any) -> str:
    return "" if value is None else str(value)
