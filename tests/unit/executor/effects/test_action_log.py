"""How each outcome is kept, audited and told; what one start of an executor may claim, and say of what it has begun.

One file, since all of it is what one start shares with the kinds of repair.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tallystick.compensation.kill_switch import ActingStopped, OutsideActingHours, SwitchSetting
from tallystick.compensation.plan import CapsExceeded, DailyUsage, Plan
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.executor.effects import action_log
from tallystick.executor.effects.action_log import (
    ActionResult,
    ExecutionContext,
    ItemCheck,
    ItemOutcome,
    record,
    record_each,
    refuse_begun,
    refused,
    run_actions,
    waits,
)
from tallystick.executor.effects.publish_events import ExecutorFenced
from tallystick.model.verdict import Verdict
from tallystick.store.plans.claim_store import NOT_OUTSTANDING, Claims
from tallystick.store.plans.plan_store import ActionState, StoredAction
from tests.planned_items import ITEM
from tests.unit.compensation.abort_plans import ABORTS, planned
from tests.unit.compensation.plans import NOON, candidate, contract, plan

OTHER = replace(ITEM, match_key="ev-2", action_id=UUID(int=2), break_id=UUID(int=12))
PLAN = Plan(contract="books", contract_fingerprint="f", cut_n=4, dry_run=False, items=(ITEM, OTHER), left_out=())
PLACE = {"topic": "payouts", "partition": 0, "offset": 9}
DONE = ItemOutcome(action_id=ITEM.action_id, match_key="ev-1", fate=ActionResult.PUBLISHED, place=PLACE)


class Store:
    """Notes what is kept. held: does this start still hold its actions? outstanding: the breaks that are."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kept: list[tuple[Any, ...]] = []
        self.held, self.outstanding = True, frozenset({ITEM.break_id, OTHER.break_id})
        self.others: frozenset[UUID] = frozenset()
        for name in ("record_refusal", "record_waiting", "record_done"):
            monkeypatch.setattr(action_log, name, self._keeper(name))
        monkeypatch.setattr(action_log, "append_audit", self._audit)
        monkeypatch.setattr(action_log, "outstanding_among", self._outstanding)
        monkeypatch.setattr(action_log, "held_among", self._held)

    def _keeper(self, name: str) -> Any:
        def keep(engine: str, action_id: UUID, **named: Any) -> bool:
            assert engine == "engine"
            self.kept.append((name, action_id, named))
            return self.held

        return keep

    def _audit(self, engine: str, contract: str, **named: Any) -> None:
        assert (engine, contract, named["plan_id"], named["actor"]) == ("engine", "books", PLAN.plan_id, "carol")
        self.kept.append(("audit", named["event"], named["detail"]))

    def _outstanding(self, engine: str, contract: str, break_ids: set[UUID]) -> frozenset[UUID]:
        assert (engine, contract) == ("engine", "books")
        return self.outstanding & break_ids

    def _held(self, engine: str, wanted: set[UUID], executor: str) -> frozenset[UUID]:
        assert (engine, executor) == ("engine", WORK_ID)
        return frozenset(wanted) - self.others


WORK_ID = "this start"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    return Store(monkeypatch)


def work_of(steps: list[tuple[str, Any]] | None = None, **named: Any) -> ExecutionContext:
    told = [] if steps is None else steps
    usual: dict[str, Any] = {
        "engine": "engine",
        "contract": contract(four_eyes_above_minor={"EUR": 1_000}).model_copy(update={"name": "books"}),
        "connections": None,
        "plan": PLAN,
        "approver": "carol",
        "environment": "live",
        "on_progress": lambda step, figures: told.append((step, dict(figures))),
        "now": lambda: NOON,
        "executor": WORK_ID,
    }
    return ExecutionContext(**usual | named)


def audited(event: str, **detail: Any) -> tuple[Any, ...]:
    return "audit", event, {"plan_hash": PLAN.plan_hash} | detail


def test_what_was_done_is_kept_with_its_place_and_who_did_it(store: Store) -> None:
    record(work_of(reopened={ITEM.action_id: 3}), DONE)
    assert store.kept == [
        ("record_done", ITEM.action_id, {"outcome": PLACE, "by_us": True, "reopened": 3}),
        audited("published", action_id=str(ITEM.action_id), **PLACE),
    ]


