"""A copy that stands once too often is taken back by an event of ours; the next run nets both, and the books agree."""

import json
from dataclasses import replace
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition

from tallystick.compensation.plan import RepairKind
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.contract.compensation import REPUBLISHABLE, REVERSIBLE
from tallystick.executor.effects.action_log import ActionResult
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.store.runs.outstanding_store import outstanding_breaks
from tests.stack.live_books import LiveBooks, payment, payments

from .live import NewBooks
from .repairs import action_states, effects, executed, planned

REPAIRS = {
    "classes": [*REPUBLISHABLE, *REVERSIBLE],
    "reversal": "negated",
    "max_amount_minor": {"EUR": 10_000},
    "four_eyes_above_minor": {"EUR": 10_000},
}


def records_of(books: LiveBooks, key: str) -> list[Any]:
    """Committed records of an event, by a reader that shares no code with the publisher."""
    (topic,) = books.contract.topics
    consumer = KafkaConsumer(
        bootstrap_servers=books.stack.bootstrap_servers, isolation_level="read_committed", enable_auto_commit=False
    )
    parts = [TopicPartition(topic, n) for n in range(2)]
    consumer.assign(parts)
    ends = consumer.end_offsets(parts)
    consumer.seek_to_beginning(*parts)
    records: list[Any] = []
    while any(consumer.position(part) < ends[part] for part in parts):
        records += [record for batch in consumer.poll(200).values() for record in batch]
    consumer.close()
    return [record for record in records if json.loads(record.value)["event_id"] == key]


def next_window(books: LiveBooks, name: str) -> StoredRun:
    """A run whose window has an event of its own on both sides."""
    books.both(payment(name))
    return books.next_run()


@pytest.mark.usefixtures("spark")
def test_a_late_original_behind_its_repair_is_taken_back_once_and_the_books_agree(new_books: NewBooks) -> None:
    lost = payment("lost", 700)
    with new_books(direction="ledger_to_topic", compensation=REPAIRS) as books:
        books.take_cut()
        books.post(lost)
        repair = planned(books, next_window(books, "w1").cut.n)
        assert [item.kind for item in repair.items] == [RepairKind.REPUBLISH]
        executed(books, repair)
        assert effects(books, repair) == [RepairEffect.CLEARED]
        assert next_window(books, "w2").result.breaks == ()

        books.produce(lost)
        assert effects(books, repair) == [RepairEffect.CHANGED]
        doubled = next_window(books, "w3")
        assert [one.break_class for one in doubled.result.breaks] == [BreakClass.DUPLICATE_IN_TOPIC_COMPENSATED]
        plan = planned(books, doubled.cut.n)
        assert [item.kind for item in plan.items] == [RepairKind.REVERSE]
        assert effects(books, plan) == [RepairEffect.NOT_CLEARED]
        assert executed(books, plan).count(ActionResult.PUBLISHED) == 1
        assert executed(books, plan).count(ActionResult.ALREADY_PUBLISHED) == 1
        assert effects(books, plan) == [RepairEffect.CLEARED]

        repaired, original, reversal = records_of(books, lost.event_id)
        assert dict(reversal.headers)["tallystick-reverses"].decode() == plan.items[0].reverses
        assert plan.items[0].reverses == f"topic:{original.topic}:{original.partition}:{original.offset}"
        assert [json.loads(one.value)["amount_minor"] for one in (repaired, original, reversal)] == [700, 700, -700]
        assert (reversal.key, reversal.partition) == (original.key, original.partition)

        clean = next_window(books, "w4")
        assert (clean.result.verdict, clean.result.breaks) == (Verdict.MATCHED, ())
        (item,) = (one for one in clean.result.items if one.match_key == lost.event_id)
        assert (item.state, item.cleared_by) == (ItemState.CLEARED, f"action:{plan.items[0].action_id}")
        assert outstanding_breaks(books.store, books.contract.name) == ()
        assert books.judge_again(clean).digest == clean.result.digest
        again = planned(books, next_window(books, "w5").cut.n)
        assert (again.items, again.left_out) == ((), ())


