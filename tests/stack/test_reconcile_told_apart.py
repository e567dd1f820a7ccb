"""What look-ups tell apart, from real records, rows and receipts: each class beside the twins that are another one."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tallystick.compensation.plan import PlanItem
from tallystick.contract.event import EventFields
from tallystick.executor import publish_repairs
from tallystick.model.finding_names import Doubt, Notice
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tests.stack.live_books import (
    TWO_LEGS,
    Event,
    LiveBooks,
    both_legs,
    doubts,
    expected,
    invoice,
    kinds,
    payment,
    payments,
)

from .live import NewBooks
from .repairs import executed, planned

pytestmark = pytest.mark.usefixtures("spark")

ORIGINS = {"origin_header": "service", "known_origins": ["relay"]}
RECEIPTS = {
    "slice_by": "written_xid",
    "columns": {"receipt_partition": "sent_partition", "receipt_offset": "sent_offset"},
}


@contextmanager
def books_with_a_stray_topic(new_books: NewBooks, direction: str, **contract: Any) -> Iterator[tuple[LiveBooks, str]]:
    """Books of a contract that names one stray topic, of one partition; and the topic."""
    stray = f"stray.{uuid.uuid4().hex[:10]}"
    kafka = {"connection": "kafka_billing", "stray_topics": [stray]}
    with new_books(direction=direction, legs=TWO_LEGS, kafka=kafka, event=ORIGINS, **contract) as books:
        admin = AdminClient({"bootstrap.servers": books.stack.bootstrap_servers})
        admin.create_topics([NewTopic(stray, num_partitions=1)])[stray].result(30)
        try:
            yield books, stray
        finally:
            admin.delete_topics([stray])[stray].result(30)


def send_to(books: LiveBooks, topic: str, *events: Event, abort: bool = False) -> None:
    """One producer transaction with these events, on a topic of the test's choice."""
    producer = books.producer()
    producer.begin_transaction()
    for event in events:
        producer.produce(topic, key=event.payment_id, value=event.value, partition=0)
    assert producer.flush(30) == 0
    if abort:
        producer.abort_transaction()
    else:
        producer.commit_transaction()


def acknowledged(books: LiveBooks, event: Event, *, abort: bool = False) -> Message:
    """Produce an event and give the broker's acknowledgement."""
    receipts: list[Message] = []
    producer: Producer = books.producer()
    producer.begin_transaction()
    producer.produce(
        books.contract.legs[event.leg],
        key=event.payment_id,
        value=event.value,
        partition=event.partition,
        on_delivery=lambda error, message: receipts.append(message),
    )
    assert producer.flush(30) == 0
    if abort:
        producer.abort_transaction()
    else:
        producer.commit_transaction()
    return receipts[0]


def store_receipt(books: LiveBooks, event: Event, *, partition: int | None, offset: int | None) -> None:
    """What the relay does once it was acknowledged: an UPDATE of the row."""
    books.ledger.execute(
        f"UPDATE {books.table} SET sent_partition = %s, sent_offset = %s WHERE event_id = %s",
        [partition, offset, event.event_id],
    )


@pytest.fixture(scope="module")
def ledger_first(new_books: NewBooks, spark: object) -> Iterator[tuple[LiveBooks, StoredRun]]:
    with books_with_a_stray_topic(new_books, "ledger_to_topic") as (books, stray):
        books.take_cut()
        books.both(*both_legs("a", "b"))
        books.post(*payments("never produced", "strayed", "aborted astray"))
        send_to(books, stray, payment("strayed"))
        send_to(books, stray, payment("aborted astray"), abort=True)
        books.both(*both_legs("also astray"))
        send_to(books, stray, payment("also astray"))
        books.post(*both_legs("under the wrong leg"))
        books.produce(invoice("under the wrong leg"))
        send_to(books, books.contract.legs["invoice"], payment("under the wrong leg"))
        books.produce(*both_legs("of a load test"), service="load-test")
        books.produce(*both_legs("of nobody"))
        books.produce(*both_legs("rolled back"), service="relay")
        yield books, books.next_run()


@pytest.fixture(scope="module")
def topic_first(new_books: NewBooks, spark: object) -> Iterator[tuple[LiveBooks, StoredRun]]:
    with books_with_a_stray_topic(new_books, "topic_to_ledger") as (books, stray):
        books.take_cut()
        books.both(*both_legs("a", "b"))
        books.produce(payment("aborted"), abort=True)
        books.produce(payment("aborted, then committed"), abort=True)
        books.both(*both_legs("aborted, then committed"))
        books.post(*payments("aborted", "never sent", "strayed"))
        send_to(books, stray, payment("strayed"))
        books.both(payment("one leg astray"), payment("one leg aborted astray"))
        send_to(books, stray, invoice("one leg astray"))
        send_to(books, stray, invoice("one leg aborted astray"), abort=True)
        books.post(*both_legs("under the wrong leg"))
        books.produce(invoice("under the wrong leg"))
        send_to(books, books.contract.legs["invoice"], payment("under the wrong leg"))
        books.produce(*both_legs("of a load test"), service="load-test")
        books.produce(*both_legs("unposted"), service="relay")
        yield books, books.next_run()


