"""A ledger whose rows are changed: by xmin the run says it proves nothing; by written_xid it proves all the same."""

import pytest

from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.open_item import ItemState
from tallystick.model.verdict import Verdict
from tests.stack.live_books import doubts, expected, kinds, payment, payments

from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")

MARK_SENT = "UPDATE {table} SET currency = currency WHERE event_id = '{event_id}'"
"""What an outbox does once it has published a row."""


def test_an_updated_row_read_by_xmin_is_a_doubt_about_the_ledger_once_and_no_break(new_books: NewBooks) -> None:
    with new_books(direction="ledger_to_topic") as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        books.ledger.execute(MARK_SENT.format(table=books.table, event_id=payment("a").event_id))
        books.both(payment("c"))
        run = books.next_run()
        assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
        assert doubts(run) == [Doubt.LEDGER_REWRITTEN]
        assert run.result.doubts[0].details == {"older_rows": 1, "expected": 2, "updated_rows_seen": 1}
        books.both(payment("d"))
        after = books.next_run()
        assert (after.result.verdict, doubts(after)) == (Verdict.MATCHED, [])


def test_a_row_that_is_updated_between_every_cut_and_its_reading_is_told_once_its_event_is_due(
    new_books: NewBooks,
) -> None:
    """It is in no slice for as long: its event was in flight for ever, in runs that matched."""
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(payment("a"))
        found = []
        for number in range(3):
            books.both(payment(f"b{number}"))
            cut = books.take_cut()
            books.ledger.execute(MARK_SENT.format(table=books.table, event_id=payment("a").event_id))
            found.append(books.judge(cut))
        books.both(payment("c"))
        found.append(books.next_run())
        assert [doubts(run) for run in found] == [[], [Doubt.PARTNER_NOT_SETTLED], [Doubt.PARTNER_NOT_SETTLED], []]
        assert found[-1].result.figures.in_flight_items == 0


def test_rows_that_say_or_pay_something_else_after_their_match_are_breaks_and_a_copy_of_one_is_told(
    new_books: NewBooks,
) -> None:
    names = ("other money", "other currency", "replaced", "paid again", "posted again")
    changed, converted, replaced, paid_again, posted_again = payments(*names)
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(changed, converted, replaced, paid_again, posted_again)
        assert books.next_run().result.verdict is Verdict.MATCHED
        change = f"UPDATE {books.table} SET {{}} WHERE event_id = %s"
        books.ledger.execute(change.format("amount_minor = 1"), [changed.event_id])
        books.ledger.execute(change.format("currency = 'USD'"), [converted.event_id])
        for gone in (replaced, paid_again, posted_again):
            books.ledger.execute(f"DELETE FROM {books.table} WHERE event_id = %s", [gone.event_id])
        books.post(payment("replaced", 5_000_000))
        books.both(paid_again)
        run = books.next_run()
        assert kinds(run) == expected(
            (BreakClass.AMOUNT_MISMATCH, changed),
            (BreakClass.CURRENCY_MISMATCH, converted),
            (BreakClass.AMOUNT_MISMATCH, replaced),
            (BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION, paid_again),
        )
        assert doubts(run) == [Doubt.LEDGER_REWRITTEN]
        assert books.judge_again(run).digest == run.result.digest

        books.both(payment("between"))  # whatever an autovacuum wrote while that run looked lies below the next slice
        assert (kinds(between := books.next_run()), doubts(between)) == ([], [])
        books.post(posted_again)  # by a consumer that has read its event once more
        books.both(payment("later"))
        after = books.next_run()
        assert (kinds(after), doubts(after)) == ([], [Doubt.PARTNER_NOT_SETTLED])
        assert {item.match_key: item.state for item in after.result.items} == {
            posted_again.event_id: ItemState.UNDECIDABLE
        }


@pytest.mark.parametrize("direction", ["topic_to_ledger", "ledger_to_topic"])
def test_a_row_older_than_its_topic_is_never_called_alone_when_it_is_written_anew(
    new_books: NewBooks, direction: str
) -> None:
    """The log begins at 0, and the event is on it no more: it went to the topic that had this name before."""
    old = payment("old")
    with new_books(direction=direction) as books:
        books.both(old)
        books.remake_topic("payment")
        books.take_cut()
        books.ledger.execute(MARK_SENT.format(table=books.table, event_id=old.event_id))
        found = []
        for name in ("a", "b"):
            books.both(payment(name))
            found.append(books.next_run())
        assert [kinds(run) for run in found] == [[], []]
        assert Doubt.LEDGER_REWRITTEN in doubts(found[0])
        assert [item.state for run in found for item in run.result.items if item.match_key == old.event_id][-1] is (
            ItemState.UNDECIDABLE
        )


def test_the_same_update_read_by_written_xid_changes_nothing(new_books: NewBooks) -> None:
    with new_books(direction="ledger_to_topic", ledger={"slice_by": "written_xid"}) as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        books.ledger.execute(MARK_SENT.format(table=books.table, event_id=payment("a").event_id))
        books.both(payment("c"))
        run = books.next_run()
        assert (run.result.verdict, doubts(run)) == (Verdict.MATCHED, [])
        assert run.result.figures.ledger_rows == 1


def test_a_table_that_was_only_vacuumed_stays_matched_by_xmin(new_books: NewBooks) -> None:
    with new_books(direction="ledger_to_topic", unique_key=True) as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        cut = books.take_cut()
        for vacuum in ("VACUUM (FULL, FREEZE)", "VACUUM (FREEZE)"):
            books.ledger.execute(f"{vacuum} {books.table}")
        run = books.judge(cut)
        assert (run.result.verdict, run.result.figures.ledger_rows) == (Verdict.MATCHED, 2)
        books.ledger.execute(f"VACUUM FULL {books.table}")
        books.both(payment("c"))
        assert books.next_run().result.verdict is Verdict.MATCHED
