"""A ledger that may not be trusted as it is: a replica, a restored copy, a fail-over, hidden rows, an empty column."""

from dataclasses import replace

import psycopg
import pytest
from pyspark.sql import SparkSession

from lab.servers.postgres import LEDGER_DATABASE, LEDGER_OWNER, LEDGER_READER
from lab.servers.process import wait_until
from lab.servers.stack import LabStack
from tallystick.connections.connections import environment_variable
from tallystick.contract.ledger import LedgerSection
from tallystick.ledger.postgres import PostgresLedger, count_older_rows, read_ledger_snapshot
from tallystick.ledger.postgres_connection import open_ledger, scan_address
from tallystick.ledger.postgres_sql import written_xid_statements
from tallystick.ledger.postgres_table import LedgerHidesRows, LedgerIsStandby, describe_table
from tallystick.ledger.protocol import LedgerDescription, LedgerReadCancelled, LedgerRefused
from tallystick.model.cut import Cut
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.verdict import Verdict
from tallystick.store.runs.cut_store import last_cut
from tallystick.store.runs.run_store import read_run
from tallystick_spark.readers.ledger_frame import read_ledger, slice_queries
from tallystick_spark.readers.postgres_rows import read_rows
from tests.stack.live_books import LEDGER, LiveBooks, doubts, payment, payments

from .ledger_copies import copy_of, copy_of_the_disk, reader_of
from .ledger_table import Table, table
from .live import NewBooks

__all__ = ["table"]  # fixture


# Replicas.


