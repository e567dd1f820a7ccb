"""What nobody can read may be what a repair would do once more, or what cancels it: while the log has it, and after."""

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from tallystick.executor.effects.action_log import ActionResult
from tests.stack.live import NewBooks
from tests.stack.live_books import payment
from tests.stack.repairs import executed, planned, posted, posting_books

LOST, LATER = payment("lost", 700), payment("later", 900)
MISSING = {
    "classes": ["missing_in_topic_never_produced"],
    "max_amount_minor": {"EUR": 10_000},
    "four_eyes_above_minor": {"EUR": 10_000},
}


def test_an_event_that_no_run_could_read_is_not_published_again_once_retention_has_taken_it(
    new_books: NewBooks, spark: SparkSession
) -> None:
    with new_books(direction="ledger_to_topic") as opened:
        document = opened.contract.model_dump(mode="json", exclude_defaults=True) | {"compensation": MISSING}
        books = replace(opened, contract=type(opened.contract).model_validate(document))
        books.contract_file.write_text(books.contract.model_dump_json(exclude_defaults=True))
        books.take_cut()
        books.post(LOST)
        unreadable = LOST.value.replace(b"event_id", b"eventId")
        with books.transaction() as producer:
            producer.produce(
                books.contract.legs["payment"], key=LOST.payment_id, value=unreadable, partition=LOST.partition
            )
        found = books.next_run()
        drawn = planned(books, found.cut.n)
        assert [item.match_key for item in drawn.items] == [LOST.event_id]
        for part in books.snapshot():
            books.delete_records("payment", part.partition, before=part.lso)
        (outcome,) = executed(books, drawn).outcomes
        assert (outcome.fate, "what cut 1 could not read" in outcome.reason) == (ActionResult.REFUSED, True)
        for between in ("w2", "w3"):
            books.both(payment(between))
            books.next_run()
        books.post(LATER)
        drawn = planned(books, books.next_run().cut.n)
        assert [item.match_key for item in drawn.items] == [LATER.event_id]
        (left,) = drawn.left_out
        assert (left.match_key, left.reason.split(", or")[0]) == (
            LOST.event_id,
            "a record that cut 1 could not read",
        )
        assert executed(books, drawn).count(ActionResult.PUBLISHED) == 1


def test_a_break_of_later_windows_is_repaired_though_the_log_has_lost_what_no_run_could_read_since_its_plan(
    new_books: NewBooks, spark: SparkSession
) -> None:
    with new_books(direction="ledger_to_topic") as opened:
        document = opened.contract.model_dump(mode="json", exclude_defaults=True) | {"compensation": MISSING}
        books = replace(opened, contract=type(opened.contract).model_validate(document))
        books.contract_file.write_text(books.contract.model_dump_json(exclude_defaults=True))
        books.take_cut()
        with books.transaction() as producer:
            producer.produce(books.contract.legs["payment"], key=LOST.payment_id, value=b"{", partition=LOST.partition)
        for between in ("w1", "w2", "w3"):
            books.both(payment(between))
            books.next_run()
        books.post(LATER)
        drawn = planned(books, books.next_run().cut.n)
        for part in books.snapshot():
            books.delete_records("payment", part.partition, before=part.lso)
        assert executed(books, drawn).count(ActionResult.PUBLISHED) == 1


@pytest.mark.parametrize("key", ['"%s"', "customer-7"])
def test_an_event_is_not_posted_beside_a_tombstone_under_its_own_record_key_whatever_that_is(
    new_books: NewBooks, spark: SparkSession, key: str
) -> None:
    with new_books(direction="topic_to_ledger") as opened:
        books = posting_books(opened, classes=["missing_in_ledger"])
        books.take_cut()
        with books.transaction() as producer:
            for event, value in ((LOST, LOST.value), (LOST, None), (LATER, LATER.value)):
                of_whom = key.replace("%s", event.payment_id) if event is LOST else "customer-8"
                producer.produce(books.contract.legs["payment"], key=of_whom, value=value, partition=LOST.partition)
        books.both(payment("w1"))
        outcomes = {one.match_key: one for one in posted(books, planned(books, books.next_run().cut.n)).outcomes}
        assert "a record of its message key" in outcomes[LOST.event_id].reason
        assert {one: outcome.fate for one, outcome in outcomes.items()} == {
            LOST.event_id: ActionResult.REFUSED,
            LATER.event_id: ActionResult.PUBLISHED,
        }