@pytest.mark.usefixtures("spark")
def test_an_event_that_corrects_a_wrong_one_is_not_taken_back(new_books: NewBooks) -> None:
    """Both stand under one key, and only one of them says what the ledger says."""
    right, twice = payment("wrong", 700), payment("twice", 300)
    with new_books(direction="ledger_to_topic", compensation=REPAIRS) as books:
        books.take_cut()
        books.post(right)
        books.produce(replace(right, amount_minor=70))
        books.both(twice)
        (found,) = next_window(books, "w1").result.breaks
        assert found.break_class == BreakClass.AMOUNT_MISMATCH
        books.produce(right)
        books.produce(twice)
        plan = planned(books, next_window(books, "w2").cut.n)
        assert [item.match_key for item in plan.items] == [twice.event_id]
        (left_out,) = (one for one in plan.left_out if "may be the correction" in one.reason)
        assert left_out.match_key == right.event_id


@pytest.mark.usefixtures("spark")
def test_an_event_that_names_a_copy_that_is_not_one_too_many_is_a_duplicate_itself(new_books: NewBooks) -> None:
    (once,) = payments("once")
    with new_books(direction="ledger_to_topic", compensation=REPAIRS) as books:
        books.take_cut()
        books.both(once)
        assert next_window(books, "w1").result.breaks == ()
        (record,) = records_of(books, once.event_id)
        place = f"topic:{record.topic}:{record.partition}:{record.offset}"
        books.produce(once, **{"tallystick-reverses": place})
        doubled = next_window(books, "w2").result
        (found,) = doubled.breaks
        assert [one.doubt for one in doubled.doubts] == [Doubt.FORGED_REPAIR]
        assert (found.match_key, found.break_class) == (once.event_id, BreakClass.DUPLICATE_IN_TOPIC_NEW_SESSION)

        doubled_at = records_of(books, once.event_id)[-1]
        forged = {
            "tallystick-reverses": f"topic:{doubled_at.topic}:{doubled_at.partition}:{doubled_at.offset}",
            "tallystick-action-id": "130e5ce5-6658-50c6-8945-99b412ca8480",
        }
        books.produce(replace(once, amount_minor=-once.amount_minor), **forged)
        after = next_window(books, "w3").result
        assert [one.match_key for one in after.breaks] == [once.event_id]
        assert [one.doubt for one in after.doubts] == [Doubt.FORGED_REPAIR]
        assert len(outstanding_breaks(books.store, books.contract.name)) == 2


@pytest.mark.usefixtures("spark")
def test_a_forged_reversal_that_says_another_sign_than_ours_would_clears_nothing(new_books: NewBooks) -> None:
    """Its action waits for a person because of it, so the store knows the action: the record is none of ours still."""
    twice = payment("twice", 700)
    with new_books(direction="ledger_to_topic", compensation=REPAIRS) as books:
        books.take_cut()
        books.both(twice)
        assert next_window(books, "w1").result.breaks == ()
        books.produce(twice)
        doubled = next_window(books, "w2")
        (found,) = doubled.result.breaks
        plan = planned(books, doubled.cut.n)
        (item,) = plan.items
        books.produce(twice, **{"tallystick-action-id": str(item.action_id), "tallystick-reverses": item.reverses})
        assert executed(books, plan).count(ActionResult.REFUSED) == 1
        assert [state for state, _ in action_states(books, plan)] == ["waiting"]

        after = next_window(books, "w3").result
        assert [one.doubt for one in after.doubts] == [Doubt.FORGED_REPAIR]
        assert [one.match_key for one in after.breaks] == [twice.event_id]
        outstanding = outstanding_breaks(books.store, books.contract.name)
        assert found.break_id in {one.item_break.break_id for one in outstanding}
