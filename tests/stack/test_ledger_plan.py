"""How much of a large ledger PostgreSQL reads for a small slice, by the very queries that the scan sends it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from lab.servers.stack import LabStack
from tallystick.contract.ledger import LedgerSection
from tallystick.ledger import postgres_sql
from tallystick.ledger.postgres import read_ledger_snapshot
from tallystick.ledger.postgres_connection import open_ledger
from tallystick.ledger.postgres_table import describe_table

TABLE = "plan.entry"
_MAKE_TABLE = f"""
CREATE SCHEMA plan;
GRANT USAGE ON SCHEMA plan TO tallystick_reader;
CREATE TABLE {TABLE} (
    entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id text NOT NULL UNIQUE,
    payment_id text NOT NULL DEFAULT '', leg text NOT NULL DEFAULT '',
    amount_minor bigint NOT NULL DEFAULT 1, currency text NOT NULL DEFAULT 'EUR',
    written_xid bigint DEFAULT pg_current_xact_id()::text::bigint);
GRANT SELECT ON {TABLE} TO tallystick_reader;
"""
_INSERT = f"INSERT INTO {TABLE} (event_id) SELECT 'event ' || n FROM generate_series(%s::int, %s::int) AS n"
_OLDER_ROWS, _ROWS = 60_000, 100
_INDEX = f"CREATE INDEX entry_written_xid ON {TABLE}"

BY_XMIN = LedgerSection(connection="ledger_billing", table=TABLE)
BY_WRITTEN_XID = LedgerSection(connection="ledger_billing", table=TABLE, slice_by="written_xid")


@dataclass(frozen=True)
class Plan:
    """Of all queries of one slice. scans: the kinds of nodes that read the table; blocks: read or found in memory."""

    scans: frozenset[str]
    rows: int
    blocks: int


@dataclass(frozen=True)
class LargeLedger:
    """A table of many rows, of which a slice has the newest few."""

    owner: psycopg.Connection
    reader: psycopg.Connection
    xid_start: int
    xid_end: int

    def block_count(self) -> int:
        return describe_table(self.reader, BY_XMIN).block_count

    def plan(self, ledger: LedgerSection) -> Plan:
        """Read the slice as the scan does, and say how."""
        queries = postgres_sql.slice_queries(
            ledger,
            xid_start=self.xid_start,
            xid_end=self.xid_end,
            block_count=describe_table(self.reader, ledger).halves_by,
        )
        roots = [self._explained(query) for query in queries]
        return Plan(
            scans=frozenset(kind for root in roots for kind in _kinds(root) if "Scan" in kind),
            rows=sum(root["Actual Rows"] for root in roots),
            blocks=sum(root["Shared Hit Blocks"] + root["Shared Read Blocks"] for root in roots),
        )

    def kinds_of(self, query: str) -> set[str]:
        return set(_kinds(self._explained(query)))

    def _explained(self, query: str) -> dict[str, Any]:
        row = self.reader.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}").fetchone()
        assert row is not None
        root: dict[str, Any] = row[0][0]["Plan"]
        return root


def _kinds(root: dict[str, Any]) -> Iterator[str]:
    yield root["Node Type"]
    for below in root.get("Plans", []):
        yield from _kinds(below)


@pytest.fixture
def ledger(stack: LabStack) -> Iterator[LargeLedger]:
    with (
        psycopg.connect(stack.ledger_owner_dsn, autocommit=True) as owner,
        open_ledger(stack.ledger_reader_dsn) as reader,
    ):
        owner.execute(_MAKE_TABLE)
        owner.execute(_INSERT, [1, _OLDER_ROWS])
        start = read_ledger_snapshot(reader).low_mark
        owner.execute(_INSERT, [_OLDER_ROWS + 1, _OLDER_ROWS + _ROWS])
        end = read_ledger_snapshot(reader).low_mark
        owner.execute(f"VACUUM (ANALYZE) {TABLE}")
        yield LargeLedger(owner, reader, start, end)
        owner.execute("DROP SCHEMA plan CASCADE")


@pytest.mark.parametrize("method", ["btree (written_xid)", "brin (written_xid) WITH (pages_per_range = 16)"])
def test_a_slice_by_written_xid_is_read_by_the_columns_index(ledger: LargeLedger, method: str) -> None:
    ledger.owner.execute(f"{_INDEX} USING {method}")
    plan = ledger.plan(BY_WRITTEN_XID)
    assert plan.rows == _ROWS
    assert plan.scans <= {"Index Scan", "Bitmap Heap Scan", "Bitmap Index Scan"}
    assert plan.blocks < ledger.block_count() / 5


def test_without_the_index_the_whole_table_is_read(ledger: LargeLedger) -> None:
    plan = ledger.plan(BY_WRITTEN_XID)
    assert plan.rows == _ROWS
    assert plan.scans == {"Tid Range Scan"}
    assert plan.blocks == ledger.block_count()


def test_a_slice_by_xmin_reads_the_whole_table_whatever_index_there_is(ledger: LargeLedger) -> None:
    """No index may name a system column."""
    ledger.owner.execute(f"{_INDEX} (written_xid)")
    plan = ledger.plan(BY_XMIN)
    assert plan.rows == _ROWS
    assert plan.blocks == ledger.block_count()


def test_rows_are_counted_by_place_from_a_partial_index_alone(ledger: LargeLedger) -> None:
    picked = BY_WRITTEN_XID.model_copy(update={"where": "leg = ''"})
    start, end = ledger.xid_start, ledger.xid_end
    query = postgres_sql.rows_by_place_query(picked, bounds=[start, end], xid_start=start, next_xid=end)
    assert ledger.kinds_of(query) >= {"Seq Scan"}
    ledger.owner.execute(f"{_INDEX} (written_xid) WHERE leg = ''")
    ledger.owner.execute(f"VACUUM (ANALYZE) {TABLE}")
    assert "Index Only Scan" in ledger.kinds_of(query)
    assert ledger.reader.execute(query).fetchall() == [(0, _OLDER_ROWS)]