def test_where_the_ledger_comes_first_each_is_found_under_its_own_class(
    ledger_first: tuple[LiveBooks, StoredRun],
) -> None:
    _, run = ledger_first
    assert doubts(run) == []
    assert kinds(run) == expected(
        ("missing_in_topic_never_produced", payment("never produced")),
        ("misrouted_in_topic", payment("strayed")),
        ("missing_in_topic_aborted_only", payment("aborted astray")),
        ("misrouted_in_topic", payment("under the wrong leg")),
        ("foreign_in_topic", payment("of a load test")),
        ("foreign_in_topic", invoice("of a load test")),
        ("foreign_in_topic", payment("of nobody")),
        ("foreign_in_topic", invoice("of nobody")),
        ("phantom_in_topic", payment("rolled back")),
        ("phantom_in_topic", invoice("rolled back")),
    )


def test_where_the_topic_comes_first_each_is_found_under_its_own_class(
    topic_first: tuple[LiveBooks, StoredRun],
) -> None:
    _, run = topic_first
    assert doubts(run) == []
    assert kinds(run) == expected(
        ("aborted_read_in_ledger", payment("aborted")),
        ("phantom_in_ledger", payment("never sent")),
        ("misrouted_in_topic", payment("strayed")),
        ("misrouted_in_topic", invoice("one leg astray")),
        ("torn_transaction", invoice("one leg aborted astray")),
        ("misrouted_in_topic", payment("under the wrong leg")),
        ("foreign_in_topic", payment("of a load test")),
        ("foreign_in_topic", invoice("of a load test")),
        ("missing_in_ledger", payment("unposted")),
        ("missing_in_ledger", invoice("unposted")),
    )


@pytest.mark.parametrize("direction", ["ledger_first", "topic_first"])
def test_the_same_cut_read_again_is_told_the_same(direction: str, request: pytest.FixtureRequest) -> None:
    books, run = request.getfixturevalue(direction)
    assert books.judge_again(run).digest == run.result.digest


def test_the_right_event_sent_late_clears_what_strayed(ledger_first: tuple[LiveBooks, StoredRun]) -> None:
    books, _ = ledger_first
    books.produce(payment("strayed"))
    books.both(*both_legs("c"))
    books.produce(invoice("strayed"))
    books.post(invoice("strayed"))
    after = books.next_run()
    assert (after.result.verdict, after.result.breaks) == (Verdict.MATCHED, ())
    assert _states(after)[payment("strayed").event_id] is ItemState.CLEARED
    assert Notice.LATE_PARTNER in {found.notice for found in after.result.notices}


# Acknowledged, and gone.


def test_an_acknowledged_event_that_the_log_does_not_hold_is_lost_where_that_can_be_proven(new_books: NewBooks) -> None:
    with new_books(direction="ledger_to_topic", ledger=RECEIPTS) as books:
        books.ledger.execute(f"ALTER TABLE {books.table} ADD sent_partition int, ADD sent_offset bigint")
        books.take_cut()
        lost, overtaken, half, nothing_stored, aborted, kept = payments(
            "lost", "overtaken", "half a receipt", "nothing stored", "aborted", "kept"
        )
        books.post(lost, overtaken, half, nothing_stored, aborted, kept)
        others = [acknowledged(books, one) for one in payments("b", "c")]
        books.post(*payments("b", "c"))
        for event, receipt in ((kept, acknowledged(books, kept)), (aborted, acknowledged(books, aborted, abort=True))):
            store_receipt(books, event, partition=receipt.partition(), offset=receipt.offset())
        store_receipt(books, lost, partition=1, offset=1_000)
        store_receipt(books, overtaken, partition=others[0].partition(), offset=others[0].offset())
        store_receipt(books, half, partition=0, offset=None)
        run = books.next_run()
        assert doubts(run) == []
        assert kinds(run) == expected(
            ("lost_acknowledged_write", lost),
            ("lost_acknowledged_write", overtaken),
            ("missing_in_topic_never_produced", half),
            ("missing_in_topic_never_produced", nothing_stored),
            ("missing_in_topic_aborted_only", aborted),
        )
        stands = {one.match_key: one.evidence["receipt"]["stands_there"] for one in _of(run, "lost_acknowledged_write")}
        assert stands[overtaken.event_id] == "another event (committed)"
        assert stands[lost.event_id].startswith("nothing: the log ends at ")

        _check_receipts_that_prove_nothing(books)


