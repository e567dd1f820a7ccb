"""A ledger in an older PostgreSQL: what is shown on the newest, on which all other tests run, holds there too.

On the oldest that is read, and on one between, which lacks some of what the newest has.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from lab.servers.postgres import LEDGER_DATABASE, OLDEST
from lab.servers.stack import LabStack
from tallystick.cli.app import app
from tallystick.connections.connections import environment_variable
from tallystick.executor.effects.action_log import ActionResult
from tallystick.executor.effects.source_rows import read_source_rows
from tallystick.ledger import postgres_connection
from tallystick.ledger.postgres import PostgresLedger
from tallystick.ledger.postgres_connection import VERSION_MIN, LedgerTooOld, open_ledger, scan_address
from tallystick.ledger.postgres_table import describe_table
from tallystick.model.cut import LedgerSlice
from tallystick.model.finding_names import Doubt
from tallystick.pipeline.open_ledger import open_ledger_of
from tallystick.store.engine import open_store
from tallystick_spark.readers.ledger_frame import read_ledger, slice_queries
from tallystick_spark.readers.postgres_rows import read_rows
from tests.stack.live_books import LEDGER, doubts, environment_of, expected, kinds, open_live_books, payment

from .ledger_servers import BETWEEN, with_ledger_of
from .ledger_table import Table, open_table
from .live import NewBooks
from .repairs import executed, planned, posting_books


@pytest.fixture(scope="module", params=[OLDEST, BETWEEN])
def older(stack: LabStack, request: pytest.FixtureRequest) -> Iterator[LabStack]:
    """The stack, with a ledger of another version."""
    with with_ledger_of(stack, request.param) as opened:
        yield opened


@pytest.fixture
def table(older: LabStack) -> Iterator[Table]:
    with open_table(older.ledger_owner_dsn, older.ledger_reader_dsn) as opened:
        yield opened


@pytest.fixture
def older_books(older: LabStack, store_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NewBooks]:
    for variable, value in environment_of(older, tmp_path).items():
        monkeypatch.setenv(variable, value)
    store = open_store(store_dsn)
    yield partial(open_live_books, older, store, tmp_path)
    store.dispose()


def test_the_oldest_that_is_read_is_the_oldest_that_is_tried() -> None:
    assert VERSION_MIN == OLDEST


@pytest.mark.usefixtures("spark")
def test_a_run_finds_what_is_missing_and_doubts_a_row_that_is_updated_after_its_match(older_books: NewBooks) -> None:
    with older_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.produce(payment("lost"))
        books.both(payment("a"), payment("b", 700))
        run = books.next_run()
        assert kinds(run) == expected(("missing_in_ledger", payment("lost")))
        books.ledger.execute(f"UPDATE {books.table} SET leg = leg WHERE event_id = %s", [payment("a").event_id])
        books.both(payment("c"))
        assert doubts(books.next_run()) == [Doubt.LEDGER_REWRITTEN]


def test_copy_and_sparks_own_reader_read_the_same_rows(older_books: NewBooks, spark: SparkSession) -> None:
    """Also a moment whose seconds no double holds."""
    with older_books(direction="topic_to_ledger", ledger={"columns": {"written_at": "occurred_at"}}) as books:
        books.take_cut()
        books.ledger.execute(f"ALTER TABLE {books.table} ALTER COLUMN amount_minor TYPE numeric(20, 2)")
        for name in "abcd":
            books.post(payment(name))
        books.ledger.execute(f"UPDATE {books.table} SET occurred_at = '2026-03-01T10:00:00.123Z'")
        cut = books.take_cut()
        with (
            open_ledger_of(books.store, books.contract, books.connections) as ledger,
            ledger.held_snapshot() as snapshot,
        ):
            assert snapshot is not None
            described = ledger.describe()
            read = read_ledger(spark, books.connections, ledger, cut.ledger_slice, described, snapshot)
            by_spark = read.toArrow().to_pylist()
            copied = [
                row
                for query in slice_queries(ledger, described, cut.ledger_slice)
                for batch in read_rows(scan_address(books.connections.ledger_dsn), query, snapshot=snapshot)
                for row in batch.to_pylist()
            ]
    assert sorted(copied, key=lambda row: row["row_id"]) == sorted(by_spark, key=lambda row: row["row_id"])
    moment = datetime(2026, 3, 1, 10, 0, 0, 123_000, tzinfo=UTC)
    assert [row["written_ms"] for row in copied] == 4 * [round(moment.timestamp() * 1000)]


@pytest.mark.usefixtures("spark")
def test_the_printed_grants_are_enough_for_a_run_and_a_repair(
    older: LabStack, older_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, roles = older.ledger_server, ("least_reader", "least_poster")
    with older_books(direction="topic_to_ledger") as opened, server.connect(database=LEDGER_DATABASE) as admin:
        books = posting_books(opened, classes=["missing_in_ledger"])
        for role in roles:
            server.create_role(role, admin)
        asked = ["grants", str(books.contract_file), "--for", "postgres", "--reader", roles[0], "--poster", roles[1]]
        admin.execute(CliRunner().invoke(app, asked).stdout)
        reader, poster = (server.dsn(role, LEDGER_DATABASE) for role in roles)
        monkeypatch.setenv(environment_variable(LEDGER), reader)
        books.take_cut()
        books.produce(payment("lost", 700))
        books.both(payment("w1"))
        run = books.next_run()
        assert kinds(run) == expected(("missing_in_ledger", payment("lost", 700)))
        done = executed(books, planned(books, run.cut.n), connections=replace(books.connections, poster_dsn=poster))
        assert [one.fate for one in done.outcomes] == [ActionResult.PUBLISHED]


UUID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


@pytest.mark.parametrize(
    ("kind", "stands", "nowhere"),
    [
        ("text", ["a", "7", ""], ["A", "b"]),
        ("varchar(5)", ["a", "abcde"], ["abcdef", "abcd"]),
        ("char(5)", ["abcde"], ["abcdef", "a"]),
        ("smallint", ["7", "-32768"], ["32768", "8", "", "x", "07", "7.0", "9" * 30]),
        ("integer", ["7", "0"], ["2147483648", "-0", "1e1"]),
        ("bigint", ["9223372036854775807", "-9223372036854775808"], ["9223372036854775808", "-9223372036854775809"]),
        ("numeric(20, 2)", ["7.00", "-1.50"], ["8.00", "7e0x", "9" * 400, ""]),
        ("numeric", ["NaN", "7"], ["nan and void", "1.2.3"]),
        ("uuid", [UUID], [UUID.replace("6", "7"), UUID[:-1], "x", "{" + UUID + "}x"]),
        ("date", ["2026-03-01"], ["2026-02-30", "x"]),
        ("books.mood", ["glad"], ["sad", "sadder"]),
    ],
)
def test_keys_of_every_type_are_looked_up_and_what_is_none_of_it_is_nowhere(
    table: Table, kind: str, stands: list[str], nowhere: list[str]
) -> None:
    table.run(
        "CREATE SCHEMA books",
        "CREATE TYPE books.mood AS ENUM ('glad', 'sad')",
        "GRANT USAGE ON SCHEMA books TO tallystick_reader",
        f"ALTER TABLE {table.name} ALTER COLUMN event_id TYPE {kind} USING NULL::{kind}, ADD COLUMN occurred_at date",
    )
    with table.connect() as owner:
        for key in stands:
            table.insert(owner, key)
    ledger = PostgresLedger(connection=table.reader, ledger=table.by_xmin)
    now = ledger.read_snapshot()
    own = LedgerSlice(
        position_start=0, position_end=now.low_mark, snapshot=now, mark=now.high_mark, baseline_position=0
    )
    assert sorted(ledger.look_up_rows([*stands, *nowhere], own)) == sorted(stands)
    assert sorted(read_source_rows(table.reader, table.by_xmin, [*stands, *nowhere])) == sorted(stands)
    table.run("DROP SCHEMA books CASCADE")


def test_where_half_a_table_cannot_be_read_alone_it_is_read_in_one_go(table: Table, older: LabStack) -> None:
    """PostgreSQL has scans of a range of blocks from 14 on."""
    table.run(f"INSERT INTO {table.name} (event_id) SELECT n::text FROM generate_series(1, 1000) AS n")
    described = describe_table(table.reader, table.by_xmin)
    assert described.block_count > 1
    assert described.halves_by == (None if older.ledger_server.version == OLDEST else described.block_count)


def test_a_version_below_the_oldest_is_refused_in_a_sentence(older: LabStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """No such server is at hand; one that is counted as too old says so all the same."""
    version, there = older.ledger_server.version, f"127.0.0.1:{older.ledger_server.port}"
    monkeypatch.setattr(postgres_connection, "VERSION_MIN", version + 1)
    said = rf"^ledger: PostgreSQL {version}\.\d+ .* {there}; expected {version + 1} or newer, .*; upgrade the server"
    with pytest.raises(LedgerTooOld, match=said), open_ledger(older.ledger_reader_dsn):
        pass
