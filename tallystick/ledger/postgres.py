"""A ledger in PostgreSQL, read: its horizon, who holds it, single keys with their place, and the guard of older rows.

Decides nothing. Needs SELECT on the table, and pg_read_all_stats to see since when a transaction is open.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg
from psycopg import adapters
from psycopg.conninfo import make_conninfo
from psycopg.rows import class_row, dict_row

from tallystick.connections.postgres_address import JDBC_READ_ONLY, as_asked, jdbc_options, with_settings
from tallystick.connections.postgres_failures import what_to_do
from tallystick.contract.ledger import LedgerSide
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
from tallystick.ledger.protocol import (
    HorizonHolder,
    LedgerDescription,
    LedgerReadCancelled,
    LedgerRefused,
    LedgerRow,
    LedgerUnreachable,
    not_unique_row_id,
)
from tallystick.model.cut import FileChange, LedgerSlice, LedgerSnapshot

APPLICATION_NAME = "tallystick"
"""What each session of ours in a ledger says it is."""
_CONNECT_TIMEOUT_SECONDS = 10

VERSION_MIN = 17
"""Of PostgreSQL: pg_logical_emit_message has its argument `flush` from 17 on, pg_input_is_valid came with 16."""

_SNAPSHOT = """
SELECT xmin, greatest(xmax, xmin + age((xmin & 4294967295)::text::xid)) AS xmax,
       (SELECT system_identifier::text FROM pg_control_system()) AS system_identifier,
       ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int AS timeline,
       pg_current_wal_lsn()::text AS lsn
FROM (SELECT pg_snapshot_xmin(s)::text::bigint AS xmin, pg_snapshot_xmax(s)::text::bigint AS xmax
      FROM pg_current_snapshot() s) AS snapshot"""
"""A snapshot's own xmax is the last *ended* id plus one: open transactions and their savepoints may have ids above it.

Age counts from the next id to be given out; of a savepoint that is open nothing else tells.
"""

_HOLDER = """
SELECT xid, holder, since FROM (
    SELECT backend_xid::text::bigint AS xid, xact_start AS since,
           format('session %%s (%%s) of %%s in database %%s, state %%s', pid,
                  coalesce(nullif(application_name, ''), 'no name'), usename, datname,
                  coalesce(state, 'not shown without pg_read_all_stats')) AS holder
    FROM pg_stat_activity WHERE backend_xid IS NOT NULL
    UNION ALL
    SELECT transaction::text::bigint, prepared,
           format('prepared transaction %%s of %%s in database %%s', gid, owner, database)
    FROM pg_prepared_xacts
) AS open WHERE xid = %(horizon)s & 4294967295"""

_DESCRIBE = """
SELECT pg_is_in_recovery() AS on_standby, row_security_active(c.oid) AS rows_hidden, c.relkind::text AS kind,
       (pg_relation_size(c.oid) / current_setting('block_size')::int)::int AS block_count,
       format_type(a.atttypid, a.atttypmod) AS key_type,
       EXISTS (SELECT 1 FROM pg_attribute r WHERE r.attrelid = c.oid AND r.attname = %(row_id)s AND NOT r.attisdropped
               AND r.attnotnull AND r.atttypid IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype))
           AS row_id_is_integer,
       EXISTS (SELECT 1 FROM pg_attribute r JOIN pg_index i ON i.indrelid = r.attrelid AND i.indkey[0] = r.attnum
               WHERE r.attrelid = c.oid AND r.attname = %(row_id)s AND NOT r.attisdropped AND r.attnotnull
               AND i.indisunique AND i.indpred IS NULL AND i.indisvalid AND i.indnkeyatts = 1)
           AND (c.relkind = 'p' OR NOT EXISTS (SELECT 1 FROM pg_inherits h WHERE h.inhparent = c.oid))
           AS row_id_is_unique,
       (SELECT d.oid IS NOT NULL OR w.attgenerated <> '' OR EXISTS (
                   SELECT 1 FROM pg_trigger g WHERE g.tgrelid = c.oid AND g.tgtype & 7 = 7 AND NOT g.tgisinternal)
        FROM pg_attribute w LEFT JOIN pg_attrdef d ON d.adrelid = w.attrelid AND d.adnum = w.attnum
        WHERE w.attrelid = c.oid AND w.attname = 'written_xid' AND NOT w.attisdropped) AS fills_written_xid,
       EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indpred IS NULL
               AND i.indisvalid AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum)
       AND (c.relkind = 'p' OR NOT EXISTS (SELECT 1 FROM pg_inherits h WHERE h.inhparent = c.oid)) AS key_is_unique
FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = %(key)s AND NOT a.attisdropped
WHERE c.oid = to_regclass(%(table)s)"""


class LedgerIsStandby(LedgerRefused):
    """The connection leads to a replica, which shows the past and cannot say how far back."""


class LedgerTooOld(LedgerRefused):
    """The server lacks functions that every read here needs."""


class LedgerHidesRows(LedgerRefused):
    """Row-level security keeps rows from this role: what it does not see it would call missing."""


@dataclass(frozen=True, kw_only=True)
class LedgerTable:
    """What the catalogue says of the contract's table. block_count: 0 for a partitioned one."""

    kind: str
    block_count: int
    key_type: str | None
    row_id_is_integer: bool
    row_id_is_unique: bool
    """By an index over all its rows, and never null."""
    key_is_unique: bool
    on_standby: bool
    rows_hidden: bool
    fills_written_xid: bool | None
    """Does each new row get one, by a default or a trigger? None: there is no such column."""

    @property
    def halves_by(self) -> int | None:
        """Blocks to cut the scan at, where the table's rows lie in blocks of its own."""
        return self.block_count if self.kind == "r" else None


def read_database_identity(dsn: str) -> str:
    """Which database an address leads to, in the same words for every address of it. Raises LedgerUnreachable."""
    query = "SELECT system_identifier::text || '/' || current_database() FROM pg_control_system()"
    with open_ledger(dsn) as connection:
        (identity,) = connection.execute(query).fetchone() or ("",)
    return str(identity)


@contextmanager
def open_ledger(dsn: str, *, may_write: bool = False) -> Iterator[psycopg.Connection]:
    """A connection in autocommit, closed at the end; the server refuses its writes, unless it may.

    Raises LedgerUnreachable without the password in its message, LedgerTooOld, LedgerReadCancelled, and LedgerRefused
    where what was to be read would write.
    """
    try:
        connection = psycopg.connect(_address(_asked(dsn, may_write=may_write)), autocommit=True)
    except psycopg.OperationalError as error:
        said = str(error).strip()
        raise LedgerUnreachable(f"ledger: {said.splitlines()[0]}{what_to_do(said)}") from None
    try:
        with connection:
            _require_version(connection)
            yield connection
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise LedgerRefused(
            f"ledger: {str(error).strip().splitlines()[0]}: the contract's condition, or a function in it, writes; "
            "expected one that only reads"
        ) from error
    except psycopg.OperationalError as error:
        said = str(error).strip().splitlines()[0]
        if error.sqlstate in _CANCELLED:
            raise LedgerReadCancelled(
                f"ledger: the server cancelled a read: {said} (SQLSTATE {error.sqlstate}): {_CANCELLED[error.sqlstate]}"
            ) from error
        raise LedgerUnreachable(f"ledger: {type(error).__name__}: {said}") from error


def _require_version(connection: psycopg.Connection) -> None:
    """Raises LedgerTooOld."""
    server = connection.info
    if server.server_version < VERSION_MIN * 10_000:
        raise LedgerTooOld(
            f"ledger: PostgreSQL {server.parameter_status('server_version')} at {server.host}:{server.port}; expected "
            f"{VERSION_MIN} or newer, as no other can flush the horizon of a cut to its log; upgrade the server, "
            "or let the contract read it with kind: jdbc"
        )


_CANCELLED = {
    "40001": "a replica gave up our read to go on replaying; point the connection at the primary",
    "40P01": "a deadlock with another session; try again",
    "57014": "its time limit is too short for this table; raise statement_timeout for the reader's role",
    "55P03": "another session holds the table's lock; try again, or raise lock_timeout for the reader's role",
    "25P03": "our transaction was idle too long; raise idle_in_transaction_session_timeout for the reader's role",
    "57P01": "somebody ended our session or stopped the server; try again",
}
"""What to do, by SQLSTATE. A retry may cure each, so none leaves a verdict. Source: PostgreSQL manual, appendix A."""


def scan_address(dsn: str) -> str:
    """Where and how an executor reads a slice, as libpq reads it: as `open_ledger` does, and from a primary only."""
    return make_conninfo(_address(_asked(dsn)), target_session_attrs="primary")


