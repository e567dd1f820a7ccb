"""What a look-up found in one cut, and what the next ones make of it: open, aborted, misrouted, stray."""

import pytest

from tallystick.kafka_log.log_walk import Outcome
from tallystick.model.direction import Direction
from tallystick.model.finding_names import Notice
from tallystick.model.open_item import ItemState
from tallystick.model.run_result import RunResult
from tallystick.model.verdict import Verdict
from tests.unit.builders import L2T, T2L
from tests.unit.in_memory_books import Books, classes_of

STRAY = "billing.refunds"
TWO_LEGS = {"payment": "billing.payments", "invoice": "billing.invoices"}


def begun(direction: Direction) -> Books:
    books = Books(direction, stray_topics=(STRAY,))
    books.begin()
    return books


def add_a_pair(books: Books, key: str) -> None:
    """Traffic that matches, so that no side is empty."""
    books.post(key)
    books.write(key)


def read_while_open() -> tuple[Books, int, RunResult]:
    """A consumer posted an event of a transaction that is open; the run that sees it, and where the event lies."""
    books = begun(T2L)
    add_a_pair(books, "before")
    books.post()
    offset = books.write(outcome=Outcome.OPEN)
    return books, offset, books.run(held_offsets=1)


def test_an_open_read_is_broken_at_once_and_cleared_when_the_event_is_committed() -> None:
    books, offset, first = read_while_open()
    assert classes_of(first) == ["open_read_in_ledger"]
    books.end_transaction(offset, Outcome.COMMITTED)
    add_a_pair(books, "after")
    second = books.run()
    assert (second.verdict, classes_of(second)) == (Verdict.MATCHED, [])
    assert books.items["ledger:2"].state is ItemState.CLEARED
    assert [found.notice for found in second.notices] == [Notice.PAIRED_ACROSS_WINDOWS]  # it was there, not late


def test_an_open_read_whose_event_is_aborted_stays_broken_and_is_not_broken_twice() -> None:
    books, offset, _ = read_while_open()
    books.end_transaction(offset, Outcome.ABORTED)
    for key in ("after", "later"):
        add_a_pair(books, key)
        assert (classes_of(books.run()), books.outstanding()) == ([], {("open_read_in_ledger", "ev-1"): 1})
    books.write()
    assert classes_of(books.run()) == []
    assert books.outstanding() == {}


def test_an_open_read_is_told_once_while_the_transaction_stays_open() -> None:
    books, _, _ = read_while_open()
    books.post("after")
    assert classes_of(books.run(held_offsets=1, topic_settled=False)) == []
    assert sum(books.outstanding().values()) == 1


def test_a_row_within_its_grace_is_not_looked_up_and_becomes_an_open_read_with_its_deadline() -> None:
    books = begun(T2L)
    add_a_pair(books, "before")
    books.post()
    books.write(outcome=Outcome.OPEN)
    assert classes_of(books.run(held_offsets=1, in_grace=True)) == []
    books.post("after")
    assert classes_of(books.run(held_offsets=1, topic_settled=False)) == ["open_read_in_ledger"]


def test_an_aborted_read_whose_event_is_written_again_late_is_cleared() -> None:
    books = begun(T2L)
    add_a_pair(books, "before")
    books.post()
    books.write(outcome=Outcome.ABORTED)
    assert classes_of(books.run()) == ["aborted_read_in_ledger"]
    books.write()
    late = books.run()
    assert (late.verdict, books.outstanding()) == (Verdict.MATCHED, {})
    assert [found.notice for found in late.notices] == [Notice.LATE_PARTNER]


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_an_event_on_a_stray_topic_is_misrouted_until_the_right_one_comes(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books, "before")
    books.post()
    books.write(topic=STRAY)
    assert classes_of(books.run()) == ["misrouted_in_topic"]
    books.write()
    assert (books.run().verdict, books.outstanding()) == (Verdict.MATCHED, {})


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_a_second_copy_on_a_stray_topic_is_nobodys_break(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books, "ev-1")
    books.write(topic=STRAY)
    assert books.run().verdict is Verdict.MATCHED


def test_a_leg_that_strays_is_misrouted_and_its_transaction_not_torn() -> None:
    books = Books(T2L, legs=TWO_LEGS, stray_topics=(STRAY,))
    books.begin()
    for leg in TWO_LEGS:
        books.write(f"whole/{leg}", leg=leg, payment="whole")
        books.post(f"whole/{leg}", leg=leg)
    books.write("pay/payment", leg="payment", payment="pay")
    books.post("pay/payment", leg="payment")
    books.write("pay/invoice", leg="invoice", payment="pay", topic=STRAY)
    assert classes_of(books.run()) == ["misrouted_in_topic"]
    assert (books.items["legs:pay"].state, books.items["legs:pay"].reason.stored) == (
        ItemState.BROKEN,
        "misrouted_in_topic",
    )
    books.write("pay/invoice", leg="invoice", payment="pay")
    books.post("pay/invoice", leg="invoice")
    assert (classes_of(books.run()), books.outstanding()) == ([], {})


def test_a_leg_that_was_posted_from_a_stray_topic_is_one_break_and_clears_with_the_right_event() -> None:
    books = Books(T2L, legs=TWO_LEGS, stray_topics=(STRAY,))
    books.begin()
    for leg in TWO_LEGS:
        books.write(f"whole/{leg}", leg=leg, payment="whole")
        books.post(f"whole/{leg}", leg=leg, payment="whole")
        books.post(f"pay/{leg}", leg=leg, payment="pay")
    books.write("pay/payment", leg="payment", payment="pay")
    books.write("pay/invoice", leg="invoice", payment="pay", topic=STRAY)
    (found,) = books.run().breaks
    assert (found.break_class, found.match_key) == ("misrouted_in_topic", "pay/invoice")
    assert (books.items["legs:pay"].state, books.items["legs:pay"].break_id) == (ItemState.BROKEN, found.break_id)
    assert classes_of(books.run()) == []
    books.write("pay/invoice", leg="invoice", payment="pay")
    assert (classes_of(books.run()), books.outstanding()) == ([], {})


def test_a_strayed_leg_whose_row_is_still_in_its_grace_waits_for_it_and_is_one_break() -> None:
    books = Books(T2L, legs=TWO_LEGS, stray_topics=(STRAY,))
    books.begin()
    for leg in TWO_LEGS:
        books.write(f"whole/{leg}", leg=leg, payment="whole")
        books.post(f"whole/{leg}", leg=leg, payment="whole")
    books.write("pay/payment", leg="payment", payment="pay")
    books.post("pay/payment", leg="payment", payment="pay")
    books.write("pay/invoice", leg="invoice", payment="pay", topic=STRAY)
    assert classes_of(books.run(in_grace=True)) == []
    books.post("pay/invoice", leg="invoice", payment="pay")
    assert [name for _ in range(3) for name in classes_of(books.run())] == ["misrouted_in_topic"]
    assert sum(books.outstanding().values()) == 1
