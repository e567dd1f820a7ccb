"""Ledgers that are no PostgreSQL read by its horizon: what is wrong is found, and what cannot be told is said.

One file, since the same claims are made of every kind of ledger, over the same servers.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lab.servers.process import wait_until
from tallystick.connections.connections import environment_variable
from tallystick.contract.contract import Contract
from tallystick.ledger.jdbc import JdbcLedger
from tallystick.ledger.protocol import LedgerRefused
from tallystick.model.cut import LedgerSlice, LedgerSnapshot
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.pipeline.open_ledger import open_ledger_of
from tallystick.pipeline.sources import observe
from tallystick.store.runs.outstanding_store import outstanding_breaks
from tallystick_spark.readers.ledger_frame import read_ledger
from tests.stack.live_books import Event, LiveBooks, doubts, expected, kinds, payment, payments

from .ledger_files import write_file
from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")

OVERLAP = 10
FILE = "ledger_file"


@pytest.fixture
def by_number(new_books: NewBooks) -> Iterator[LiveBooks]:
    """PostgreSQL like any other database: by the number of its rows, of which the newest ten wait."""
    ledger = {"kind": "jdbc", "order_by": "entry_id", "overlap": OVERLAP}
    with new_books(direction="topic_to_ledger", ledger=ledger) as books:
        yield books


def take_a_number(books: LiveBooks) -> int:
    """What a transaction does that commits later than others that began after it."""
    row = books.ledger.execute("SELECT nextval(pg_get_serial_sequence(%s, 'entry_id'))", [books.table]).fetchone()
    assert row is not None
    return int(row[0])


def post_as(books: LiveBooks, number: int, event: Event) -> None:
    books.ledger.execute(
        f"INSERT INTO {books.table} (entry_id, event_id, payment_id, leg, side, amount_minor, currency) "
        "OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, %s, 'credit', %s, %s)",
        [number, event.event_id, event.payment_id, event.leg, event.amount_minor, event.currency],
    )


def next_run_with_more_behind_it(books: LiveBooks) -> StoredRun:
    """A whole window: as many rows that pair with nothing as the overlap is wide come after its end."""
    end = datetime.now(UTC)

    def is_settled() -> bool:
        now = datetime.now(UTC)
        return observe(books.store, books.contract, books.connections, window_end_utc=end, now_utc=now).settled

    is_settled()
    for _ in range(OVERLAP):
        take_a_number(books)
    books.ledger.execute(
        f"INSERT INTO {books.table} (event_id, payment_id, leg, side, amount_minor, currency) "
        "VALUES (gen_random_uuid(), gen_random_uuid(), 'payment', 'debit', 1, 'EUR')"
    )
    wait_until(is_settled, what="the overlap")
    return books.judge(books.resolve(end))


def test_a_row_that_comes_late_is_read_within_the_overlap_and_a_doubt_beyond_it(by_number: LiveBooks) -> None:
    books = by_number
    books.take_cut(settled=False)

    books.both(*payments("a", "b", "e", "f"))
    number = take_a_number(books)
    books.both(*payments("g", "h"))
    books.produce(payment("late"))
    held = books.next_run(settled=False)
    assert (held.result.breaks, doubts(held)) == ((), ["held_by_ledger_horizon", "partner_not_settled"])
    post_as(books, number, payment("late"))
    whole = next_run_with_more_behind_it(books)
    assert (whole.result.verdict, whole.result.breaks) == (Verdict.MATCHED, ())

    number = take_a_number(books)
    books.both(payment("c"))
    books.produce(payment("lost"))
    books.post(payment("c"))
    broken = next_run_with_more_behind_it(books)
    assert kinds(broken) == expected(("missing_in_ledger", payment("lost")), ("duplicate_in_ledger", payment("c")))

    assert broken.ledger_guarantee == "by the column entry_id with an overlap of 10: weaker than a horizon"

    post_as(books, number, payment("too late"))
    books.produce(payment("too late"))
    books.both(payment("d"))
    books.produce(payment("a"))
    beyond = next_run_with_more_behind_it(books)
    assert [one[:2] for one in kinds(beyond)] == [("duplicate_in_topic_new_session", payment("a").payment_id)]
    assert sorted(doubts(beyond)) == ["ledger_rewritten", "partner_not_settled"]


def test_a_key_that_no_row_can_have_stops_no_look_up(by_number: LiveBooks) -> None:
    books, one = by_number, payment("a")
    columns = {"i2": "smallint", "i4": "integer", "i8": "bigint", "n": "numeric", "u": "uuid", "t": "text"}
    added = ", ".join(f"ADD COLUMN {name} {kind}" for name, kind in columns.items())
    books.ledger.execute(f"ALTER TABLE {books.table} {added}")
    books.post(one)
    values = "i2 = 7, i4 = 7, i8 = 7, n = 7, u = event_id, t = '7'"
    books.ledger.execute(f"UPDATE {books.table} SET {values} WHERE side = 'credit'")
    odd = ("99999999999999999999", "2147483648", "32768", "9" * 5_000, "a\0b", "\ud800", "", "NaN", "1.5")
    now = LedgerSlice(
        position_start=0,
        position_end=9,
        snapshot=LedgerSnapshot(low_mark=9, high_mark=9, system_identifier="postgresql", timeline=0, lsn="0/0"),
        mark=9,
        baseline_position=0,
    )
    with open_ledger_of(books.store, books.contract, books.connections) as there:
        assert isinstance(there, JdbcLedger)
        for name in columns:
            side = there.ledger.model_copy(
                update={"columns": there.ledger.columns.model_copy(update={"match_key": name})}
            )
            found = replace(there, ledger=side).look_up_rows(["7", one.event_id, *odd], now)
            assert set(found) == {one.event_id if name == "u" else "7"}


@pytest.mark.parametrize("kind", ["timestamptz", "timestamp"])
def test_a_timestamp_is_a_position_in_microseconds(new_books: NewBooks, spark: SparkSession, kind: str) -> None:
    ledger = {"kind": "jdbc", "order_by": "sent_at", "overlap": 3_600, "columns": {"written_at": "occurred_at"}}
    first, names = datetime(2026, 1, 1, 12, 0, 0, 999_999, tzinfo=UTC), ("a", "b", "c")
    with new_books(direction="topic_to_ledger", ledger=ledger) as books:
        books.ledger.execute("SET timezone = 'UTC'")
        books.ledger.execute(f"ALTER TABLE {books.table} ADD COLUMN sent_at {kind}")
        for number, name in enumerate(names):
            books.post(payment(name))
            moment = first + number * timedelta(microseconds=1)
            books.ledger.execute(f"UPDATE {books.table} SET sent_at = %s WHERE sent_at IS NULL", [moment])
        position = (first - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        with open_ledger_of(books.store, books.contract, books.connections) as there:
            described, snapshot = there.describe(), there.read_snapshot()
            one = LedgerSlice(
                position_start=position + 1,
                position_end=position + 2,
                snapshot=snapshot,
                mark=position + 2,
                baseline_position=0,
            )
            found = there.look_up_rows([payment(name).event_id for name in names], one)
            rows = read_ledger(spark, books.connections, there, one, described, None).collect()
            assert there.count_older_rows(one) == 1
        assert position + 3 < snapshot.low_mark == snapshot.high_mark - 1 - 3_600 * 10**6
        assert [found[payment(name).event_id][0].position - position for name in names] == [0, 1, 2]
        assert [(row.match_key, row.amount_minor) for row in rows] == [(payment("b").event_id, 1000)]
        assert rows[0].written_ms > first.timestamp() * 1000


def test_by_a_timestamp_a_row_that_went_and_one_that_came_late_cancel_out(new_books: NewBooks) -> None:
    """As docs/guarantees.md says; by a whole number their sum tells them apart."""
    ledger = {"kind": "jdbc", "order_by": "occurred_at", "overlap": 0}
    with new_books(direction="topic_to_ledger", ledger=ledger) as books:
        books.take_cut()
        for name in ("went", *"abcde"):  # the newest five are looked for
            books.both(payment(name))
        assert books.next_run().result.verdict is Verdict.MATCHED
        books.ledger.execute(f"DELETE FROM {books.table} WHERE event_id = %s", [payment("went").event_id])
        books.post(payment("late"))
        books.ledger.execute(
            f"UPDATE {books.table} SET occurred_at = (SELECT min(occurred_at) FROM {books.table}) WHERE event_id = %s",
            [payment("late").event_id],
        )
        books.both(payment("f"))
        run = books.next_run()
        assert (run.result.verdict, run.result.figures.ledger_rows) == (Verdict.MATCHED, 1)


@pytest.fixture
def in_a_file(new_books: NewBooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveBooks]:
    """SQLite: one writer at a time, so that rows are committed in the order of their numbers."""
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path)) as ledger, ledger:
        ledger.execute(
            "CREATE TABLE posting (entry_id INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT, payment_id TEXT, "
            "leg TEXT, side TEXT, amount_minor INTEGER, currency TEXT)"
        )
    monkeypatch.setenv(environment_variable(FILE), f"sqlite:///{path}")
    document = {"kind": "jdbc", "connection": FILE, "table": "main.posting", "order_by": "entry_id", "overlap": 0}
    with new_books(direction="ledger_to_topic", ledger=document) as books:
        yield books


def ledger_file(books: LiveBooks) -> Path:
    return Path(books.connections.ledger_dsn.removeprefix("sqlite:///"))


def post_to_file(books: LiveBooks, *events: Event) -> None:
    with closing(sqlite3.connect(ledger_file(books))) as ledger, ledger:
        ledger.executemany(
            "INSERT INTO posting (event_id, payment_id, leg, side, amount_minor, currency) VALUES (?, ?, ?, ?, ?, ?)",
            [(one.event_id, one.payment_id, one.leg, "credit", one.amount_minor, one.currency) for one in events],
        )


def change_file(books: LiveBooks, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(ledger_file(books))) as ledger, ledger:
        ledger.execute(statement, values)


def test_a_ledger_in_sqlite_is_reconciled(in_a_file: LiveBooks) -> None:
    books, large = in_a_file, payment("large", 2**53 + 1)
    books.take_cut()
    post_to_file(books, *payments("a", "b"), large)
    books.produce(*payments("a", "b"), large)
    assert books.next_run().result.verdict is Verdict.MATCHED

    post_to_file(books, payment("c"), payment("lost"), payment("a"))
    books.produce(*payments("c", "invented"))
    broken = books.next_run()
    assert kinds(broken) == expected(
        ("duplicate_in_ledger", payment("a")),
        ("missing_in_topic_never_produced", payment("lost")),
        ("phantom_in_topic", payment("invented")),
    )
    assert books.judge_again(broken).digest == broken.result.digest


def test_newest_rows_that_are_deleted_move_no_other_row_out_of_the_books(in_a_file: LiveBooks) -> None:
    books = in_a_file
    baseline = books.take_cut()
    post_to_file(books, *payments("a", "b"))
    books.produce(*payments("a", "b"))
    assert books.next_run().result.verdict is Verdict.MATCHED

    change_file(books, "DELETE FROM posting WHERE event_id = ?", payment("b").event_id)
    went = books.next_run()
    assert (went.result.breaks, doubts(went)) == (
        (),
        ["ledger_rewritten", "ledger_rewritten", "ledger_ids_reused", "vacuous_run"],
    )
    assert went.result.doubts[0].sentence.startswith(
        "ledger: the newest row stands at 1, and cuts have read up to 2: the newest rows were deleted."
    )
    assert "earlier cuts read 2: 1 row went: deleted, or given another entry_id." in went.result.doubts[1].sentence

    post_to_file(books, *payments("c", "a"))
    books.produce(payment("c"))
    again = books.next_run()
    assert kinds(again) == expected(("duplicate_in_ledger", payment("a")))
    assert doubts(again) == []
    ours, first = again.cut.ledger_slice, baseline.ledger_slice
    assert (ours.baseline_position, ours.reused_from, ours.reused_below) == (first.position_end, 2, 3)

    change_file(books, "UPDATE sqlite_sequence SET seq = seq + 5")
    for name in ("d", "e"):
        post_to_file(books, payment(name))
        books.produce(payment(name))
        assert doubts(books.next_run()) == []
    change_file(books, "UPDATE posting SET entry_id = entry_id - 2 WHERE event_id = ?", payment("d").event_id)
    post_to_file(books, payment("f"))
    books.produce(payment("f"))
    moved = books.next_run()
    assert (moved.result.breaks, doubts(moved)) == ((), ["ledger_rewritten", "ledger_ids_reused"])
    assert "as many as earlier cuts read, and not the same" in moved.result.doubts[0].sentence


def test_a_row_that_gets_a_number_of_before_once_a_backup_was_put_back_makes_no_second_event(
    in_a_file: LiveBooks, tmp_path: Path
) -> None:
    """As many rows with the same numbers as were read: that they have other keys, the newest ones show."""
    books = in_a_file
    books.take_cut()
    post_to_file(books, payment("a"))
    books.produce(payment("a"))
    assert books.next_run().result.verdict is Verdict.MATCHED
    file, backup = ledger_file(books), tmp_path / "backup.db"
    shutil.copy(file, backup)
    post_to_file(books, *payments("b", "c"))
    books.produce(*payments("b", "c"))
    assert books.next_run().result.verdict is Verdict.MATCHED

    shutil.copy(backup, file)
    post_to_file(books, *payments("d", "e", "f"))
    books.produce(*payments("d", "e", "f", "a"))
    run = books.next_run()
    assert kinds(run) == expected(("duplicate_in_topic_new_session", payment("a")))
    assert sorted(doubts(run)) == ["ledger_ids_reused", "partner_not_settled"]
    ours = run.cut.ledger_slice
    assert ([one.row_id for one in ours.lost], ours.reused_from, ours.reused_below) == (["3", "2"], 2, 4)

    post_to_file(books, payment("g"))
    books.produce(*payments("g", "f"))
    later = books.next_run()
    assert (kinds(later), doubts(later)) == (expected(("duplicate_in_topic_new_session", payment("f"))), [])


def test_the_event_of_a_row_that_came_late_where_another_went_is_no_duplicate(in_a_file: LiveBooks) -> None:
    """The slice holds as many rows as its cut has read there, and not the same ones."""
    books = in_a_file
    books.take_cut()
    for name in ("a", "b"):
        post_to_file(books, payment(name))
        change_file(books, "UPDATE sqlite_sequence SET seq = seq + 1")
    books.produce(*payments("a", "b"))
    assert books.next_run().result.verdict is Verdict.MATCHED

    change_file(books, "DELETE FROM posting WHERE event_id = ?", payment("b").event_id)
    post_to_file(books, payment("late"))
    change_file(books, "UPDATE posting SET entry_id = 2 WHERE event_id = ?", payment("late").event_id)
    post_to_file(books, payment("c"))
    books.produce(*payments("late", "c", "a"))
    run = books.next_run()
    assert kinds(run) == expected(("duplicate_in_topic_new_session", payment("a")))
    assert sorted(doubts(run)) == ["ledger_ids_reused", "ledger_rewritten", "partner_not_settled"]


def test_what_a_column_that_grows_cannot_tell_is_not_seen_and_what_the_log_tells_is(in_a_file: LiveBooks) -> None:
    """The first run as docs/guarantees.md says: MATCHED over wrong money."""
    books = in_a_file
    books.take_cut()
    names = ("number taken", "changed", "replaced", "paid again", "posted again", "newest")  # five are looked for
    post_to_file(books, *payments(*names))
    books.produce(*payments(*names))
    assert books.next_run().result.verdict is Verdict.MATCHED

    change_file(books, "UPDATE posting SET amount_minor = 1 WHERE event_id = ?", payment("changed").event_id)
    taken = [payment("never paid").event_id, payment("number taken").event_id]
    change_file(books, "UPDATE posting SET event_id = ? WHERE event_id = ?", *taken)
    change_file(books, "VACUUM")
    post_to_file(books, payment("a"))
    books.produce(payment("a"))
    unseen = books.next_run()
    assert (unseen.result.verdict, unseen.result.figures.ledger_rows) == (Verdict.MATCHED, 1)

    for name in names[2:5]:
        change_file(books, "DELETE FROM posting WHERE event_id = ?", payment(name).event_id)
    post_to_file(books, payment("replaced", 5_000_000), payment("paid again"))
    books.produce(payment("paid again"))
    told = books.next_run()
    assert kinds(told) == expected(
        ("amount_mismatch", payment("replaced")), ("duplicate_in_topic_new_session", payment("paid again"))
    )
    assert doubts(told) == ["ledger_rewritten", "ledger_ids_reused"]

    post_to_file(books, *payments("posted again", "b"))  # the first by a consumer that has read its event once more
    books.produce(payment("b"))
    after = books.next_run()
    assert (kinds(after), doubts(after)) == ([], ["partner_not_settled"])


@pytest.fixture
def in_files(new_books: NewBooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveBooks]:
    (tmp_path / "lake" / "billing" / "posting").mkdir(parents=True)
    monkeypatch.setenv(environment_variable(FILE), str(tmp_path / "lake"))
    document = {"kind": "parquet", "connection": FILE, "table": "billing.posting", "quiet_seconds": 1, "where": None}
    with new_books(direction="topic_to_ledger", ledger=document) as books:
        yield books


def test_a_ledger_in_files_is_read_by_its_manifest_and_a_file_that_changes_is_a_doubt(in_files: LiveBooks) -> None:
    books = in_files
    write_file(books, "old.parquet", payment("before the books"))
    books.take_cut()
    books.produce(*payments("a", "b"))
    first = write_file(books, "first.parquet", *payments("a", "b"))
    assert books.next_run().result.verdict is Verdict.MATCHED

    as_read = first.stat()
    write_file(books, first.name, payment("a", 1001), payment("b", 1001))
    os.utime(first, ns=(as_read.st_atime_ns, as_read.st_mtime_ns))
    assert first.stat().st_size == as_read.st_size  # so that it is not seen, as docs/guarantees.md says
    books.produce(*payments("c", "lost", "before the books"))
    write_file(books, "second [1]{a,b}.parquet", *payments("c", "a"))
    write_file(books, "*?\\ 100%.parquet", payment("invented"))
    broken = books.next_run()
    assert kinds(broken) == expected(
        ("missing_in_ledger", payment("lost")),
        ("duplicate_in_ledger", payment("a")),
        ("phantom_in_ledger", payment("invented")),
    )
    assert doubts(broken) == []
    assert books.judge_again(broken).digest == broken.result.digest

    write_file(books, "first again.parquet", *payments("a", "b"), rows_of=first.name)
    twice = books.next_run()
    assert kinds(twice) == expected(*(("duplicate_in_ledger", one) for one in payments("a", "b")))

    write_file(books, first.name, *payments("a", "b", "written to a file that was read"))
    books.produce(*payments("d", "written to a file that was read"))
    write_file(books, "fourth.parquet", payment("d"))
    rewritten = books.next_run()
    assert (rewritten.result.breaks, doubts(rewritten)) == ((), ["partner_not_settled", "ledger_rewritten"])
    (told,) = (one for one in rewritten.result.doubts if one.doubt == "ledger_rewritten")
    assert rewritten.ledger_guarantee == "by manifest of files left alone for 1 s: weaker than a horizon"
    assert told.sentence.startswith("ledger: 1 file that a cut had taken changed: first.parquet had")


def test_a_file_that_comes_where_a_late_window_holds_nothing_is_read_by_the_next(in_files: LiveBooks) -> None:
    """Taken by the empty slice, its rows would seem to stand before the baseline."""
    contract = in_files.contract.model_copy(update={"schedule": "* * * * *"})
    books, end = replace(in_files, contract=contract), datetime.now(UTC) - timedelta(hours=1)
    books.resolve(end)
    books.produce(payment("a"))
    moved_in = write_file(books, "moved in.parquet", payment("a"))
    os.utime(moved_in, (0, 0))
    empty = books.resolve(end + timedelta(minutes=10))
    assert empty.by_time
    assert (empty.ledger_slice.position_start, empty.ledger_slice.files) == (empty.ledger_slice.position_end, ())
    books.judge(empty)
    run = books.next_run()
    assert (run.result.verdict, run.result.figures.matched_rows) == (Verdict.MATCHED, 1)


def test_rows_of_files_that_share_a_row_id_hide_nothing(in_files: LiveBooks) -> None:
    books, large, small = in_files, payment("large", 900_000), payment("small", 5)
    books.take_cut()
    books.produce(payment("a"))
    write_file(books, "first.parquet", payment("a"), large, row_ids="12")
    first = books.next_run()
    assert (kinds(first), doubts(first)) == (expected(("phantom_in_ledger", large)), [])

    books.produce(payment("b"))
    write_file(books, "second.parquet", payment("b"), small, row_ids="12")
    second = books.next_run()
    assert (kinds(second), doubts(second)) == (expected(("phantom_in_ledger", small)), [])
    standing = outstanding_breaks(books.store, books.contract.name)
    assert sorted(one.item_break.amount_minor for one in standing) == [5, 900_000]

    books.produce(payment("c"))
    write_file(books, "second again.parquet", payment("b"), payment("c"), payment("c"), row_ids="177")
    third = books.next_run()
    assert kinds(third) == expected(("duplicate_in_ledger", payment("b")), ("duplicate_in_ledger", payment("c")))
    assert doubts(third) == ["row_ids_repeat"]
    assert books.judge_again(third).digest == third.result.digest


def test_a_row_id_that_is_not_unique_is_refused_or_counted_where_no_database_can_say(
    new_books: NewBooks, in_a_file: LiveBooks
) -> None:
    by_event = {"columns": {"row_id": "event_id"}}
    with pytest.raises(LedgerRefused, match=r"main.posting: column event_id, .* row_id: got no unique index"):
        replace(in_a_file, contract=with_ledger(in_a_file, by_event)).take_cut()
    with new_books(direction="topic_to_ledger", ledger=by_event) as books:
        with pytest.raises(LedgerRefused, match=r"column event_id, .* row_id: got no unique index"):
            books.take_cut()
        books.ledger.execute(
            f"""
            CREATE TABLE {books.table}s (LIKE {books.table} INCLUDING DEFAULTS INCLUDING IDENTITY)
                PARTITION BY LIST (leg);
            CREATE TABLE {books.table}_1 PARTITION OF {books.table}s DEFAULT;
            DROP TABLE {books.table};
            ALTER TABLE {books.table}s RENAME TO posting;
            """
        )
        books.take_cut()
        books.both(*payments("a", "b"))
        books.post(payment("b"))
        run = books.next_run()
        assert kinds(run) == expected(("duplicate_in_ledger", payment("b")))
        assert doubts(run) == ["row_ids_repeat"]
        assert run.result.doubts[0].details == {"row_ids": [payment("b").event_id]}


def with_ledger(books: LiveBooks, changes: Mapping[str, Any]) -> Contract:
    document = books.contract.model_dump(mode="json", exclude_defaults=True)
    return Contract.model_validate(document | {"ledger": document["ledger"] | dict(changes)})
