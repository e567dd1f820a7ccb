"""A ledger in PostgreSQL, read: its horizon, who holds it, single keys with their place, and the guard of older rows.

Decides nothing. Needs SELECT on the table, and pg_read_all_stats to see since when a transaction is open.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import class_row, dict_row

from tallystick.contract.ledger import LedgerSection
from tallystick.ledger import postgres_sql
from tallystick.ledger.earlier_rows import (
    NAMED_MAX,
    EarlierRows,
    ReadSlice,
    bounds_of,
    compare,
    compare_digests,
    places_by_number,
    slice_name,
)
from tallystick.ledger.postgres_standby import read_standby_snapshot, shown_by_primary, standby_as_holder
from tallystick.ledger.postgres_table import ON_STANDBY, LedgerIsStandby, LedgerTable, describe_table
from tallystick.ledger.protocol import (
    HorizonHolder,
    LedgerDescription,
    LedgerRow,
)
from tallystick.ledger.unread_rows import UnreadCount, UnreadRows
from tallystick.model.cut import ANCHORS_MAX, FileChange, LedgerAnchor, LedgerSlice, LedgerSnapshot, anchor_of


def read_ledger_snapshot(connection: psycopg.Connection) -> LedgerSnapshot:
    """Read the horizon, flushed: without the flush a crash could give ids below it away again. Raises LedgerIsStandby.

    Before PostgreSQL 17 the flush costs a transaction id, and in a caller's transaction comes at the end of that.
    """
    try:
        with connection.cursor(row_factory=class_row(LedgerSnapshot)) as cursor:
            snapshot = cursor.execute(postgres_sql.SNAPSHOT).fetchone()
    except psycopg.errors.ObjectNotInPrerequisiteState:  # a standby writes no log, so it has no place in it
        raise LedgerIsStandby(ON_STANDBY) from None
    assert snapshot is not None
    with connection.transaction():
        for statement in postgres_sql.flush_statements(connection.info.server_version):
            connection.execute(statement)
    return snapshot


def read_beginning(
    connection: psycopg.Connection, ledger: LedgerSection, *, primary: psycopg.Connection | None = None
) -> tuple[LedgerSnapshot, int | None]:
    """Read the horizon with which books begin, and count the rows below it, in one snapshot: a row that is updated
    between two would be below the horizon of the first and in the count of neither. Raises LedgerIsStandby.
    """
    if ledger.slice_by == "written_xid":
        return _read_snapshot(connection, primary), None
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        snapshot = _read_snapshot(connection, primary)
        return snapshot, _older_rows(connection, ledger, xid_start=snapshot.low_mark)


def _read_snapshot(connection: psycopg.Connection, primary: psycopg.Connection | None) -> LedgerSnapshot:
    return read_ledger_snapshot(connection) if primary is None else read_standby_snapshot(connection, primary)


def read_horizon_holder(connection: psycopg.Connection, *, horizon: int) -> HorizonHolder | None:
    """Return the holder of the horizon: the open transaction of that very id; the first to begin may have a later one.

    None where it has ended meanwhile, or cannot be seen.
    """
    with connection.cursor(row_factory=class_row(HorizonHolder)) as cursor:
        return cursor.execute(postgres_sql.HOLDER, {"horizon": horizon}).fetchone()


def read_xid_at(
    connection: psycopg.Connection, ledger: LedgerSection, *, at_utc: datetime, xid_start: int, xid_end: int
) -> int | None:
    """Return the smallest transaction id in [xid_start, xid_end) of a row written at or after that moment.

    None where there is no such row, or where no column says when a row was written.
    """
    if ledger.columns.written_at is None:
        return None
    query = postgres_sql.first_xid_query(ledger, xid_start=xid_start, xid_end=xid_end)
    row = connection.execute(query, [at_utc]).fetchone()
    return None if row is None else row[0]


def count_older_rows(connection: psycopg.Connection, ledger: LedgerSection, *, xid_start: int) -> int | None:
    """Count rows older than the slice, in one snapshot; None where the slicing column makes the guard needless."""
    if ledger.slice_by == "written_xid":
        return None
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return _older_rows(connection, ledger, xid_start=xid_start)


def _older_rows(connection: psycopg.Connection, ledger: LedgerSection, *, xid_start: int) -> int:
    """Needs a transaction that keeps its snapshot."""
    xmax = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
    assert xmax is not None
    query = postgres_sql.older_rows_query(ledger, xid_start=xid_start, snapshot_xmax=max(xmax[0], xid_start))
    count = connection.execute(query).fetchone()
    assert count is not None
    return int(count[0])


def count_unread(
    connection: psycopg.Connection,
    ledger: LedgerSection,
    ledger_slice: LedgerSlice,
    *,
    below: int,
    before: UnreadRows | None,
    primary: psycopg.Connection | None = None,
) -> UnreadCount | None:
    """Count the rows that no cut has read, in one snapshot; None where the slicing column makes that needless.

    On a standby the snapshot is its primary's, and rows that this does not show are not among those to find again.
    """
    if ledger.slice_by == "written_xid":
        return None
    shown = None if primary is None else shown_by_primary(connection, primary)
    query = postgres_sql.unread_rows_query(
        ledger,
        xid_start=ledger_slice.position_start,
        xid_end=ledger_slice.position_end,
        below=below,
        snapshot=before.snapshot if before else None,
        shown=shown,
    )
    with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        now = cursor.execute(
            "SELECT s::text AS snapshot, pg_snapshot_xmax(s)::text::bigint AS snapshot_end FROM pg_current_snapshot() s"
        ).fetchone()
        counted = cursor.execute(query).fetchone()
    assert now is not None and counted is not None
    return UnreadCount(**now | ({"snapshot": shown} if shown else {}), **counted)


def count_by_place(
    connection: psycopg.Connection,
    ledger: LedgerSection,
    ledger_slice: LedgerSlice,
    *,
    read: Sequence[ReadSlice],
    before: EarlierRows | None,
) -> EarlierRows:
    """Count rows by place, in one snapshot, and compare with what cuts read of each slice and the run before saw.

    A row whose id the server has not given out cannot be anybody's: what a snapshot shows lies below its xmax.
    """
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        xmax = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
        assert xmax is not None
        start, next_xid = ledger_slice.position_start, max(xmax[0], ledger_slice.position_end)
        bounds = bounds_of(read, xid_start=start, xid_end=ledger_slice.position_end, next_xid=next_xid)
        query = postgres_sql.rows_by_place_query(ledger, bounds=bounds, xid_start=start, next_xid=next_xid)
        rows = connection.execute(query).fetchall()
        names = places_by_number(read)
        counts, changed = compare({names[number]: n for number, n in rows if number in names}, read, before)
        digests = _digests(connection, ledger, ledger_slice, bounds, read)
        changed += compare_digests(digests, before, changed)
        numbers = {name: number for number, name in names.items()}
        return EarlierRows(
            counts=counts,
            digests=digests,
            changed=tuple(
                replace(place, row_ids=_last_written(connection, ledger, bounds, numbers[place.name], of=place.to_name))
                for place in changed
            ),
        )


def _digests(
    connection: psycopg.Connection,
    ledger: LedgerSection,
    ledger_slice: LedgerSlice,
    bounds: Sequence[int],
    read: Sequence[ReadSlice],
) -> dict[str, str]:
    """Return a digest of the rows, by slice: of the slice itself and of the windows before it that are compared."""
    if not ledger.compared_windows:
        return {}
    own = ReadSlice(start=ledger_slice.position_start, end=ledger_slice.position_end, rows=0)
    slices = [*read, own]
    compared = slices[-1 - ledger.compared_windows :]
    query = postgres_sql.digests_query(ledger, bounds=bounds, xid_start=compared[0].start, xid_end=own.end)
    found: dict[int, str] = dict(connection.execute(query).fetchall())
    return {slice_name(one): found.get(slices.index(one) + 1, "") for one in compared if one.start < one.end}


def _last_written(
    connection: psycopg.Connection, ledger: LedgerSection, bounds: Sequence[int], number: int | None, *, of: int
) -> tuple[str, ...]:
    limit = min(of, NAMED_MAX)
    query = postgres_sql.last_written_query(ledger, bounds=bounds, number=number, limit=limit)
    return tuple(row[0] for row in connection.execute(query)) if limit else ()


def look_up_rows(
    connection: psycopg.Connection,
    ledger: LedgerSection,
    table: LedgerTable,
    match_keys: Collection[str],
    *,
    near_xid: int,
) -> dict[str, tuple[LedgerRow, ...]]:
    """Return every visible row of the given keys in the whole ledger. Keys without a row are not in the answer.

    A key that is no value of the column's type stands nowhere.
    """
    pairing = postgres_sql.beside_parameters(postgres_sql.pairing_condition(ledger))
    query = f"""
        SELECT {postgres_sql.column_list(ledger)}, {postgres_sql.receipt_list(ledger)},
               {postgres_sql.repair_list(ledger)},
               {postgres_sql.row_xid(ledger, near_xid=near_xid)} AS position
        FROM {ledger.table}
        WHERE {pairing} AND {table.asked_keys(ledger)}
        ORDER BY position, 1"""
    found: dict[str, list[LedgerRow]] = {}
    with connection.cursor(row_factory=class_row(LedgerRow)) as cursor:
        for row in cursor.execute(query, {"type": table.key_type, "keys": sorted(match_keys)}):
            found.setdefault(row.match_key, []).append(row)
    return {key: tuple(rows) for key, rows in found.items()}


def keys_seen_before(
    connection: psycopg.Connection, ledger: LedgerSection, *, xid_start: int, xid_end: int
) -> tuple[str, ...]:
    """Return keys of the slice with older rows too, or whose row takes another one back. One query; needless where
    the key has a unique index, and no column names what a row takes back.
    """
    key = ledger.columns.match_key
    inside = postgres_sql.slice_condition(ledger, xid_start=xid_start, xid_end=xid_end)
    pairing = postgres_sql.pairing_condition(ledger)
    row_xid = postgres_sql.row_xid(ledger, near_xid=xid_start)
    query = f"""
        SELECT DISTINCT slice.key::text FROM
            (SELECT {key} AS key FROM {ledger.table} WHERE {inside} AND {pairing}) AS slice
            JOIN (SELECT {key} AS key, {row_xid} AS row_xid FROM {ledger.table} WHERE {pairing}) AS older USING (key)
        WHERE older.row_xid < {xid_start}"""
    if reverses := ledger.columns.reverses:
        query += (
            f" UNION SELECT {key}::text FROM {ledger.table} WHERE {inside} AND {pairing} AND {reverses} IS NOT NULL"
        )
    query += " ORDER BY 1"
    return tuple(row[0] for row in connection.execute(query))


def keys_between(
    connection: psycopg.Connection, ledger: LedgerSection, *, xid_start: int, xid_end: int
) -> tuple[str, ...]:
    """Return keys of all rows there."""
    key = ledger.columns.match_key
    inside = postgres_sql.slice_condition(ledger, xid_start=xid_start, xid_end=xid_end)
    pairing = postgres_sql.pairing_condition(ledger)
    query = f"SELECT DISTINCT {key}::text FROM {ledger.table} WHERE {inside} AND {pairing} AND {key} IS NOT NULL"
    return tuple(sorted(row[0] for row in connection.execute(query)))


def read_anchors(
    connection: psycopg.Connection, ledger: LedgerSection, *, of: Collection[int] | None = None
) -> tuple[LedgerAnchor, ...]:
    """Read the rows with the largest row ids, which are integers, or those of these ids; whatever their position.

    By names of their own: ORDER BY takes a name for that of the text, which is in another order and has no index.
    """
    row_id, key = ledger.columns.row_id, ledger.columns.match_key
    newest = f"{row_id} IS NOT NULL AND {postgres_sql.pairing_condition(ledger)}"
    query = f"""
        SELECT {row_id}::text AS id_text, {key}::text AS key_text FROM {ledger.table}
        WHERE {newest if of is None else f"{row_id} = ANY(%(of)s)"}
        ORDER BY {row_id} DESC LIMIT {ANCHORS_MAX}"""
    parameters = None if of is None else {"of": list(of)}  # without any a % of the condition is one
    return tuple(anchor_of(name, match_key or "") for name, match_key in connection.execute(query, parameters))


@contextmanager
def held_snapshot(connection: psycopg.Connection, ledger: LedgerSection) -> Iterator[str]:
    """Hold one snapshot for all that a scan reads, by its exported name; this connection reads under it too.

    The lock, which comes first, keeps VACUUM FULL and CLUSTER from moving rows between the halves of a scan, and the
    snapshot an UPDATE. Source: PostgreSQL manual, snapshot synchronization functions.
    """
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(f"LOCK TABLE {ledger.table} IN ACCESS SHARE MODE")
        exported = connection.execute("SELECT pg_export_snapshot()").fetchone()
        assert exported is not None
        yield exported[0]


@dataclass(frozen=True, kw_only=True)
class PostgresLedger:
    """The ledger of one contract in PostgreSQL; its positions are transaction ids."""

    connection: psycopg.Connection
    ledger: LedgerSection
    primary: psycopg.Connection | None = None
    """Of a ledger that is read on a standby; says how far a window reaches, and who holds it back."""
    read_before: Callable[[int], tuple[ReadSlice, ...]] = lambda cut_n: ()
    """The slices that cuts before this one have read."""
    counted_before: Callable[[int], EarlierRows | None] = lambda cut_n: None
    """The counts by place of the run before."""

    def describe(self) -> LedgerDescription:
        table = describe_table(self.connection, self.ledger)
        known_alone = table.key_is_unique and self.ledger.columns.reverses is None
        return LedgerDescription(
            key_is_unique=known_alone,
            row_id_is_unique=table.row_id_is_unique,
            halves_by=table.halves_by,
            row_id_is_integer=table.row_id_is_integer,
        )

    def read_snapshot(self) -> LedgerSnapshot:
        return _read_snapshot(self.connection, self.primary)

    def read_beginning(self) -> tuple[LedgerSnapshot, int | None]:
        return read_beginning(self.connection, self.ledger, primary=self.primary)

    def fix(self, ledger_slice: LedgerSlice) -> LedgerSlice:
        table = describe_table(self.connection, self.ledger)
        if not (table.row_id_is_unique and table.row_id_is_integer):
            return ledger_slice
        return replace(ledger_slice, anchors=read_anchors(self.connection, self.ledger))

    def changed_files(self, ledger_slice: LedgerSlice) -> tuple[FileChange, ...]:
        return ()

    def lost_anchors(self, ledger_slice: LedgerSlice) -> tuple[LedgerAnchor, ...]:
        """Return those whose row id another row has. One that is gone may have been archived."""
        anchors = ledger_slice.anchors
        there = read_anchors(self.connection, self.ledger, of=[int(one.row_id) for one in anchors]) if anchors else ()
        others = {one.row_id for one in there if one not in anchors}
        return tuple(replace(one, taken=True) for one in anchors if one.row_id in others)

    def holder(self, *, horizon: int) -> HorizonHolder | None:
        if self.primary is None:
            return read_horizon_holder(self.connection, horizon=horizon)
        holder = read_horizon_holder(self.primary, horizon=horizon)
        return holder or standby_as_holder(self.connection, self.primary, horizon=horizon)

    def first_position_at(self, at_utc: datetime, *, start: int, end: int) -> int | None:
        return read_xid_at(self.connection, self.ledger, at_utc=at_utc, xid_start=start, xid_end=end)

    def count_older_rows(self, ledger_slice: LedgerSlice) -> int | None:
        return count_older_rows(self.connection, self.ledger, xid_start=ledger_slice.position_start)

    def count_unread(self, ledger_slice: LedgerSlice, *, below: int, before: UnreadRows | None) -> UnreadCount | None:
        return count_unread(
            self.connection, self.ledger, ledger_slice, below=below, before=before, primary=self.primary
        )

    def sum_of_positions(self, *, below: int) -> None:
        return None

    def scattered_sum_of_positions(self, *, below: int) -> None:
        return None

    def count_by_place(self, ledger_slice: LedgerSlice, *, cut_n: int) -> EarlierRows | None:
        if self.ledger.slice_by != "written_xid":
            return None
        return count_by_place(
            self.connection, self.ledger, ledger_slice, read=self.read_before(cut_n), before=self.counted_before(cut_n)
        )

    def look_up_rows(self, match_keys: Collection[str], ledger_slice: LedgerSlice) -> dict[str, tuple[LedgerRow, ...]]:
        table = describe_table(self.connection, self.ledger)
        return look_up_rows(self.connection, self.ledger, table, match_keys, near_xid=ledger_slice.position_end)

    def keys_seen_before(self, ledger_slice: LedgerSlice) -> tuple[str, ...]:
        return keys_seen_before(
            self.connection, self.ledger, xid_start=ledger_slice.position_start, xid_end=ledger_slice.position_end
        )

    def keys_below(self, ledger_slice: LedgerSlice, *, below: int) -> tuple[str, ...]:
        start, end = ledger_slice.position_start, min(ledger_slice.position_end, below)
        return keys_between(self.connection, self.ledger, xid_start=start, xid_end=end) if start < end else ()

    def rows_by_id(self, row_ids: Collection[int], ledger_slice: LedgerSlice) -> list[dict[str, Any]]:
        """Return the slice's rows of these ids, as a scan of the slice reads them. Needs `row_id_is_integer`."""
        query = postgres_sql.rows_query(
            self.ledger, xid_start=ledger_slice.position_start, xid_end=ledger_slice.position_end
        )
        return self.connection.cursor(row_factory=dict_row).execute(query, [list(row_ids)]).fetchall()

    def held_snapshot(self) -> AbstractContextManager[str]:
        return held_snapshot(self.connection, self.ledger)
