"""The SQL that slices a ledger by database transaction id. Text only; runs nothing.

Literals only, and the row's own id modulo 2^32: `age(xmin)` counts from the next id to be given out while a snapshot's
xmax is the last completed one plus one, so with open writers a row read by age falls between two windows; and
`pg_visible_in_snapshot` takes a row written under a savepoint for visible while its parent is open.
Identifiers come from a validated contract (lower case letters, digits, _), so they need no quoting.
"""

from collections.abc import Sequence

from tallystick.contract.equality import LONG_MAX, LONG_MIN, TEXT_LENGTH_MAX
from tallystick.contract.field_types import Constant
from tallystick.contract.ledger import LedgerSection
from tallystick.text.money import codes_by_digits

_XID_MASK = 4294967295
_HALF_RANGE = 2147483648
_FIRST_NORMAL_XID = 3
"""Ids 1 and 2 mark bootstrap and frozen rows. Source: PostgreSQL, access/transam.h."""


HIDE_NOTHING = "row_security=off"
"""Setting of every session that reads a ledger: rows that a policy would hide are an error, not an absence."""

READ_ONLY = "default_transaction_read_only=on"
"""Setting of every session that only reads a ledger, whatever the contract's condition calls and its role may write."""

XMIN_WIDTH_MAX = _HALF_RANGE
"""Number of ids that a slice by xmin may span: a row keeps 32 bits of its id, and the half behind must stay apart."""


SNAPSHOT = """
SELECT xmin AS low_mark, greatest(xmax, xmin + age((xmin & 4294967295)::text::xid)) AS high_mark,
       (SELECT system_identifier::text FROM pg_control_system()) AS system_identifier,
       ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int AS timeline,
       pg_current_wal_insert_lsn()::text AS lsn
FROM (SELECT pg_snapshot_xmin(s)::text::bigint AS xmin, pg_snapshot_xmax(s)::text::bigint AS xmax
      FROM pg_current_snapshot() s) AS snapshot"""
"""A snapshot's own xmax is the last *ended* id plus one: open transactions and their savepoints may have ids above it.

Age counts from the next id to be given out; of a savepoint that is open nothing else tells.

The place is where the log is added to: a commit that waits for no disk is seen before it is written there (PostgreSQL
manual, synchronous_commit), and whoever has replayed up to a written place may not show it yet.
"""

HOLDER = """
SELECT xid AS position, holder, since FROM (
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
"""Query for the holder of the id at the horizon: a session or a prepared transaction. Parameter: `horizon`."""


def flush_statements(server_version: int) -> tuple[str, ...]:
    """Return statements of one transaction after which all that was logged before it is on the server's own disk.

    server_version: as 130023. Before 17 a message has no flush of its own, and the commit of one that is transactional
    flushes; it does not wait for standbys. Source: PostgreSQL manual, pg_logical_emit_message; synchronous_commit.
    """
    if server_version >= 170_000:
        return ("SELECT pg_logical_emit_message(false, 'tallystick', 'cut', true)",)
    return ("SET LOCAL synchronous_commit = local", "SELECT pg_logical_emit_message(true, 'tallystick', 'cut')")


def asked_keys(column: str, key_type: str, server_version: int) -> str:
    """Return the condition of rows whose key is among the parameter `keys`, a text[]. What is no value of the column's
    type is nowhere. Its other parameter: `type`, the column's.

    Before 16 the server cannot be asked what a type takes. Forms of the common types are told by a pattern, and keys of
    any other type are compared as text, without an index. A key pairs by its text in any case.
    """
    if server_version >= 160_000:
        cast = f"CASE WHEN pg_input_is_valid(asked, %(type)s) THEN asked::{key_type} END"
    elif key_type == "text" or key_type.startswith("character varying"):
        cast = "asked"
    elif key_type in _INTEGERS:
        low, high = _INTEGERS[key_type]
        inside = f"CASE WHEN asked::numeric BETWEEN {low} AND {high} THEN asked::{key_type} END"
        cast = f"CASE WHEN asked ~ '^(0|-?[1-9][0-9]{{0,18}})$' THEN {inside} END"
    elif key_type.startswith("numeric"):
        cast = "CASE WHEN asked ~ '^(NaN|-?[0-9]+([.][0-9]+)?)$' THEN asked::numeric END"
    elif key_type == "uuid":
        cast = "CASE WHEN asked ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN asked::uuid END"
    else:
        return f"{column}::text = ANY(%(keys)s::text[])"
    return f"{column} = ANY(ARRAY(SELECT {cast} FROM unnest(%(keys)s::text[]) AS asked))"


_INTEGERS = {
    "smallint": (-(2**15), 2**15 - 1),
    "integer": (-(2**31), 2**31 - 1),
    "bigint": (LONG_MIN, LONG_MAX),
}
"""Type to its smallest and largest value."""


def written_xid_statements(table: str) -> tuple[str, str]:
    """Return the statements that add the column, in order. Neither rewrites the table; its present rows have no id.

    In one statement they would get the id of that statement, and come into its slice as if written then: the default is
    stable, so it is computed once. Source: PostgreSQL manual, ALTER TABLE, notes.
    """
    return (
        f"ALTER TABLE {table} ADD COLUMN written_xid bigint;",
        f"ALTER TABLE {table} ALTER COLUMN written_xid SET DEFAULT pg_current_xact_id()::text::bigint;",
    )


def slice_condition(ledger: LedgerSection, *, xid_start: int, xid_end: int) -> str:
    """Return the condition of rows of transactions in [xid_start, xid_end). By xmin exact within XMIN_WIDTH_MAX ids."""
    if ledger.slice_by == "written_xid":
        return f"(written_xid >= {xid_start} AND written_xid < {xid_end})"
    return (
        f"(((xmin::text::bigint - {xid_start}) & {_XID_MASK}) < {xid_end - xid_start} "
        f"AND xmin::text::bigint >= {_FIRST_NORMAL_XID})"
    )


def row_xid(ledger: LedgerSection, *, near_xid: int) -> str:
    """Return the 64-bit id of the transaction that wrote a row; 0 where it is older than anybody can say."""
    if ledger.slice_by == "written_xid":
        return "coalesce(written_xid, 0)"
    return (
        f"CASE WHEN xmin::text::bigint < {_FIRST_NORMAL_XID} THEN 0 ELSE {near_xid} + "
        f"((((xmin::text::bigint - {near_xid}) + {_HALF_RANGE}) & {_XID_MASK}) - {_HALF_RANGE}) END"
    )


def pairing_condition(ledger: LedgerSection) -> str:
    """Return the contract's own condition, or true."""
    return f"({ledger.where})" if ledger.where else "true"


