"""The horizon of a table in MariaDB whose rows carry the id of the InnoDB transaction that wrote them.

The server writes that id by itself into the column ROW START of a table with transaction-precise system versioning;
nobody can write another one. The horizon is the lower bound of a snapshot of InnoDB's: all transactions below have
ended, and each reader sees what they committed. It is said by SHOW ENGINE INNODB STATUS alone, of the session that
asks. information_schema.INNODB_TRX will not do: it shows a state that may be old, and names no next id.
"""

import re

from sqlalchemy import Connection, text

from tallystick.ledger.protocol import HorizonHolder, LedgerReadCancelled, LedgerRefused
from tallystick.model.cut import LedgerSnapshot

_COUNTER = re.compile(r"^TRANSACTIONS\n-+\nTrx id counter (\d+)$", re.MULTILINE)
_FLUSHED = re.compile(r"^Log flushed up to +(\d+)$", re.MULTILINE)
_SNAPSHOT_OF = r"^MariaDB thread id {session}, .*\n(?:(?!---|MariaDB thread id ).*\n)*?{limits}"
_LIMITS = r"Trx read view will not see trx with id >= \d+, sees < (\d+)$"
_CUT_SHORT = "... truncated..."
"""The server's word for a status of more than 1 MiB."""

_COLUMN = text(
    "SELECT c.column_type, c.generation_expression, t.engine FROM information_schema.columns c "
    "JOIN information_schema.tables t USING (table_schema, table_name) "
    "WHERE c.table_schema = :schema AND c.table_name = :name AND c.column_name = :column"
)
_SERVER = text(
    "SELECT @@server_uid, @@read_only OR @@wsrep_on OR (SELECT variable_value > 0 "
    "FROM information_schema.global_status WHERE variable_name = 'SLAVES_RUNNING')"
)
"""A replica writes too unless it is told not to: read_only is off by default."""
_HOLDER = text(
    "SELECT t.trx_mysql_thread_id, p.user, p.db FROM information_schema.innodb_trx t "
    "LEFT JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE t.trx_id = :horizon"
)


def refuse_other_than_row_start(connection: Connection, *, schema: str, name: str, column: str) -> None:
    """Refuse a column that is not the server's own id of the writing transaction. Raises LedgerRefused."""
    found = connection.execute(_COLUMN, {"schema": schema, "name": name, "column": column}).one_or_none()
    said = tuple(str(one).lower() for one in found) if found else ()
    if len(said) != 3 or not said[0].endswith("unsigned") or said[1:] != ("row start", "innodb"):
        raise LedgerRefused(
            f"ledger table {schema}.{name}: column {column}, which the contract names order_by with horizon: innodb: "
            f"got {', '.join(said) or 'none'}; expected a BIGINT UNSIGNED GENERATED ALWAYS AS ROW START of an InnoDB "
            "table. What to do: " + "; ".join(versioning_statements(f"{schema}.{name}"))
        )


def versioning_statements(table: str) -> tuple[str, ...]:
    """Return the statements that give a table the column, in order. The first rebuilds the table; its present rows get
    the id of that statement.
    """
    return (
        f"ALTER TABLE {table} ADD COLUMN row_start BIGINT UNSIGNED GENERATED ALWAYS AS ROW START INVISIBLE, "
        "ADD COLUMN row_end BIGINT UNSIGNED GENERATED ALWAYS AS ROW END INVISIBLE, "
        "ADD PERIOD FOR SYSTEM_TIME (row_start, row_end), ADD SYSTEM VERSIONING",
        f"CREATE INDEX row_start ON {table} (row_start)",
    )


def read_innodb_snapshot(connection: Connection) -> LedgerSnapshot:
    """Take a snapshot, and return its bounds. Needs the right PROCESS.

    Raises LedgerRefused on a server that others write for, and LedgerReadCancelled where the status does not say it.
    """
    server, follows = connection.execute(_SERVER).one()
    if follows:
        raise LedgerRefused(
            "ledger: the server is a replica or a node of a cluster, whose transactions have other ids than those of "
            "the server that clients write to; expected the primary of one writer"
        )
    session = connection.exec_driver_sql("SELECT connection_id()").scalar_one()
    for statement in ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT"):
        connection.exec_driver_sql(statement)
    try:
        status = str(connection.exec_driver_sql("SHOW ENGINE INNODB STATUS").one()[2])
    finally:
        connection.exec_driver_sql("COMMIT")
    return snapshot_of_status(status, session=int(session), server=str(server))


def snapshot_of_status(status: str, *, session: int, server: str) -> LedgerSnapshot:
    """Return what InnoDB's status says of the session's snapshot. Raises LedgerReadCancelled.

    Texts of other sessions' statements stand in it too, and may say anything: what is said twice is not believed.
    """
    named = re.findall(rf"^MariaDB thread id {session}, ", status, flags=re.MULTILINE)
    lows = re.findall(_SNAPSHOT_OF.format(session=session, limits=_LIMITS), status, flags=re.MULTILINE)
    counters, flushed = _COUNTER.findall(status), _FLUSHED.findall(status)
    if _CUT_SHORT in status or [len(one) for one in (named, lows, counters, flushed)] != [1, 1, 1, 1]:
        raise LedgerReadCancelled(
            "ledger: SHOW ENGINE INNODB STATUS does not say this session's snapshot once: too many sessions are open, "
            "or the text of another statement looks like it; a later attempt may read it"
        )
    low, high, lsn = (int(one[0]) for one in (lows, counters, flushed))
    return LedgerSnapshot(
        low_mark=low, high_mark=high, system_identifier=server, timeline=1, lsn=f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
    )


def read_innodb_holder(connection: Connection, *, horizon: int) -> HorizonHolder | None:
    """Return the session of the transaction at the horizon; None where it has ended. A prepared one has no session."""
    found = connection.execute(_HOLDER, {"horizon": horizon}).one_or_none()
    if found is None:
        return None
    session, user, database = found
    holder = f"session {session} of {user or 'unknown'} in database {database or 'none'}" if session else ""
    return HorizonHolder(position=horizon, holder=holder or "a prepared XA transaction", since=None)