@pytest.mark.parametrize(
    ("fate", "by_us"),
    [
        (ActionResult.PUBLISHED, True),
        (ActionResult.DONE, True),
        (ActionResult.ALREADY_PUBLISHED, False),
        (ActionResult.ALREADY_DONE, False),
    ],
)
def test_what_somebody_else_had_done_is_not_said_to_be_ours(store: Store, fate: ActionResult, by_us: bool) -> None:
    record(work_of(), replace(DONE, fate=fate, place=None))
    assert store.kept[0] == ("record_done", ITEM.action_id, {"outcome": {}, "by_us": by_us, "reopened": 0})
    assert store.kept[1] == audited(str(fate), action_id=str(ITEM.action_id))


def test_a_refusal_is_kept_with_its_reason_and_what_waits_with_what_was_seen(store: Store) -> None:
    record(work_of(), refused(ITEM, "the row is gone"))
    record(work_of(), waits(OTHER, "it may be gone", seen={"progress_end": 7}))
    reason = store.kept[2][2]["outcome"]["reason"]
    assert store.kept[0] == (
        "record_refusal",
        ITEM.action_id,
        {"executor": WORK_ID, "outcome": {"reason": "the row is gone"}},
    )
    assert store.kept[1] == audited("refused", action_id=str(ITEM.action_id), reason="the row is gone")
    assert store.kept[2] == (
        "record_waiting",
        OTHER.action_id,
        {"executor": WORK_ID, "outcome": {"reason": reason, "progress_end": 7}},
    )
    assert reason == (
        "a person has to look: it may be gone. Look whether it was done; only if not: tallystick compensation reopen "
        f"CONTRACT_FILE {OTHER.action_id} --by NAME --reason TEXT"
    )


def test_a_refusal_that_a_later_start_may_be_making_untrue_is_not_said(store: Store) -> None:
    store.held = False
    work = work_of(begun={ITEM.action_id})
    with pytest.raises(ExecutorFenced, match=f"^books: another executor has claimed {ITEM.action_id} since$"):
        record(work, refused(ITEM, "the row is gone"))
    assert [kept[0] for kept in store.kept] == ["record_refusal"]
    assert work.begun == {ITEM.action_id}


def test_of_what_this_start_has_not_begun_it_keeps_no_refusal_and_audits_it(store: Store) -> None:
    store.held = False
    record(work_of(unclaimed={ITEM.action_id}), refused(ITEM, "another plan has it"))
    assert store.kept == [audited("refused", action_id=str(ITEM.action_id), reason="another plan has it")]


def test_what_is_recorded_is_begun_no_more(store: Store) -> None:
    work = work_of(begun={ITEM.action_id, OTHER.action_id})
    record(work, DONE)
    assert work.begun == {OTHER.action_id}


def test_what_this_start_has_begun_and_not_recorded_is_refused_once(store: Store) -> None:
    work = work_of(begun={OTHER.action_id, ITEM.action_id})
    refuse_begun(work, "acting was stopped")
    said = {"executor": WORK_ID, "outcome": {"reason": "acting was stopped"}}
    assert store.kept == [
        ("record_refusal", ITEM.action_id, said),
        audited("refused", action_id=str(ITEM.action_id), reason="acting was stopped"),
        ("record_refusal", OTHER.action_id, said),
        audited("refused", action_id=str(OTHER.action_id), reason="acting was stopped"),
    ]
    assert work.begun == set()


def test_what_a_later_start_has_claimed_is_left_to_it(store: Store) -> None:
    store.held = False
    refuse_begun(work_of(begun={ITEM.action_id}), "acting was stopped")
    assert [kept[0] for kept in store.kept] == ["record_refusal"]


def test_actions_are_done_one_after_the_other_and_each_is_asked_for_kept_and_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    steps: list[tuple[str, Any]] = []
    monkeypatch.setattr(ExecutionContext, "refuse_for_now", lambda _: order.append("may it be done"))

    @contextmanager
    def alone() -> Iterator[None]:
        order.append("alone")
        yield
        order.append("no more")

    def act(item: Any) -> ItemOutcome:
        order.append(item.match_key)
        return replace(DONE, action_id=item.action_id, match_key=item.match_key, fate=ActionResult.DONE)

    outcomes = run_actions(work_of(steps), [ITEM, OTHER], act, alone=alone)
    assert order == [
        *("alone", "may it be done", "ev-1", "no more"),
        *("alone", "may it be done", "ev-2", "no more"),
    ]
    assert [outcome.match_key for outcome in outcomes] == ["ev-1", "ev-2"]
    assert steps == [("recorded", {"item": 1, "fate": "done"}), ("recorded", {"item": 2, "fate": "done"})]
    assert [kept[0] for kept in store.kept] == ["record_done", "audit"] * 2
    assert run_actions(work_of(), [], act) == ()


