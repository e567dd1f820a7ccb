"""The catalog of a table of Iceberg: its properties, its name, and what its failures mean."""

import json
from pathlib import Path

import pytest

from tallystick.ledger.iceberg.catalog import catalog_properties
from tallystick.ledger.iceberg.iceberg_ledger import open_iceberg_ledger
from tallystick.ledger.protocol import LedgerRefused, LedgerUnreachable
from tests.unit.ledger.iceberg.iceberg_book import SECTION, Book


@pytest.mark.parametrize("address", ["", "no JSON", "[]", '{"type": 1}'])
def test_properties_of_a_catalog_are_texts_and_are_not_repeated(address: str) -> None:
    with pytest.raises(LedgerRefused, match="expected a JSON object of strings, the catalog's properties") as refused:
        catalog_properties(address)
    assert "no JSON" not in str(refused.value)


def test_a_catalog_that_does_not_answer_may_be_asked_again_and_no_secret_is_told() -> None:
    away = Book(Path("/no/such/hunter2"))
    with pytest.raises(LedgerUnreachable, match=r"^ledger table billing\.posting: OperationalError$"):
        away.opened()


def test_a_catalog_in_a_database_keeps_its_tables_under_its_name(book: Book) -> None:
    named = json.dumps({**json.loads(book.address), "name": "default"})
    assert open_iceberg_ledger(named, SECTION, stored_slices=tuple).read_snapshot().low_mark == 1
    other = json.dumps({**json.loads(book.address), "name": "another"})
    with pytest.raises(LedgerRefused, match="the catalog has no such table"):
        open_iceberg_ledger(other, SECTION, stored_slices=tuple)
