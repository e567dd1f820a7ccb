"""A row that the ledger has twice is taken back once, by a compensating entry of ours; the next run nets both."""

from collections.abc import Iterator

import pytest

from tallystick.compensation.plan import RepairKind
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.executor.effects import action_log
from tallystick.executor.effects.action_log import ActionResult
from tallystick.model.finding_names import BreakClass, Notice
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.store.runs.outstanding_store import outstanding_breaks
from tests.stack.live_books import Event, LiveBooks, payment

from .live import NewBooks
from .repairs import effects, planned, posted, posting_books

TWICE = payment("twice", 700)
LOST = payment("lost", 900)
UNPAID = payment("unpaid", 500)


@pytest.fixture
def books(new_books: NewBooks, spark: object) -> Iterator[LiveBooks]:
    """Books begun, whose contract posts and takes back two rows an event; the owner has made what that needs."""
    with new_books(direction="topic_to_ledger") as opened:
        opened.ledger.execute(f"ALTER TABLE {opened.table} ADD reverses_entry bigint, ADD action_id uuid")
        books = posting_books(
            opened,
            columns={"reverses": "reverses_entry", "action_id": "action_id"},
            classes=["missing_in_ledger", "duplicate_in_ledger", "duplicate_in_ledger_compensated"],
            reversal="negated",
        )
        books.take_cut()
        yield books


def next_window(books: LiveBooks, name: str) -> StoredRun:
    """A run whose window has an event of its own on both sides."""
    books.both(payment(name))
    return books.next_run()


def rows_of(books: LiveBooks, event_id: str) -> list[tuple[str, int, int | None]]:
    """Side, amount and what is taken back, of every row of an event, by plain SQL."""
    asked = f"SELECT side, amount_minor, reverses_entry FROM {books.table} WHERE event_id = %s ORDER BY entry_id"
    return books.ledger.execute(asked, (event_id,)).fetchall()


def credits_of(books: LiveBooks, event_id: str) -> list[int]:
    asked = f"SELECT entry_id FROM {books.table} WHERE event_id = %s AND side = 'credit' ORDER BY entry_id"
    return [entry_id for (entry_id,) in books.ledger.execute(asked, (event_id,))]


def by_hand(books: LiveBooks, event: Event, amount_minor: int, reverses: int) -> None:
    """A row that says it takes another one back, whatever that is."""
    columns = "event_id, payment_id, leg, side, amount_minor, currency, reverses_entry"
    books.ledger.execute(
        f"INSERT INTO {books.table} ({columns}) VALUES (%s, %s, 'payment', 'credit', %s, 'EUR', %s)",
        (event.event_id, event.payment_id, amount_minor, reverses),
    )


def test_a_doubled_row_is_taken_back_once_whatever_outcome_was_lost_and_the_books_agree(
    books: LiveBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    books.both(TWICE)
    books.post(TWICE)
    doubled = next_window(books, "w1")
    assert [one.break_class for one in doubled.result.breaks] == [BreakClass.DUPLICATE_IN_LEDGER]
    plan = planned(books, doubled.cut.n)
    _, second = credits_of(books, TWICE.event_id)
    assert [(item.kind, item.reverses, item.amount_minor) for item in plan.items] == [
        (RepairKind.COUNTERPOST, f"ledger:{second}", 700)
    ]
    assert effects(books, plan) == [RepairEffect.NOT_CLEARED]

    def dies(*arguments: object, **named: object) -> None:
        raise RuntimeError("killed here")

    with monkeypatch.context() as patch:
        patch.setattr(action_log, "record_done", dies)
        with pytest.raises(RuntimeError, match="killed here"):
            posted(books, plan)
    assert posted(books, plan).count(ActionResult.ALREADY_PUBLISHED) == 1
    whole = [("debit", 700, None), ("credit", 700, None)]
    assert rows_of(books, TWICE.event_id) == [*whole, *whole, ("debit", -700, second), ("credit", -700, second)]
    assert effects(books, plan) == [RepairEffect.CLEARED]

    clean = next_window(books, "w2")
    assert (clean.result.verdict, clean.result.breaks) == (Verdict.MATCHED, ())
    (item,) = (one for one in clean.result.items if one.match_key == TWICE.event_id)
    assert (item.item_id, item.state) == (f"ledger:{second}", ItemState.CLEARED)
    assert item.cleared_by == f"action:{plan.items[0].action_id}"
    assert outstanding_breaks(books.store, books.contract.name) == ()
    assert books.judge_again(clean).digest == clean.result.digest
    assert planned(books, clean.cut.n).actions == ()

    by_hand(books, TWICE, -700, second)
    assert effects(books, plan) == [RepairEffect.CHANGED]
    books.produce(UNPAID)
    by_hand(books, UNPAID, 500, 0)
    found = next_window(books, "w3").result.breaks
    again, hidden = (
        next(one for one in found if (one.break_class, one.match_key) == (BreakClass.DUPLICATE_IN_LEDGER, key))
        for key in (TWICE.event_id, UNPAID.event_id)
    )
    assert f"it takes back ledger:{second}" in again.story
    assert "it takes back ledger:0" in hidden.story


def test_a_row_that_comes_late_behind_ours_has_ours_taken_back_and_the_books_agree(books: LiveBooks) -> None:
    books.produce(LOST)
    posting = planned(books, next_window(books, "w1").cut.n)
    assert posted(books, posting).count(ActionResult.PUBLISHED) == 1
    repaired = next_window(books, "w2").result
    (told,) = (one for one in repaired.notices if one.notice is Notice.LATE_PARTNER)
    assert (repaired.breaks, told.sentence) == ((), "1 broken item found our own repair.")
    books.post(LOST)  # its consumer, late
    doubled = next_window(books, "w3")
    assert [one.break_class for one in doubled.result.breaks] == [BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED]
    ours, late = credits_of(books, LOST.event_id)
    plan = planned(books, doubled.cut.n)
    assert [(item.kind, item.reverses) for item in plan.items] == [(RepairKind.COUNTERPOST, f"ledger:{ours}")]
    posted(books, plan)
    assert effects(books, plan) == [RepairEffect.CLEARED]
    clean = next_window(books, "w4")
    assert (clean.result.verdict, clean.result.breaks) == (Verdict.MATCHED, ())
    (item,) = (one for one in clean.result.items if one.match_key == LOST.event_id)
    assert (item.item_id, item.state) == (f"ledger:{late}", ItemState.CLEARED)
    assert outstanding_breaks(books.store, books.contract.name) == ()
    assert books.judge_again(clean).digest == clean.result.digest
