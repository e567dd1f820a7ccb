"""The ledger of a round in each kind that a contract can name: PostgreSQL of another version, or another database.

The services always post to PostgreSQL. A streaming standby of it is read beside its primary. MariaDB, Parquet and
Iceberg hold copies: before each window a loader of the lab's own adds what the services have committed since, each row
once; the reconciler reads that copy alone, and knows nothing of its source. Faults of rows that were judged are drawn
for `kind: postgres` alone: a loader that only adds carries no change over, and other kinds tell changes in other words.
Those of repairs are drawn where Tallystick repairs: on a primary.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from psycopg import sql
from psycopg.rows import dict_row

from lab.rounds.round_contracts import LEDGER
from lab.servers.mariadb import READER, MariadbServer
from lab.servers.postgres import LEDGER_DATABASE, LEDGER_READER, NEWEST, OLDEST, PostgresServer
from lab.servers.stack import LabAddresses, LabStack

COPIED = "ledger_copied"
"""Id of the connection to a ledger that is a copy, or a standby."""

_SHAPE = pa.schema(
    [
        ("entry_id", pa.int64()),
        ("event_id", pa.string()),
        ("payment_id", pa.string()),
        ("leg", pa.string()),
        ("amount_minor", pa.int64()),
        ("currency", pa.string()),
    ]
)
_SQL_COLUMNS = """
    entry_id bigint PRIMARY KEY, event_id varchar(40) NOT NULL, payment_id varchar(40) NOT NULL,
    leg varchar(20) NOT NULL, amount_minor bigint NOT NULL, currency char(3) NOT NULL, KEY (event_id)"""


class LedgerKind(StrEnum):
    """What the reconciler reads rows from. jdbc: the services' own tables, read by their rows' numbers alone."""

    POSTGRES = "postgres"
    POSTGRES_13 = "postgres_13"
    STANDBY = "standby"
    JDBC = "jdbc"
    MARIADB = "mariadb"
    PARQUET = "parquet"
    ICEBERG = "iceberg"

    @property
    def postgres_version(self) -> int:
        """Return the version of the server that the services post to."""
        return OLDEST if self is LedgerKind.POSTGRES_13 else NEWEST

    @property
    def is_primary(self) -> bool:
        """Is it what the services post to, read by `kind: postgres`?"""
        return self in (LedgerKind.POSTGRES, LedgerKind.POSTGRES_13)

    @property
    def is_postgres(self) -> bool:
        """Is it read by `kind: postgres`?"""
        return self.is_primary or self is LedgerKind.STANDBY


class Target(Protocol):
    """One ledger that rows are copied into. address: as its connection says it, passwords included."""

    @property
    def address(self) -> str: ...

    def make(self, name: str) -> dict[str, Any]:
        """Make a table that holds nothing; return what a contract's ledger section says of it."""
        ...

    def add(self, name: str, rows: pa.Table) -> None: ...


@dataclass(frozen=True)
class Standby:
    """The services' own tables, as far as a streaming standby has replayed them."""

    server: PostgresServer
    primary: PostgresServer

    @property
    def address(self) -> str:
        return self.server.dsn(LEDGER_READER, LEDGER_DATABASE)

    def catch_up(self) -> None:
        """Return once it has replayed all that the services have committed by now."""
        self.server.wait_replayed(self.primary)


@dataclass
class KeptLedger:
    """Where a round's contracts find their rows: in a copy, on a standby, or where the services post them."""

    kind: LedgerKind = LedgerKind.POSTGRES
    target: Target | None = None
    standby: Standby | None = None
    _sources: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # by contract
    _copied: dict[str, list[int]] = field(default_factory=dict)  # entry ids, by contract

    @property
    def connections(self) -> dict[str, str]:
        """Return addresses beside the lab's own, by the connection's id."""
        elsewhere = self.target or self.standby
        return {COPIED: elsewhere.address} if elsewhere else {}

    def move(self, contract: Mapping[str, Any]) -> dict[str, Any]:
        """Return the contract with its ledger of this kind; a copy is made, without a row."""
        if self.kind.is_primary:
            return dict(contract)
        name, source = contract["contract"], contract["ledger"]
        if self.standby is not None:
            moved = {**source, "connection": COPIED, "primary_connection": LEDGER}
        elif self.target is None:
            moved = {**_without_horizon(source), "kind": "jdbc", "order_by": "entry_id", "overlap": 0}
        else:
            moved = {"connection": COPIED, **self.target.make(name)}
            self._sources[name], self._copied[name] = source, []
        return {**contract, "ledger": moved}

    def copy(self, addresses: LabAddresses) -> None:
        """Add to each copy the rows that its source has by now and that it lacks; a standby is waited for."""
        if self.standby is not None:
            self.standby.catch_up()
        if self.target is None:
            return
        with psycopg.connect(addresses.ledger_owner_dsn, row_factory=dict_row) as connection:
            for name, source in self._sources.items():
                rows = _rows(connection, source, without=self._copied[name])
                if rows:
                    self.target.add(name, pa.Table.from_pylist(rows, _SHAPE))
                    self._copied[name] += [row["entry_id"] for row in rows]


