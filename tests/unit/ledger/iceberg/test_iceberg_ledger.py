"""A ledger in a table of Iceberg: where its rows stand, and what is refused; real tables, a catalog in SQLite."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tallystick.contract.ledger import LedgerSection
from tallystick.ledger.protocol import LedgerRefused
from tallystick.matching.match_case import RecordLocation
from tallystick.model.cut import LedgerFile
from tests.unit.ledger.iceberg.iceberg_book import SECTION, SHAPE, Book


def test_each_row_stands_where_the_snapshot_that_appended_it_does(book: Book) -> None:
    book.append("before")
    book.cut()
    book.append("a", "twice")
    book.cut()
    book.append("b", "twice")
    taken = book.cut()
    book.append("later")
    assert (taken.position_start, taken.position_end, len(taken.files), taken.changed) == (3, 4, 1, ())
    assert book.places("before", "a", "b", "twice", "later", "no such key") == {
        "before": [RecordLocation.BEFORE_BASELINE],
        "a": [RecordLocation.EARLIER_SLICE],
        "b": [RecordLocation.SLICE],
        "twice": [RecordLocation.EARLIER_SLICE, RecordLocation.SLICE],
        "later": [RecordLocation.PENDING],
    }
    there = book.opened()
    assert there.keys_seen_before(taken) == ("twice",)
    assert there.keys_below(replace(taken, position_start=1), below=3) == ("a", "before", "twice")
    assert there.keys_below(taken, below=3) == ()


def test_a_late_window_ends_at_the_first_snapshot_of_its_end(book: Book) -> None:
    for key in "abc":
        book.append(key)
    there = book.opened()
    moments = sorted(one.timestamp_ms for one in book.table.metadata.snapshots)
    second = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=moments[1])
    assert there.first_position_at(second, start=1, end=4) == 2
    assert there.first_position_at(second, start=3, end=4) == 3
    assert there.first_position_at(second + timedelta(hours=1), start=1, end=4) is None


def test_a_table_that_does_not_fit_the_contract_is_refused(book: Book, tmp_path: Path) -> None:
    def refused(text: str, section: LedgerSection = SECTION) -> None:
        with pytest.raises(LedgerRefused, match=text):
            book.opened(section).describe()

    book.opened().describe()
    refused("has no column nowhere; it has entry_id, ", with_columns(leg="nowhere"))
    refused("column leg, which the contract names written_at: got string; expected tim", with_columns(written_at="leg"))
    refused("the catalog has no such table", SECTION.model_copy(update={"table": "billing.other"}))
    other = tmp_path / "other"
    other.mkdir()
    book = Book(other)
    book.make(SHAPE.set(5, pa.field("amount_minor", pa.float64())))
    refused("column amount_minor, .*: got double; expected an integer or a decimal")


def with_columns(**names: str) -> LedgerSection:
    return SECTION.model_copy(update={"columns": SECTION.columns.model_copy(update=names)})


def test_a_key_that_the_columns_type_cannot_have_finds_nothing(tmp_path: Path) -> None:
    book = Book(tmp_path)
    book.make(SHAPE.set(1, pa.field("event_id", pa.int64())))
    row = {"entry_id": "1", "event_id": 7, "payment_id": "p", "leg": "l", "currency": "EUR", "amount_minor": 7}
    book.cut()
    book.table.append(pa.Table.from_pylist([row], SHAPE.set(1, pa.field("event_id", pa.int64()))))
    book.cut()
    assert book.places("7", "x", "9" * 40, "") == {"7": [RecordLocation.SLICE]}


def test_a_file_of_a_slice_is_its_snapshot(book: Book) -> None:
    book.cut()
    book.append("a")
    (file,) = book.cut().files
    one = book.table.current_snapshot()
    assert one is not None
    assert file == LedgerFile(
        path=f"snapshot {one.snapshot_id}", size_bytes=file.size_bytes, modified_ns=one.timestamp_ms * 1_000_000
    )
    assert file.size_bytes > 0
