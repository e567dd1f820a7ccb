"""The ledger's slices on a real server: whoever writes and however it ends, each committed row is in one slice."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from lab.servers.stack import LabStack
from tallystick.ledger import postgres
from tallystick.ledger.postgres import PostgresLedger, count_older_rows, read_horizon_holder, read_ledger_snapshot
from tallystick.ledger.unread_rows import UnreadRows
from tallystick.model.cut import LedgerSlice, LedgerSnapshot

from .ledger_servers import versioned
from .ledger_table import Slices, Table, open_table
from .ledger_writers import write_all_shapes

__all__ = ["versioned"]  # a fixture


@pytest.fixture
def table(versioned: LabStack) -> Iterator[Table]:
    """On each version of the server."""
    with open_table(versioned.ledger_owner_dsn, versioned.ledger_reader_dsn) as opened:
        yield opened


def test_each_row_of_open_writers_that_end_in_any_order_is_in_one_slice(table: Table) -> None:
    """Five writers are open at once; an id counted from the next one to be given out would put rows below the slice."""
    slices, writers = Slices(table), [table.connect() for _ in range(5)]
    for number, writer in enumerate(writers):
        writer.execute("BEGIN")
        table.insert(writer, f"writer-{number}")
    for number in (2, 4, 0, 1, 3):
        slices.cut()
        writers[number].execute("COMMIT")
    slices.cut()
    expected = [f"writer-{number}" for number in range(5)]
    assert sorted(slices.keys) == expected
    assert sorted(slices.replayed(table.by_xmin)) == sorted(slices.replayed(table.by_written_xid)) == expected
    for writer in writers:
        writer.close()


def test_a_row_under_a_savepoint_waits_for_its_transaction(table: Table) -> None:
    """Its own id ends with the release, and a snapshot sees it as ended: its parent is open still."""
    slices = Slices(table)
    with table.connect() as writer:
        writer.execute("BEGIN")
        table.insert(writer, "parent")
        writer.execute("SAVEPOINT released")
        table.insert(writer, "released")
        writer.execute("RELEASE SAVEPOINT released")
        writer.execute("SAVEPOINT undone")
        table.insert(writer, "undone")
        writer.execute("ROLLBACK TO SAVEPOINT undone")
        table.run(f"INSERT INTO {table.name} (event_id) VALUES ('neighbour')")
        slices.cut()
        assert slices.keys == []
        writer.execute("COMMIT")
    slices.cut()
    assert sorted(slices.keys) == sorted(slices.replayed(table.by_xmin)) == ["neighbour", "parent", "released"]


def test_slices_cut_while_four_writers_work_hold_every_committed_row_once(table: Table) -> None:
    slices, enough, held = Slices(table), threading.Event(), 0
    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write_all_shapes, table, worker, until=enough) for worker in range(4)]
        try:
            for number in range(40):
                snapshot = read_ledger_snapshot(table.reader)
                held += snapshot.low_mark < snapshot.high_mark
                slices.cut()
                if number % 10 == 9:
                    table.run(f"VACUUM (FREEZE) {table.name}")
        finally:
            enough.set()
        committed = [writer.result() for writer in writers]
    slices.cut()
    expected = Counter(key for keys in committed for key in keys)
    assert all(committed)
    assert held > 0
    assert Counter(slices.keys) == expected
    assert Counter(slices.replayed(table.by_xmin)) == Counter(slices.replayed(table.by_written_xid)) == expected


@pytest.mark.parametrize("by", ["by_xmin", "by_written_xid"])
def test_rows_that_stood_when_books_began_above_an_open_writer_are_named_and_what_came_since_is_not(
    table: Table, by: str
) -> None:
    """Their events may be older than the books too, whose first slices read these rows."""
    ledger = PostgresLedger(connection=table.reader, ledger=getattr(table, by))
    with table.connect() as writer:
        writer.execute("BEGIN")
        table.insert(writer, "held")
        table.run(f"INSERT INTO {table.name} (event_id) VALUES ('there already')")
        began = ledger.read_snapshot()
        table.run(f"INSERT INTO {table.name} (event_id) VALUES ('came since')")
        writer.execute("COMMIT")
    now = ledger.read_snapshot()
    own = LedgerSlice(
        position_start=began.low_mark,
        position_end=now.low_mark,
        snapshot=now,
        mark=now.high_mark,
        baseline_position=began.low_mark,
    )
    assert ledger.keys_below(own, below=began.high_mark) == ("held", "there already")
    assert ledger.keys_below(own, below=began.low_mark) == ()
    assert ledger.keys_below(own, below=now.high_mark) == ("came since", "held", "there already")


@pytest.mark.parametrize(
    ("change", "fires"),
    [
        ("UPDATE {table} SET amount_minor = amount_minor WHERE event_id = 'old-1'", True),
        ("DELETE FROM {table} WHERE event_id = 'old-1'", True),
        ("INSERT INTO {table} (entry_id, event_id) OVERRIDING SYSTEM VALUE VALUES (1, 'x') "
         "ON CONFLICT (entry_id) DO UPDATE SET leg = 'x'", True),
        ("ALTER TABLE {table} ADD COLUMN noise double precision DEFAULT random()", True),
        ("VACUUM FULL {table}", False),
        ("VACUUM (FREEZE) {table}", False),
        ("CLUSTER {table} USING entry_pkey", False),
        ("ALTER TABLE {table} ADD COLUMN constant int DEFAULT 7", False),
        ("SELECT 1 FROM {table} FOR KEY SHARE", False),
        ("INSERT INTO {table} (event_id) VALUES ('new')", False),
    ],
)  # fmt: skip
def test_the_count_of_older_rows_tells_a_rewritten_row_from_a_moved_one(table: Table, change: str, fires: bool) -> None:
    with table.connect() as owner:
        for number in range(3):
            table.insert(owner, f"old-{number}")
    slice_start = table.horizon()
    before = count_older_rows(table.reader, table.by_xmin, xid_start=slice_start)
    table.run(change.format(table=table.name))
    after = count_older_rows(table.reader, table.by_xmin, xid_start=slice_start)
    assert before == 3
    assert (after != before) is fires


def test_where_the_books_begin_an_update_between_the_horizon_and_the_count_is_missed_later(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row lies below the horizon, and so is counted; a count of its own, asked after the update, has lost it."""
    table.run(f"INSERT INTO {table.name} (event_id) VALUES ('older'), ('touched')")
    read = postgres.read_ledger_snapshot

    def read_and_update(reader: psycopg.Connection) -> LedgerSnapshot:
        snapshot = read(reader)
        table.run(f"UPDATE {table.name} SET leg = 'x' WHERE event_id = 'touched'")
        return snapshot

    monkeypatch.setattr(postgres, "read_ledger_snapshot", read_and_update)
    snapshot, older_rows = PostgresLedger(connection=table.reader, ledger=table.by_xmin).read_beginning()
    assert older_rows == 2
    assert count_older_rows(table.reader, table.by_xmin, xid_start=snapshot.low_mark) == 1
    assert PostgresLedger(connection=table.reader, ledger=table.by_written_xid).read_beginning()[1] is None


