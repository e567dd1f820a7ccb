"""One row, many versions: an owner who touches a row that has an item neither stops the books nor drops a break."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.open_item import ItemState, WriteOff
from tallystick.model.verdict import Verdict
from tallystick.store.breaks.write_off_store import write_off_break
from tallystick.store.runs.open_item_store import open_items_as_of
from tallystick.store.runs.outstanding_store import outstanding_breaks
from tests.stack.live_books import LiveBooks, doubts, expected, kinds, payment, payments

from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")

TOUCH = "UPDATE {table} SET {change} WHERE side = 'credit' AND event_id = ANY(%s)"
"""By xmin each row it touches comes into the newest slice once more."""


def touch(books: LiveBooks, *names: str, change: str = "currency = currency") -> None:
    ids = [payment(name).event_id for name in names]
    books.ledger.execute(TOUCH.format(table=books.table, change=change), [ids])


def outstanding(books: LiveBooks) -> set[UUID]:
    return {found.item_break.break_id for found in outstanding_breaks(books.store, books.contract.name)}


def test_rows_with_a_break_are_touched_and_each_break_stays_under_its_own_id(new_books: NewBooks) -> None:
    with new_books(direction="ledger_to_topic") as books:
        books.take_cut()
        books.both(*payments("paid", "wrong"))
        books.post(*payments("missing", "given-up", "paid"))
        touch(books, "wrong", change="amount_minor = 999")
        found = books.next_run()
        assert kinds(found) == expected(
            (BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED, payment("missing")),
            (BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED, payment("given-up")),
            (BreakClass.DUPLICATE_IN_LEDGER, payment("paid")),
            (BreakClass.AMOUNT_MISMATCH, payment("wrong")),
        )
        (given_up,) = (one for one in found.result.breaks if one.match_key == payment("given-up").event_id)
        by_ada = WriteOff(by="Ada", reason="paid by hand", at_utc=datetime.now(UTC))
        write_off_break(books.store, books.contract.name, str(given_up.break_id), by_ada)
        before = outstanding(books)
        assert len(before) == 3
        for n in range(2):
            touch(books, "missing", "given-up", "wrong", change="amount_minor = amount_minor + 1")
            touch(books, "paid")
            books.both(payment(f"next-{n}"))
            run = books.next_run()
            assert (doubts(run), kinds(run), outstanding(books)) == ([Doubt.LEDGER_REWRITTEN], [], before)
            assert books.judge_again(run).digest == run.result.digest
        books.ledger.execute(
            f"UPDATE {books.table} SET leg = leg WHERE entry_id = (SELECT min(entry_id) FROM {books.table} "
            "WHERE side = 'credit' AND event_id = %s)",
            [payment("paid").event_id],
        )
        books.both(payment("after"))
        run = books.next_run()
        assert (doubts(run), kinds(run), outstanding(books)) == ([Doubt.LEDGER_REWRITTEN], [], before)
        books.both(payment("quiet"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        books.produce(payment("missing", 1002))
        late = books.next_run()
        assert (late.result.verdict, kinds(late)) == (Verdict.MATCHED, [])
        assert [(one.state, one.amount_minor) for one in late.result.items] == [(ItemState.CLEARED, 1002)]
        assert len(outstanding(books)) == 2


def test_an_open_row_that_is_touched_within_its_grace_stays_one_item_and_pairs_as_it_is_now(
    new_books: NewBooks,
) -> None:
    with new_books(direction="ledger_to_topic", partner_grace_seconds=3600) as books:
        books.take_cut()
        books.both(payment("other"))
        books.post(payment("late"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        for n in range(2):
            touch(books, "late", change="amount_minor = amount_minor + 100")
            books.both(payment(f"another-{n}"))
            run = books.next_run()
            assert (doubts(run), kinds(run)) == ([Doubt.LEDGER_REWRITTEN], [])
            (item,) = open_items_as_of(books.store, books.contract.name, run.cut.n + 1)
            assert (item.state, item.amount_minor, item.first_seen_cut) == (ItemState.OPEN, 1100 + n * 100, 1)
        books.produce(payment("late", 1200))
        run = books.next_run()
        assert (run.result.verdict, [one.state for one in run.result.items]) == (Verdict.MATCHED, [ItemState.CLEARED])


def test_a_phantom_row_that_is_touched_stays_one_break_and_its_late_event_clears_it(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(payment("paid"))
        books.post(payment("phantom"))
        assert kinds(books.next_run()) == expected((BreakClass.PHANTOM_IN_LEDGER, payment("phantom")))
        before = outstanding(books)
        for n in range(2):
            touch(books, "phantom")
            books.both(payment(f"next-{n}"))
            run = books.next_run()
            assert (doubts(run), kinds(run), outstanding(books)) == ([Doubt.LEDGER_REWRITTEN], [], before)
        books.produce(payment("phantom"))
        assert (books.next_run().result.verdict, outstanding(books)) == (Verdict.MATCHED, set())