def jdbc_scan_options(dsn: str) -> dict[str, str]:
    """The same for Spark's JDBC source. Raises ConnectionNotGiven where that can be told less than the address asks."""
    asked = with_settings(as_asked(dsn), postgres_sql.HIDE_NOTHING)
    known = {"driver": "org.postgresql.Driver", "targetServerType": "primary"}
    return jdbc_options(asked) | known | JDBC_READ_ONLY


def _address(asked: Mapping[str, str]) -> str:
    ours = {"application_name": APPLICATION_NAME, "connect_timeout": str(_CONNECT_TIMEOUT_SECONDS)}
    return make_conninfo(**{**asked, **ours})


def _asked(dsn: str, *, may_write: bool = False) -> dict[str, str]:
    """The address with what every session in a ledger sets. Raises ConnectionNotGiven."""
    asked = with_settings(as_asked(dsn), postgres_sql.HIDE_NOTHING)
    if may_write:
        return asked
    if asked.get("target_session_attrs") == "read-write":  # by which libpq means the session too, and ours is not
        asked["target_session_attrs"] = "primary"
    return with_settings(asked, postgres_sql.READ_ONLY)


def describe_table(connection: psycopg.Connection, ledger: LedgerSide) -> LedgerTable:
    """Look the table up. Raises LedgerRefused unless it is a base table with the contract's columns, on a primary
    server, of which this role sees every row.
    """
    named = {"table": ledger.table, "key": ledger.columns.match_key, "row_id": ledger.columns.row_id}
    with connection.cursor(row_factory=class_row(LedgerTable)) as cursor:
        table = cursor.execute(_DESCRIBE, named).fetchone()
    if table is None:
        raise LedgerRefused(f"ledger table {ledger.table}: no such table, or this role may not see its schema")
    if table.kind not in ("r", "p"):
        raise LedgerRefused(
            f"ledger table {ledger.table}: is no base table; rows seen through a view have no transaction id"
        )
    if table.on_standby:
        raise LedgerIsStandby(_ON_STANDBY)
    if table.rows_hidden:
        raise LedgerHidesRows(
            f"ledger table {ledger.table}: row-level security is in force for role {connection.info.user}, and a row "
            "that a policy hides would be called missing; expected a reader that sees every row. What to do: as a "
            f"superuser, ALTER ROLE {connection.info.user} BYPASSRLS; a policy that lets all rows through is not enough"
        )
    if ledger.slice_by == "written_xid" and not table.fills_written_xid:
        raise LedgerRefused(_unfilled_column(ledger, table))
    try:
        connection.execute(
            f"SELECT {postgres_sql.column_list(ledger)}, {postgres_sql.receipt_list(ledger)}, "
            f"{postgres_sql.repair_list(ledger)}, {postgres_sql.written_ms(ledger)}, "
            f"{postgres_sql.row_xid(ledger, near_xid=0)} "
            f"FROM {ledger.table} WHERE {postgres_sql.pairing_condition(ledger)} LIMIT 0"
        )
    except psycopg.OperationalError:
        raise  # of the server, not of the contract
    except psycopg.Error as error:
        raise LedgerRefused(f"ledger table {ledger.table}: {str(error).strip().splitlines()[0]}") from error
    _require_moment(connection, ledger)
    if table.kind == "r" and not table.row_id_is_unique:
        raise LedgerRefused(not_unique_row_id(f"ledger table {ledger.table}", ledger.columns.row_id))
    return table


def _require_moment(connection: psycopg.Connection, ledger: LedgerSide) -> None:
    """A moment without a zone would be read in the session's. Raises LedgerRefused."""
    column = ledger.columns.written_at
    if column is None:
        return
    described = connection.execute(f"SELECT {column} FROM {ledger.table} LIMIT 0").description
    assert described is not None
    if described[0].type_code != adapters.types["timestamptz"].oid:
        raise LedgerRefused(
            f"ledger table {ledger.table}: column {column}, which the contract names written_at: "
            f"got {described[0].type_display}; expected timestamptz"
        )


_ON_STANDBY = (
    "ledger: the connection leads to a standby (pg_is_in_recovery); expected the primary. A replica shows an earlier "
    "state and cannot say how much earlier, so rows that were committed in time would be called missing. What to do: "
    "let the contract's ledger connection name the primary; the reader only selects."
)


def _unfilled_column(ledger: LedgerSide, table: LedgerTable) -> str:
    got = "no such column" if table.fills_written_xid is None else "no default and no trigger fills it"
    add, default = postgres_sql.written_xid_statements(ledger.table)
    return (
        f"ledger table {ledger.table}: column written_xid: {got}, so that a new row would be in no slice; expected "
        f"what these two give it, in this order and apart: {add} {default}"
    )