@pytest.mark.parametrize(
    ("change", "still"),
    [
        ("UPDATE {table} SET leg = leg WHERE event_id = 'touched'", 1),
        ("DELETE FROM {table} WHERE event_id = 'touched'", 1),
        ("INSERT INTO {table} (event_id) VALUES ('new')", 2),
        ("VACUUM (FREEZE) {table}", 2),
    ],
)
def test_of_rows_that_no_cut_has_read_those_that_were_touched_are_not_there_any_more(
    table: Table, change: str, still: int
) -> None:
    """Neither a row of a transaction that was open then, nor one that came since, takes the place of one that went."""
    ledger, start = PostgresLedger(connection=table.reader, ledger=table.by_xmin), table.horizon()
    with table.connect() as writer:
        writer.execute("BEGIN")
        table.insert(writer, "open")
        table.run(f"INSERT INTO {table.name} (event_id) VALUES ('touched'), ('left')")
        snapshot = read_ledger_snapshot(table.reader)
        behind = LedgerSlice(
            position_start=start,
            position_end=start,
            snapshot=snapshot,
            mark=snapshot.high_mark,
            baseline_position=start,
        )
        then = ledger.count_unread(behind, below=start, before=None)
        assert then is not None
        assert (then.still, then.behind, then.behind_below) == (0, 2, 0)
        table.run(change.format(table=table.name))
        writer.execute("COMMIT")
    before = UnreadRows(snapshot=then.snapshot, rows=then.behind)
    now = ledger.count_unread(behind, below=then.snapshot_end, before=before)
    assert now is not None
    assert now.still == still
    by_column = PostgresLedger(connection=table.reader, ledger=table.by_written_xid)
    assert by_column.count_unread(behind, below=start, before=None) is None


