"""A ledger that is read on a real streaming standby: what it has not replayed waits, and nothing of it is missing."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lab.servers.postgres import NEWEST, OLDEST, PostgresServer
from lab.servers.stack import LabStack
from tallystick.connections.connections import environment_variable
from tallystick.contract.ledger import LedgerSection
from tallystick.ledger import postgres_standby
from tallystick.ledger.jdbc import JdbcLedger, open_jdbc_ledger
from tallystick.ledger.jdbc_connection import jdbc_settings
from tallystick.ledger.postgres import PostgresLedger, read_ledger_snapshot
from tallystick.ledger.postgres_connection import open_ledger
from tallystick.ledger.postgres_standby import StandbyBehind, reach, read_standby_snapshot
from tallystick.ledger.postgres_table import LedgerIsStandby
from tallystick.ledger.protocol import LedgerRefused
from tallystick.ledger.unread_rows import UnreadRows
from tallystick.model.cut import LedgerSlice
from tallystick.model.finding_names import Doubt
from tallystick.model.verdict import Verdict
from tallystick.store.engine import open_store
from tests.stack.live_books import LEDGER, LiveBooks, doubts, environment_of, expected, kinds, open_live_books, payment

from .ledger_copies import copy_of, reader_of
from .ledger_servers import with_ledger_of
from .ledger_table import Table, open_table
from .ledger_writers import write_all_shapes

PRIMARY = "ledger_primary"


@dataclass(frozen=True)
class Pair:
    """A stack whose ledger is a primary, and its standby."""

    stack: LabStack
    standby: PostgresServer

    @property
    def primary(self) -> PostgresServer:
        return self.stack.ledger_server

    def catch_up(self) -> None:
        self.standby.wait_replayed(self.primary)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The standby replays nothing meanwhile; what it had received before is replayed."""
        self.catch_up()
        with self.standby.connect() as admin:
            admin.execute("SELECT pg_wal_replay_pause()")
            try:
                yield
            finally:
                admin.execute("SELECT pg_wal_replay_resume()")


@pytest.fixture(scope="module", params=[OLDEST, NEWEST])
def pair(stack: LabStack, request: pytest.FixtureRequest) -> Iterator[Pair]:
    with with_ledger_of(stack, request.param) as own, copy_of(own.ledger_server, f"standby-{request.param}") as standby:
        yield Pair(own, standby)


# Slices.


@dataclass(frozen=True)
class Replayed:
    """A table on the primary, and both readers of it."""

    pair: Pair
    table: Table
    standby: psycopg.Connection
    primary: psycopg.Connection

    def ledger(self, section: LedgerSection) -> PostgresLedger:
        return PostgresLedger(connection=self.standby, ledger=section, primary=self.primary)

    @property
    def by_xmin(self) -> PostgresLedger:
        return self.ledger(on_standby(self.table.by_xmin))

    def slice_from(self, start: int) -> LedgerSlice:
        now = self.by_xmin.read_snapshot()
        return LedgerSlice(
            position_start=start, position_end=now.low_mark, snapshot=now, mark=now.high_mark, baseline_position=start
        )

    def keys(self, start: int, end: int) -> tuple[str, ...]:
        """Of rows, each as often as it stands there."""
        part = LedgerSlice(
            position_start=start,
            position_end=end,
            snapshot=self.by_xmin.read_snapshot(),
            mark=end,
            baseline_position=start,
        )
        there = Table(self.table.name, self.table.owner_dsn, self.standby)
        return tuple(there.rows(self.table.by_xmin, part.position_start, part.position_end))


def on_standby(section: LedgerSection) -> LedgerSection:
    return section.model_copy(update={"primary_connection": PRIMARY})


@pytest.fixture
def replayed(pair: Pair) -> Iterator[Replayed]:
    with (
        open_table(pair.stack.ledger_owner_dsn, pair.stack.ledger_reader_dsn) as table,
        open_ledger(reader_of(pair.standby)) as standby,
    ):
        pair.catch_up()
        yield Replayed(pair, table, standby, table.reader)