def _check_receipts_that_prove_nothing(books: LiveBooks) -> None:
    expired, compacted = payments("expired", "compacted")
    first = acknowledged(books, payment("d"))
    books.post(payment("d"))
    assert books.next_run().result.verdict is Verdict.MATCHED
    partition, offset = first.partition(), first.offset()
    assert partition is not None
    assert offset is not None
    books.delete_records("payment", partition, before=offset + 1)  # read by then, so nothing expired unread
    books.both(payment("e"))
    books.post(expired)
    store_receipt(books, expired, partition=partition, offset=offset)
    run = books.next_run()
    assert (kinds(run), doubts(run)) == ([], [Doubt.PARTNER_NOT_SETTLED])

    books.configure_topic("payment", cleanup_policy="compact")
    books.both(payment("f"))
    books.post(compacted)
    store_receipt(books, compacted, partition=partition, offset=offset + 1)
    run = books.next_run()
    assert (kinds(run), doubts(run)) == ([], [Doubt.PARTNER_NOT_SETTLED])
    assert _states(run)[compacted.event_id] is ItemState.UNDECIDABLE


# Read while its transaction was open.


def read_while_open(books: LiveBooks) -> tuple[Producer, StoredRun]:
    """The consumer posts an event of an open transaction, and one that is committed behind it."""
    books.take_cut()
    books.both(*payments("a", "b"))
    books.wait_stable()
    held = payment("held")
    behind = next(one for one in payments(*"cdefghij") if one.partition == held.partition)
    holder = books.producer("holder")
    holder.begin_transaction()
    books.send(holder, held)
    books.both(behind)
    books.post(held)
    run = books.next_run(settled=False)
    assert kinds(run) == expected(("open_read_in_ledger", held))
    assert doubts(run) == [Doubt.HELD_BY_OPEN_TRANSACTION]
    assert run.result.verdict is Verdict.BROKEN
    assert _states(run) == {held.event_id: ItemState.BROKEN, behind.event_id: ItemState.OPEN}
    return holder, run


def test_a_row_of_an_open_transaction_is_an_open_read_and_cleared_when_it_commits(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        holder, first = read_while_open(books)
        holder.commit_transaction()
        books.wait_stable()
        assert books.judge_again(first).digest == first.result.digest  # though the event is committed now
        after = books.next_run()
        assert (after.result.verdict, kinds(after)) == (Verdict.MATCHED, [])
        assert _states(after)[payment("held").event_id] is ItemState.CLEARED


def test_an_open_read_that_aborts_is_the_same_break_and_no_second_one(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        holder, _ = read_while_open(books)
        holder.abort_transaction()
        books.both(payment("k"))
        books.post(payment("l"))
        books.produce(payment("l"), abort=True)
        after = books.next_run()
        assert kinds(after) == expected(("aborted_read_in_ledger", payment("l")))
        assert payment("held").event_id not in _states(after)


def _states(run: StoredRun) -> dict[str, ItemState]:
    return {item.match_key: item.state for item in run.result.items}


def _of(run: StoredRun, break_class: str) -> list[Any]:
    return [one for one in run.result.breaks if one.break_class == break_class]


# Our own repair.

REPAIR = {
    "classes": ["missing_in_topic_never_produced"],
    "max_amount_minor": {"EUR": 100_000},
    "four_eyes_above_minor": {"EUR": 100_000},
}


def test_a_repair_without_effect_is_told_once_and_is_not_planned_again(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The publisher is broken on purpose: one of its two events has a key that no row has."""
    whole = publish_repairs.event_value
    repaired, botched = payments("repaired", "botched")

    def garbled(item: PlanItem, fields: EventFields) -> bytes:
        return whole(item, fields).replace(botched.event_id.encode(), payment("nobody's").event_id.encode())

    monkeypatch.setattr(publish_repairs, "event_value", garbled)
    with new_books(direction="ledger_to_topic", compensation=REPAIR) as books:
        books.take_cut()
        books.both(payment("a"))
        books.post(repaired, botched)
        missing = books.next_run()
        assert len(missing.result.breaks) == 2
        plan = planned(books, missing.cut.n)
        executed(books, plan)
        books.both(payment("b"))
        run = books.next_run()
        assert _states(run)[repaired.event_id] is ItemState.CLEARED
        (told,) = (one.sentence for one in run.result.notices if one.notice is Notice.LATE_PARTNER)
        assert told == "1 broken item found our own repair."
        assert kinds(run) == expected(("compensation_not_effective", botched), ("phantom_in_topic", botched))
        (found,) = _of(run, "compensation_not_effective")
        assert found.evidence["action_id"] in {str(item.action_id) for item in plan.items}
        assert books.judge_again(run).digest == run.result.digest

        books.both(payment("c"))
        after = books.next_run()
        assert (after.result.verdict, kinds(after)) == (Verdict.MATCHED, [])
        assert planned(books, after.cut.n).items == ()