def read_ledger_snapshot(connection: psycopg.Connection) -> LedgerSnapshot:
    """The horizon, flushed: without the flush a crash could give ids below it away again. Raises LedgerIsStandby.

    Source: PostgreSQL manual, pg_logical_emit_message (its flush argument needs PostgreSQL 17).
    """
    try:
        with connection.cursor(row_factory=class_row(LedgerSnapshot)) as cursor:
            snapshot = cursor.execute(_SNAPSHOT).fetchone()
    except psycopg.errors.ObjectNotInPrerequisiteState:  # a standby writes no log, so it has no place in it
        raise LedgerIsStandby(_ON_STANDBY) from None
    assert snapshot is not None
    connection.execute("SELECT pg_logical_emit_message(false, 'tallystick', 'cut', true)")
    return snapshot


def read_horizon_holder(connection: psycopg.Connection, *, horizon: int) -> HorizonHolder | None:
    """Who holds the horizon there: the open transaction of that very id; who began first may have a later one.

    None where it has ended meanwhile, or cannot be seen.
    """
    with connection.cursor(row_factory=class_row(HorizonHolder)) as cursor:
        return cursor.execute(_HOLDER, {"horizon": horizon}).fetchone()


def read_xid_at(
    connection: psycopg.Connection, ledger: LedgerSide, *, at_utc: datetime, xid_start: int, xid_end: int
) -> int | None:
    """The smallest transaction id in [xid_start, xid_end) of a row written at or after that moment.

    None where there is no such row, or where no column says when a row was written.
    """
    if ledger.columns.written_at is None:
        return None
    query = postgres_sql.first_xid_query(ledger, xid_start=xid_start, xid_end=xid_end)
    row = connection.execute(query, [at_utc]).fetchone()
    return None if row is None else row[0]


def count_older_rows(connection: psycopg.Connection, ledger: LedgerSide, *, xid_start: int) -> int | None:
    """Rows older than the slice, in one snapshot; None where the slicing column makes the guard needless."""
    if ledger.slice_by == "written_xid":
        return None
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        xmax = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
        assert xmax is not None
        query = postgres_sql.older_rows_query(ledger, xid_start=xid_start, snapshot_xmax=max(xmax[0], xid_start))
        count = connection.execute(query).fetchone()
        assert count is not None
        return int(count[0])


def count_by_place(
    connection: psycopg.Connection,
    ledger: LedgerSide,
    ledger_slice: LedgerSlice,
    *,
    read: Sequence[ReadSlice],
    before: EarlierRows | None,
) -> EarlierRows:
    """Rows by where their ids lie, in one snapshot, against what cuts have read of each slice, and the run before saw.

    A row whose id the server has not given out cannot be anybody's: what a snapshot shows lies below its xmax.
    """
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        xmax = connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchone()
        assert xmax is not None
        start, next_xid = ledger_slice.xid_start, max(xmax[0], ledger_slice.xid_end)
        bounds = bounds_of(read, xid_start=start, xid_end=ledger_slice.xid_end, next_xid=next_xid)
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
    ledger: LedgerSide,
    ledger_slice: LedgerSlice,
    bounds: Sequence[int],
    read: Sequence[ReadSlice],
) -> dict[str, str]:
    """What the rows say of the slice itself and of the windows before it that the contract compares, by slice."""
    if not ledger.compared_windows:
        return {}
    own = ReadSlice(start=ledger_slice.xid_start, end=ledger_slice.xid_end, rows=0)
    slices = [*read, own]
    compared = slices[-1 - ledger.compared_windows :]
    query = postgres_sql.digests_query(ledger, bounds=bounds, xid_start=compared[0].start, xid_end=own.end)
    found: dict[int, str] = dict(connection.execute(query).fetchall())
    return {slice_name(one): found.get(slices.index(one) + 1, "") for one in compared if one.start < one.end}


def _last_written(
    connection: psycopg.Connection, ledger: LedgerSide, bounds: Sequence[int], number: int | None, *, of: int
) -> tuple[str, ...]:
    limit = min(of, NAMED_MAX)
    query = postgres_sql.last_written_query(ledger, bounds=bounds, number=number, limit=limit)
    return tuple(row[0] for row in connection.execute(query)) if limit else ()


