"""Writes into the ledger what it lacks, or what takes a row back: rows and action id in one database transaction, once.

How it works. The owner's database has a table of action ids. The id is inserted first: of two executors the second
waits for the first, and then finds it. The store is asked then whether this one may still do it. Then no row of the key
may stand, or the row to take back and another one must, and no row of the whole table may take back one that the
contract does not read: that may be the same posting. Rows are inserted as the contract names them;
and the contract's own reading of the table must show exactly the event, or one row that takes that one back. Anything
else is rolled back and refused. No row is changed or deleted.

What it cannot do. A writer of the owner's own whose transaction begins behind the executor's look, and posts the event
before our commit, makes a second row, unless the owner has a unique key; the next run finds it. Nor is an executor of a
contract whose match_key is another column known to write of the same event.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg import IsolationLevel, sql

from tallystick.compensation.plan import CurrentRow, PlanItem
from tallystick.compensation.planning import why_taken_back_elsewhere
from tallystick.compensation.repair_effect import has_its_row, is_taken_back_once, why_not_taken_back
from tallystick.contract.compensation import LedgerPost
from tallystick.contract.contract import Contract
from tallystick.contract.field_path import ABSENT, value_at
from tallystick.contract.ledger import LedgerSection
from tallystick.executor.effects.source_rows import read_source_rows
from tallystick.executor.effects.step import ExecutorStep, OnProgress, no_progress
from tallystick.ledger.postgres_connection import APPLICATION_NAME, open_ledger
from tallystick.ledger.protocol import LedgerRefused

_PATIENCE = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'"
"""An executor that is stopped must hold neither the next one nor the ledger's horizon."""
_LOOK_AGAIN_SECONDS = 0.2
_OPEN_WRITERS = """
WITH RECURSIVE tables (oid) AS (
    SELECT %(table)s::regclass::oid
    UNION
    SELECT inhrelid FROM pg_inherits JOIN tables ON inhparent = oid
)
SELECT DISTINCT l.virtualtransaction
FROM pg_locks l
LEFT JOIN pg_stat_activity a USING (pid)
WHERE l.relation IN (SELECT oid FROM tables)
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
    AND l.granted
    AND a.application_name IS DISTINCT FROM %(ours)s"""
"""Transactions, prepared ones too, that may have written into a table or its partitions. Other executors of ours are
none: whoever writes rows of a key holds the key.
"""


@dataclass(frozen=True, kw_only=True)
class Posted:
    """The result of one item. refused: why not; "" where its rows are there, or its action's row says so.

    posted_for: the plan's hash in the action's row that stood before; None where there was none.
    """

    posted_for: str | None = None
    refused: str = ""


class _Refused(Exception):
    """Nothing of this item may stand: roll back."""


def post_once(
    dsn: str,
    contract: Contract,
    item: PlanItem,
    event: Mapping[str, Any],
    *,
    plan_hash: str,
    may_write: Callable[[], str | None],
    on_progress: OnProgress = no_progress,
) -> Posted:
    """Insert the rows of one event, or find that its action did. event: its JSON payload, or what that says where
    post.columns point. on_progress: told of each step.

    may_write: asked while no other executor can write rows of this key; gives why not.

    Raises LedgerRefused where the table of action ids is not there or may not be written, LedgerUnreachable, and
    psycopg.OperationalError where only the next attempt can find out what stands.
    """
    post = _rules_of(contract)
    return _once(
        dsn,
        contract,
        item,
        write=lambda it: _post(it, contract, post, item, event),
        plan_hash=plan_hash,
        may_write=may_write,
        on_progress=on_progress,
    )


def counterpost_once(
    dsn: str,
    contract: Contract,
    item: PlanItem,
    *,
    plan_hash: str,
    may_write: Callable[[], str | None],
    on_progress: OnProgress = no_progress,
) -> Posted:
    """Insert the compensating entry of one row, or find that its action did. Raises the same."""
    post = _rules_of(contract)
    return _once(
        dsn,
        contract,
        item,
        write=lambda it: _counterpost(it, contract, post, item),
        plan_hash=plan_hash,
        may_write=may_write,
        on_progress=on_progress,
    )


