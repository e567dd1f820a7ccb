"""What the history of a table of Iceberg says: upkeep, change and loss are told apart; real tables."""

from collections.abc import Callable

import pytest
from pyiceberg.table import Table

from tallystick.matching.match_case import RecordLocation
from tests.unit.ledger.iceberg.iceberg_book import Book, told


def test_what_expired_after_it_was_read_is_no_change_and_before_it_is_said(book: Book) -> None:
    book.append("old")
    book.cut()
    book.append("a")
    book.cut()
    book.append("b")
    book.expire_all_but(1)
    taken = book.cut()
    assert (len(taken.files), taken.changed) == (1, ())
    assert book.places("a", "b") == {"a": [RecordLocation.UNREAD], "b": [RecordLocation.SLICE]}
    assert book.opened().keys_seen_before(taken) == ()
    book.append("a")
    assert book.opened().keys_seen_before(book.cut()) == ("a",)

    for key in "cde":
        book.append(key)
    book.expire_all_but(1)
    unread = book.cut()
    assert told(unread.changed) == [
        "snapshots with sequence numbers 5 to 6: expired before a cut read what they appended"
    ]
    assert book.places("c", "e") == {"c": [RecordLocation.UNREAD], "e": [RecordLocation.SLICE]}


def test_snapshots_that_went_between_the_cut_and_its_reading_are_said(book: Book) -> None:
    book.cut()
    book.append("a")
    taken = book.cut()
    book.append("b")
    assert book.opened().changed_files(taken) == ()
    book.expire_all_but(1)
    assert told(book.opened().changed_files(taken)) == ["snapshot N was expired or rolled back since the cut"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.delete("event_id == 'a'"), "overwrite of 1 rows written and 2 taken away"),
        (lambda table: table.delete("event_id == 'c'"), "delete of 0 rows written and 1 taken away"),
    ],
)
def test_a_snapshot_that_takes_rows_away_is_said_once(book: Book, change: Callable[[Table], None], said: str) -> None:
    book.append("a", "b")
    book.append("c")
    book.cut()
    change(book.table)
    assert told(book.cut().changed) == [f"snapshot N is no append: {said}"]
    book.append("d")
    assert book.cut().changed == ()


def test_a_table_that_is_rolled_back_behind_what_was_read_is_said_once(book: Book) -> None:
    book.append("a")
    book.cut()
    first = book.table.current_snapshot()
    book.append("b")
    book.cut()
    assert first is not None
    book.table.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    assert told(book.cut().changed) == ["snapshot N, which a cut has read, was rolled back"]
    book.append("c")
    after = book.cut()
    assert (after.changed, len(after.files)) == ((), 1)
