"""A round leaves exactly the disagreements its truth names, shown by a consumer and SQL that know no plan."""

import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from lab.rounds.delivery_mode_round import Round, RunningRound, prepare, run_traffic
from lab.servers.process import wait_until
from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Leg, partition_of
from lab.truth.independent_reader import Books, Record, count_copies, find_breaks, read_books, read_ledger, read_topic
from lab.truth.truth import Truth

PAYMENTS, PAYOUTS = 36, 24
KILLING = {"ack_lost": 4, "client_killed": 2, "consumer_crashed": 4, "zombie": 2}
IN_EVERY_MODE = KILLING | {"long_database_transaction": 2, "savepoint_rows": 6}
WITH_TRANSACTIONS = IN_EVERY_MODE | {"open_transaction": 2, "aborted_transactions": 8}

pytestmark = [pytest.mark.stack, pytest.mark.lab]


@pytest.fixture(scope="module", params=list(DeliveryMode))
def finished(request: pytest.FixtureRequest, lab_stack: LabStack) -> tuple[Round, Truth]:
    """A round and its truth. What it told of its faults is what the truth counts."""
    mode: DeliveryMode = request.param
    round_ = prepare(lab_stack, mode, seed=1, namespace=f"r_{mode}")
    told: list[str] = []
    with run_traffic(round_, payments=PAYMENTS, payouts=PAYOUTS, progress=told.append) as running:
        _assert_held_back(lab_stack, running, mode)
        truth = running.release()
    counts = ", ".join(f"{fault} {count}" for fault, count in truth.faults_fired.items())
    assert [line for line in told if line.startswith("faults fired")] == [f"faults fired: {counts}"]
    return round_, truth


def test_topics_and_ledger_differ_exactly_as_the_truth_says(lab_stack: LabStack, finished: tuple[Round, Truth]) -> None:
    round_, truth = finished
    assert find_breaks(_books(lab_stack, round_)) == Counter(
        {(item.break_class, item.event_id): item.copies for item in truth.anomalies}
    )


def test_every_fault_fires_as_often_in_every_mode_that_allows_it(finished: tuple[Round, Truth]) -> None:
    round_, truth = finished
    exactly_once = round_.mode is DeliveryMode.EXACTLY_ONCE
    assert truth.faults_fired == (WITH_TRANSACTIONS if exactly_once else IN_EVERY_MODE)
    assert bool(truth.anomalies) is not exactly_once


def test_the_totals_are_what_both_sides_hold(lab_stack: LabStack, finished: tuple[Round, Truth]) -> None:
    round_, truth = finished
    copies = count_copies(read_ledger(lab_stack.ledger_reader_dsn, round_.namespace))
    topics = truth.totals.events_by_topic
    assert {topic: len(read_topic(lab_stack.bootstrap_servers, topic)) for topic in topics} == topics
    assert copies["debit"] == copies["credit"]
    assert copies["debit"].total() + copies["credit"].total() == truth.totals.postings
    assert copies["payout"].total() == truth.totals.payout_rows == PAYOUTS + 2
    assert truth.totals.requests_sent == PAYMENTS


def test_keys_lie_where_javas_partitioner_puts_them(lab_stack: LabStack, finished: tuple[Round, Truth]) -> None:
    names = finished[0].names
    for leg, records in _books(lab_stack, finished[0]).topic.items():
        count = names.partitions[names.topic(Leg(leg))]
        for record in records:
            assert record.partition == partition_of(record.event["payment_id"].encode(), count)


def test_each_copy_tells_whether_it_was_retried_or_reprocessed(
    lab_stack: LabStack, finished: tuple[Round, Truth]
) -> None:
    round_, truth = finished
    for item in truth.anomalies:
        if item.break_class.startswith("duplicate_in_topic"):
            copies = [r for r in _records(lab_stack, round_, item.leg) if r.event["event_id"] == item.event_id]
            retried = item.break_class == "duplicate_in_topic_no_idempotence"
            assert len({copy.headers["session"] for copy in copies}) == (1 if retried else 2)
            assert len({copy.headers["source"] for copy in copies}) == 1


def test_the_truth_survives_its_file(finished: tuple[Round, Truth], lab_folder: Path) -> None:
    finished[1].write(lab_folder / "truth.json")
    assert Truth.read(lab_folder / "truth.json") == finished[1]


def test_the_last_payout_is_published_though_another_book_holds_the_horizon_for_a_moment(lab_stack: LabStack) -> None:
    round_ = prepare(lab_stack, DeliveryMode.EXACTLY_ONCE, seed=1, namespace="beside")
    with psycopg.connect(lab_stack.ledger_owner_dsn) as other, ThreadPoolExecutor(1) as pool:
        other.execute("SELECT pg_current_xact_id()")
        traffic = pool.submit(run_traffic, round_, payments=6, payouts=4, holds=False, faults=False)
        wait_until(lambda: traffic.done() or _is_drained(lab_stack, round_), what="the first drain")
        other.commit()
        with traffic.result(60) as running:
            running.release()
    assert find_breaks(_books(lab_stack, round_)) == Counter()


def _is_drained(stack: LabStack, round_: Round) -> bool:
    """Does the round wait for the ledger's horizon?"""
    with psycopg.connect(stack.ledger_owner_dsn) as connection:
        name = round_.names.group("drain")
        statement = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        return connection.execute(statement, [name]).fetchone() == (1,)


def _books(stack: LabStack, round_: Round) -> Books:
    return read_books(stack.bootstrap_servers, stack.ledger_reader_dsn, round_.namespace)


def _records(stack: LabStack, round_: Round, leg: str) -> list[Record]:
    return read_topic(stack.bootstrap_servers, f"{round_.namespace}.{leg}s")


def _assert_held_back(stack: LabStack, running: RunningRound, mode: DeliveryMode) -> None:
    """While the holds are open, nobody sees what they wrote, and what lies behind them is there."""
    sides = sorted(held.side for held in running.held)
    assert sides == (["ledger", "topic"] if mode is DeliveryMode.EXACTLY_ONCE else ["ledger"])
    ledger = count_copies(read_ledger(stack.ledger_reader_dsn, running.round.namespace))
    for held in running.held:
        for payment in held.payments:
            legs = ("payment", "invoice", "payout")
            event_ids = {str(uuid.uuid5(payment.payment_id, leg)) for leg in legs}
            assert not event_ids & (set(ledger["credit"]) | set(ledger["payout"]))
            for leg in legs:
                assert not event_ids & {r.event["event_id"] for r in _records(stack, running.round, leg)}
    if mode is DeliveryMode.EXACTLY_ONCE:
        topics = {leg: f"{running.round.namespace}.{leg}s" for leg in ("payment", "invoice")}
        everything = [read_topic(stack.bootstrap_servers, t, isolation="read_uncommitted") for t in topics.values()]
        committed = [read_topic(stack.bootstrap_servers, t) for t in topics.values()]
        assert sum(map(len, everything)) > sum(map(len, committed))
