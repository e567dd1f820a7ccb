"""A held side is never missing: the run names who holds it, and once it is free the next one matches what waited."""

import psycopg
import pytest

from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tests.stack.live_books import Event, LiveBooks, doubts, payment, payments

from .live import NewBooks

pytestmark = pytest.mark.usefixtures("spark")


def test_an_open_producer_transaction_is_named_and_what_stands_behind_it_waits(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        books.wait_stable()
        held, behind = _same_partition()
        holder = books.producer("holder")
        holder.begin_transaction()
        books.send(holder, held)
        books.both(behind)
        run = books.next_run(settled=False)
        found = _only_doubt(run, Doubt.HELD_BY_OPEN_TRANSACTION)
        assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
        assert found.details["transactional_id"] == f"{books.contract.name}-holder"
        assert found.details["held_offsets"] == 3  # the held record, the one behind it, and its marker
        assert found.details["since_utc"] is not None
        assert f"{books.contract.name}-holder" in found.sentence
        assert run.result.figures.matched_rows == 2
        assert _open(run) == {behind.event_id}

        holder.commit_transaction()
        books.post(held)
        after = books.next_run()
        assert (after.result.verdict, doubts(after)) == (Verdict.MATCHED, [])
        assert _cleared(after) == {behind.event_id}
        assert after.result.figures.in_flight_items == 0


def test_a_database_transaction_in_another_database_is_named_and_what_it_hides_waits(new_books: NewBooks) -> None:
    """topic_to_ledger: the rows are committed and visible, but behind a horizon that a stranger holds."""
    with new_books(direction="topic_to_ledger") as books, books.stack.ledger_server.connect() as stranger:
        books.take_cut()
        books.both(payment("a"))
        stranger.execute("BEGIN")
        stranger.execute("SET application_name = 'nightly export'")
        stranger.execute("SELECT pg_current_xact_id()")
        books.both(payment("behind"))
        run = books.next_run(settled=False)
        found = _only_doubt(run, Doubt.HELD_BY_LEDGER_HORIZON)
        assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
        assert "(nightly export) of postgres in database postgres" in found.sentence
        assert found.details["since_utc"] is not None
        assert _open(run) == {payment("behind").event_id}

        stranger.execute("COMMIT")
        after = books.next_run()
        assert (after.result.verdict, doubts(after)) == (Verdict.MATCHED, [])
        assert _cleared(after) == {payment("behind").event_id}


def test_the_only_writer_of_an_idle_ledger_holds_it_too(new_books: NewBooks) -> None:
    """topic_to_ledger: the consumer has posted, in its one long transaction; nothing has ended after it."""
    with new_books(direction="topic_to_ledger") as books, books.connect() as consumer:
        books.take_cut()
        books.both(payment("a"))
        consumer.execute("BEGIN")
        _post(books, consumer, payment("uncommitted"))
        books.produce(payment("uncommitted"))
        books.wait_stable()
        run = books.next_run(settled=False)
        assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
        assert doubts(run) == [Doubt.HELD_BY_LEDGER_HORIZON, Doubt.PARTNER_NOT_SETTLED]

        consumer.execute("COMMIT")
        after = books.next_run()
        assert (after.result.verdict, doubts(after)) == (Verdict.MATCHED, [])
        assert _cleared(after) == {payment("uncommitted").event_id}


def test_an_event_ahead_of_its_uncommitted_row_is_neither_phantom_nor_matched(new_books: NewBooks) -> None:
    """ledger_to_topic: the relay was given the event before the row's transaction ended."""
    with new_books(direction="ledger_to_topic") as books, books.connect() as writer:
        books.take_cut()
        books.both(payment("a"))
        writer.execute("BEGIN")
        _post(books, writer, payment("uncommitted"))
        books.produce(payment("uncommitted"))
        books.both(payment("behind"))
        run = books.next_run(settled=False)
        assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
        assert doubts(run) == [Doubt.HELD_BY_LEDGER_HORIZON, Doubt.PARTNER_NOT_SETTLED]
        assert _open(run) == {payment("uncommitted").event_id, payment("behind").event_id}

        writer.execute("COMMIT")
        after = books.next_run()
        assert (after.result.verdict, doubts(after)) == (Verdict.MATCHED, [])
        assert _cleared(after) == {payment("uncommitted").event_id, payment("behind").event_id}


def _same_partition() -> tuple[Event, Event]:
    held = payment("held")
    behind = next(one for one in payments(*"abcdefghij") if one.partition == held.partition and one.payment not in "ab")
    return held, behind


def _post(books: LiveBooks, writer: psycopg.Connection, event: Event) -> None:
    """The credit posting alone, inside the writer's open transaction."""
    writer.execute(
        f"INSERT INTO {books.table} (event_id, payment_id, leg, side, amount_minor, currency) "
        "VALUES (%s, %s, %s, 'credit', %s, %s)",
        [event.event_id, event.payment_id, event.leg, event.amount_minor, event.currency],
    )


def _only_doubt(run: StoredRun, doubt: Doubt) -> DoubtFound:
    (found,) = run.result.doubts
    assert found.doubt is doubt
    return found


def _open(run: StoredRun) -> set[str]:
    return {item.match_key for item in run.result.items if item.state is ItemState.OPEN}


def _cleared(run: StoredRun) -> set[str]:
    return {item.match_key for item in run.result.items if item.state is ItemState.CLEARED}
