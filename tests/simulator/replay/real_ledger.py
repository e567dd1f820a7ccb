"""The real PostgreSQL's side of a replay: one table, and a session for each writer."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import psycopg
from psycopg import sql

from lab.servers.postgres import LEDGER_DATABASE, LEDGER_OWNER, PostgresServer
from lab.servers.process import wait_until
from tests.simulator.replay.tape import (
    Crashed,
    Entry,
    Rewritten,
    RowChanged,
    RowIn,
    RowOut,
    Said,
    SetAside,
    SwitchedOver,
)

_TABLE = """
CREATE TABLE {table} (
    entry_id bigint PRIMARY KEY, event_id text NOT NULL, payment_id text NOT NULL, leg text NOT NULL,
    amount_minor bigint NOT NULL, currency text NOT NULL, occurred_at timestamptz NOT NULL DEFAULT '2026-03-01T00:00Z',
    written_at timestamptz NOT NULL, written_xid bigint DEFAULT pg_current_xact_id()::text::bigint
) WITH (autovacuum_enabled = false)"""

_INSERT = """
INSERT INTO {table} (entry_id, event_id, payment_id, leg, amount_minor, currency, written_at{more})
VALUES (%s, %s, %s, %s, %s, %s, %s{value})"""


@dataclass
class RealLedger:
    """sessions: of writers. prepared: names of transactions that belong to no session now."""

    server: PostgresServer
    table: sql.Identifier
    prefix: str
    sessions: dict[str, psycopg.Connection] = field(default_factory=dict)
    savepoints: dict[str, int] = field(default_factory=dict)
    prepared: dict[str, str] = field(default_factory=dict)
    prepared_ever: int = 0

    def do(self, entry: Entry) -> bool:
        """False where it is not the ledger's."""
        match entry:
            case RowIn():
                self._insert(entry)
            case RowChanged(writer, row_id, columns):
                changes = [sql.SQL("{} = {}").format(sql.Identifier(name), value) for name, value in columns.items()]
                changed = sql.SQL(", ").join(changes or [sql.SQL("leg = leg")])
                self._one(writer, "UPDATE {table} SET {changed} WHERE entry_id = %s", (row_id,), changed=changed)
            case RowOut(writer, row_id):
                self._one(writer, "DELETE FROM {table} WHERE entry_id = %s", (row_id,))
            case Said(writer, word):
                self._say(writer, word)
            case SetAside(writer, aside):
                self.prepared[aside] = self.prepared.pop(writer)
            case Rewritten():
                rewrite = "ALTER TABLE {} ALTER COLUMN amount_minor TYPE bigint USING amount_minor + 0"
                self.say_alone(sql.SQL(rewrite).format(self.table))
            case Crashed():
                self.server.kill()
                self._start_again()
            case SwitchedOver():
                self._switch_over()
            case _:
                return False
        return True

    def rows(self) -> list[tuple[int, str, int]]:
        statement = sql.SQL("SELECT entry_id, event_id, amount_minor FROM {}").format(self.table)
        with closing(self.server.connect(LEDGER_OWNER, LEDGER_DATABASE)) as owner:
            return sorted(owner.execute(statement).fetchall())

    def say_alone(self, statement: sql.Composed) -> None:
        """As the owner, in a transaction of its own."""
        with closing(self.server.connect(LEDGER_OWNER, LEDGER_DATABASE)) as owner:
            owner.execute(statement)

    def _switch_over(self) -> None:
        """It starts again as a standby that has all of the log, and is promoted."""
        self.server.stop()
        signal, folder = self.server.folder / "standby.signal", self.server.folder.stat()
        signal.touch()
        os.chown(signal, folder.st_uid, folder.st_gid)
        self._start_again()
        with closing(self.server.connect()) as admin:
            admin.execute("SELECT pg_promote()")
            recovers = "SELECT pg_is_in_recovery()"
            wait_until(lambda: admin.execute(recovers).fetchone() == (False,), what="the promotion")

    def _start_again(self) -> None:
        for session in self.sessions.values():
            session.close()
        self.sessions.clear()
        self.savepoints.clear()
        self.server.start()

    def _insert(self, entry: RowIn) -> None:
        row = entry.row
        written_at = datetime.fromtimestamp(row.written_ms / 1000, UTC)
        values = [row.row_id, row.match_key, row.transaction_key, row.leg, row.amount_minor, row.currency, written_at]
        own_id = row.written_xid is not None
        more, value = (sql.SQL(", written_xid"), sql.SQL(", %s")) if own_id else (sql.SQL(""), sql.SQL(""))
        given = [*values, row.written_xid] if own_id else values
        self._one(entry.writer, _INSERT, tuple(given), more=more, value=value)

    def _one(self, writer: str, statement: str, values: tuple[object, ...], **parts: sql.Composable) -> None:
        query = sql.SQL(statement).format(table=self.table, **parts)  # type: ignore[arg-type]
        done = self._session(writer).execute(query, values)
        assert done.rowcount == 1, f"{writer}: {done.rowcount} rows"

    def _session(self, writer: str) -> psycopg.Connection:
        if writer not in self.sessions:
            dsn = self.server.dsn(LEDGER_OWNER, LEDGER_DATABASE)
            self.sessions[writer] = psycopg.connect(dsn, options="-c lock_timeout=5s")
        return self.sessions[writer]

    def _say(self, writer: str, word: str) -> None:
        session = self.sessions.get(writer)
        if writer in self.prepared:
            end = sql.SQL(f"{word.upper()} PREPARED {{}}").format(self.prepared.pop(writer))  # type: ignore[arg-type]
            self.say_alone(end)
            return
        assert session is not None
        depth = self.savepoints.get(writer, 0)
        match word:
            case "savepoint":
                session.execute(sql.SQL("SAVEPOINT {}").format(sql.Identifier(f"s{depth}")))
                self.savepoints[writer] = depth + 1
            case "release":
                session.execute(sql.SQL("RELEASE SAVEPOINT {}").format(sql.Identifier(f"s{depth - 1}")))
                self.savepoints[writer] = depth - 1
            case "prepare":
                self.prepared_ever += 1
                name = f"{self.prefix}-{self.prepared_ever}"
                session.execute(sql.SQL("PREPARE TRANSACTION {}").format(name))
                self.prepared[writer], self.savepoints[writer] = name, 0
            case _:
                (session.commit if word == "commit" else session.rollback)()
                self.savepoints[writer] = 0


@contextmanager
def open_ledger(server: PostgresServer, table: str, prefix: str, *, key_is_unique: bool) -> Iterator[RealLedger]:
    """The contract's table in a schema of its name; both are gone at the end, whatever is open still."""
    schema, name = table.split(".")
    whole = sql.Identifier(schema, name)
    ledger = RealLedger(server, whole, prefix)
    ledger.say_alone(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    ledger.say_alone(sql.SQL(_TABLE).format(table=whole))
    unique = sql.SQL("UNIQUE" if key_is_unique else "")
    ledger.say_alone(sql.SQL("CREATE {} INDEX ON {} (event_id)").format(unique, whole))
    try:
        yield ledger
    finally:
        for session in ledger.sessions.values():
            session.close()
        for prepared in ledger.prepared.values():
            ledger.say_alone(sql.SQL("ROLLBACK PREPARED {}").format(prepared))
        ledger.say_alone(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))