def test_a_row_that_is_updated_stays_in_its_slice_by_written_xid(table: Table) -> None:
    slices = Slices(table)
    table.run(f"INSERT INTO {table.name} (event_id) VALUES ('kept')")
    slices.cut()
    table.run(f"UPDATE {table.name} SET leg = 'sent'")
    slices.cut()
    assert table.rows(table.by_written_xid, *slices.ends[0:2]) == ["kept"]
    assert table.rows(table.by_written_xid, *slices.ends[1:3]) == []
    assert table.rows(table.by_xmin, *slices.ends[0:2]) == []  # the twin, one column away: it entered a second slice
    assert table.rows(table.by_xmin, *slices.ends[1:3]) == ["kept"]
    assert count_older_rows(table.reader, table.by_written_xid, xid_start=slices.ends[-1]) is None


def test_the_named_holder_is_who_has_the_oldest_id_not_who_began_first(table: Table) -> None:
    with table.connect() as early, table.connect() as holder:
        early.execute("BEGIN")
        early.execute("SELECT 1")
        holder.execute("BEGIN")
        table.insert(holder, "held")
        table.insert(early, "later id, earlier begin")
        horizon = table.horizon()
        found = read_horizon_holder(table.reader, horizon=horizon)
        assert found is not None
        assert found.holder.startswith(f"session {holder.info.backend_pid} (no name) of billing in database ledger")
        holder.execute("ROLLBACK")
        assert read_horizon_holder(table.reader, horizon=horizon) is None  # ended meanwhile; early held nothing then
        early.execute("ROLLBACK")


def test_a_writer_in_another_database_and_a_prepared_transaction_are_named(table: Table, versioned: LabStack) -> None:
    with versioned.ledger_server.connect() as elsewhere:
        elsewhere.execute("BEGIN")
        elsewhere.execute("SELECT pg_current_xact_id()")
        found = read_horizon_holder(table.reader, horizon=table.horizon())
        elsewhere.execute("ROLLBACK")
    assert found is not None
    assert "in database postgres" in found.holder
    assert found.since is not None
    with table.connect() as owner:
        owner.execute("BEGIN")
        table.insert(owner, "prepared")
        owner.execute(f"PREPARE TRANSACTION '{table.name}'")
        found = read_horizon_holder(table.reader, horizon=table.horizon())
        owner.execute(f"ROLLBACK PREPARED '{table.name}'")
    assert found is not None
    assert found.holder == f"prepared transaction {table.name} of billing in database ledger"


