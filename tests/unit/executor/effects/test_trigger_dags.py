"""Right before a DAG's run is asked for, the switch, the store, the claim and what the topics have shown are asked."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tallystick.compensation.kill_switch import ActingStopped
from tallystick.compensation.plan import PlanItem
from tallystick.executor.effects import trigger_dags
from tallystick.executor.prove_handed_over import HandOverProof
from tallystick.store.plans.claim_store import STARTING
from tallystick.store.plans.plan_store import ActionState, StoredAction
from tests.planned_items import ITEM
from tests.unit.builders import NOON


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """The actions of which is kept that their runs are asked for."""
    found: list[UUID] = []
    monkeypatch.setattr(trigger_dags, "note_starting", lambda _, action_id, **__: found.append(action_id) or True)
    return found


def start(**about: Any) -> Any:
    asked = {"refuse_for_now": lambda: None, "why_not_now": lambda _: {}, "stopped": {}}
    return SimpleNamespace(**asked | about, engine="engine", executor="this start")


def test_a_run_is_asked_for_only_while_nobody_has_stopped_that(noted: list[UUID]) -> None:
    assert trigger_dags._why_not_started(start(), ITEM, {ITEM.action_id: None}) is None
    assert noted == [ITEM.action_id]

    def stopped() -> None:
        raise ActingStopped("dan stopped all compensations")

    with pytest.raises(ActingStopped):
        trigger_dags._why_not_started(start(refuse_for_now=stopped), ITEM, {ITEM.action_id: None})
    assert noted == [ITEM.action_id]


def test_no_run_is_asked_for_of_what_the_topics_do_not_prove(noted: list[UUID]) -> None:
    unproven: dict[UUID, str | None] = {ITEM.action_id: "its event stands"}
    assert trigger_dags._why_not_started(start(), ITEM, unproven) == "its event stands"
    forbidden = start(why_not_now=lambda _: {ITEM.action_id: "its break is not outstanding any more"})
    assert (
        trigger_dags._why_not_started(forbidden, ITEM, {ITEM.action_id: None})
        == "its break is not outstanding any more"
    )
    assert noted == []


def action(state: ActionState, **outcome: Any) -> StoredAction:
    return StoredAction(
        action_id=ITEM.action_id,
        break_id=ITEM.break_id,
        plan_id=UUID(int=5),
        state=state,
        outcome=outcome,
        recorded_at=NOON,
    )


@pytest.mark.parametrize(
    ("stored", "stopped", "is_asked"),
    [
        (action(ActionState.EXECUTING), False, True),
        (action(ActionState.REFUSED), False, True),
        (None, False, True),
        (action(ActionState.EXECUTING), True, False),
        (action(ActionState.EXECUTING, **{STARTING: True}), False, False),
        (action(ActionState.WAITING), False, False),
        (action(ActionState.DONE), False, False),
    ],
)
def test_the_topics_are_asked_about_what_may_begin_and_of_nothing_else(
    monkeypatch: pytest.MonkeyPatch, stored: StoredAction | None, stopped: bool, is_asked: bool
) -> None:
    asked: list[PlanItem] = []

    def prove(_: Any, items: Any) -> HandOverProof:
        asked.extend(items)
        return HandOverProof(reasons={})

    monkeypatch.setattr(trigger_dags, "prove_handed_over", prove)
    work = start(stopped={ITEM.action_id: "no"} if stopped else {})
    trigger_dags._look(work, [ITEM], {ITEM.action_id: stored} if stored else {})
    assert asked == ([ITEM] if is_asked else [])
