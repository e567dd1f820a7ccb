"""A cut that lost offsets unread while an executor was under way has not read what the log retains no more."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from tallystick.compensation.plan import CurrentRow, RepairKind
from tallystick.compensation.republished_event import CurrentEvent, CurrentEvents, event_value
from tallystick.executor import prove_repairs
from tallystick.executor.effects.action_log import ItemOutcome
from tallystick.executor.prove_repairs import (
    already_done,
    contract_to_look_by,
    fate_of_action,
    outcome_if_stopped,
    why_unproven,
)
from tallystick.model.cut import JudgedPart, PartitionSnapshot
from tallystick.model.offsets import TopicPartition
from tallystick.store.plans.plan_store import ActionState, StoredAction
from tests.planned_items import ITEM
from tests.unit.builders import NOON, contract_of

PLANNED_AT, LATER = 4, 5
WORK: Any = SimpleNamespace(stopped={}, plan=SimpleNamespace(cut_n=PLANNED_AT))
PART = PartitionSnapshot(
    topic="payouts", partition=0, topic_id="t", leader_epoch=0, log_start=9, lso=9, high_watermark=9
)


def proof(*, offsets_lost_at: int) -> Any:
    """The log begins where the newest cut with a verdict ends."""
    judged = {TopicPartition(topic="payouts", partition=0): JudgedPart(topic_id="t", kafka_offset_end=9)}
    settled = SimpleNamespace(of=lambda _: (PART,))
    return SimpleNamespace(settled=settled, judged=judged, offsets_lost_at=offsets_lost_at)


def test_what_a_later_cut_has_lost_may_have_been_the_event() -> None:
    outcome = why_unproven(WORK, ITEM, proof(offsets_lost_at=LATER))
    assert outcome is not None
    assert outcome.reason == "its event may have come since: offsets were lost before cut 5 could read them"


@pytest.mark.parametrize("offsets_lost_at", [-1, PLANNED_AT])
def test_what_was_lost_before_the_plan_was_held_against_it_when_it_was_drawn(offsets_lost_at: int) -> None:
    assert why_unproven(WORK, ITEM, proof(offsets_lost_at=offsets_lost_at)) is None


def test_a_reversal_stands_on_the_copies_that_the_log_still_has() -> None:
    taken_back = replace(ITEM, kind=RepairKind.REVERSE, reverses="topic:payouts:0:9")
    assert why_unproven(WORK, taken_back, proof(offsets_lost_at=LATER)) is None


# What posts into the ledger, or takes a row of it back.

POSTED = replace(ITEM, kind=RepairKind.POST, posts="topic:payouts:0:9")
TAKEN_BACK = replace(ITEM, kind=RepairKind.COUNTERPOST)
EVENT = CurrentEvent(
    topic="payouts", partition=0, kafka_offset=9, action_id="", value=event_value(ITEM, contract_of().event)
)


def action(state: ActionState, **outcome: Any) -> StoredAction:
    return StoredAction(
        action_id=ITEM.action_id,
        break_id=ITEM.break_id,
        plan_id=UUID(int=5),
        state=state,
        outcome=outcome,
        recorded_at=NOON,
    )


def post_proof(
    *events: CurrentEvent, stored: StoredAction | None = None, rows: tuple[CurrentRow, ...] = (), writers: bool = False
) -> Any:
    standing = CurrentEvents(by_key={("payouts", "ev-1"): events}, unreadable_keys=frozenset())
    return SimpleNamespace(
        actions={ITEM.action_id: stored} if stored else {},
        events=standing,
        names=contract_of().event,
        writers_open=writers,
        rows={"ev-1": rows},
    )


def told(outcome: ItemOutcome | None) -> tuple[str, str, bool] | None:
    return None if outcome is None else (str(outcome.fate), outcome.reason, outcome.waits)


def test_an_event_that_stands_and_is_in_force_may_be_posted() -> None:
    assert fate_of_action(POSTED, post_proof(EVENT)) is None


def test_an_event_that_is_gone_or_was_taken_back_is_not_posted() -> None:
    gone = "not provable: the event is not on the retained log any more"
    assert told(fate_of_action(POSTED, post_proof())) == ("refused", gone, False)
    back = replace(EVENT, kafka_offset=12, reverses=EVENT.item_id)
    assert told(fate_of_action(POSTED, post_proof(EVENT, back))) == ("refused", "the event was taken back", False)


def test_while_somebody_writes_in_the_ledger_nothing_is_posted() -> None:
    reason = "not provable now: a database transaction that is open in the ledger may hold a row of it"
    assert told(fate_of_action(POSTED, post_proof(EVENT, writers=True))) == ("refused", reason, False)
    gone = fate_of_action(POSTED, post_proof(writers=True))
    assert gone is not None and gone.reason != reason


def test_what_was_posted_is_done_and_what_waits_for_a_person_waits_on() -> None:
    done = fate_of_action(POSTED, post_proof(EVENT, stored=action(ActionState.DONE, rows=["7"])))
    assert done == already_done(POSTED, {"rows": ["7"]})
    waits = fate_of_action(POSTED, post_proof(EVENT, stored=action(ActionState.WAITING, reason="look", at=3)))
    assert (told(waits), waits and waits.seen) == (("refused", "look", True), {"at": 3})
    assert fate_of_action(POSTED, post_proof(EVENT, stored=action(ActionState.EXECUTING))) is None


def test_a_row_is_taken_back_while_it_stands_as_the_plan_has_it_whoever_writes() -> None:
    (row,) = (CurrentRow(**{name: getattr(ITEM.row, name) for name in vars(ITEM.row)}),)
    twice = (row, replace(row, row_id="8"))
    assert fate_of_action(TAKEN_BACK, post_proof(rows=twice, writers=True)) is None
    gone = fate_of_action(TAKEN_BACK, post_proof(rows=()))
    assert told(gone) == ("refused", "the ledger row is gone or changed", False)


def test_what_was_stopped_is_refused_with_its_reason_and_nothing_else_is() -> None:
    work: Any = SimpleNamespace(stopped={ITEM.action_id: "the switch"})
    assert told(outcome_if_stopped(work, ITEM)) == ("refused", "the switch", False)
    assert outcome_if_stopped(WORK, ITEM) is None
    assert told(why_unproven(work, ITEM, proof(offsets_lost_at=LATER))) == ("refused", "the switch", False)


# Which contract says where to look.


def rules(**named: Any) -> Any:
    return SimpleNamespace(**({"post": None, "trigger": None} | named))


@pytest.mark.parametrize(
    ("kind", "now", "by_now"),
    [
        (RepairKind.REPUBLISH, {}, True),
        (RepairKind.POST, {}, False),
        (RepairKind.POST, {"post": "there"}, True),
        (RepairKind.COUNTERPOST, {"trigger": "there"}, False),
        (RepairKind.TRIGGER, {}, False),
        (RepairKind.TRIGGER, {"trigger": "there"}, True),
        (RepairKind.TRIGGER, {"post": "there"}, False),
    ],
)
def test_where_the_contract_no_longer_says_how_the_plans_cut_does(
    monkeypatch: pytest.MonkeyPatch, kind: RepairKind, now: dict[str, Any], by_now: bool
) -> None:
    asked: list[tuple[Any, ...]] = []
    then = contract_of().model_copy(update={"compensation": rules(post="then")})
    monkeypatch.setattr(prove_repairs, "read_contract", lambda *named: asked.append(named) or then)
    plan: Any = SimpleNamespace(items=(replace(ITEM, kind=kind),), cut_n=PLANNED_AT)
    contract = contract_of().model_copy(update={"compensation": rules(**now)})
    engine: Any = "engine"
    found = contract_to_look_by(engine, contract, plan)
    assert (found is contract, asked) == (by_now, [] if by_now else [("engine", contract.name, PLANNED_AT)])
    assert by_now or found.compensation is then.compensation


def test_a_contract_without_any_rules_is_read_as_the_plans_cut_had_it_if_that_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan: Any = SimpleNamespace(items=(ITEM,), cut_n=PLANNED_AT)
    contract, engine = contract_of(), cast(Any, "engine")
    monkeypatch.setattr(prove_repairs, "read_contract", lambda *_: None)
    assert contract_to_look_by(engine, contract, plan) is contract
    then = contract.model_copy(update={"compensation": rules()})
    monkeypatch.setattr(prove_repairs, "read_contract", lambda *_: then)
    assert contract_to_look_by(engine, contract, plan).compensation is then.compensation
