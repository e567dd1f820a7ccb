"""A relay that marks rows as sent while they are read: no window by written_xid is broken, and none is tried again.

`make relay WINDOWS=50` runs more of them.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyspark.sql import SparkSession

from tallystick.ledger.postgres_connection import scan_address
from tallystick.model.verdict import Verdict
from tallystick.pipeline.open_ledger import open_ledger_of
from tallystick_spark.readers.ledger_frame import read_ledger, slice_queries
from tallystick_spark.readers.postgres_rows import read_rows
from tests.stack.live_books import LiveBooks, doubts, kinds, payments

from .live import NewBooks

WINDOWS = int(os.environ.get("RELAY_WINDOWS", "3"))
ROWS = 1500
FREE_ROOM = """
INSERT INTO {table} (event_id, payment_id, leg, side, amount_minor, currency)
SELECT gen_random_uuid(), gen_random_uuid(), 'filler', 'debit', 0, 'EUR' FROM generate_series(1, 20000);
DELETE FROM {table} WHERE leg = 'filler';"""
"""So that new versions of rows lie before the old ones as often as behind them."""
MARK = "UPDATE {table} SET sent = NOT sent WHERE written_xid >= {since} AND entry_id %% 50 = %s"


@contextmanager
def relay(books: LiveBooks, *, since: int) -> Iterator[None]:
    """Mark all rows of the newest slice, a fiftieth at a time, again and again."""
    over = threading.Event()

    def mark() -> None:
        with books.connect() as session:
            part = 0
            while not over.is_set():
                session.execute(MARK.format(table=books.table, since=since), [part % 50])
                part += 1

    marking = threading.Thread(target=mark)
    marking.start()
    try:
        yield
    finally:
        over.set()
        marking.join()


@pytest.mark.usefixtures("spark")
def test_rows_that_are_marked_as_sent_while_they_are_read_are_read_once_each(new_books: NewBooks) -> None:
    with new_books(direction="ledger_to_topic", ledger={"slice_by": "written_xid"}) as books:
        books.ledger.execute(f"ALTER TABLE {books.table} ADD COLUMN sent boolean NOT NULL DEFAULT false")
        books.ledger.execute(f"CREATE INDEX ON {books.table} (sent)")
        books.ledger.execute(FREE_ROOM.format(table=books.table))
        books.take_cut()
        for window in range(WINDOWS):
            books.ledger.execute(f"VACUUM {books.table}")
            books.both(*payments(*(f"{window}.{number}" for number in range(ROWS))))
            cut = books.take_cut()
            with relay(books, since=cut.ledger_slice.position_start):
                run = books.judge(cut)
            figures = run.result.figures
            assert (window, doubts(run), kinds(run), run.result.verdict) == (window, [], [], Verdict.MATCHED)
            assert (figures.topic_rows, figures.ledger_rows, figures.matched_rows) == (ROWS, ROWS, ROWS)


def test_both_ways_of_reading_see_the_snapshot_whatever_is_updated_between_two_halves(
    new_books: NewBooks, spark: SparkSession
) -> None:
    with new_books(direction="ledger_to_topic", ledger={"slice_by": "written_xid"}) as books:
        books.ledger.execute(FREE_ROOM.format(table=books.table))
        books.take_cut()
        books.post(*payments(*map(str, range(300))))
        cut = books.take_cut()
        books.ledger.execute(f"VACUUM {books.table}")
        with (
            open_ledger_of(books.store, books.contract, books.connections) as ledger,
            ledger.held_snapshot() as snapshot,
        ):
            assert snapshot is not None
            described, copied = ledger.describe(), []
            queries = slice_queries(ledger, described, cut.ledger_slice)
            assert len(queries) == 2
            for query in queries[::-1]:
                read = read_rows(scan_address(books.connections.ledger_dsn), query, snapshot=snapshot)
                copied += [row for batch in read for row in batch.to_pylist()]
                books.ledger.execute(f"UPDATE {books.table} SET leg = leg")
            by_spark = read_ledger(spark, books.connections, ledger, cut.ledger_slice, described, snapshot)
            assert len({row["row_id"] for row in copied}) == len(copied) == by_spark.count() == 300
