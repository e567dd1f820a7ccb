"""A table of Iceberg of each test's own."""

from pathlib import Path

import pytest

from tests.unit.ledger.iceberg.iceberg_book import Book


@pytest.fixture
def book(tmp_path: Path) -> Book:
    made = Book(tmp_path)
    made.make()
    return made
