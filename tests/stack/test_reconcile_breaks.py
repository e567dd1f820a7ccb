"""Every break class found from real records and rows, each beside a twin that is none; nothing else is called a break.

One set of books per direction, three cuts each: clean, broken on purpose, and repaired by what came late.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from pyspark.sql import SparkSession

from tallystick.model.open_item import ItemState, OpenItem
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.report.log_excerpt import position_of, strip_of
from tests.stack.live_books import ONE_LEG, TWO_LEGS, both_legs, doubts, expected, invoice, kinds, payment, payments

from .live import NewBooks

ABOVE_DOUBLES = 2**53 + 1
"""A double holds this amount no better than its neighbour."""


@dataclass(frozen=True)
class ThreeRuns:
    clean: StoredRun
    broken: StoredRun
    repaired: StoredRun


@pytest.fixture(scope="module")
def topic_first(new_books: NewBooks, spark: SparkSession) -> Iterator[ThreeRuns]:
    """topic_to_ledger, two legs to a payment."""
    with new_books(direction="topic_to_ledger", legs=TWO_LEGS) as books:
        books.produce(*both_legs("its events lie before the baseline"))
        books.post(*both_legs("its rows lie before the baseline"))
        books.take_cut()

        books.produce(*both_legs("a", "b", "c", "d", "e"), abort=True)
        books.both(*both_legs("a", "b", "c", "d", "e"))
        books.post(*both_legs("its events lie before the baseline"))
        books.produce(*both_legs("its rows lie before the baseline"))
        clean = books.next_run()

        books.produce(*both_legs("unposted"))
        books.post(invoice("unposted"))
        for name, first, second in (
            ("retried", {"session": "1"}, {"session": "1"}),
            ("reprocessed", {"session": "1"}, {"session": "2"}),
            ("no session header", {}, {}),
        ):
            books.both(invoice(name))
            books.produce_plain(payment(name), **first)
            books.produce_plain(payment(name), **second)
            books.post(payment(name))
        for name, first, second in (
            ("sent by two producers", {"session": "1"}, {"session": "2"}),
            (
                "same source, two sessions",
                {"session": "1", "source": "requests-0-7"},
                {"session": "2", "source": "requests-0-7"},
            ),
        ):
            books.both(invoice(name))
            books.produce_plain(payment(name), idempotent=True, **first)
            books.produce_plain(payment(name), idempotent=True, **second)
            books.post(payment(name))
            books.post(payment(name))  # the ledger followed the copy: still the topic's break, and only one
        books.produce(payment("a"))  # matched a window ago
        books.both(*both_legs("posted twice"))
        books.post(payment("posted twice"))
        books.post(payment("b"))  # matched a window ago
        books.post(payment("never sent"))
        books.produce(payment("only aborted"), abort=True)
        books.post(payment("only aborted"))
        books.both(invoice("another amount"), invoice("one off above doubles"), invoice("another currency"))
        books.produce(payment("another amount", 1000), payment("one off above doubles", ABOVE_DOUBLES))
        books.post(payment("another amount", 999), payment("one off above doubles", ABOVE_DOUBLES + 1))
        books.produce(payment("another currency", 1000, "EUR"))
        books.post(payment("another currency", 1000, "USD"))
        books.both(payment("torn"), payment("torn by an abort"))
        books.wait_stable()  # a marker that comes late cannot be told from a transaction that went on
        books.produce(invoice("torn by an abort"), abort=True)
        # The twins: each is one fact away, and none is a break.
        books.produce(*both_legs("aborted, then sent again"), abort=True)
        books.both(*both_legs("aborted, then sent again"))
        books.both(payment("legs in two transactions"))
        books.both(invoice("legs in two transactions"))
        books.both(*(make("exact above doubles", ABOVE_DOUBLES) for make in (payment, invoice)))
        books.produce_plain(*both_legs("plain, once"))
        books.post(*both_legs("plain, once"))
        broken = books.next_run()

        books.post(payment("unposted"))
        books.both(invoice("torn"))
        books.both(*both_legs("f"))
        yield ThreeRuns(clean, broken, books.next_run())


@pytest.fixture(scope="module")
def ledger_first(new_books: NewBooks, spark: SparkSession) -> Iterator[ThreeRuns]:
    """ledger_to_topic, one leg."""
    with new_books(direction="ledger_to_topic", legs=ONE_LEG) as books:
        books.post(*payments("its row lies before the baseline"))
        books.take_cut()

        books.both(*payments("a", "b", "c", "d"))
        books.produce(*payments("aborted a window ago", "also aborted"), abort=True)
        books.produce(*payments("its row lies before the baseline"))
        clean = books.next_run()

        books.post(*payments("never produced", "produced late", "only aborted", "aborted a window ago"))
        books.produce(*payments("only aborted"), abort=True)
        books.produce(*payments("never in the ledger"))
        books.both(*payments("relayed twice", "posted twice", "posted and relayed twice"))
        books.produce(*payments("relayed twice", "posted and relayed twice", "a"))
        books.post(*payments("posted twice", "posted and relayed twice"))
        books.post(payment("b"))
        books.produce(payment("another amount", 1000), payment("another currency", 1000, "EUR"))
        books.post(payment("another amount", 1001), payment("another currency", 1000, "JPY"))
        books.produce(*payments("aborted, then sent again"), abort=True)
        books.both(*payments("aborted, then sent again"))
        broken = books.next_run()

        books.produce(*payments("produced late"))
        books.both(*payments("e"))
        yield ThreeRuns(clean, broken, books.next_run())


@pytest.mark.parametrize("direction", ["topic_first", "ledger_first"])
def test_clean_books_are_matched_with_aborted_transactions_around_them(
    direction: str, request: pytest.FixtureRequest
) -> None:
    run: StoredRun = request.getfixturevalue(direction).clean
    assert (run.result.verdict, doubts(run), run.result.breaks) == (Verdict.MATCHED, [], ())
    assert sum(part.aborted for part in run.result.figures.census) > 0
    assert run.result.figures.matched_rows == {"topic_first": 10, "ledger_first": 4}[direction]
    assert run.result.figures.undecidable_items == {"topic_first": 4, "ledger_first": 1}[direction]
    assert run.result.figures.in_flight_items == 0


@pytest.mark.parametrize("direction", ["topic_first", "ledger_first"])
def test_every_offset_is_accounted_for_and_both_readers_count_the_same(
    direction: str, request: pytest.FixtureRequest
) -> None:
    runs: ThreeRuns = request.getfixturevalue(direction)
    for run in (runs.clean, runs.broken):
        for part in run.result.figures.census:
            markers = part.commit_markers + part.abort_markers
            counted = part.committed + part.aborted + part.plain + markers + part.unexplained
            assert counted == part.kafka_offset_end - part.kafka_offset_start
            assert (part.unexplained, part.spark_rows) == (0, part.committed + part.plain)
    if direction == "topic_first":
        assert all(part.aborted and part.abort_markers for part in runs.clean.result.figures.census)
        assert sum(part.plain for part in runs.broken.result.figures.census) == 12
        assert sum(part.without_producer_id for part in runs.broken.result.figures.census) == 8


def test_what_is_wrong_between_topic_and_ledger_is_found_by_class_and_nothing_else(topic_first: ThreeRuns) -> None:
    assert topic_first.broken.result.verdict is Verdict.BROKEN
    assert doubts(topic_first.broken) == []
    assert kinds(topic_first.broken) == expected(
        ("missing_in_ledger", payment("unposted")),
        ("duplicate_in_topic_no_idempotence", payment("retried")),
        ("duplicate_in_topic_reprocessed", payment("reprocessed")),
        ("duplicate_in_topic_reprocessed", payment("same source, two sessions")),
        ("duplicate_in_topic_cause_unknown", payment("no session header")),
        ("duplicate_in_topic_new_session", payment("sent by two producers")),
        ("duplicate_in_topic_new_session", payment("a")),
        ("duplicate_in_ledger", payment("posted twice")),
        ("duplicate_in_ledger", payment("b")),
        ("phantom_in_ledger", payment("never sent")),
        ("aborted_read_in_ledger", payment("only aborted")),
        ("amount_mismatch", payment("another amount")),
        ("amount_mismatch", payment("one off above doubles")),
        ("currency_mismatch", payment("another currency")),
        ("torn_transaction", invoice("torn")),
        ("torn_transaction", invoice("torn by an abort")),
    )


def test_what_is_wrong_between_ledger_and_topic_is_found_by_class_and_nothing_else(ledger_first: ThreeRuns) -> None:
    assert ledger_first.broken.result.verdict is Verdict.BROKEN
    assert doubts(ledger_first.broken) == []
    assert kinds(ledger_first.broken) == expected(
        ("missing_in_topic_never_produced", payment("never produced")),
        ("missing_in_topic_never_produced", payment("produced late")),
        ("missing_in_topic_aborted_only", payment("only aborted")),
        ("missing_in_topic_aborted_only", payment("aborted a window ago")),
        ("phantom_in_topic", payment("never in the ledger")),
        ("duplicate_in_topic_new_session", payment("relayed twice")),
        ("duplicate_in_topic_new_session", payment("a")),
        ("duplicate_in_ledger", payment("posted twice")),
        ("duplicate_in_ledger", payment("posted and relayed twice")),
        ("duplicate_in_ledger", payment("b")),
        ("amount_mismatch", payment("another amount")),
        ("currency_mismatch", payment("another currency")),
    )


def test_the_money_at_stake_is_exact(topic_first: ThreeRuns) -> None:
    stakes = {
        (one.break_class, one.match_key): (one.amount_minor, one.currency) for one in topic_first.broken.result.breaks
    }
    assert stakes["amount_mismatch", payment("another amount").event_id] == (1, "EUR")
    assert stakes["amount_mismatch", payment("one off above doubles").event_id] == (1, "EUR")
    assert stakes["missing_in_ledger", payment("unposted").event_id] == (1000, "EUR")
    figures = topic_first.broken.result.figures
    assert figures.matched_money["EUR"] - 2 * ABOVE_DOUBLES == 1000 * (figures.matched_rows - 2)


def test_what_comes_late_clears_its_item_and_the_next_window_is_matched(
    topic_first: ThreeRuns, ledger_first: ThreeRuns
) -> None:
    for run in (topic_first.repaired, ledger_first.repaired):
        assert (run.result.verdict, doubts(run), run.result.breaks) == (Verdict.MATCHED, [], ())
    assert _cleared(topic_first.repaired) == {payment("unposted").event_id, payment("torn").payment_id}
    assert _cleared(ledger_first.repaired) == {payment("produced late").event_id}


def _cleared(run: StoredRun) -> set[str]:
    cleared: list[OpenItem] = [item for item in run.result.items if item.state is ItemState.CLEARED]
    assert all(item.cleared_by for item in cleared)
    return {item.match_key for item in cleared}


def test_every_break_on_a_topic_keeps_the_log_around_it(topic_first: ThreeRuns) -> None:
    placed = [one for one in topic_first.broken.result.breaks if position_of(one) is not None]
    assert placed
    kinds_seen: set[str] = set()
    for item_break in placed:
        strip = strip_of(item_break)
        assert strip is not None
        kinds_seen |= {one.kind for one in strip.batches}
        position = position_of(item_break)
        assert position == (strip.topic_partition, strip.kafka_offset)
        assert [one for one in strip.batches if one.kafka_offset_start <= strip.kafka_offset < one.kafka_offset_end]
        assert all(earlier.kafka_offset_end <= later.kafka_offset_start for earlier, later in pairwise(strip.batches))
    assert kinds_seen >= {"plain", "committed", "commit marker"}
