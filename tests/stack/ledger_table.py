"""One append-only table of a real ledger, and the slices that are cut of it while others write."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
import pytest

from lab.servers.stack import LabStack
from tallystick.contract.ledger import LedgerSection
from tallystick.ledger import postgres_sql
from tallystick.ledger.postgres import read_ledger_snapshot
from tallystick.ledger.postgres_connection import open_ledger

_TABLE = """
CREATE TABLE {table} (
    entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id text NOT NULL,
    payment_id text NOT NULL DEFAULT '', leg text NOT NULL DEFAULT '',
    amount_minor bigint NOT NULL DEFAULT 1, currency text NOT NULL DEFAULT 'EUR',
    written_xid bigint DEFAULT pg_current_xact_id()::text::bigint)"""


@dataclass(frozen=True)
class Table:
    """One append-only table, its owner's dsn, and the reader's connection."""

    name: str
    owner_dsn: str = field(repr=False)
    reader: psycopg.Connection = field(repr=False)

    @property
    def by_xmin(self) -> LedgerSection:
        return LedgerSection(connection="ledger_billing", table=self.name)

    @property
    def by_written_xid(self) -> LedgerSection:
        return LedgerSection(connection="ledger_billing", table=self.name, slice_by="written_xid")

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.owner_dsn, autocommit=True)

    def run(self, *statements: str) -> None:
        with self.connect() as owner:
            for statement in statements:
                owner.execute(statement)

    def insert(self, connection: psycopg.Connection, key: str) -> None:
        connection.execute(f"INSERT INTO {self.name} (event_id) VALUES (%s)", [key])

    def horizon(self) -> int:
        return read_ledger_snapshot(self.reader).low_mark

    def rows(self, ledger: LedgerSection, start: int, end: int) -> list[str]:
        """Keys of one slice."""
        condition = postgres_sql.slice_condition(ledger, xid_start=start, xid_end=end)
        return [row[0] for row in self.reader.execute(f"SELECT event_id FROM {self.name} WHERE {condition}")]


@dataclass
class Slices:
    """Slices cut one after the other while others write."""

    table: Table
    ends: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ends.append(self.table.horizon())

    def cut(self) -> None:
        """Fix the next slice and read it at once."""
        self.ends.append(self.table.horizon())
        self.keys += self.table.rows(self.table.by_xmin, *self.ends[-2:])

    def replayed(self, ledger: LedgerSection) -> list[str]:
        """The same slices read again, now."""
        return [
            key
            for start, end in zip(self.ends, self.ends[1:], strict=False)
            for key in self.table.rows(ledger, start, end)
        ]


@pytest.fixture
def table(stack: LabStack) -> Iterator[Table]:
    with open_table(stack.ledger_owner_dsn, stack.ledger_reader_dsn) as opened:
        yield opened


@contextmanager
def open_table(owner_dsn: str, reader_dsn: str) -> Iterator[Table]:
    """A new one in a schema of its own, gone at the end."""
    schema = f"h{uuid.uuid4().hex[:10]}"
    with psycopg.connect(owner_dsn, autocommit=True) as owner, open_ledger(reader_dsn) as reader:
        owner.execute(f"CREATE SCHEMA {schema}")
        owner.execute(_TABLE.format(table=f"{schema}.entry"))
        yield Table(f"{schema}.entry", owner_dsn, reader)
        owner.execute(f"DROP SCHEMA {schema} CASCADE")