@contextmanager
def kept_ledger(kind: LedgerKind, folder: Path, stack: LabStack) -> Iterator[KeptLedger]:
    """Run what the kind needs beside the stack for the length of a block, on data in `folder`, which begins empty."""
    shutil.rmtree(folder, ignore_errors=True)
    match kind:
        case LedgerKind.STANDBY:
            folder.mkdir(parents=True)
            standby = stack.ledger_server.copy(folder / "standby")
            try:
                standby.start()
                yield KeptLedger(kind, standby=Standby(standby, stack.ledger_server))
            finally:
                standby.stop()
        case LedgerKind.MARIADB:
            server = MariadbServer(folder / "mariadb")
            try:
                yield KeptLedger(kind, Mariadb.start(server))
            finally:
                server.stop()
        case LedgerKind.PARQUET:
            yield KeptLedger(kind, ParquetFiles(folder / "files"))
        case LedgerKind.ICEBERG:
            folder.mkdir(parents=True)
            yield KeptLedger(kind, IcebergTables(folder))
        case _:
            yield KeptLedger(kind)


@dataclass(frozen=True)
class Mariadb:
    """A database for each contract, in a real server."""

    server: MariadbServer

    @classmethod
    def start(cls, server: MariadbServer) -> "Mariadb":
        """Start the server, with the reader's account. Raises MariadbDidNotStart."""
        server.initialise()
        server.start()
        server.passwords[READER] = server.passwords["root"][::-1]
        with server.connect() as root, root.cursor() as admin:
            admin.execute(f"CREATE USER {READER}@'127.0.0.1' IDENTIFIED BY %s", server.passwords[READER])
            admin.execute(f"GRANT PROCESS ON *.* TO {READER}@'127.0.0.1'")
        return cls(server)

    @property
    def address(self) -> str:
        return self.server.url(READER)

    def make(self, name: str) -> dict[str, Any]:
        with self.server.connect() as root, root.cursor() as admin:
            admin.execute(f"CREATE DATABASE {name}")
            admin.execute(f"CREATE TABLE {name}.entry ({_SQL_COLUMNS})")
            admin.execute(f"GRANT SELECT ON {name}.* TO {READER}@'127.0.0.1'")
        return {"kind": "jdbc", "table": f"{name}.entry", "order_by": "entry_id", "overlap": 0}

    def add(self, name: str, rows: pa.Table) -> None:
        with self.server.connect(database=name) as root, root.cursor() as writer:
            values = [tuple(row.values()) for row in rows.to_pylist()]
            writer.executemany(f"INSERT INTO entry VALUES ({', '.join(['%s'] * len(_SHAPE))})", values)


@dataclass(frozen=True)
class ParquetFiles:
    """A folder for each contract, in which each copy is one more file."""

    folder: Path

    @property
    def address(self) -> str:
        return str(self.folder)

    def make(self, name: str) -> dict[str, Any]:
        (self.folder / name / "entry").mkdir(parents=True)
        return {"kind": "parquet", "table": f"{name}.entry", "quiet_seconds": 0}

    def add(self, name: str, rows: pa.Table) -> None:
        """Write under another name first, as a writer should: nobody reads half a file."""
        folder = self.folder / name / "entry"
        number = len(list(folder.iterdir()))
        hidden = folder / f".{number}.parquet"
        pq.write_table(rows, hidden)
        hidden.rename(folder / f"{number}.parquet")


@dataclass(frozen=True)
class IcebergTables:
    """A table for each contract, in which each copy is one more snapshot; the catalog is a file of SQLite."""

    folder: Path

    @property
    def address(self) -> str:
        return json.dumps({"name": "lab", **self._properties})

    def make(self, name: str) -> dict[str, Any]:
        self._catalog.create_namespace(name)
        self._catalog.create_table(f"{name}.entry", schema=_SHAPE)
        return {"kind": "iceberg", "table": f"{name}.entry"}

    def add(self, name: str, rows: pa.Table) -> None:
        self._catalog.load_table(f"{name}.entry").append(rows)

    @property
    def _properties(self) -> dict[str, str]:
        return {"type": "sql", "uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": f"file://{self.folder}"}

    @property
    def _catalog(self) -> Any:
        from pyiceberg.catalog import load_catalog  # takes a second, and one kind needs it

        return load_catalog("lab", **self._properties)


def _rows(
    connection: psycopg.Connection[dict[str, Any]], source: Mapping[str, Any], *, without: Sequence[int]
) -> list[dict[str, Any]]:
    """Committed rows that the contract judges, in the order of their numbers."""
    schema, table = source["table"].split(".")
    statement = sql.SQL(
        "SELECT entry_id, event_id::text, payment_id::text, leg, amount_minor, currency FROM {table}"
        " WHERE NOT entry_id = ANY(%s) AND {where} ORDER BY entry_id"
    ).format(table=sql.Identifier(schema, table), where=sql.SQL(source.get("where", "true")))
    return connection.execute(statement, (list(without),)).fetchall()


def _without_horizon(source: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in source.items() if name != "slice_by"}