def beside_parameters(query: str) -> str:
    """Escape a text for psycopg where it gets parameters too: it would take a % of a condition for one of them."""
    return query.replace("%", "%%")


def column_list(ledger: LedgerSection) -> str:
    """Return the contract's columns under our names, as text and bigint: every reader gets the same types, no nulls.

    A row id that is null is empty. So is a key, and an empty key is none: nothing pairs with it. An amount that is null
    or no whole number of minor units is 0 without a currency, so that it equals nothing: an event always has one.
    Nothing is rounded.
    """
    columns = ledger.columns
    currency = _source(columns.currency)
    minor, is_whole = _minor_units(ledger)
    return (
        f"coalesce({columns.row_id}::text, '') AS row_id, "
        f"coalesce({_fit(columns.match_key)}, '') AS match_key, "
        f"coalesce({_fit(columns.transaction_key)}, '') AS transaction_key, "
        f"coalesce({_fit(_source(columns.leg))}, '') AS leg, "
        f"CASE WHEN {is_whole} THEN {minor}::bigint ELSE 0 END AS amount_minor, "
        f"CASE WHEN {is_whole} THEN coalesce({_fit(currency)}, '') ELSE '' END AS currency"
    )


def compared_list(ledger: LedgerSection) -> str:
    """Return the columns that are compared besides money, each as a text behind a comma; "" where there are none.

    JSON writes a time with its zone, whatever the session's settings are. What it writes as a cast does is cast, which
    takes a fifth of the time.
    """
    compared = ledger.columns.compared
    named = zip(compared.columns, compared.labels, strict=True)
    return "".join(f", {_as_json_says(column)} AS {label}" for column, label in named)


def _as_json_says(column: str) -> str:
    kinds = ", ".join(f"'{kind}'::regtype" for kind in CAST_AS_JSON_SAYS)
    return f"CASE WHEN pg_typeof({column}) IN ({kinds}) THEN {column}::text ELSE to_json({column}) #>> '{{}}' END"


CAST_AS_JSON_SAYS = ("text", "numeric", "bigint", "varchar", "integer", "uuid", "smallint", "boolean")
"""Types whose values JSON and a cast write alike. Not so a time, nor a char, whose spaces at the end a cast cuts.
The usual ones come first: PostgreSQL asks in this order."""


def _source(column: str | Constant) -> str:
    """Return a column, or the constant in its place; a contract's constants need no escaping."""
    return column if isinstance(column, str) else f"'{column.constant}'"


def _fit(column: str) -> str:
    """A text that is compared and kept; null where it is so long that no event's can equal it."""
    return f"CASE WHEN length({column}::text) <= {TEXT_LENGTH_MAX} THEN {column}::text END"