def test_a_standby_is_refused_by_name_before_a_cut_is_stored(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_books(direction="topic_to_ledger") as books, copy_of(books.stack.ledger_server, "standby") as standby:
        monkeypatch.setenv(environment_variable(LEDGER), reader_of(standby))
        with pytest.raises(
            LedgerIsStandby,
            match=r"leads to a standby .* expected the primary.* What to do: .* ledger.primary_connection",
        ):
            books.take_cut(settled=False)
        with open_ledger(reader_of(standby)) as reader, pytest.raises(LedgerIsStandby):
            describe_table(reader, books.contract.ledger)
        assert last_cut(books.store, books.contract.name) is None
        monkeypatch.undo()


def test_a_read_that_a_replica_gives_up_is_a_named_error_that_a_retry_may_cure(table: Table, stack: LabStack) -> None:
    with copy_of(stack.ledger_server, "conflicting") as standby:
        with standby.connect() as admin:
            admin.execute("ALTER SYSTEM SET max_standby_streaming_delay = 0")
            admin.execute("SELECT pg_reload_conf()")
        standby.wait_replayed(stack.ledger_server)
        with (
            pytest.raises(LedgerReadCancelled, match=r"conflict with recovery \(SQLSTATE 40001\): .* the primary"),
            open_ledger(reader_of(standby)) as reader,
            reader.transaction(),
        ):
            reader.execute(f"LOCK TABLE {table.name} IN ACCESS SHARE MODE")
            table.run(f"ALTER TABLE {table.name} ADD COLUMN conflict int")
            standby.wait_replayed(stack.ledger_server)
            count_older_rows(reader, table.by_xmin, xid_start=3)


def test_what_a_replica_and_a_slot_hold_back_is_the_vacuum_and_not_the_horizon(table: Table, stack: LabStack) -> None:
    server = stack.ledger_server
    with copy_of(server, "feedback") as standby, server.connect() as admin, standby.connect() as looking:
        for setting in ("hot_standby_feedback = on", "wal_receiver_status_interval = '1s'"):
            looking.execute(f"ALTER SYSTEM SET {setting}")
        looking.execute("SELECT pg_reload_conf()")
        looking.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        looking.execute("SELECT count(*) FROM pg_class")
        table.run(f"INSERT INTO {table.name} (event_id) VALUES ('x')", "SELECT pg_current_xact_id()")
        held = "SELECT backend_xmin::text::bigint FROM pg_stat_replication WHERE backend_xmin IS NOT NULL"
        wait_until(lambda: admin.execute(held).fetchone() is not None, what="the standby's feedback")
        row = admin.execute(held).fetchone()
        snapshot = read_ledger_snapshot(table.reader)
        assert row is not None
        assert row[0] < snapshot.low_mark == snapshot.high_mark
        looking.execute("ROLLBACK")


# Other histories.


def scan(spark: SparkSession, books: LiveBooks, cut: Cut, *, dsn: str) -> None:
    """Read the cut's rows through another address, as the executors do."""
    with open_ledger(books.connections.ledger_dsn) as connection:
        ledger = PostgresLedger(connection=connection, ledger=books.contract.ledger)
        described, elsewhere = LedgerDescription(key_is_unique=True), replace(books.connections, ledger_dsn=dsn)
        with ledger.held_snapshot() as snapshot:
            read_ledger(spark, elsewhere, ledger, cut.ledger_slice, described, snapshot).collect()


def read_quickly(books: LiveBooks, cut: Cut, *, dsn: str) -> None:
    """The same rows, as the executors read them where the match is by hash."""
    with open_ledger(books.connections.ledger_dsn) as connection:
        ledger = PostgresLedger(connection=connection, ledger=books.contract.ledger)
        queries = slice_queries(ledger, LedgerDescription(key_is_unique=True), cut.ledger_slice)
        with ledger.held_snapshot() as snapshot:
            for query in queries:
                list(read_rows(scan_address(dsn), query, snapshot=snapshot))


def test_a_fail_over_between_the_cut_and_its_reading_is_doubted_and_so_is_the_next_cut(
    new_books: NewBooks, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_books(direction="topic_to_ledger") as books, copy_of(books.stack.ledger_server, "promoted") as other:
        books.take_cut()
        books.both(*payments("a", "b"))
        cut = books.take_cut()
        other.wait_replayed(books.stack.ledger_server)
        with pytest.raises(Exception, match="targetServerType: primary"):
            scan(spark, books, cut, dsn=reader_of(other))
        with pytest.raises(Exception, match="server is in hot standby mode"):
            read_quickly(books, cut, dsn=reader_of(other))
        with other.connect() as admin:
            admin.execute("SELECT pg_promote()")
        monkeypatch.setenv(environment_variable(LEDGER), reader_of(other))
        run = books.judge(cut)
        assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
        assert doubts(run) == [Doubt.LEDGER_FAILED_OVER]
        assert run.result.doubts[0].details == {"timeline": 2, "previous_timeline": 1}
        with psycopg.connect(other.dsn(LEDGER_OWNER, LEDGER_DATABASE), autocommit=True) as owner:
            books.produce(payment("c"))
            books.post(payment("c"), connection=owner)
            assert doubts(books.next_run()) == [Doubt.LEDGER_FAILED_OVER]
        monkeypatch.undo()


@pytest.mark.usefixtures("spark")
def test_a_restored_copy_that_gives_ids_out_again_is_doubted_and_its_events_are_no_duplicates(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same system, same timeline: a copy of the disk, as a snapshot of a virtual machine is."""
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        copy = copy_of_the_disk(books.stack.ledger_server, "restored")
        try:
            for name in ("a", "b", "c"):
                books.both(payment(name))
            assert books.next_run().result.verdict is Verdict.MATCHED
            copy.start()
            monkeypatch.setenv(environment_variable(LEDGER), reader_of(copy))
            with psycopg.connect(copy.dsn(LEDGER_OWNER, LEDGER_DATABASE), autocommit=True) as owner:
                books.produce(payment("d"))
                books.post(payment("d"), connection=owner)
                run = books.next_run()
        finally:
            copy.stop()
            monkeypatch.undo()
        assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
        assert Doubt.LEDGER_IDS_REUSED in doubts(run)
        assert not {Doubt.LEDGER_FAILED_OVER, Doubt.CANARY_MISSED} & set(doubts(run))


@pytest.mark.usefixtures("spark")
def test_a_row_with_the_number_of_one_that_went_with_the_old_server_is_not_that_one_written_anew(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its event would be missing in the ledger, and a plan would post a second row."""
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        copy = copy_of_the_disk(books.stack.ledger_server, "put_back")
        numbers = f"SELECT array_agg(entry_id ORDER BY entry_id) FROM {books.table}"
        try:
            books.both(payment("a"))
            books.post(payment("a"))
            before = books.ledger.execute(numbers).fetchone()
            doubled = books.next_run().result.breaks
            copy.start()
            monkeypatch.setenv(environment_variable(LEDGER), reader_of(copy))
            with psycopg.connect(copy.dsn(LEDGER_OWNER, LEDGER_DATABASE), autocommit=True) as owner:
                for name in ("c", "d"):
                    books.produce(payment(name))
                restored = books.next_run()
                for _ in range(100):  # until ids are given out that no cut has read up to
                    owner.execute("SELECT pg_current_xact_id()")
                for name in ("c", "d"):
                    books.post(payment(name), connection=owner)
                after = owner.execute(numbers).fetchone()
                run = books.next_run()
        finally:
            copy.stop()
            monkeypatch.undo()
        assert [one.break_class for one in doubled] == [BreakClass.DUPLICATE_IN_LEDGER]
        assert Doubt.LEDGER_IDS_REUSED in doubts(restored)
        assert (after, run.result.breaks, run.result.figures.matched_rows) == (before, (), 2)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("slice_by", ["xmin", "written_xid"])
def test_a_disk_that_was_put_back_and_has_caught_up_is_told_by_other_rows_with_the_newest_row_ids(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch, slice_by: str
) -> None:
    """Same system, same timeline, later ids and log: but for them nothing says that rows are gone. The events of the
    rows that have their ids would be duplicates.
    """
    with new_books(direction="topic_to_ledger", ledger={"slice_by": slice_by}) as books:
        books.take_cut()
        copy = copy_of_the_disk(books.stack.ledger_server, f"caught_up_{slice_by}")
        try:
            books.both(*payments("a", "b"))
            matched = books.next_run()
            copy.start()
            monkeypatch.setenv(environment_variable(LEDGER), reader_of(copy))
            with copy.connect() as admin, psycopg.connect(copy.dsn(LEDGER_OWNER, LEDGER_DATABASE)) as owner:
                books.post(*payments("c", "d"), connection=owner)
                owner.commit()
                for _ in range(100):
                    admin.execute("SELECT pg_current_xact_id()")
                admin.execute("SELECT pg_switch_wal()")
                books.post(*payments("e"), connection=owner)
                owner.commit()
            books.produce(*payments("c", "d", "e"))
            run = books.next_run()
        finally:
            copy.stop()
            monkeypatch.undo()
        before, now = matched.cut.ledger_slice.snapshot, run.cut.ledger_slice.snapshot
        assert before.log_position < now.log_position and before.high_mark < now.low_mark
        assert matched.result.verdict is Verdict.MATCHED
        assert not {Doubt.LEDGER_FAILED_OVER, Doubt.CANARY_MISSED} & set(doubts(run))
        assert Doubt.LEDGER_IDS_REUSED in doubts(run)
        assert run.result.breaks == ()


# Hidden rows.


def test_rows_that_a_policy_hides_refuse_the_cut_and_the_reading_until_the_reader_sees_all(
    new_books: NewBooks, spark: SparkSession
) -> None:
    with new_books(direction="topic_to_ledger") as books, books.stack.ledger_server.connect() as admin:
        books.take_cut()
        books.both(*payments("a", "b"))
        cut = books.take_cut()
        books.ledger.execute(f"ALTER TABLE {books.table} ENABLE ROW LEVEL SECURITY")
        books.ledger.execute(f"CREATE POLICY invoices_only ON {books.table} USING (leg <> 'payment')")
        says = rf"row-level security .* role {LEDGER_READER}.* ALTER ROLE {LEDGER_READER} BYPASSRLS"
        with pytest.raises(LedgerHidesRows, match=says):
            books.judge(cut)
        with pytest.raises(LedgerHidesRows, match=says):
            books.resolve(cut.now_utc)
        with pytest.raises(Exception, match="would be affected by row-level security"):
            scan(spark, books, cut, dsn=books.connections.ledger_dsn)
        assert read_run(books.store, cut.contract, cut.n) is None
        assert last_cut(books.store, cut.contract) == cut
        admin.execute(f"ALTER ROLE {LEDGER_READER} BYPASSRLS")
        try:
            assert books.judge(cut).result.verdict is Verdict.MATCHED
        finally:
            admin.execute(f"ALTER ROLE {LEDGER_READER} NOBYPASSRLS")


@pytest.mark.parametrize("locked", ["{table}", "{table}_kinds"], ids=["the table", "one that the condition asks"])
def test_a_lock_that_is_held_for_too_long_is_tried_again_and_refuses_nothing(
    table: Table, stack: LabStack, locked: str
) -> None:
    table.run(f"CREATE TABLE {table.name}_kinds AS SELECT 'payment' AS leg")
    ledger = table.by_xmin.model_copy(update={"where": f"leg IN (SELECT leg FROM {table.name}_kinds)"})
    with table.connect() as owner, owner.transaction():
        owner.execute(f"LOCK TABLE {locked.format(table=table.name)} IN ACCESS EXCLUSIVE MODE")
        with (
            pytest.raises(LedgerReadCancelled, match=r"lock timeout \(SQLSTATE 55P03\)"),
            open_ledger(stack.ledger_reader_dsn) as reader,
        ):
            reader.execute("SET lock_timeout = '10ms'")
            describe_table(reader, ledger)
    assert describe_table(table.reader, ledger)


# The column.


def test_the_offered_statements_rewrite_nothing_and_leave_old_rows_out_where_one_statement_would_not(
    table: Table,
) -> None:
    table.run(
        f"ALTER TABLE {table.name} DROP COLUMN written_xid",
        f"INSERT INTO {table.name} (event_id) VALUES ('old')",
    )
    before = storage(table)
    with pytest.raises(LedgerRefused, match=r"written_xid: no such column.*ADD COLUMN written_xid bigint; ALTER"):
        describe_table(table.reader, table.by_written_xid)
    add, default = written_xid_statements(table.name)
    table.run(add)
    with pytest.raises(LedgerRefused, match="written_xid: no default and no trigger fills it"):
        describe_table(table.reader, table.by_written_xid)
    table.run(default)
    assert describe_table(table.reader, table.by_written_xid).fills_written_xid
    assert storage(table) == before
    table.run(f"INSERT INTO {table.name} (event_id) VALUES ('new')")
    assert table.rows(table.by_written_xid, 0, table.horizon()) == ["new"]
    start = table.horizon()
    table.run(
        f"ALTER TABLE {table.name} DROP COLUMN written_xid",
        f"ALTER TABLE {table.name} ADD COLUMN written_xid bigint DEFAULT pg_current_xact_id()::text::bigint",
    )
    assert sorted(table.rows(table.by_written_xid, start, table.horizon())) == ["new", "old"]


def test_a_trigger_may_fill_the_column_too(table: Table) -> None:
    table.run(
        f"ALTER TABLE {table.name} ALTER COLUMN written_xid DROP DEFAULT",
        f"CREATE FUNCTION {table.name}_fill() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN NEW.written_xid := pg_current_xact_id()::text::bigint; RETURN NEW; END'",
        f"CREATE TRIGGER fill BEFORE INSERT ON {table.name} FOR EACH ROW EXECUTE FUNCTION {table.name}_fill()",
    )
    assert describe_table(table.reader, LedgerSection(connection="c", table=table.name, slice_by="written_xid"))


def storage(table: Table) -> list[tuple[object, ...]]:
    """The table's file, and the transaction that wrote its oldest row."""
    query = f"SELECT pg_relation_filenode('{table.name}'), xmin::text FROM {table.name} WHERE event_id = 'old'"
    return table.reader.execute(query).fetchall()
