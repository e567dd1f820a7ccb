"""What a start of an executor may claim, what it keeps of the store's answer, and when it may act at all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tallystick.compensation.kill_switch import ActingStopped, OutsideActingHours, SwitchSetting
from tallystick.compensation.plan import CapsExceeded, DailyUsage, Plan
from tallystick.executor.effects import action_log
from tallystick.executor.effects.action_log import ExecutionContext
from tallystick.store.plans.claim_store import Claims
from tallystick.store.plans.plan_store import ActionState, StoredAction
from tests.unit.compensation.abort_plans import ABORTS, planned
from tests.unit.compensation.plans import NOON, candidate, contract, plan

TWO = plan(candidate("a"), candidate("b"))
ONE, OTHER = TWO.items


def stored(action_id: UUID, state: ActionState = ActionState.EXECUTING, **named: Any) -> StoredAction:
    of_plan = {"plan_id": TWO.plan_id, "break_id": None, "outcome": {}, "recorded_at": NOON} | named
    return StoredAction(action_id=action_id, state=state, **of_plan)


@dataclass
class Store:
    """Answers as told. spent: asked of whoever allows a claim. asked: of the newest claim."""

    claims: Claims
    spent: DailyUsage = DailyUsage()
    asked: dict[str, Any] = field(default_factory=dict)
    switches: dict[str, tuple[SwitchSetting | None, SwitchSetting | None]] = field(default_factory=dict)

    def claim(
        self, engine: str, plan: Plan, actions: Sequence[Any], *, allow: Callable[..., None], **named: Any
    ) -> Claims:
        assert engine == "engine"
        self.asked = {"plan": plan, "actions": actions} | named
        allow(actions, self.spent)
        return self.claims

    def switch(self, engine: str, contract_name: str) -> tuple[SwitchSetting | None, SwitchSetting | None]:
        assert engine == "engine"
        return self.switches.get(contract_name, (None, None))


NONE_CLAIMED = Claims(actions={}, begun=frozenset(), unclaimed={}, taken_back={})


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    it = Store(NONE_CLAIMED)
    monkeypatch.setattr(action_log, "claim_actions", it.claim)
    monkeypatch.setattr(action_log, "read_switch", it.switch)
    return it


def work_of(the_plan: Plan = TWO, *, now: datetime = NOON, stopped: Mapping[UUID, str] = {}, **rules: Any) -> Any:
    unused: Any = SimpleNamespace()
    engine: Any = "engine"
    return ExecutionContext(
        engine=engine,
        contract=contract(**rules),
        connections=unused,
        plan=the_plan,
        approver="carol",
        environment="live",
        on_progress=lambda *_: None,
        now=lambda: now,
        executor="this start",
        stopped=dict(stopped),
    )


def test_a_claim_says_who_claims_what_under_which_ledger_and_what_is_stopped(store: Store) -> None:
    work_of(stopped={ONE.action_id: "changed"}).claim(TWO.items, ledger="ledger-1", transactional_id="t")
    assert store.asked == {
        "plan": TWO,
        "actions": TWO.items,
        "executor": "this start",
        "outcome": {"transactional_id": "t"},
        "ledger": "ledger-1",
        "stopped": {ONE.action_id: "changed"},
    }


def test_without_a_ledger_to_write_into_none_is_named(store: Store) -> None:
    work_of().claim(TWO.items)
    assert (store.asked["ledger"], store.asked["outcome"]) == ("", {})


def test_what_the_store_says_of_a_claim_is_kept_for_all_that_comes_after_it(store: Store) -> None:
    actions = {ONE.action_id: stored(ONE.action_id, reopened=2), OTHER.action_id: stored(OTHER.action_id)}
    store.claims = Claims(
        actions=actions,
        begun=frozenset({ONE.action_id}),
        unclaimed={OTHER.action_id: "its break is not outstanding any more"},
        taken_back={ONE.action_id: frozenset({"topic:t:0:9"})},
    )
    work = work_of()
    assert work.claim(TWO.items) is actions
    assert work.begun == {ONE.action_id}
    assert work.stopped == {OTHER.action_id: "its break is not outstanding any more"}
    assert work.taken_back == {ONE.action_id: frozenset({"topic:t:0:9"})}
    assert work.reopened == {ONE.action_id: 2, OTHER.action_id: 0}
    assert work.unclaimed == set()


@pytest.mark.parametrize(
    ("held", "is_ours"),
    [
        ({}, False),
        ({OTHER.action_id: stored(OTHER.action_id)}, True),
        ({OTHER.action_id: stored(OTHER.action_id, ActionState.DONE)}, True),
        ({OTHER.action_id: stored(OTHER.action_id, ActionState.REFUSED)}, False),
        ({OTHER.action_id: stored(OTHER.action_id, plan_id=UUID(int=9))}, False),
    ],
)
def test_only_what_this_plan_holds_is_its_own_to_refuse(
    store: Store, held: dict[UUID, StoredAction], is_ours: bool
) -> None:
    store.claims = Claims(
        actions=held | {ONE.action_id: stored(ONE.action_id)}, begun=frozenset(), unclaimed={}, taken_back={}
    )
    work = work_of()
    work.claim(TWO.items)
    assert work.unclaimed == (set() if is_ours else {OTHER.action_id})


def test_a_claim_is_held_against_the_caps_and_what_the_day_has_spent_beside_it(store: Store) -> None:
    work_of(max_items=2, max_items_per_day=3).claim(TWO.items)
    with pytest.raises(CapsExceeded, match="over the cap on the number of events"):
        work_of(max_items=1).claim(TWO.items)
    store.spent = DailyUsage(items=2)
    work_of(max_items_per_day=3).claim(TWO.items[:1])
    with pytest.raises(CapsExceeded, match="over the day's cap on the number of events"):
        work_of(max_items_per_day=3).claim(TWO.items)


def test_of_a_claim_only_what_is_claimed_counts_against_the_caps_of_either_kind(store: Store) -> None:
    ends = planned()
    (abort,) = ends.aborts
    both = Plan(
        contract="payouts",
        contract_fingerprint="f",
        cut_n=5,
        dry_run=False,
        items=TWO.items,
        left_out=(),
        aborts=(abort,),
    )
    work_of(both, max_items=2, **ABORTS).claim(TWO.items)
    work_of(both, max_items=1, **ABORTS).claim([abort])
    with pytest.raises(CapsExceeded, match="so nothing is ended"):
        work_of(both).claim([abort])


# The switch and the hours.


def switch(stopped: bool, *, of: str | None = None) -> SwitchSetting:
    return SwitchSetting(contract=of, stopped=stopped, by="dan", because="why", at_utc=NOON)


@pytest.mark.parametrize("of", [None, "payouts"])
def test_a_switch_of_this_contract_or_of_all_stops_it(store: Store, of: str | None) -> None:
    setting = switch(True, of=of)
    store.switches = {"payouts": (setting, None) if of is None else (switch(False), setting)}
    with pytest.raises(ActingStopped, match=r"^payouts: dan stopped "):
        work_of().refuse_for_now()


def test_one_of_another_contract_does_not_stop_it(store: Store) -> None:
    store.switches = {"invoices": (None, switch(True, of="invoices")), "payouts": (switch(False), switch(False))}
    work_of().refuse_for_now()


def test_it_acts_in_the_minutes_that_the_contract_allows_by_the_clock_that_it_is_given(store: Store) -> None:
    hours = {"acting_minutes": "* 9-16 * * *"}
    work_of(**hours).refuse_for_now()
    with pytest.raises(OutsideActingHours):
        work_of(now=NOON + timedelta(hours=8), **hours).refuse_for_now()