def test_what_was_done_together_is_kept_and_told_one_by_one(store: Store) -> None:
    steps: list[tuple[str, Any]] = []
    record_each(work_of(steps), [DONE, replace(DONE, action_id=OTHER.action_id)])
    assert [kept[1] for kept in store.kept[::2]] == [ITEM.action_id, OTHER.action_id]
    assert steps == [("recorded", {"item": 1, "fate": "published"}), ("recorded", {"item": 2, "fate": "published"})]


def test_what_may_not_be_done_any_more_says_why(store: Store) -> None:
    store.outstanding = frozenset({ITEM.break_id})
    assert work_of().why_not_now([ITEM, OTHER]) == {OTHER.action_id: NOT_OUTSTANDING}
    stopped = work_of(stopped={ITEM.action_id: "the contract has changed"})
    assert stopped.why_not_now([ITEM]) == {ITEM.action_id: "the contract has changed"}


def test_an_approval_that_has_grown_too_old_since_lets_nothing_more_be_done(store: Store) -> None:
    rules = contract(four_eyes_above_minor={"EUR": 0}, approval_valid_seconds=60).model_copy(update={"name": "books"})
    times = iter([NOON, NOON + timedelta(seconds=30), NOON + timedelta(seconds=31)])
    work = work_of(contract=rules, now=lambda: next(times))
    work.note_approval({"alice"}, {"bob": timedelta(seconds=30)})
    assert work.why_not_now([ITEM]) == {}
    (reason,) = work.why_not_now([ITEM]).values()
    assert reason.startswith("its approval is 61 s old and holds for 60 s")


def test_a_start_that_a_later_one_has_claimed_from_goes_no_further(store: Store) -> None:
    work_of().refuse_overtaken([ITEM, OTHER])
    store.others = frozenset({OTHER.action_id})
    with pytest.raises(ExecutorFenced, match=f"^books: another executor has claimed {OTHER.action_id} since$"):
        work_of().refuse_overtaken([ITEM, OTHER])


def test_an_outcome_is_told_to_machines_with_all_it_says() -> None:
    told = {"action_id": str(ITEM.action_id), "match_key": "ev-1", "fate": "published", "place": PLACE, "reason": ""}
    assert DONE.as_json() == told
    refusal = {"fate": "refused", "place": None, "reason": "the row is gone"}
    assert refused(ITEM, "the row is gone").as_json() == told | refusal


@pytest.mark.parametrize(
    ("effect", "verdict"),
    [
        (RepairEffect.HIDDEN, Verdict.INCONCLUSIVE),
        (RepairEffect.HANDED_OVER, Verdict.INCONCLUSIVE),
        (RepairEffect.CLEARED, Verdict.MATCHED),
        *(
            (effect, Verdict.BROKEN)
            for effect in RepairEffect
            if effect not in (RepairEffect.HIDDEN, RepairEffect.HANDED_OVER, RepairEffect.CLEARED)
        ),
    ],
)
def test_a_repair_is_whole_only_where_its_break_is_cleared(effect: RepairEffect, verdict: Verdict) -> None:
    assert ItemCheck(match_key="ev-1", effect=effect, places=()).verdict is verdict


# What a start may claim, what it keeps of the store's answer, and when it may act at all.

TWO = plan(candidate("a"), candidate("b"))
FIRST, SECOND = TWO.items


def stored(action_id: UUID, state: ActionState = ActionState.EXECUTING, **named: Any) -> StoredAction:
    of_plan = {"plan_id": TWO.plan_id, "break_id": None, "outcome": {}, "recorded_at": NOON} | named
    return StoredAction(action_id=action_id, state=state, **of_plan)


@dataclass
class Claimable:
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
def claimable(monkeypatch: pytest.MonkeyPatch) -> Claimable:
    it = Claimable(NONE_CLAIMED)
    monkeypatch.setattr(action_log, "claim_actions", it.claim)
    monkeypatch.setattr(action_log, "read_switch", it.switch)
    return it


def start_of(the_plan: Plan = TWO, *, now: datetime = NOON, stopped: Mapping[UUID, str] = {}, **rules: Any) -> Any:
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


def test_a_claim_says_who_claims_what_under_which_ledger_and_what_is_stopped(claimable: Claimable) -> None:
    start_of(stopped={FIRST.action_id: "changed"}).claim(TWO.items, ledger="ledger-1", transactional_id="t")
    assert claimable.asked == {
        "plan": TWO,
        "actions": TWO.items,
        "executor": "this start",
        "outcome": {"transactional_id": "t"},
        "ledger": "ledger-1",
        "table": "ledger_billing/billing.payout",
        "stopped": {FIRST.action_id: "changed"},
    }