def _once(
    dsn: str,
    contract: Contract,
    item: PlanItem,
    *,
    write: Callable[[psycopg.Connection], None],
    plan_hash: str,
    may_write: Callable[[], str | None],
    on_progress: OnProgress,
) -> Posted:
    post = _rules_of(contract)
    with open_ledger(dsn, may_write=True) as connection:
        connection.execute(_PATIENCE)
        connection.isolation_level = IsolationLevel.READ_COMMITTED  # whoever waited for another must see its rows
        try:
            with connection.transaction():
                if (posted_before := _claim(connection, post, item, plan_hash)) is not None:
                    return Posted(posted_for=posted_before)
                _hold_key(connection, contract, item)
                if reason := may_write():
                    raise _Refused(reason)
                on_progress(ExecutorStep.BEGUN, {})
                write(connection)
                on_progress(ExecutorStep.INSERTED, {})
        except _Refused as refused:
            return Posted(refused=str(refused))
        except _NOT_OURS as error:
            raise _unusable(contract, post, error) from error
        except psycopg.OperationalError:
            raise
        except psycopg.DatabaseError as error:
            about = error.diag.constraint_name or error.diag.column_name or contract.ledger.table
            return Posted(refused=f"the ledger refused its rows: {type(error).__name__} of {about}")
    on_progress(ExecutorStep.POSTED, {})
    return Posted()


def read_posted(dsn: str, contract: Contract, action_ids: Collection[UUID]) -> dict[UUID, str]:
    """Return which of these actions have a row, whatever the store knows of it, and for the plan of which hash.

    Raises LedgerRefused, LedgerUnreachable.
    """
    post = _rules_of(contract)
    asked = sql.SQL("SELECT action_id, plan_hash FROM {} WHERE action_id = ANY(%s)").format(_table(post.actions_table))
    with open_ledger(dsn) as connection:
        try:
            return {row[0]: str(row[1]) for row in connection.execute(asked, (list(action_ids),))}
        except _NOT_OURS as error:
            raise _unusable(contract, post, error) from error


def posted_for(dsn: str, contract: Contract, item: PlanItem) -> str | None:
    """The plan's hash in this action's row, once whoever is posting it has committed or not; None: it has none.

    Raises as post_once does.
    """
    post = _rules_of(contract)
    with open_ledger(dsn, may_write=True) as connection:
        connection.execute(_PATIENCE)
        try:
            with connection.transaction(force_rollback=True):
                return _claim(connection, post, item, "")
        except _NOT_OURS as error:
            raise _unusable(contract, post, error) from error


def writers_end(connection: psycopg.Connection, table: str, *, wait_seconds: float) -> bool:
    """Wait until whoever is writing into the table now has committed or rolled back. False where that takes longer."""

    def open_now() -> set[str]:
        asked = {"table": ".".join(f'"{part}"' for part in table.split(".")), "ours": APPLICATION_NAME}
        return {row[0] for row in connection.execute(_OPEN_WRITERS, asked)}

    deadline, still = time.monotonic() + wait_seconds, open_now()
    while still and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN_SECONDS)
        still &= open_now()
    return not still


def _rules_of(contract: Contract) -> LedgerPost:
    assert contract.compensation is not None
    assert contract.compensation.post is not None
    return contract.compensation.post


_NOT_OURS = (psycopg.errors.UndefinedTable, psycopg.errors.InsufficientPrivilege)


def _unusable(contract: Contract, post: LedgerPost, error: psycopg.Error) -> LedgerRefused:
    return LedgerRefused(
        f"{contract.name}: {error.diag.message_primary}; expected SELECT and INSERT on {contract.ledger.table}, "
        f"USAGE on its sequences, and SELECT and INSERT on CREATE TABLE {post.actions_table} "
        "(action_id uuid PRIMARY KEY, plan_hash text NOT NULL)"
    )


def _claim(connection: psycopg.Connection, post: LedgerPost, item: PlanItem, plan_hash: str) -> str | None:
    """Insert the action's row. None: it is inserted. Else the plan's hash in the row that was there; "" where that went
    meanwhile.
    """
    table = _table(post.actions_table)
    claim = sql.SQL("INSERT INTO {} (action_id, plan_hash) VALUES (%s, %s) ON CONFLICT DO NOTHING").format(table)
    if connection.execute(claim, (item.action_id, plan_hash)).rowcount > 0:
        return None
    standing = sql.SQL("SELECT plan_hash FROM {} WHERE action_id = %s").format(table)
    found = connection.execute(standing, (item.action_id,)).fetchone()
    return str(found[0]) if found else ""