def test_slices_cut_on_a_standby_while_four_writers_work_hold_every_committed_row_once(replayed: Replayed) -> None:
    """Savepoints, COPY, two phases, caught exceptions and rollbacks, as on a primary."""
    table, enough = replayed.table, threading.Event()
    ends, read, lagging = [replayed.by_xmin.read_snapshot().low_mark], list[str](), 0
    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write_all_shapes, table, worker, until=enough) for worker in range(4)]
        try:
            for _ in range(40):
                snapshot = replayed.by_xmin.read_snapshot()
                lagging += snapshot.low_mark < snapshot.high_mark
                ends.append(snapshot.low_mark)
                read += replayed.keys(*ends[-2:])
        finally:
            enough.set()
        committed = [writer.result() for writer in writers]
    replayed.pair.catch_up()
    ends.append(replayed.by_xmin.read_snapshot().low_mark)
    read += replayed.keys(*ends[-2:])
    assert all(committed)
    assert lagging > 0
    assert Counter(read) == Counter(key for keys in committed for key in keys)
    assert sorted(ends) == ends


def test_what_is_written_while_nothing_is_replayed_is_below_the_mark_and_above_the_horizon(replayed: Replayed) -> None:
    """A mark of the standby's own would date its rows with a moment that it has not reached."""
    table = replayed.table
    with replayed.pair.paused():
        before = replayed.by_xmin.read_snapshot()
        with table.connect() as owner:
            table.insert(owner, "late")
            (xid,) = owner.execute(f"SELECT xmin::text::bigint FROM {table.name}").fetchone() or (0,)
        now = replayed.by_xmin.read_snapshot()
        assert now.low_mark == before.low_mark <= xid < now.high_mark
        holder = replayed.by_xmin.holder(horizon=now.low_mark)
        assert holder is not None
        assert holder.holder.startswith("the standby, which has replayed up to ")
    replayed.pair.catch_up()
    after = replayed.by_xmin.read_snapshot()
    assert after.low_mark > xid
    assert replayed.keys(now.low_mark, after.low_mark) == ("late",)


def test_an_open_transaction_holds_the_standbys_horizon_and_is_named_by_its_primary(replayed: Replayed) -> None:
    table = replayed.table
    with table.connect() as writer:
        writer.execute("SET application_name = 'slow writer'")
        writer.execute("BEGIN")
        writer.execute("SAVEPOINT one")
        table.insert(writer, "open")
        writer.execute("RELEASE SAVEPOINT one")
        table.run(f"INSERT INTO {table.name} (event_id) VALUES ('neighbour')")
        replayed.pair.catch_up()
        now = replayed.by_xmin.read_snapshot()
        holder = replayed.by_xmin.holder(horizon=now.low_mark)
        assert now.low_mark < now.high_mark
        assert holder is not None
        assert "slow writer" in holder.holder
        assert replayed.keys(3, now.low_mark) == ()
        writer.execute("COMMIT")
    replayed.pair.catch_up()
    assert sorted(replayed.keys(3, replayed.by_xmin.read_snapshot().low_mark)) == ["neighbour", "open"]


@pytest.mark.parametrize(
    ("change", "still"),
    [
        ("UPDATE {table} SET leg = leg WHERE event_id = 'touched'", 1),
        ("INSERT INTO {table} (event_id) VALUES ('new')", 2),
    ],
)
def test_a_row_that_was_open_does_not_stand_in_for_one_that_was_touched(
    replayed: Replayed, change: str, still: int
) -> None:
    """A standby's own snapshot does not say which transactions between its ends are open."""
    table, ledger = replayed.table, replayed.by_xmin
    start = ledger.read_snapshot().low_mark
    with table.connect() as writer:
        writer.execute("BEGIN")
        table.insert(writer, "open")
        table.run(f"INSERT INTO {table.name} (event_id) VALUES ('touched'), ('left')")
        replayed.pair.catch_up()
        snapshot = ledger.read_snapshot()
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
    replayed.pair.catch_up()
    before = UnreadRows(snapshot=then.snapshot, rows=then.behind)
    now = ledger.count_unread(behind, below=then.snapshot_end, before=before)
    assert now is not None
    assert now.still == still


