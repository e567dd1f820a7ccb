"""An absence is a break only where its opposite could be read: after retention, of rewritten rows, of late rows."""

import pytest

from tallystick.model.finding_names import Doubt
from tallystick.model.open_item import ItemState
from tallystick.model.verdict import Verdict
from tests.stack.live_books import TWO_LEGS, both_legs, doubts, expected, invoice, kinds, payment, payments

from .live import NewBooks
from .retention import SENT_AGAIN, expire

pytestmark = pytest.mark.usefixtures("spark")


@pytest.mark.parametrize("direction", ["ledger_to_topic", "topic_to_ledger"])
def test_rows_rewritten_after_their_events_expired_are_undecidable_for_good(
    new_books: NewBooks, direction: str
) -> None:
    """Of events that lie further back than the key index reaches; of others see below."""
    with new_books(direction=direction, ledger={"index_windows": 1}) as books:
        books.take_cut()
        books.both(*payments("a", "b", "c"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        expire(books)
        books.both(payment("known"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        expire(books)
        books.ledger.execute(f"ALTER TABLE {books.table} ALTER amount_minor TYPE numeric")  # a new xmin for each row
        books.both(payment("d"))
        rewritten = books.next_run()
        assert (rewritten.result.verdict, kinds(rewritten)) == (Verdict.INCONCLUSIVE, [])
        assert set(doubts(rewritten)) == {Doubt.LEDGER_REWRITTEN, Doubt.PARTNER_NOT_SETTLED}
        (told,) = (one for one in rewritten.result.doubts if one.doubt is Doubt.PARTNER_NOT_SETTLED)
        assert told.details["items"] == 3
        assert "Of 3 rows nobody can tell" in told.sentence
        books.both(payment("e"))
        after = books.next_run()
        assert (after.result.verdict, kinds(after)) == (Verdict.MATCHED, [])
        states = {item.match_key: (item.state, item.pairable) for item in rewritten.result.items}
        assert states == {
            **{one.event_id: (ItemState.UNDECIDABLE, True) for one in payments("a", "b", "c")},
            payment("known").event_id: (ItemState.UNDECIDABLE, False),
        }
        assert books.judge_again(rewritten).digest == rewritten.result.digest
        books.post(payment("new"))
        wrong = "missing_in_topic_never_produced" if direction == "ledger_to_topic" else "phantom_in_ledger"
        assert kinds(books.next_run()) == expected((wrong, payment("new")))


def test_the_row_of_an_event_that_expired_unread_is_no_phantom_however_late_it_comes(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.produce(payment("late"))
        expire(books)
        books.both(payment("a"))
        assert doubts(books.next_run()) == [Doubt.LOG_EXPIRED]
        for name in ("b", "c"):
            books.both(payment(name))
            assert books.next_run().result.verdict is Verdict.MATCHED
        books.post(payment("late"))
        books.both(payment("d"))
        run = books.next_run()
        assert (run.result.verdict, kinds(run), doubts(run)) == (
            Verdict.INCONCLUSIVE,
            [],
            [Doubt.PARTNER_NOT_SETTLED],
        )


@pytest.mark.parametrize(("slice_by", "told"), [("written_xid", True), ("xmin", False)])
def test_a_row_that_a_held_horizon_kept_out_of_the_baseline_is_not_missing_whose_event_had_expired_by_then(
    new_books: NewBooks, slice_by: str, told: bool
) -> None:
    """Of rows of the same cut that were written since, only written_xid says that they are younger than the books; by
    xmin a row of the next cut may be an older one, too, which an UPDATE has moved there.
    """
    with new_books(direction="ledger_to_topic", ledger={"slice_by": slice_by}) as books:
        with books.connect() as session, session.transaction():
            session.execute("SELECT pg_current_xact_id()")
            books.both(payment("old"))
            expire(books)
            books.take_cut(settled=False)
        books.post(payment("lost"))
        books.both(payment("a"))
        run = books.next_run()
        lost = ("missing_in_topic_never_produced", payment("lost"))
        assert kinds(run) == expected(*[lost] * told)
        assert doubts(run) == [Doubt.PARTNER_NOT_SETTLED]
        assert books.judge_again(run).digest == run.result.digest
        books.post(payment("next"))
        assert kinds(books.next_run()) == expected(*[("missing_in_topic_never_produced", payment("next"))] * told)
        books.post(payment("later"))
        assert kinds(books.next_run()) == expected(("missing_in_topic_never_produced", payment("later")))


def test_a_leg_sent_again_after_retention_is_a_duplicate_and_tears_nothing(new_books: NewBooks) -> None:
    """a was whole; b was torn once, and healed."""
    with new_books(direction="topic_to_ledger", legs=TWO_LEGS) as books:
        books.take_cut()
        books.both(*both_legs("a"), payment("b"))
        assert kinds(books.next_run()) == [("torn_transaction", payment("b").payment_id, "invoice")]
        books.both(invoice("b"), *both_legs("c"))
        assert books.next_run().result.verdict is Verdict.MATCHED
        expire(books)
        books.produce(payment("a"), invoice("b"))
        books.both(*both_legs("d"), payment("torn"))
        assert kinds(books.next_run()) == sorted(
            [
                *expected(*((SENT_AGAIN, event) for event in (payment("a"), invoice("b")))),
                ("torn_transaction", payment("torn").payment_id, "invoice"),
            ]
        )