def written_ms(ledger: LedgerSection) -> str:
    """Return the expression of the time a row was written, by its owner's column, in milliseconds since 1970; null
    without such a column, and where it says infinity.
    """
    column = ledger.columns.written_at
    if column is None:
        return "NULL::bigint AS written_ms"
    epoch = f"extract(epoch FROM {column})::numeric"  # a double until 13, which is just below some milliseconds
    return f"CASE WHEN isfinite({column}) THEN floor({epoch} * 1000) END::bigint AS written_ms"


def _minor_units(ledger: LedgerSection) -> tuple[str, str]:
    """A row's amount in minor units, and whether that is a whole number that a bigint holds.

    A cast of what no bigint holds is an error, and a product that no numeric holds: the bounds are asked first. NaN is
    greater than all numbers there.
    Major units: PostgreSQL knows no mod() of floating point or text, so such a column is refused before it is read.
    """
    amount = ledger.columns.amount_minor
    if not isinstance(amount, str):
        return str(amount.constant), "true"
    if ledger.amount_unit == "minor":
        inside = f"{amount} >= {LONG_MIN} AND {amount} < {LONG_MAX + 1}"
        return amount, f"(CASE WHEN {inside} THEN {amount}::bigint = {amount} ELSE false END)"
    code = f"upper({_source(ledger.columns.currency)}::text)"
    units = " ".join(
        f"WHEN {code} IN ({', '.join(map(repr, codes))}) THEN {10**digits}"
        for digits, codes in codes_by_digits().items()
    )
    inside = f"{amount} BETWEEN {LONG_MIN} AND {LONG_MAX}"
    minor = f"(CASE WHEN {inside} THEN {amount} * (CASE {units} END)::numeric END)"
    return minor, f"(mod({minor}, 1) = 0 AND {minor} BETWEEN {LONG_MIN} AND {LONG_MAX})"


def receipt_list(ledger: LedgerSection) -> str:
    """Return the columns of the stored acknowledgement, for look-ups only; null where the contract names none.

    So is what is no partition or offset: a number that no int holds would stop the look-up of all keys.
    """
    partition, offset = ledger.columns.receipt_partition, ledger.columns.receipt_offset
    if partition is None or offset is None:
        return "NULL::int AS receipt_partition, NULL::bigint AS receipt_offset"
    return (
        f"CASE WHEN {partition}::text ~ '^[0-9]{{1,9}}$' THEN {partition}::text::int END AS receipt_partition, "
        f"CASE WHEN {offset}::text ~ '^[0-9]{{1,18}}$' THEN {offset}::text::bigint END AS receipt_offset"
    )


def repair_list(ledger: LedgerSection) -> str:
    """Return the columns: the row that this one takes back, and its compensation; "" where the contract names none."""
    named = {"reverses": ledger.columns.reverses, "action_id": ledger.columns.action_id}
    said = {name: f"coalesce({column}::text, '')" if column else "''" for name, column in named.items()}
    return ", ".join(f"{text} AS {name}" for name, text in said.items())


def slice_queries(ledger: LedgerSection, *, xid_start: int, xid_end: int, block_count: int | None) -> tuple[str, ...]:
    """Return queries that together read the slice once: two halves by physical place if the table has its own blocks.

    The halves hold only while VACUUM FULL cannot move rows and no UPDATE shows: the caller holds ACCESS SHARE on the
    table, and both read under its snapshot.
    """
    condition = f"{slice_condition(ledger, xid_start=xid_start, xid_end=xid_end)} AND {pairing_condition(ledger)}"
    columns = f"{column_list(ledger)}, {written_ms(ledger)}{compared_list(ledger)}"
    select = f"SELECT {columns} FROM {ledger.table} WHERE {condition}"
    if block_count is None or block_count < 2:
        return (select,)
    middle = block_count // 2
    return (f"{select} AND ctid < '({middle},0)'::tid", f"{select} AND ctid >= '({middle},0)'::tid")


def at_snapshot(snapshot: str) -> tuple[str, ...]:
    """Return statements by which a new transaction sees what the snapshot's exporter sees, while that one is open."""
    return "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY", f"SET TRANSACTION SNAPSHOT '{snapshot}'"


def rows_query(ledger: LedgerSection, *, xid_start: int, xid_end: int) -> str:
    """Return the query of the slice's rows of some ids, as `slice_queries` reads them. Its parameter: a bigint[]."""
    (whole,) = slice_queries(ledger, xid_start=xid_start, xid_end=xid_end, block_count=None)
    return f"{beside_parameters(whole)} AND {ledger.columns.row_id} = ANY(%s::bigint[])"