def test_a_reader_without_the_statistics_names_the_holder_all_the_same_and_says_what_would_tell_more(
    table: Table, versioned: LabStack
) -> None:
    with versioned.ledger_server.connect() as admin, table.connect() as holder:
        holder.execute("BEGIN")
        table.insert(holder, "held")
        pid = holder.info.backend_pid
        admin.execute("REVOKE pg_read_all_stats FROM tallystick_reader")
        try:
            found = read_horizon_holder(table.reader, horizon=table.horizon())
        finally:
            admin.execute("GRANT pg_read_all_stats TO tallystick_reader")
        holder.execute("ROLLBACK")
    assert found is not None
    assert found.since is None
    assert found.holder == (
        f"session {pid} (no name) of billing in database ledger, state not shown without pg_read_all_stats"
    )


def test_the_mark_lies_above_an_open_writer_even_if_none_has_ended_after_it(table: Table, versioned: LabStack) -> None:
    """A snapshot's xmax is the last id that ended, plus one: on an idle server the one open writer is not below it."""
    id_of_flush = 1 if versioned.ledger_server.version < 17 else 0
    with table.connect() as owner, table.connect() as lone:
        table.insert(owner, "ended")
        lone.execute("BEGIN")
        table.insert(lone, "open")
        snapshot = read_ledger_snapshot(table.reader)
        lone_id = lone.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()
        assert lone_id == (snapshot.low_mark,)
        assert snapshot.high_mark == snapshot.low_mark + 1
        lone.execute("COMMIT")
        ended = read_ledger_snapshot(table.reader)
        assert ended.low_mark == ended.high_mark == snapshot.high_mark + id_of_flush


def test_the_mark_lies_above_the_savepoints_of_an_open_writer(table: Table) -> None:
    """No view tells their ids, and a row that one of them wrote before the mark belongs below it."""
    with table.connect() as lone:
        lone.execute("BEGIN")
        table.insert(lone, "before")
        lone.execute("SAVEPOINT within")
        table.insert(lone, "within")
        snapshot = read_ledger_snapshot(table.reader)
        written_by = lone.execute(f"SELECT max(xmin::text::bigint) FROM {table.name}").fetchone()
        lone.execute("COMMIT")
    assert written_by is not None
    assert snapshot.low_mark < written_by[0] < snapshot.high_mark


def test_a_reader_that_only_looks_holds_nothing(table: Table) -> None:
    with table.connect() as looking:
        looking.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        looking.execute(f"SELECT * FROM {table.name}")
        table.run(f"INSERT INTO {table.name} (event_id) VALUES ('x')")
        snapshot = read_ledger_snapshot(table.reader)
        assert snapshot.low_mark == snapshot.high_mark
        looking.execute("ROLLBACK")


def test_single_rows_are_read_by_their_id_out_of_the_slice_only(table: Table) -> None:
    with table.connect() as writer:
        table.insert(writer, "before")
        start = table.horizon()
        table.insert(writer, "one")
        table.insert(writer, "other")
        end = table.horizon()
        table.insert(writer, "after")
    ledger = PostgresLedger(connection=table.reader, ledger=table.by_xmin)
    snapshot = ledger.read_snapshot()
    between = LedgerSlice(position_start=start, position_end=end, snapshot=snapshot, mark=end, baseline_position=start)
    found = ledger.rows_by_id([1, 2, 4, 99], between)
    assert [(row["row_id"], row["match_key"], row["amount_minor"], row["written_ms"]) for row in found] == [
        ("2", "one", 1, None)
    ]


def test_rows_are_read_by_their_id_only_where_that_is_an_integer(table: Table) -> None:
    assert PostgresLedger(connection=table.reader, ledger=table.by_xmin).describe().row_id_is_integer
    table.run(f"CREATE UNIQUE INDEX ON {table.name} (event_id)")
    by_text = table.by_xmin.model_copy(
        update={"columns": table.by_xmin.columns.model_copy(update={"row_id": "event_id"})}
    )
    assert not PostgresLedger(connection=table.reader, ledger=by_text).describe().row_id_is_integer
