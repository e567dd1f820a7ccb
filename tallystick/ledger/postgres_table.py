"""The properties of a table that a contract needs, read from the catalogue."""

from dataclasses import dataclass

import psycopg
from psycopg import adapters
from psycopg.rows import class_row

from tallystick.contract.ledger import LedgerSection
from tallystick.contract.sql_names import bare
from tallystick.ledger import postgres_sql
from tallystick.ledger.protocol import (
    LedgerRefused,
    not_unique_row_id,
)

_DESCRIBE = """
SELECT current_setting('server_version_num')::int AS server_version,
       pg_is_in_recovery() AS on_standby, row_security_active(c.oid) AS rows_hidden, c.relkind::text AS kind,
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


class LedgerHidesRows(LedgerRefused):
    """Row-level security keeps rows from this role: what it does not see it would call missing."""


@dataclass(frozen=True, kw_only=True)
class LedgerTable:
    """The catalogue's facts of the contract's table. block_count: 0 for a partitioned one.

    server_version: as 130023.
    """

    server_version: int
    kind: str
    block_count: int
    key_type: str | None
    row_id_is_integer: bool
    row_id_is_unique: bool
    """Proven by an index over all its rows, and never null."""
    key_is_unique: bool
    on_standby: bool
    rows_hidden: bool
    fills_written_xid: bool | None
    """True if each new row gets one, by a default or a trigger. None: there is no such column."""

    @property
    def halves_by(self) -> int | None:
        """Blocks to cut the scan at, where the table's rows lie in blocks of its own and half of them can be read.

        PostgreSQL 13 reads the whole table for each half. Source: release notes of 14, scans by a range of ctid.
        """
        return self.block_count if self.kind == "r" and self.server_version >= 140_000 else None

    def asked_keys(self, ledger: LedgerSection) -> str:
        """Return the condition of rows whose key is one of the parameter `keys`, a text[]; `type`: the column's."""
        return postgres_sql.asked_keys(ledger.columns.match_key, str(self.key_type), self.server_version)


def describe_table(connection: psycopg.Connection, ledger: LedgerSection) -> LedgerTable:
    """Look the table up. Raises LedgerRefused unless it is a base table with the contract's columns, on a primary
    server or on a standby whose primary is asked too, of which this role sees every row.
    """
    named = {"table": ledger.table, "key": bare(ledger.columns.match_key), "row_id": bare(ledger.columns.row_id)}
    with connection.cursor(row_factory=class_row(LedgerTable)) as cursor:
        table = cursor.execute(_DESCRIBE, named).fetchone()
    if table is None:
        raise LedgerRefused(f"ledger table {ledger.table}: no such table, or this role may not see its schema")
    if table.kind not in ("r", "p"):
        raise LedgerRefused(
            f"ledger table {ledger.table}: is no base table; rows seen through a view have no transaction id"
        )
    if table.on_standby and ledger.primary_connection is None:
        raise LedgerIsStandby(ON_STANDBY)
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
            f"{postgres_sql.row_xid(ledger, near_xid=0)}{postgres_sql.compared_list(ledger)} "
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


def _require_moment(connection: psycopg.Connection, ledger: LedgerSection) -> None:
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


ON_STANDBY = (
    "ledger: the connection leads to a standby (pg_is_in_recovery); expected the primary. A replica shows an earlier "
    "state and cannot say how much earlier, so rows that were committed in time would be called missing. What to do: "
    "let the contract's ledger connection name the primary; the reader only selects. Or name a connection to the "
    "primary as ledger.primary_connection: then rows are read here, and the primary says how far a window reaches."
)


def _unfilled_column(ledger: LedgerSection, table: LedgerTable) -> str:
    got = "no such column" if table.fills_written_xid is None else "no default and no trigger fills it"
    add, default = postgres_sql.written_xid_statements(ledger.table)
    return (
        f"ledger table {ledger.table}: column written_xid: {got}, so that a new row would be in no slice; expected "
        f"what these two give it, in this order and apart: {add} {default}"
    )


class LedgerIsStandby(LedgerRefused):
    """The connection leads to a replica, which shows the past and cannot say how far back."""