def test_without_a_ledger_to_write_into_none_is_named(claimable: Claimable) -> None:
    start_of().claim(TWO.items)
    assert (claimable.asked["ledger"], claimable.asked["outcome"]) == ("", {})


def test_what_the_store_says_of_a_claim_is_kept_for_all_that_comes_after_it(claimable: Claimable) -> None:
    actions = {FIRST.action_id: stored(FIRST.action_id, reopened=2), SECOND.action_id: stored(SECOND.action_id)}
    claimable.claims = Claims(
        actions=actions,
        begun=frozenset({FIRST.action_id}),
        unclaimed={SECOND.action_id: "its break is not outstanding any more"},
        taken_back={FIRST.action_id: frozenset({"topic:t:0:9"})},
    )
    work = start_of()
    assert work.claim(TWO.items) is actions
    assert work.begun == {FIRST.action_id}
    assert work.stopped == {SECOND.action_id: "its break is not outstanding any more"}
    assert work.taken_back == {FIRST.action_id: frozenset({"topic:t:0:9"})}
    assert work.reopened == {FIRST.action_id: 2, SECOND.action_id: 0}
    assert work.unclaimed == set()


@pytest.mark.parametrize(
    ("held", "is_ours"),
    [
        ({}, False),
        ({SECOND.action_id: stored(SECOND.action_id)}, True),
        ({SECOND.action_id: stored(SECOND.action_id, ActionState.DONE)}, True),
        ({SECOND.action_id: stored(SECOND.action_id, ActionState.REFUSED)}, False),
        ({SECOND.action_id: stored(SECOND.action_id, plan_id=UUID(int=9))}, False),
    ],
)
def test_only_what_this_plan_holds_is_its_own_to_refuse(
    claimable: Claimable, held: dict[UUID, StoredAction], is_ours: bool
) -> None:
    claimable.claims = Claims(
        actions=held | {FIRST.action_id: stored(FIRST.action_id)}, begun=frozenset(), unclaimed={}, taken_back={}
    )
    work = start_of()
    work.claim(TWO.items)
    assert work.unclaimed == (set() if is_ours else {SECOND.action_id})


def test_a_claim_is_held_against_the_caps_and_what_the_day_has_spent_beside_it(claimable: Claimable) -> None:
    start_of(max_items=2, max_items_per_day=3).claim(TWO.items)
    with pytest.raises(CapsExceeded, match="over the cap on the number of events"):
        start_of(max_items=1).claim(TWO.items)
    claimable.spent = DailyUsage(items=2)
    start_of(max_items_per_day=3).claim(TWO.items[:1])
    with pytest.raises(CapsExceeded, match="over the day's cap on the number of events"):
        start_of(max_items_per_day=3).claim(TWO.items)


def test_of_a_claim_only_what_is_claimed_counts_against_the_caps_of_either_kind(claimable: Claimable) -> None:
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
    start_of(both, max_items=2, **ABORTS).claim(TWO.items)
    start_of(both, max_items=1, **ABORTS).claim([abort])
    with pytest.raises(CapsExceeded, match="so nothing is ended"):
        start_of(both).claim([abort])


# The switch and the hours.


def switch(stopped: bool, *, of: str | None = None) -> SwitchSetting:
    return SwitchSetting(contract=of, stopped=stopped, by="dan", because="why", at_utc=NOON)


@pytest.mark.parametrize("of", [None, "payouts"])
def test_a_switch_of_this_contract_or_of_all_stops_it(claimable: Claimable, of: str | None) -> None:
    setting = switch(True, of=of)
    claimable.switches = {"payouts": (setting, None) if of is None else (switch(False), setting)}
    with pytest.raises(ActingStopped, match=r"^payouts: dan stopped "):
        start_of().refuse_for_now()


def test_one_of_another_contract_does_not_stop_it(claimable: Claimable) -> None:
    claimable.switches = {"invoices": (None, switch(True, of="invoices")), "payouts": (switch(False), switch(False))}
    start_of().refuse_for_now()


def test_it_acts_in_the_minutes_that_the_contract_allows_by_the_clock_that_it_is_given(claimable: Claimable) -> None:
    hours = {"acting_minutes": "* 9-16 * * *"}
    start_of(**hours).refuse_for_now()
    with pytest.raises(OutsideActingHours):
        start_of(now=NOON + timedelta(hours=8), **hours).refuse_for_now()