def _hold_key(connection: psycopg.Connection, contract: Contract, item: PlanItem) -> None:
    """Keep every other executor, of any contract and store, from writing rows of this key until the
    transaction ends.
    """
    key = "\x1f".join((contract.ledger.table, item.match_key))
    connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"tallystick post {key}",))


def _post(
    connection: psycopg.Connection, contract: Contract, post: LedgerPost, item: PlanItem, event: Mapping[str, Any]
) -> None:
    if current_rows(connection, contract.ledger, item.match_key):
        raise _Refused("the ledger has a row of it")
    if current_rows(connection, _whole(contract.ledger), item.match_key):
        raise _Refused("a row of its key stands in the table, outside of the contract's where: look at it first")
    copied = {column: value_at(event, path) for column, path in post.columns.items()}
    for column, value in sorted(copied.items()):
        if value is ABSENT:
            raise _Refused(f"the event has no {post.columns[column]}")
        if isinstance(value, dict | list):
            raise _Refused(f"{post.columns[column]} of the event is no single value")
    for constants in post.rows[item.leg]:
        columns = copied | _named(contract, item, constants)
        insert = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            _table(contract.ledger.table),
            _list(columns),
            sql.SQL(", ").join(sql.Placeholder() * len(columns)),
        )
        connection.execute(insert, tuple(columns.values()))
    rows = current_rows(connection, contract.ledger, item.match_key)
    if not has_its_row(item, rows):
        raise _Refused(
            f"the contract reads {len(rows)} rows of what would be inserted, expected 1 that equals the event"
        )


def _counterpost(connection: psycopg.Connection, contract: Contract, post: LedgerPost, item: PlanItem) -> None:
    """The columns come from the row itself, so nothing is taken back but what stands there."""
    rows = current_rows(connection, contract.ledger, item.match_key)
    whole = current_rows(connection, _whole(contract.ledger), item.match_key)
    if reason := why_not_taken_back(item, rows) or why_taken_back_elsewhere(rows, whole):
        raise _Refused(reason)
    ledger = contract.ledger.columns
    assert ledger.reverses is not None
    copied = {column: _copied(contract, column) for column in post.columns}
    for constants in post.rows[item.leg]:
        named = {column: sql.Literal(value) for column, value in _named(contract, item, constants).items()}
        values = copied | named | {ledger.reverses: sql.Identifier(ledger.row_id)}
        insert = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE {} = %s AND {}::text = %s").format(
            _table(contract.ledger.table),
            _list(values),
            sql.SQL(", ").join(values.values()),
            _table(contract.ledger.table),
            sql.Identifier(ledger.match_key),
            sql.Identifier(ledger.row_id),
        )
        connection.execute(insert, (item.match_key, item.row_id))
    rows = current_rows(connection, contract.ledger, item.match_key)
    if not is_taken_back_once(item, rows):
        raise _Refused(
            f"the contract does not read what would be inserted as one row that takes row {item.row_id} back"
        )


def _whole(ledger: LedgerSection) -> LedgerSection:
    """The table without the contract's condition."""
    return ledger.model_copy(update={"where": None})


def current_rows(connection: psycopg.Connection, ledger: LedgerSection, match_key: str) -> tuple[CurrentRow, ...]:
    """Read the contract's rows of the key, under a savepoint that may only read: its condition runs as the poster."""
    with connection.transaction():
        connection.execute("SET TRANSACTION READ ONLY")
        return read_source_rows(connection, ledger, [match_key]).get(match_key, ())


def _copied(contract: Contract, column: str) -> sql.Composable:
    assert contract.compensation is not None
    negated = contract.compensation.reversal == "negated" and column == contract.ledger.columns.amount_minor
    return sql.SQL("-{}" if negated else "{}").format(sql.Identifier(column))


def _named(contract: Contract, item: PlanItem, constants: Mapping[str, str]) -> dict[str, str]:
    """Columns whose values neither the event nor another row says."""
    action_id = contract.ledger.columns.action_id
    return dict(constants) | ({action_id: str(item.action_id)} if action_id else {})


def _list(columns: Iterable[str]) -> sql.Composable:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _table(name: str) -> sql.Identifier:
    return sql.Identifier(*name.split("."))