def first_xid_query(ledger: LedgerSection, *, xid_start: int, xid_end: int) -> str:
    """Return the query of the smallest id among the slice's rows written at or after a moment, its one parameter.

    Of all its rows, whether they pair or not. Needs a contract that names written_at.
    """
    inside = slice_condition(ledger, xid_start=xid_start, xid_end=xid_end)
    xid = row_xid(ledger, near_xid=xid_start)
    return f"SELECT min({xid}) FROM {ledger.table} WHERE {inside} AND {ledger.columns.written_at} >= %s"


def older_rows_query(ledger: LedgerSection, *, xid_start: int, snapshot_xmax: int) -> str:
    """Count the rows that are not in [xid_start, snapshot xmax): on an append-only table, what earlier slices held."""
    inside = slice_condition(ledger, xid_start=xid_start, xid_end=snapshot_xmax)
    return f"SELECT count(*) FROM {ledger.table} WHERE NOT {inside} AND {pairing_condition(ledger)}"


def unread_rows_query(
    ledger: LedgerSection, *, xid_start: int, xid_end: int, below: int, snapshot: str | None, shown: str | None = None
) -> str:
    """Return the query of the rows that no cut has read, by xmin. Shape: that of `UnreadCount`.

    A snapshot has no ids of savepoints: a row of one that is open looks visible. snapshot: an earlier one; None: none.
    shown: only rows behind the slice that this one shows; None: all that the query sees.
    """
    seen = _visible(snapshot) if snapshot else "false"
    behind = f"xid >= {xid_end}" + (f" AND {_visible(shown)}" if shown else "")
    return (
        f"SELECT count(*) FILTER (WHERE xid < {below} AND {seen}) AS still, "
        f"count(*) FILTER (WHERE {behind}) AS behind, "
        f"count(*) FILTER (WHERE {behind} AND xid < {below}) AS behind_below "
        f"FROM (SELECT {row_xid(ledger, near_xid=xid_start)} AS xid FROM {ledger.table} "
        f"WHERE {pairing_condition(ledger)}) AS unread WHERE xid >= {xid_start}"
    )


def _visible(snapshot: str) -> str:
    return f"pg_visible_in_snapshot(xid::text::xid8, '{snapshot}'::pg_snapshot)"


def rows_by_place_query(ledger: LedgerSection, *, bounds: Sequence[int], xid_start: int, next_xid: int) -> str:
    """Return the query, by written_xid, of how many rows have reached how many bounds. Shape: number, rows.

    It leaves out the rows of [xid_start, next_xid), whose ids are where they should be: no run has counted them before.
    number: null for rows without an id. A partial index on written_xid with the contract's condition answers it without
    the table.
    """
    return (
        f"SELECT {_bounds_reached(bounds)} AS number, count(*) AS rows FROM {ledger.table} "
        f"WHERE (written_xid IS NULL OR written_xid < {xid_start} OR written_xid >= {next_xid}) "
        f"AND {pairing_condition(ledger)} GROUP BY 1"
    )


def digests_query(ledger: LedgerSection, *, bounds: Sequence[int], xid_start: int, xid_end: int) -> str:
    """Return the query, by written_xid, of one order-free digest per place of the rows of [xid_start, xid_end)."""
    names = ("row_id", "match_key", "transaction_key", "leg", "amount_minor", "currency")
    nullable = (f"coalesce('+' || {label}, '')" for label in ledger.columns.compared.labels)
    said = " || chr(31) || ".join([*(f"{name}::text" for name in names), *nullable])
    inside = slice_condition(ledger, xid_start=xid_start, xid_end=xid_end)
    return (
        f"SELECT number, sum(hashtextextended({said}, 0))::text AS digest FROM (SELECT {_bounds_reached(bounds)} AS "
        f"number, {column_list(ledger)}{compared_list(ledger)} FROM {ledger.table} "
        f"WHERE {inside} AND {pairing_condition(ledger)}) AS said GROUP BY 1"
    )


def last_written_query(ledger: LedgerSection, *, bounds: Sequence[int], number: int | None, limit: int) -> str:
    """Return the query of row ids of one of those places, the newest first: by partition, the youngest first, and by
    xmin, which no owner sets. The surplus rows are likely to be these; no database tells which of a place were read.
    """
    place = "written_xid IS NULL" if number is None else f"{_bounds_reached(bounds)} = {number}"
    return (
        f"SELECT coalesce({ledger.columns.row_id}::text, '') FROM {ledger.table} WHERE {place} "
        f"AND {pairing_condition(ledger)} "
        f"ORDER BY tableoid DESC, age(xmin), 1 LIMIT {limit}"
    )


def _bounds_reached(bounds: Sequence[int]) -> str:
    return f"width_bucket(written_xid::bigint, ARRAY[{', '.join(map(str, bounds))}]::bigint[])"