def test_books_that_begin_on_a_standby_count_what_is_older_there(replayed: Replayed) -> None:
    replayed.table.run(f"INSERT INTO {replayed.table.name} (event_id) VALUES ('older'), ('old')")
    replayed.pair.catch_up()
    snapshot, older_rows = replayed.by_xmin.read_beginning()
    assert older_rows == 2
    assert replayed.by_xmin.count_older_rows(replayed.slice_from(snapshot.low_mark)) == 2
    assert replayed.ledger(on_standby(replayed.table.by_written_xid)).read_beginning()[1] is None


# Which standby may be read.


def test_a_standby_that_is_further_back_than_the_newest_cut_is_waited_for_and_then_refused_for_now(
    replayed: Replayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that has started again is, or another one behind the same name."""
    monkeypatch.setattr(postgres_standby, "WAIT_SECONDS", 0.2)
    standby, primary, pair = replayed.standby, replayed.primary, replayed.pair
    with pair.paused():
        replayed.table.run(f"INSERT INTO {replayed.table.name} (event_id) VALUES ('seen by another')")
        seen = read_standby_snapshot(primary, primary)  # as a standby shows it that has replayed all
        with pytest.raises(StandbyBehind, match=r"has not replayed up to .* which a cut has seen already") as raised:
            reach(standby, primary, seen)
        assert raised.value.retryable
        with pytest.raises(StandbyBehind, match="has not replayed up to"):
            reach(standby, primary, replace(seen, timeline=seen.timeline - 1))  # of the primary before a failover
        reach(standby, primary, replace(seen, system_identifier="another", lsn="FFFFFFFF/0"))
    monkeypatch.setattr(postgres_standby, "WAIT_SECONDS", 30.0)
    reach(standby, primary, seen)
    reach(standby, primary, None)


def test_a_standby_is_not_read_beside_a_primary_of_another_timeline_or_another_server(
    pair: Pair, replayed: Replayed, stack: LabStack
) -> None:
    with copy_of(pair.primary, f"promoted-{pair.primary.version}") as other:
        with other.connect() as admin:
            admin.execute("SELECT pg_promote()")
        with (
            open_ledger(reader_of(other)) as promoted,
            pytest.raises(StandbyBehind, match="follows timeline 1, its primary is on timeline 2"),
        ):
            read_standby_snapshot(replayed.standby, promoted)
    with (
        open_ledger(stack.ledger_reader_dsn) as stranger,
        pytest.raises(LedgerRefused, match="expected a standby and its own primary"),
    ):
        read_standby_snapshot(replayed.standby, stranger)
    with pytest.raises(LedgerIsStandby, match=r"primary_connection leads to a standby .* expected the primary"):
        read_standby_snapshot(replayed.standby, replayed.standby)


def test_the_place_of_a_horizon_is_behind_each_commit_that_it_shows_though_the_disk_has_not_got_it(
    replayed: Replayed,
) -> None:
    """Or a standby would be read that shows less than a cut has seen."""
    with replayed.pair.primary.connect() as admin, replayed.table.connect() as hasty:
        admin.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        admin.execute("SELECT pg_reload_conf()")
        try:
            hasty.execute("SET synchronous_commit = off")
            for number in range(5):
                replayed.table.insert(hasty, f"hasty {number}")
                (committed,) = hasty.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone() or ("",)
                for seen in (
                    read_ledger_snapshot(replayed.primary),
                    read_standby_snapshot(replayed.primary, replayed.primary),
                ):
                    assert seen.log_position >= replace(seen, lsn=committed).log_position
        finally:
            admin.execute("ALTER SYSTEM RESET wal_writer_delay")
            admin.execute("SELECT pg_reload_conf()")


def test_where_the_primary_itself_has_fallen_back_the_run_tells_it(replayed: Replayed) -> None:
    """Nobody waits for what a restored primary will not write again."""
    now = replayed.by_xmin.read_snapshot()
    ahead = replace(now, lsn="FFFFFFFF/0")
    reach(replayed.standby, replayed.primary, ahead)


# By a column that grows.


@contextmanager
def by_column(server: PostgresServer, table: Table, column: str, now: datetime) -> Iterator[JdbcLedger]:
    section = LedgerSection(connection="ledger", kind="jdbc", table=table.name, order_by=column, overlap=0)
    with open_jdbc_ledger(
        jdbc_settings(reader_of(server)), section, read_before=tuple, sum_before=lambda one: None, now=lambda: now
    ) as opened:
        yield opened


def test_by_a_timestamp_a_standby_is_read_up_to_the_newest_commit_that_it_has_replayed(
    pair: Pair, replayed: Replayed
) -> None:
    table, later = replayed.table, datetime.now(UTC) + timedelta(hours=1)
    table.run(f"ALTER TABLE {table.name} ADD COLUMN at timestamptz NOT NULL DEFAULT clock_timestamp()")
    table.run(f"INSERT INTO {table.name} (event_id) VALUES ('replayed')")
    with pair.paused(), by_column(pair.standby, table, "at", later) as there:
        table.run(f"INSERT INTO {table.name} (event_id) VALUES ('late')")
        before = there.read_snapshot()
        with by_column(pair.primary, table, "at", later) as here:
            at_once = here.read_snapshot()
        assert before.low_mark < before.high_mark == at_once.high_mark
        assert at_once.low_mark == at_once.high_mark - 1  # its clock's
    pair.catch_up()
    with by_column(pair.standby, table, "at", later) as there:
        after = there.read_snapshot()
        late = there.look_up_rows(["late"], replayed.slice_from(0))["late"][0].position
    assert before.low_mark < late <= after.low_mark < at_once.low_mark


def test_by_an_integer_a_standby_is_refused_and_its_primary_is_not(pair: Pair, replayed: Replayed) -> None:
    now = datetime.now(UTC)
    with by_column(pair.primary, replayed.table, "entry_id", now) as here:
        here.describe()
    with (
        by_column(pair.standby, replayed.table, "entry_id", now) as there,
        pytest.raises(LedgerRefused, match=r"leads to a standby .* entry_id is an integer.* primary_connection"),
    ):
        there.describe()


# Whole runs.


@pytest.fixture
def books(pair: Pair, store_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveBooks]:
    """Read by xmin on the standby."""
    for variable, value in environment_of(pair.stack, tmp_path).items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv(environment_variable(LEDGER), reader_of(pair.standby))
    monkeypatch.setenv(environment_variable(PRIMARY), pair.stack.ledger_reader_dsn)
    store = open_store(store_dsn)
    section: dict[str, Any] = {"primary_connection": PRIMARY}
    with open_live_books(pair.stack, store, tmp_path, direction="topic_to_ledger", ledger=section) as opened:
        pair.catch_up()
        yield opened
    store.dispose()


@pytest.mark.usefixtures("spark")
def test_a_run_on_a_standby_finds_what_is_missing_and_calls_nothing_missing_that_was_not_replayed(
    pair: Pair, books: LiveBooks
) -> None:
    books.take_cut()
    books.produce(payment("lost"))
    books.both(payment("a"), payment("b", 700))
    run = books.next_run()
    assert kinds(run) == expected(("missing_in_ledger", payment("lost")))
    with pair.paused():
        books.both(payment("c"))
        books.wait_stable()
        held = books.next_run(settled=False)
        assert (held.result.verdict, kinds(held)) == (Verdict.INCONCLUSIVE, [])
        assert Doubt.HELD_BY_LEDGER_HORIZON in doubts(held)
        assert "the standby, which has replayed up to" in str(held.result.doubts)
    pair.catch_up()
    after = books.next_run()
    assert (after.result.verdict, kinds(after), doubts(after)) == (Verdict.MATCHED, [], [])
    books.ledger.execute(f"UPDATE {books.table} SET leg = leg WHERE event_id = %s", [payment("a").event_id])
    books.both(payment("d"))
    assert doubts(books.next_run()) == [Doubt.LEDGER_REWRITTEN]
