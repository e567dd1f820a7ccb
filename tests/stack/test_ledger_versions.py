"""A ledger in an older PostgreSQL: what is shown on the newest, on which all other tests run, holds there too.

On the oldest that is read, and on one between, which lacks some of what the newest has.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lab.servers.postgres import LEDGER_READER, OLDEST
from lab.servers.stack import LabStack
from tallystick.executor.effects.source_rows import read_source_rows
from tallystick.ledger import postgres_connection
from tallystick.ledger.postgres import PostgresLedger
from tallystick.ledger.postgres_connection import VERSION_MIN, LedgerTooOld, open_ledger
from tallystick.ledger.postgres_table import describe_table
from tallystick.model.cut import LedgerSlice
from tallystick.store.engine import open_store
from tests.stack.live_books import environment_of, open_live_books

from .ledger_servers import with_ledger_of
from .ledger_table import Table, open_table
from .live import NewBooks
from .test_grants import test_with_the_printed_grants_a_run_and_a_post_work_and_with_one_less_they_do_not as grants_work
from .test_ledger_crash import test_a_crash_right_after_a_horizon_was_read_takes_none_of_its_ids_back as crash_is_safe
from .test_ledger_horizon import (
    test_a_reader_that_only_looks_holds_nothing,
    test_a_row_that_is_updated_stays_in_its_slice_by_written_xid,
    test_a_row_under_a_savepoint_waits_for_its_transaction,
    test_each_row_of_open_writers_that_end_in_any_order_is_in_one_slice,
    test_of_rows_that_no_cut_has_read_those_that_were_touched_are_not_there_any_more,
    test_single_rows_are_read_by_their_id_out_of_the_slice_only,
    test_slices_cut_while_four_writers_work_hold_every_committed_row_once,
    test_the_count_of_older_rows_tells_a_rewritten_row_from_a_moved_one,
    test_the_mark_lies_above_the_savepoints_of_an_open_writer,
    test_the_named_holder_is_who_has_the_oldest_id_not_who_began_first,
)
from .test_postgres_rows import test_each_row_as_spark_reads_it as all_readers_agree
from .test_reconcile_rewritten import (
    test_an_updated_row_read_by_xmin_is_a_doubt_about_the_ledger_once_and_no_break as a_rewritten_row_is_doubted,
)

__all__ = [  # tests that this module's `table` brings to the servers here
    "test_a_reader_that_only_looks_holds_nothing",
    "test_a_row_that_is_updated_stays_in_its_slice_by_written_xid",
    "test_a_row_under_a_savepoint_waits_for_its_transaction",
    "test_each_row_of_open_writers_that_end_in_any_order_is_in_one_slice",
    "test_of_rows_that_no_cut_has_read_those_that_were_touched_are_not_there_any_more",
    "test_single_rows_are_read_by_their_id_out_of_the_slice_only",
    "test_slices_cut_while_four_writers_work_hold_every_committed_row_once",
    "test_the_count_of_older_rows_tells_a_rewritten_row_from_a_moved_one",
    "test_the_mark_lies_above_the_savepoints_of_an_open_writer",
    "test_the_named_holder_is_who_has_the_oldest_id_not_who_began_first",
]


@pytest.fixture(scope="module", params=[OLDEST, 16])
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


@pytest.mark.parametrize("waits", ["on", "off"])
def test_a_crash_takes_no_id_back(older: LabStack, waits: str) -> None:
    """Whether commits of the reader's role wait for the disk or not."""
    setting = f"ALTER ROLE {LEDGER_READER} SET synchronous_commit"
    with older.ledger_server.connect() as admin:
        admin.execute(f"{setting} = {waits}")
    crash_is_safe(older)


@pytest.mark.usefixtures("spark")
def test_a_row_that_is_updated_after_its_match_is_doubted(older_books: NewBooks) -> None:
    a_rewritten_row_is_doubted(older_books)


def test_copy_and_sparks_own_reader_read_the_same_rows(older_books: NewBooks, spark: SparkSession) -> None:
    all_readers_agree(older_books, spark, "numeric(20, 2)", {"written_at": "occurred_at"})


def test_the_printed_grants_are_enough_for_a_run_and_a_repair(
    older: LabStack, older_books: NewBooks, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    grants_work(older, older_books, spark, monkeypatch)


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
