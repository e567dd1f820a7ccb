"""Fields inside an envelope, read through `tallystick run` and by each reader alike, as those of flat events are."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tallystick.model.verdict import Verdict
from tallystick.store.runs.run_store import read_run
from tests.stack.live_books import TWO_LEGS, Event, LiveBooks, both_legs, doubts, expected, invoice, kinds, payment

from .live import NewBooks, run_contract

PATHS = {
    "match_key": "data.order.eventId",
    "transaction_key": 'data."payment.id"',
    "leg": "meta.leg-name",
    "amount_minor": "data.order.total.amount",
    "currency": "data.order.total.currency",
}

pytestmark = pytest.mark.timeout(900)


def in_an_envelope(event: Event) -> bytes:
    """The event as another team's service would write it; what nobody reads looks like what is read."""
    total = {"amount": event.amount_minor, "currency": event.currency}
    order = {"lines": [{"eventId": "line-1", "amount": 1}], "eventId": event.event_id, "total": total}
    data = {"payment.id": event.payment_id, "payment": {"id": "another"}, "order": order}
    return json.dumps({"id": "envelope-1", "meta": {"leg-name": event.leg}, "data": data}).encode()


def produce(books: LiveBooks, *events: Event, abort: bool = False) -> None:
    """One producer transaction with these events in envelopes."""
    with books.transaction(abort=abort) as producer:
        for event in events:
            producer.produce(
                books.contract.legs[event.leg],
                key=event.payment_id,
                value=in_an_envelope(event),
                partition=event.partition,
            )


IN_HEADERS = {"match_key": {"header": "ce_id"}, "transaction_key": {"record": "key"}, "leg": {"header": "ce_type"}}
"""As CloudEvents in binary mode have them."""


def produce_with_headers(books: LiveBooks, *events: Event, abort: bool = False) -> None:
    """One producer transaction with these events, whose values say no more than their money."""
    with books.transaction(abort=abort) as producer:
        for event in events:
            producer.produce(
                books.contract.legs[event.leg],
                key=event.payment_id,
                value=json.dumps({"amount_minor": event.amount_minor, "currency": event.currency}),
                headers=[
                    ("ce_id", b"an older one"),
                    ("ce_id", event.event_id),
                    ("ce_type", event.leg),
                    ("odd", b"\xff"),
                ],
                partition=event.partition,
            )


@pytest.fixture
def books(new_books: NewBooks) -> Iterator[LiveBooks]:
    with new_books(direction="topic_to_ledger", event=PATHS) as opened:
        yield opened


def test_events_in_envelopes_are_reconciled_as_flat_ones_are(
    books: LiveBooks, warm_spark: dict[str, str], tmp_path: Path
) -> None:
    assert run_contract(books, tmp_path, warm_spark)[0] == 3
    sound = [payment(name) for name in ("a", "b", "c")]
    produce(books, *sound)
    books.post(*sound)
    produce(books, payment("aborted"), abort=True)
    code, stdout, stderr = run_contract(books, tmp_path, warm_spark, "--json")
    assert code == 0, stderr
    document = json.loads(stdout)
    assert (document["verdict"], document["matched_rows"]) == ("MATCHED", 3)

    produce(books, payment("lost"), payment("wrong", 900), payment("d"), payment("a"))
    books.post(payment("wrong", 901), payment("d"), payment("invented"))
    assert run_contract(books, tmp_path, warm_spark)[0] == 1
    stored = read_run(books.store, books.contract.name, 2)
    assert stored is not None
    assert kinds(stored) == expected(
        ("missing_in_ledger", payment("lost")),
        ("amount_mismatch", payment("wrong")),
        ("phantom_in_ledger", payment("invented")),
        ("duplicate_in_topic_new_session", payment("a")),
    )
    for way in ({}, {"TALLYSTICK_SCAN": "by_client"}):
        code, _, stderr = run_contract(books, tmp_path, warm_spark, "--reread", "2", **way)
        assert code == 1, stderr
        assert "Read again: the same digest" in stderr


def test_legs_in_envelopes_are_told_apart_and_an_event_of_another_shape_is_unreadable(
    new_books: NewBooks, spark: SparkSession
) -> None:
    with new_books(direction="topic_to_ledger", legs=TWO_LEGS, event=PATHS) as books:
        books.take_cut()
        produce(books, *both_legs("a", "b"), payment("torn"))
        books.post(*both_legs("a", "b"), payment("torn"))
        run = books.next_run()
        assert (run.result.figures.matched_rows, doubts(run)) == (5, [])
        assert kinds(run) == expected(("torn_transaction", invoice("torn")))

        books.produce(payment("flat"))  # as this contract's events are not
        produce(books, *both_legs("c"))
        books.post(*both_legs("c"))
        flat = books.next_run()
        assert flat.result.verdict is Verdict.INCONCLUSIVE
        assert "unreadable_payload" in doubts(flat)
        (told,) = [one.sentence for one in flat.result.doubts if one.doubt == "unreadable_payload"]
        assert "data.order.eventId is missing" in told


def test_events_in_headers_and_keys_are_reconciled_as_flat_ones_are(
    new_books: NewBooks, warm_spark: dict[str, str], tmp_path: Path
) -> None:
    with new_books(direction="topic_to_ledger", legs=TWO_LEGS, event=IN_HEADERS) as books:
        assert run_contract(books, tmp_path, warm_spark)[0] == 3
        produce_with_headers(books, *both_legs("a", "b"))
        books.post(*both_legs("a", "b"))
        code, stdout, stderr = run_contract(books, tmp_path, warm_spark, "--json")
        assert code == 0, stderr
        document = json.loads(stdout)
        assert (document["verdict"], document["matched_rows"]) == ("MATCHED", 4)

        produce_with_headers(books, payment("aborted"), abort=True)
        produce_with_headers(books, *both_legs("c", "lost"), payment("torn"), payment("wrong", 900), invoice("wrong"))
        produce_with_headers(books, payment("a"))
        books.post(*both_legs("c", "wrong"), payment("torn"), payment("aborted"), payment("invented"))
        code, _, stderr = run_contract(books, tmp_path, warm_spark)
        assert code == 1, stderr
        stored = read_run(books.store, books.contract.name, 2)
        assert stored is not None
        assert kinds(stored) == expected(
            *(("missing_in_ledger", one) for one in both_legs("lost")),
            ("torn_transaction", invoice("torn")),
            ("amount_mismatch", payment("wrong")),
            ("aborted_read_in_ledger", payment("aborted")),
            ("phantom_in_ledger", payment("invented")),
            ("duplicate_in_topic_new_session", payment("a")),
        )
        assert doubts(stored) == []
        for way in ({}, {"TALLYSTICK_SCAN": "by_client"}):
            code, _, stderr = run_contract(books, tmp_path, warm_spark, "--reread", "2", **way)
            assert code == 1, stderr
            assert "Read again: the same digest" in stderr


def test_an_event_without_its_header_is_unreadable_and_says_which(new_books: NewBooks, spark: SparkSession) -> None:
    with new_books(direction="topic_to_ledger", legs=TWO_LEGS, event=IN_HEADERS) as books:
        books.take_cut()
        books.produce(payment("flat"))
        told = books.next_run()
        assert told.result.verdict is Verdict.INCONCLUSIVE
        (sentence,) = [one.sentence for one in told.result.doubts if one.doubt == "unreadable_payload"]
        assert "header.ce_id is missing" in sentence
