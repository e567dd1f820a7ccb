"""Two standing rows, or two committed events, of one key are a duplicate, whoever has read the first and wherever."""

import psycopg
import pytest

from lab.servers.postgres import LEDGER_DATABASE, LEDGER_OWNER
from tallystick.connections.connections import environment_variable
from tallystick.ledger.postgres_table import describe_table
from tallystick.ledger.protocol import LedgerRefused
from tallystick.model.finding_names import Doubt
from tests.stack.live_books import LEDGER, doubts, expected, kinds, payment, payments

from .ledger_copies import copy_of, reader_of
from .ledger_table import Table, table
from .live import NewBooks

__all__ = ["table"]  # fixture

pytestmark = pytest.mark.usefixtures("spark")

SENT_AGAIN = "duplicate_in_topic_new_session"


@pytest.mark.parametrize("direction", ["ledger_to_topic", "topic_to_ledger"])
def test_what_stood_before_the_baseline_and_comes_again_is_a_duplicate(new_books: NewBooks, direction: str) -> None:
    row, event, both = payments("row again", "event again", "both again")
    with new_books(direction=direction) as books:
        books.both(row, event, both)
        books.take_cut()
        books.post(row, both)
        books.produce(event, both)
        books.both(payment("once"))
        of_both = "duplicate_in_ledger" if direction == "ledger_to_topic" else SENT_AGAIN
        assert kinds(books.next_run()) == expected(("duplicate_in_ledger", row), (SENT_AGAIN, event), (of_both, both))


def test_what_was_paid_before_a_switch_over_and_is_paid_again_after_it_is_a_duplicate(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice, once = payments("paid twice", "paid once")
    with new_books(direction="topic_to_ledger") as books, copy_of(books.stack.ledger_server, "switched") as other:
        books.take_cut()
        books.both(twice, once)
        assert doubts(books.next_run()) == []
        other.wait_replayed(books.stack.ledger_server)
        with other.connect() as admin:
            admin.execute("SELECT pg_promote()")
        monkeypatch.setenv(environment_variable(LEDGER), reader_of(other))
        assert Doubt.LEDGER_FAILED_OVER in doubts(books.next_run(settled=False))
        with psycopg.connect(other.dsn(LEDGER_OWNER, LEDGER_DATABASE), autocommit=True) as owner:
            books.post(twice, connection=owner)
            books.produce(payment("later"))
            books.post(payment("later"), connection=owner)
            assert kinds(books.next_run()) == expected(("duplicate_in_ledger", twice))
        monkeypatch.undo()


def test_a_unique_index_of_a_parent_says_nothing_of_the_rows_of_its_children(table: Table) -> None:
    table.run(
        f"CREATE UNIQUE INDEX ON {table.name} (event_id)",
        f"CREATE TABLE {table.name}_old () INHERITS ({table.name})",
    )
    with pytest.raises(LedgerRefused, match="names row_id: got no unique index on it alone, over all rows"):
        describe_table(table.reader, table.by_written_xid)
    table.run(f"ALTER TABLE {table.name}_old NO INHERIT {table.name}")
    assert describe_table(table.reader, table.by_written_xid).key_is_unique
    table.run(f"DROP TABLE {table.name}_old")
