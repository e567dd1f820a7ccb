"""Read-only sessions of a PostgreSQL ledger, and its address for each driver."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import make_conninfo

from tallystick.connections.postgres_address import JDBC_READ_ONLY, as_asked, jdbc_options, with_settings
from tallystick.connections.postgres_failures import what_to_do
from tallystick.ledger import postgres_sql
from tallystick.ledger.protocol import (
    LedgerReadCancelled,
    LedgerRefused,
    LedgerUnreachable,
)

APPLICATION_NAME = "tallystick"
"""The application_name of each of our sessions in a ledger."""


_CONNECT_TIMEOUT_SECONDS = 10


VERSION_MIN = 13
"""PostgreSQL's major version: 64-bit ids of transactions (xid8, pg_current_snapshot) are there from 13 on."""


class LedgerTooOld(LedgerRefused):
    """The server lacks functions that every read here needs."""


class LedgerBehindPooler(LedgerRefused):
    """The session has not the settings that it was opened with: a pooler in between dropped them."""


def read_database_identity(dsn: str) -> str:
    """Return the database that an address leads to, the same for every address of it. Raises LedgerUnreachable."""
    query = "SELECT system_identifier::text || '/' || current_database() FROM pg_control_system()"
    with open_ledger(dsn) as connection:
        (identity,) = connection.execute(query).fetchone() or ("",)
    return str(identity)


@contextmanager
def open_ledger(dsn: str, *, may_write: bool = False) -> Iterator[psycopg.Connection]:
    """A connection in autocommit, closed at the end; the server refuses its writes, unless it may.

    Raises LedgerUnreachable without the password in its message, LedgerTooOld, LedgerBehindPooler,
    LedgerReadCancelled, and LedgerRefused where what was to be read would write.
    """
    try:
        connection = psycopg.connect(_address(_asked(dsn, may_write=may_write)), autocommit=True)
    except psycopg.OperationalError as error:
        said = str(error).strip()
        raise LedgerUnreachable(f"ledger: {said.splitlines()[0]}{what_to_do(said)}") from None
    try:
        with connection:
            _require_version(connection)
            _require_settings(connection, may_write=may_write)
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
    """Refuse an old server. Raises LedgerTooOld."""
    server = connection.info
    if server.server_version < VERSION_MIN * 10_000:
        raise LedgerTooOld(
            f"ledger: PostgreSQL {server.parameter_status('server_version')} at {server.host}:{server.port}; expected "
            f"{VERSION_MIN} or newer, as no other tells 64-bit transaction ids; upgrade the server, or let the "
            "contract read it with kind: jdbc"
        )


def _require_settings(connection: psycopg.Connection, *, may_write: bool) -> None:
    """Refuse a session in which what it asked for is not in force. Raises LedgerBehindPooler."""
    asked = [postgres_sql.HIDE_NOTHING, *([] if may_write else [postgres_sql.READ_ONLY])]
    for name, value in (setting.split("=") for setting in asked):
        got = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
        if got != (value,):
            raise LedgerBehindPooler(
                f"ledger: {connection.info.host}:{connection.info.port}: got {name}={got[0] if got else ''}; expected "
                f"{value}, as the session asked for. A pooler in between, such as PgBouncer with "
                "ignore_startup_parameters=options, drops it, and rows could be hidden from such a session. What to "
                "do: let the connection lead past the pooler, to the server itself"
            )


_CANCELLED = {
    "40001": "a replica gave up our read to go on replaying; raise max_standby_streaming_delay there, or turn on "
    "hot_standby_feedback, or point the connection at the primary",
    "40P01": "a deadlock with another session; try again",
    "57014": "its time limit is too short for this table; raise statement_timeout for the reader's role",
    "55P03": "another session holds the table's lock; try again, or raise lock_timeout for the reader's role",
    "25P03": "our transaction was idle too long; raise idle_in_transaction_session_timeout for the reader's role",
    "57P01": "somebody ended our session or stopped the server; try again",
}
"""Advice by SQLSTATE. A retry may cure each, so none leaves a verdict. Source: PostgreSQL manual, appendix A."""


def scan_address(dsn: str, *, may_be_standby: bool = False) -> str:
    """Return the address, for libpq, by which an executor reads a slice: as `open_ledger` does, from a primary only.

    may_be_standby: from any server; the snapshot that it imports is known to the one alone that exported it.
    """
    return make_conninfo(_address(_asked(dsn)), target_session_attrs="any" if may_be_standby else "primary")


def jdbc_scan_options(dsn: str, *, may_be_standby: bool = False) -> dict[str, str]:
    """Return the same for Spark's JDBC source. Raises ConnectionNotGiven where it takes less than the address asks."""
    asked = with_settings(as_asked(dsn), postgres_sql.HIDE_NOTHING)
    known = {"driver": "org.postgresql.Driver", "targetServerType": "any" if may_be_standby else "primary"}
    return jdbc_options(asked) | known | JDBC_READ_ONLY


def _address(asked: Mapping[str, str]) -> str:
    ours = {"application_name": APPLICATION_NAME, "connect_timeout": str(_CONNECT_TIMEOUT_SECONDS)}
    return make_conninfo(**{**asked, **ours})


def _asked(dsn: str, *, may_write: bool = False) -> dict[str, str]:
    """Return the address with what every session in a ledger sets. Raises ConnectionNotGiven."""
    asked = with_settings(as_asked(dsn), postgres_sql.HIDE_NOTHING)
    if may_write:
        return asked
    if asked.get("target_session_attrs") == "read-write":  # by which libpq means the session too, and ours is not
        asked["target_session_attrs"] = "primary"
    return with_settings(asked, postgres_sql.READ_ONLY)
