"""Rows of a table of Iceberg that a range of its snapshots appended."""

from tallystick.matching.match_case import RecordLocation
from tests.unit.ledger.iceberg.iceberg_book import Book


def test_a_table_that_is_empty_when_the_books_begin_is_read_from_its_first_snapshot(book: Book) -> None:
    book.cut()
    assert book.places("a") == {}
    book.append("a")
    taken = book.cut()
    assert (taken.position_start, taken.position_end, taken.changed) == (1, 2, ())
    assert book.places("a") == {"a": [RecordLocation.SLICE]}
    ids = book.opened().appended_range(taken)
    assert ids is not None
    assert (len(ids.first_files), ids.last_id) == (1, None)


def test_a_second_copy_is_known_when_all_snapshots_but_its_own_expired(book: Book) -> None:
    book.append("a", "b")
    book.cut()
    book.append("a")
    book.expire_all_but(1)
    assert book.opened().keys_seen_before(book.cut()) == ("a",)
