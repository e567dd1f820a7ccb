"""How late partners came: measured on the real sides, kept per run, and the grace of later runs follows it."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from tallystick.ledger.protocol import LedgerRefused
from tallystick.model.open_item import ItemState
from tallystick.model.verdict import Verdict
from tallystick.report.write_report import render_report
from tests.stack.live_books import LiveBooks, payment, payments

from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")

_MEASURED = {"columns": {"written_at": "occurred_at"}}


def _post_late(books: LiveBooks, name: str, *, seconds: int) -> None:
    """A posting whose owner says that it was written so long after now."""
    event = payment(name)
    books.ledger.execute(
        f"INSERT INTO {books.table} (event_id, payment_id, leg, side, amount_minor, currency, occurred_at)"
        f" VALUES (%s, %s, %s, 'credit', %s, %s, now() + interval '{seconds} seconds')",
        [event.event_id, event.payment_id, event.leg, event.amount_minor, event.currency],
    )


def test_what_clean_runs_measured_is_the_grace_of_the_next_and_no_other_run_counts(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger", ledger=_MEASURED, partner_grace_seconds=1) as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        first = books.next_run()
        books.produce(*payments("slow", "as slow", "of another century"))
        _post_late(books, "slow", seconds=100)
        _post_late(books, "as slow", seconds=100)
        _post_late(books, "of another century", seconds=10**9)
        slow = books.next_run()
        books.both(*payments("c"))
        books.post(payment("c"))  # a second row: this run is BROKEN, and what it measured is not asked
        _post_late(books, "d", seconds=10_000)
        books.produce(payment("d"))
        broken = books.next_run()
        books.both(payment("e"))
        books.produce(payment("waits"))
        last = books.next_run()

    lags = [run.result.lag for run in (first, slow, broken, last)]
    assert all(lags)
    assert [sum(lag.topics[0].pairs) for lag in lags if lag] == [2, 3, 2, 1]
    assert [run.result.verdict for run in (first, slow, broken)] == [Verdict.MATCHED, Verdict.MATCHED, Verdict.BROKEN]
    assert [lag.grace.seconds for lag in lags if lag][2:] == [164, 164]
    assert last.result.lag is not None
    assert last.result.lag.grace.clean_runs == 2
    (item,) = [one for one in last.result.items if one.state is ItemState.OPEN]
    assert item.due_utc - last.cut.marked_at_utc == timedelta(seconds=164)
    page = render_report(last, books.contract)
    assert "in 2 clean runs, all but the longest of 5 pairs, too few for 999 of 1,000, came within 2.8 min" in page
    assert "Not measured" not in page


def test_a_pair_that_came_together_over_two_cuts_is_measured_once_and_whole(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger", ledger=_MEASURED, partner_grace_seconds=600) as books:
        books.take_cut()
        books.both(payment("a"))
        books.produce(payment("late"))
        books.next_run()
        _post_late(books, "late", seconds=100)
        books.both(payment("b"))
        run = books.next_run()
    assert run.result.lag is not None
    (lag,) = run.result.lag.topics
    assert sum(lag.pairs) == 2
    assert run.result.verdict is Verdict.MATCHED


def test_without_the_column_nothing_is_measured_and_the_contract_rules(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger", partner_grace_seconds=7) as books:
        books.take_cut()
        books.both(payment("a"))
        run = books.next_run()
    assert run.result.lag is not None
    assert (run.result.lag.topics, run.result.lag.grace.seconds) == ((), 7)
    assert "Not measured" in render_report(run, books.contract)


def test_a_moment_without_a_zone_is_refused_before_a_cut_is_stored(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger", ledger={"columns": {"written_at": "written_local"}}) as books:
        books.ledger.execute(f"ALTER TABLE {books.table} ADD COLUMN written_local timestamp")
        with pytest.raises(LedgerRefused, match=r"written_local.*got timestamp; expected timestamptz"):
            books.take_cut(settled=False)
        stored = text("SELECT count(*) FROM tallystick.cut WHERE contract = :contract")
        with books.store.connect() as connection:
            assert connection.scalar(stored, {"contract": books.contract.name}) == 0
