"""Row ids that repeat, where no database rules it out: no row is taken for another one, and none is dropped."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tallystick.connections.connections import environment_variable
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.open_item import ItemState
from tallystick.model.verdict import Verdict
from tallystick.store.runs.open_item_store import open_items_as_of
from tallystick.store.runs.outstanding_store import outstanding_breaks
from tests.stack.live_books import Event, LiveBooks, doubts, expected, kinds, payment

from .ledger_files import write_file
from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")

_LEDGERS: dict[str, dict[str, Any]] = {
    "xmin": {},
    "written_xid": {"slice_by": "written_xid"},
    "jdbc": {"kind": "jdbc", "order_by": "written", "overlap": 0},
}
_AS_NEW = {"written_xid": ", written_xid = pg_current_xact_id()::text::bigint", "xmin": ""}
"""What an owner sets beside who lets a later cut read the row once more."""


@contextmanager
def repeating(new_books: NewBooks, kind: str, **contract: Any) -> Iterator[LiveBooks]:
    """A table in partitions, each of which gives out its own row ids; jdbc reads it through a view, by the order of its
    rows.
    """
    with new_books(ledger=_LEDGERS[kind], **contract) as books:
        books.ledger.execute(
            f"""
            ALTER TABLE {books.table} ADD COLUMN written bigint GENERATED ALWAYS AS IDENTITY;
            CREATE TABLE {books.table}s (LIKE {books.table} INCLUDING DEFAULTS INCLUDING IDENTITY)
                PARTITION BY HASH (event_id);
            CREATE TABLE {books.table}_1 PARTITION OF {books.table}s FOR VALUES WITH (MODULUS 1, REMAINDER 0);
            DROP TABLE {books.table};
            """
        )
        seen = f"CREATE VIEW {books.table} AS SELECT * FROM {books.table}s"
        books.ledger.execute(seen if kind == "jdbc" else f"ALTER TABLE {books.table}s RENAME TO posting")
        yield books


def post_as(books: LiveBooks, number: int | None, *events: Event) -> None:
    """A row of each event, all under one row id."""
    with books.ledger.transaction():
        for one in events:
            books.ledger.execute(
                f"INSERT INTO {books.table} (entry_id, event_id, payment_id, leg, side, amount_minor, currency) "
                "OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, %s, 'credit', %s, %s)",
                [number, one.event_id, one.payment_id, one.leg, one.amount_minor, one.currency],
            )


def outstanding(books: LiveBooks) -> list[tuple[str, int]]:
    """Class and money of what is broken still."""
    found = outstanding_breaks(books.store, books.contract.name)
    return sorted((str(one.item_break.break_class), one.item_break.amount_minor) for one in found)


@pytest.mark.parametrize("kind", ["xmin", "jdbc"])
def test_a_row_of_another_window_with_the_row_id_of_a_broken_one_replaces_none(new_books: NewBooks, kind: str) -> None:
    large, small, again = payment("large", 900_000), payment("small", 5), payment("again", 70)
    with repeating(new_books, kind, direction="topic_to_ledger") as books:
        books.take_cut()
        books.produce(payment("a"))
        post_as(books, 1, payment("a"))
        post_as(books, 12, large, again)
        first = books.next_run()
        assert kinds(first) == expected(*((BreakClass.PHANTOM_IN_LEDGER, one) for one in (large, again)))

        books.produce(payment("b"))
        post_as(books, 12, payment("b"), small)
        post_as(books, 12, again)
        second = books.next_run()
        assert kinds(second) == expected(*((BreakClass.PHANTOM_IN_LEDGER, one) for one in (small, again)))
        assert Doubt.LEDGER_REWRITTEN not in doubts(second)
        assert books.judge_again(second).digest == second.result.digest
        assert outstanding(books) == [("phantom_in_ledger", minor) for minor in (5, 70, 70, 900_000)]

        books.produce(large, small, again)
        post_as(books, 1, payment("c"))
        books.produce(payment("c"))
        third = books.next_run()
        assert (kinds(third), doubts(third)) == ([], [])
        assert outstanding(books) == [("phantom_in_ledger", 70)]


@pytest.mark.parametrize(
    ("kind", "direction"),
    [
        ("xmin", "topic_to_ledger"),
        ("xmin", "ledger_to_topic"),
        ("jdbc", "topic_to_ledger"),
    ],
)
def test_rows_of_one_row_id_wait_beside_each_other_and_pair_windows_later(
    new_books: NewBooks, kind: str, direction: str
) -> None:
    one, other, later, last = payment("one", 11), payment("other", 22), payment("later", 33), payment("last", 44)
    with repeating(new_books, kind, direction=direction, partner_grace_seconds=3600) as books:
        books.take_cut()
        post_as(books, 12, one, other)
        assert kinds(books.next_run()) == []
        post_as(books, 12, later)
        post_as(books, 12, last)
        assert kinds(books.next_run()) == []
        waiting = open_items_as_of(books.store, books.contract.name, 3)
        assert sorted(item.amount_minor for item in waiting) == [11, 22, 33, 44]
        assert len({item.item_id for item in waiting}) == 4
        books.produce(other, last)
        third = books.next_run()
        books.produce(one)
        post_as(books, 12, payment("between"))
        books.produce(later, payment("between"))
        fourth = books.next_run()
        for run in (third, fourth):
            assert (kinds(run), doubts(run)) == ([], [])
            assert books.judge_again(run).digest == run.result.digest
        assert fourth.result.verdict is Verdict.MATCHED
        assert open_items_as_of(books.store, books.contract.name, 5) == ()


@pytest.mark.parametrize("direction", ["topic_to_ledger", "ledger_to_topic"])
def test_rows_of_one_window_and_row_id_are_known_again_while_they_wait(new_books: NewBooks, direction: str) -> None:
    one, other = payment("one", 11), payment("other", 22)
    with repeating(new_books, "xmin", direction=direction, partner_grace_seconds=3600) as books:
        books.take_cut()
        post_as(books, 12, one, other)
        assert kinds(books.next_run()) == []
        books.produce(one, other)
        run = books.next_run()
        assert (run.result.verdict, kinds(run)) == (Verdict.MATCHED, [])
        assert {item.state for item in run.result.items} == {ItemState.CLEARED}


@pytest.mark.parametrize("kind", sorted(_AS_NEW))
def test_a_row_that_is_touched_is_the_item_it_was_beside_others_with_its_row_id(new_books: NewBooks, kind: str) -> None:
    one, other, key_wrong = payment("one", 11), payment("other", 22), payment("key wrong", 33)
    with repeating(new_books, kind, direction="topic_to_ledger") as books:
        books.take_cut()
        books.produce(payment("a"))
        post_as(books, 1, payment("a"))
        post_as(books, 12, one, other, key_wrong)
        assert len(kinds(books.next_run())) == 3
        for n in range(2):
            books.ledger.execute(
                f"UPDATE {books.table} SET amount_minor = amount_minor + 100{_AS_NEW[kind]} WHERE event_id = ANY(%s)",
                [[one.event_id, other.event_id]],
            )
            books.produce(payment(f"b{n}"))
            post_as(books, 12, payment(f"b{n}"))
            run = books.next_run()
            assert (kinds(run), doubts(run)) == ([], [Doubt.LEDGER_REWRITTEN, Doubt.ROW_IDS_REPEAT])
            assert books.judge_again(run).digest == run.result.digest
        right = payment("right", 33)
        books.ledger.execute(
            f"UPDATE {books.table} SET event_id = %s, payment_id = %s{_AS_NEW[kind]} WHERE event_id = %s",
            [right.event_id, right.payment_id, key_wrong.event_id],
        )
        small = payment("small", 5)
        post_as(books, 12, small)
        books.produce(payment("one", 211))
        run = books.next_run()
        assert kinds(run) == expected((BreakClass.PHANTOM_IN_LEDGER, small))
        assert doubts(run) == [Doubt.LEDGER_REWRITTEN, Doubt.ROW_IDS_REPEAT]
        books.produce(payment("other", 222), right)
        run = books.next_run()
        assert (kinds(run), doubts(run)) == ([], [])
        assert outstanding(books) == [("phantom_in_ledger", 5)]


@pytest.fixture
def in_files(new_books: NewBooks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveBooks]:
    (tmp_path / "lake" / "billing" / "posting").mkdir(parents=True)
    monkeypatch.setenv(environment_variable("ledger_file"), str(tmp_path / "lake"))
    document = {
        "kind": "parquet",
        "connection": "ledger_file",
        "table": "billing.posting",
        "quiet_seconds": 1,
        "where": None,
    }
    with new_books(direction="topic_to_ledger", ledger=document, partner_grace_seconds=3600) as books:
        yield books


def test_rows_of_files_that_share_a_row_id_wait_beside_each_other_and_pair_windows_later(in_files: LiveBooks) -> None:
    books = in_files
    one, other, later, twice = payment("one", 11), payment("other", 22), payment("later", 33), payment("twice", 44)
    books.take_cut()
    write_file(books, "first.parquet", one, other, row_ids=("12", "12"))
    assert kinds(books.next_run()) == []
    write_file(books, "second.parquet", later, twice, row_ids=("12", "12"))
    assert kinds(books.next_run()) == []
    write_file(books, "third.parquet", twice, row_ids=("12",))
    books.produce(other, later, twice)
    third = books.next_run()
    assert kinds(third) == expected((BreakClass.DUPLICATE_IN_LEDGER, twice))
    books.produce(one, payment("after"))
    write_file(books, "fourth.parquet", payment("after"), row_ids=("12",))
    fourth = books.next_run()
    assert (fourth.result.verdict, kinds(fourth)) == (Verdict.MATCHED, [])
    assert open_items_as_of(books.store, books.contract.name, 5) == ()


def test_a_waiting_row_whose_file_goes_and_comes_under_another_name_is_one_row(in_files: LiveBooks) -> None:
    """Also where its amount is another one then."""
    books, moved, other = in_files, payment("moved", 11), payment("other", 22)
    books.take_cut()
    first = write_file(books, "first.parquet", moved, other, row_ids=("12", "13"))
    assert kinds(books.next_run()) == []
    first.unlink()
    write_file(books, "compacted.parquet", moved, payment("other", 23), payment("new"), row_ids=("12", "13", "14"))
    books.produce(payment("new"))
    second = books.next_run()
    assert (kinds(second), doubts(second)) == ([], [Doubt.LEDGER_REWRITTEN])
    waiting = open_items_as_of(books.store, books.contract.name, 3)
    assert sorted(item.amount_minor for item in waiting) == [11, 23]
    books.produce(moved, payment("other", 23))
    third = books.next_run()
    assert (kinds(third), third.result.verdict) == ([], Verdict.MATCHED)


@pytest.mark.parametrize("kind", ["xmin", "jdbc"])
def test_rows_without_a_row_id_hide_nothing_and_are_known_again(new_books: NewBooks, kind: str) -> None:
    one, other, later, lost = payment("one", 11), payment("other", 22), payment("later", 33), payment("lost", 44)
    with repeating(new_books, kind, direction="topic_to_ledger", partner_grace_seconds=3600) as books:
        table = books.table + "s" * (kind == "jdbc")
        books.ledger.execute(
            f"ALTER TABLE {table} ALTER entry_id DROP IDENTITY; ALTER TABLE {table} ALTER entry_id DROP NOT NULL"
        )
        books.take_cut()
        books.both(payment("a"))
        post_as(books, None, one, other)
        first = books.next_run()
        assert (kinds(first), doubts(first)) == ([], [Doubt.ROW_IDS_REPEAT])
        post_as(books, None, later)
        post_as(books, None, lost)
        books.produce(one)
        assert kinds(books.next_run()) == []
        books.produce(other, later)
        run = books.next_run()
        assert (run.result.verdict, kinds(run)) == (Verdict.MATCHED, [])
        (waiting,) = open_items_as_of(books.store, books.contract.name, 4)
        assert waiting.amount_minor == 44


def test_rows_of_files_without_a_row_id_are_known_again(in_files: LiveBooks) -> None:
    books, one, other = in_files, payment("one", 11), payment("other", 22)
    books.take_cut()
    write_file(books, "first.parquet", one, payment("a"), row_ids=(None, "1"))
    write_file(books, "second.parquet", other, payment("b"), row_ids=(None, "1"))
    books.produce(payment("a"), payment("b"))
    assert kinds(books.next_run()) == []
    books.produce(one)
    assert kinds(books.next_run()) == []
    books.produce(other)
    run = books.next_run()
    assert (run.result.verdict, kinds(run)) == (Verdict.MATCHED, [])