def look_up_rows(
    connection: psycopg.Connection,
    ledger: LedgerSide,
    table: LedgerTable,
    match_keys: Collection[str],
    *,
    near_xid: int,
) -> dict[str, tuple[LedgerRow, ...]]:
    """Every visible row of the given keys in the whole ledger. Keys that stand nowhere are not in the answer.

    A key that is no value of the column's type stands nowhere.
    """
    pairing = postgres_sql.beside_parameters(postgres_sql.pairing_condition(ledger))
    query = f"""
        SELECT {postgres_sql.column_list(ledger)}, {postgres_sql.receipt_list(ledger)}, {postgres_sql.repair_list(ledger)},
               {postgres_sql.row_xid(ledger, near_xid=near_xid)} AS row_xid
        FROM {ledger.table}
        WHERE {pairing} AND {ledger.columns.match_key} = ANY(ARRAY(
            SELECT CASE WHEN pg_input_is_valid(asked, %(type)s) THEN asked::{table.key_type} END
            FROM unnest(%(keys)s::text[]) AS asked))
        ORDER BY row_xid, 1"""
    found: dict[str, list[LedgerRow]] = {}
    with connection.cursor(row_factory=class_row(LedgerRow)) as cursor:
        for row in cursor.execute(query, {"type": table.key_type, "keys": sorted(match_keys)}):
            found.setdefault(row.match_key, []).append(row)
    return {key: tuple(rows) for key, rows in found.items()}


def keys_seen_before(
    connection: psycopg.Connection, ledger: LedgerSide, *, xid_start: int, xid_end: int
) -> tuple[str, ...]:
    """Keys of the slice that also stand in older rows, or whose row takes another one back. One query; needless where
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


@contextmanager
def held_snapshot(connection: psycopg.Connection, ledger: LedgerSide) -> Iterator[str]:
    """One snapshot for all that a scan reads, by its exported name; this connection reads under it too.

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
    ledger: LedgerSide
    read_before: Callable[[int], tuple[ReadSlice, ...]] = lambda cut_n: ()
    """The slices that cuts before this one have read."""
    counted_before: Callable[[int], EarlierRows | None] = lambda cut_n: None
    """What the run before counted by place."""

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
        return read_ledger_snapshot(self.connection)

    def fix(self, ledger_slice: LedgerSlice) -> LedgerSlice:
        return ledger_slice

    def changed_files(self, ledger_slice: LedgerSlice) -> tuple[FileChange, ...]:
        return ()

    def holder(self, *, horizon: int) -> HorizonHolder | None:
        return read_horizon_holder(self.connection, horizon=horizon)

    def first_position_at(self, at_utc: datetime, *, start: int, end: int) -> int | None:
        return read_xid_at(self.connection, self.ledger, at_utc=at_utc, xid_start=start, xid_end=end)

    def count_older_rows(self, ledger_slice: LedgerSlice) -> int | None:
        return count_older_rows(self.connection, self.ledger, xid_start=ledger_slice.xid_start)

    def sum_of_positions(self, *, below: int) -> None:
        return None

    def count_by_place(self, ledger_slice: LedgerSlice, *, cut_n: int) -> EarlierRows | None:
        if self.ledger.slice_by != "written_xid":
            return None
        return count_by_place(
            self.connection, self.ledger, ledger_slice, read=self.read_before(cut_n), before=self.counted_before(cut_n)
        )

    def look_up_rows(self, match_keys: Collection[str], ledger_slice: LedgerSlice) -> dict[str, tuple[LedgerRow, ...]]:
        table = describe_table(self.connection, self.ledger)
        return look_up_rows(self.connection, self.ledger, table, match_keys, near_xid=ledger_slice.xid_end)

    def keys_seen_before(self, ledger_slice: LedgerSlice) -> tuple[str, ...]:
        return keys_seen_before(
            self.connection, self.ledger, xid_start=ledger_slice.xid_start, xid_end=ledger_slice.xid_end
        )

    def rows_by_id(self, row_ids: Collection[int], ledger_slice: LedgerSlice) -> list[dict[str, Any]]:
        """The slice's rows of these ids, as a scan of the slice reads them. Needs `row_id_is_integer`."""
        query = postgres_sql.rows_query(self.ledger, xid_start=ledger_slice.xid_start, xid_end=ledger_slice.xid_end)
        return self.connection.cursor(row_factory=dict_row).execute(query, [list(row_ids)]).fetchall()

    def held_snapshot(self) -> AbstractContextManager[str]:
        return held_snapshot(self.connection, self.ledger)
