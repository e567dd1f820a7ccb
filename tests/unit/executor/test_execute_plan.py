"""Whether a plan may be carried out: who agreed, what the contract allows by now, and what of a begun plan is stopped.

tests/simulator/test_repairing.py carries plans out; here nothing is done but what the test says.

One file, since each test asks one store the same question: may this start go on?
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.exc import SQLAlchemyError

from tallystick.compensation.approval_rules import YesVoided
from tallystick.compensation.kill_switch import ActingStopped, SwitchSetting
from tallystick.compensation.plan import (
    ApprovalTooOld,
    CapsExceeded,
    CompensationOff,
    DailyUsage,
    OnePersonOnly,
    Plan,
    PlanItem,
    PlanStale,
    RepairKind,
)
from tallystick.contract.contract import Contract
from tallystick.executor import execute_plan
from tallystick.executor.effects import action_log
from tallystick.executor.effects.action_log import ActionResult, ExecutionContext, ItemOutcome, refused
from tallystick.executor.execute_plan import Execution
from tallystick.store.plans.plan_store import ActionState, StoredAction
from tallystick.store.runs.contract_store import StoredContractRefused, contract_of_body
from tests.unit.compensation.plans import HANDS_OVER, NOON, PHANTOM, candidate, contract, plan

DRY = plan(candidate("a"), candidate("b"))
TWO = replace(DRY, dry_run=False)
ONE, OTHER = TWO.items
RUN = "scheduled-1"
ONE_PERSON: dict[str, Any] = {"four_eyes_above_minor": {"EUR": 1_000}}
FOUR_EYES: dict[str, Any] = {"four_eyes_above_minor": {"EUR": 100}}
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class Store:
    """Answers about the plan. agreed: by the scheduler's run, "" for whatever run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plans: dict[UUID, Plan] = {TWO.plan_id: TWO, DRY.plan_id: DRY}
        self.asked: frozenset[str] = frozenset({"alice"})
        self.agreed: dict[str, dict[str, timedelta]] = {}
        self.voided: YesVoided | None = None
        self.kept: list[Contract] = []
        self.allowed: list[Contract] = []
        self.otherwise: dict[UUID, str] = {}
        self.begun: dict[UUID, StoredAction] = {}
        self.not_any_more: dict[UUID, str] = {}
        self.spent = DailyUsage()
        self.now: Plan = TWO
        self.switch: SwitchSetting | None = None
        self.by_then: Contract | None = None
        self.refused: list[tuple[UUID, str]] = []
        self.audited: list[str] = []
        self.work: list[ExecutionContext] = []
        self.fates: dict[UUID, ItemOutcome] = {}
        self.unproven: dict[UUID, ItemOutcome] = {}
        for name in (
            "require_same_books",
            "open_actions",
            "read_plan",
            "requesters",
            "last_voided",
            "agreements",
            "keep_contract",
            "why_done_otherwise",
            "spent_today",
            "draw_plan",
            "why_not_any_more",
            "contract_to_look_by",
            "execute_publishing",
            "execute_aborts",
            "trigger_dags",
            "rehearse_aborts",
            "rehearse_triggers",
            "prove_actions",
            "fate_of_action",
            "why_unproven",
        ):
            monkeypatch.setattr(execute_plan, name, getattr(self, name))
        monkeypatch.setattr(action_log, "read_switch", lambda *_: (self.switch, None))
        monkeypatch.setattr(action_log, "append_audit", lambda *_, event, **__: self.audited.append(event))
        monkeypatch.setattr(action_log, "record_refusal", self.record_refusal)

    def contract_to_look_by(self, engine: str, now: Contract, plan: Plan) -> Contract:
        assert (engine, plan.contract) == ("engine", "payouts")
        return self.by_then or now

    def require_same_books(self, engine: str, contract: Contract) -> None:
        assert (engine, contract.name) == ("engine", "payouts")

    def open_actions(self, engine: str, name: str) -> dict[UUID, StoredAction]:
        assert (engine, name) == ("engine", "payouts")
        return self.begun

    def read_plan(self, engine: str, plan_id: UUID) -> Plan | None:
        assert engine == "engine"
        return self.plans.get(plan_id)

    def requesters(self, engine: str, plan: Plan) -> frozenset[str]:
        assert (engine, plan.contract) == ("engine", "payouts")
        return self.asked

    def last_voided(self, engine: str, plan: Plan) -> YesVoided | None:
        assert (engine, plan.contract) == ("engine", "payouts")
        return self.voided

    def keep_contract(self, engine: str, contract: Contract) -> None:
        assert engine == "engine"
        self.kept.append(contract)

    def why_done_otherwise(self, engine: str, contract: Contract, plan: Plan) -> dict[UUID, str]:
        assert (engine, plan.contract) == ("engine", "payouts")
        self.allowed.append(contract)
        return dict(self.otherwise)

    def agreements(
        self, engine: str, plan_id: UUID, *, voided: YesVoided | None, scheduler_run_id: str = ""
    ) -> dict[str, timedelta]:
        assert (engine, plan_id in self.plans, voided) == ("engine", True, self.voided)
        of_all = {name: age for agreed in self.agreed.values() for name, age in agreed.items()}
        return self.agreed.get(scheduler_run_id, {}) if scheduler_run_id else of_all

    def spent_today(self, engine: str, name: str) -> DailyUsage:
        assert (engine, name) == ("engine", "payouts")
        return self.spent

    def draw_plan(self, engine: str, contract: Contract, _: Any, *, cut_n: int, dry_run: bool) -> Plan:
        assert (engine, contract.name, cut_n) == ("engine", "payouts", TWO.cut_n)
        return replace(self.now, dry_run=dry_run)

    def why_not_any_more(self, engine: str, contract: Contract, *asked: Any) -> dict[UUID, str]:
        assert (engine, contract.name, asked[-1]) == ("engine", "payouts", self.begun)
        return dict(self.not_any_more)

    def record_refusal(self, engine: str, action_id: UUID, *, executor: str, outcome: dict[str, str]) -> bool:
        assert (engine, bool(executor)) == ("engine", True)
        self.refused.append((action_id, outcome["reason"]))
        return True

    def execute_publishing(self, work: ExecutionContext, items: Sequence[PlanItem]) -> tuple[ItemOutcome, ...]:
        """Publishes what is not stopped; the first item asks once more whether it may."""
        self.work.append(work)
        work.begun.update(item.action_id for item in items if item.action_id not in work.stopped)
        work.refuse_for_now()
        return tuple(
            refused(item, work.stopped[item.action_id])
            if item.action_id in work.stopped
            else ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ActionResult.PUBLISHED)
            for item in items
        )

    def execute_aborts(self, _: ExecutionContext) -> tuple[ItemOutcome, ...]:
        return ()

    def trigger_dags(self, work: ExecutionContext) -> tuple[ItemOutcome, ...]:
        handed = [item for item in work.plan.items if item.kind is RepairKind.TRIGGER]
        return tuple(
            ItemOutcome(action_id=item.action_id, match_key=item.match_key, fate=ActionResult.DONE) for item in handed
        )

    def rehearse_aborts(self, _: ExecutionContext) -> tuple[ItemOutcome, ...]:
        return ()

    def rehearse_triggers(self, _: ExecutionContext) -> dict[UUID, ItemOutcome]:
        return {}

    def prove_actions(self, work: ExecutionContext, items: Sequence[PlanItem], **asked: Any) -> str:
        assert (tuple(items), asked) == (DRY.items, {"actions": self.begun, "progress_topics": ()})
        return "proof"

    def fate_of_action(self, item: PlanItem, proof: str) -> ItemOutcome | None:
        assert proof == "proof"
        return self.fates.get(item.action_id)

    def why_unproven(self, _: ExecutionContext, item: PlanItem, proof: str) -> ItemOutcome | None:
        assert proof == "proof"
        return self.unproven.get(item.action_id)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    return Store(monkeypatch)


def start(the_plan: Plan = TWO, *, approved_in: str = "", rules: Contract | None = None, **changes: Any) -> Execution:
    engine: Any = "engine"
    return execute_plan.execute_plan(
        engine,
        rules or contract(**ONE_PERSON | changes),
        SimpleNamespace(),  # type: ignore[arg-type]
        the_plan,
        approved_hash=the_plan.plan_hash,
        approver="carol",
        environment="live",
        approved_in=approved_in,
        now=lambda: NOON,
    )


def fates(done: Execution) -> list[tuple[str, str]]:
    return [(str(one.fate), one.reason) for one in done.outcomes]


ALL_PUBLISHED = [("published", "")] * 2


def held(*items: PlanItem, state: ActionState = ActionState.EXECUTING) -> dict[UUID, StoredAction]:
    return {
        item.action_id: StoredAction(
            action_id=item.action_id,
            break_id=item.break_id,
            plan_id=TWO.plan_id,
            state=state,
            outcome={},
            recorded_at=NOON,
        )
        for item in items
    }


# Who agreed.


def test_a_plan_that_needs_one_person_is_carried_out_by_whoever_starts_it(store: Store) -> None:
    assert fates(start()) == ALL_PUBLISHED


def test_a_plan_that_needs_two_people_is_carried_out_once_somebody_else_than_who_asked_has_agreed(store: Store) -> None:
    for agreed in ({}, {"alice": HOUR}):
        store.agreed = {"": agreed}
        with pytest.raises(OnePersonOnly):
            start(**FOUR_EYES)
    store.agreed = {"": {"bob": HOUR}}
    assert fates(start(**FOUR_EYES)) == ALL_PUBLISHED


def test_a_plan_that_no_person_asked_for_needs_two_others(store: Store) -> None:
    store.asked, store.agreed = frozenset(), {"": {"bob": HOUR}}
    with pytest.raises(OnePersonOnly):
        start(**FOUR_EYES)
    store.agreed = {"": {"bob": HOUR, "dan": HOUR}}
    assert fates(start(**FOUR_EYES)) == ALL_PUBLISHED


def test_where_a_scheduler_waits_only_who_agreed_in_its_run_counts(store: Store) -> None:
    store.agreed = {"another": {"bob": HOUR}}
    assert fates(start(**FOUR_EYES)) == ALL_PUBLISHED
    with pytest.raises(OnePersonOnly):
        start(approved_in=RUN, **FOUR_EYES)
    with pytest.raises(ApprovalTooOld, match=f"nobody is on record to have agreed to this plan in run {RUN}"):
        start(approved_in=RUN)
    store.agreed = {RUN: {"bob": HOUR}}
    assert fates(start(approved_in=RUN, **FOUR_EYES)) == ALL_PUBLISHED


def test_an_approval_that_is_too_old_begins_nothing_and_stops_what_is_not_done(store: Store) -> None:
    store.agreed = {RUN: {"bob": DAY + HOUR}}
    aged: dict[str, Any] = {"approval_valid_seconds": 86_400}
    with pytest.raises(ApprovalTooOld, match=r"^payouts: its approval is 90000 s old and holds for 86400 s"):
        start(approved_in=RUN, **aged)
    store.begun = held(ONE, state=ActionState.DONE)
    done = start(approved_in=RUN, **aged)
    assert [fate for fate, _ in fates(done)] == ["published", "refused"]
    assert fates(done)[1][1].startswith("its approval is 90000 s old")


def test_who_voided_the_yes_of_before_is_told_and_what_was_said_since_counts(store: Store) -> None:
    store.voided = YesVoided(by="dan", at_utc=NOON, reopened=True)
    act = "dan reopened an action of this plan at 2026-03-01 12:00:00 UTC, which voids every yes of before"
    with pytest.raises(OnePersonOnly, match=f"nobody agreed; {act}; ask again; expected the approval of somebody else"):
        start(**FOUR_EYES)
    with pytest.raises(ApprovalTooOld, match=f"^payouts: {act}, and nobody has agreed since in run {RUN}; start a new"):
        start(approved_in=RUN)
    store.agreed = {RUN: {"bob": HOUR}}
    assert fates(start(approved_in=RUN, **FOUR_EYES)) == ALL_PUBLISHED


def test_a_start_asks_again_how_old_the_approval_is(store: Store) -> None:
    store.agreed = {RUN: {"bob": HOUR}}
    start(approved_in=RUN, approval_valid_seconds=3600)
    (work,) = store.work
    assert work.why_too_old() is None
    later = replace(work, now=lambda: NOON + timedelta(seconds=1))
    assert str(later.why_too_old()).startswith("its approval is 3601 s old and holds for 3600 s")


# What the contract allows by now.


def test_the_contract_under_which_a_plan_begins_is_kept_once_it_may_begin(store: Store) -> None:
    start(DRY)
    store.now = replace(TWO, items=(ONE,))
    with pytest.raises(PlanStale):
        start()
    assert store.kept == []
    store.now = TWO
    start()
    assert store.kept == [contract(**ONE_PERSON)]
    store.begun = held(ONE)
    start(max_items=1)
    assert len(store.kept) == 1


def test_of_a_begun_plan_what_would_be_done_otherwise_by_now_is_stopped_but_not_what_is_done(store: Store) -> None:
    store.by_then, store.begun = contract(**ONE_PERSON), held(ONE, state=ActionState.DONE)
    store.otherwise = {ONE.action_id: "by another sign", OTHER.action_id: "by another sign"}
    assert fates(start(max_items=9)) == [("published", ""), ("refused", "by another sign")]
    assert store.allowed == [contract(**ONE_PERSON | {"max_items": 9})]


def test_a_begun_plan_whose_rules_nobody_knows_any_more_says_what_to_put_back(store: Store) -> None:
    none = contract().model_copy(update={"compensation": None})
    store.begun = held(ONE)
    put_back = "the one by which plan .* was begun is not stored or not readable; .* put it back"
    with pytest.raises(CompensationOff, match=put_back):
        start(rules=none)
    store.by_then = contract(**ONE_PERSON)
    reason = "payouts: the contract has no compensation, so nothing may be repaired"
    assert fates(start(rules=none)) == [("refused", reason)] * 2


def test_a_plan_over_the_caps_of_the_contract_as_it_is_now_does_not_begin(store: Store) -> None:
    store.by_then = contract(**ONE_PERSON)
    with pytest.raises(CapsExceeded, match="over the cap on the number of events"):
        start(max_items=1)
    with pytest.raises(CompensationOff):
        start(rules=contract().model_copy(update={"compensation": None}))
    assert store.work == []


def test_a_plan_over_what_the_day_has_left_does_not_begin(store: Store) -> None:
    store.spent = DailyUsage(items=1)
    assert fates(start(max_items_per_day=3)) == ALL_PUBLISHED
    with pytest.raises(CapsExceeded, match="over the day's cap on the number of events"):
        start(max_items_per_day=2)


def test_a_plan_that_would_be_drawn_otherwise_by_now_does_not_begin(store: Store) -> None:
    store.now = replace(TWO, items=(ONE,))
    with pytest.raises(PlanStale, match=r"^payouts: approved was .*, today's plan is .*; ask for a new plan$"):
        start()


def test_of_a_begun_plan_that_the_contract_forbids_by_now_what_is_not_done_is_stopped(store: Store) -> None:
    store.by_then, store.begun = contract(**ONE_PERSON), held(ONE, state=ActionState.DONE)
    assert fates(start(max_items=1)) == [
        ("published", ""),
        ("refused", f"payouts: break {OTHER.break_id}: over the cap on the number of events"),
    ]


def test_of_a_begun_plan_each_action_has_its_own_reason_before_that_of_the_whole(store: Store) -> None:
    store.begun, store.not_any_more = held(ONE, OTHER), {ONE.action_id: "the row has changed"}
    assert fates(start()) == [("refused", "the row has changed"), ("published", "")]
    store.by_then = contract(**ONE_PERSON)
    whole = f"payouts: break {OTHER.break_id}: over the cap on the number of events"
    assert fates(start(max_items=1)) == [("refused", "the row has changed"), ("refused", whole)]


def test_a_begun_plan_is_not_drawn_again_and_its_own_usage_is_no_reason(store: Store) -> None:
    store.begun, store.now, store.spent = held(ONE), replace(TWO, items=()), DailyUsage(items=9)
    assert fates(start(max_items_per_day=2)) == ALL_PUBLISHED


def test_actions_that_another_plan_has_begun_make_no_begun_plan_of_this_one(store: Store) -> None:
    (others,) = held(ONE).values()
    store.begun = {ONE.action_id: replace(others, plan_id=UUID(int=9))}
    store.now = replace(TWO, items=(OTHER,))
    with pytest.raises(PlanStale):
        start()


def test_what_a_dag_repairs_is_handed_over_and_nothing_of_it_is_published(store: Store) -> None:
    handed = plan(candidate("c", break_class=PHANTOM), **HANDS_OVER)
    only = replace(handed, dry_run=False)
    mixed = replace(only, items=(ONE, *only.items))
    for one in (only, mixed):
        store.plans[one.plan_id], store.now = one, one
    store.now = only
    assert fates(start(only, **HANDS_OVER)) == [("done", "")]
    assert store.work == []
    store.now = mixed
    assert fates(start(mixed, **HANDS_OVER)) == [("published", ""), ("done", "")]


# The switch.


def test_a_stored_contract_that_this_release_refuses_stops_a_start_by_a_line_of_the_trail(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    start()
    assert store.audited == ["approved", "finished"]
    monkeypatch.setattr(execute_plan, "require_same_books", lambda *_: contract_of_body({"contract": "payouts"}))
    with pytest.raises(StoredContractRefused, match="none by this release, by its version: Field required; install"):
        start()
    assert store.audited[2:] == ["approved", "stopped"]


def test_whatever_ends_a_start_is_a_line_of_the_trail_and_is_raised(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: Exception = ArithmeticError("of no kind that anybody expects")

    def ends(*_: object) -> tuple[ItemOutcome, ...]:
        raise raised

    monkeypatch.setattr(execute_plan, "execute_publishing", ends)
    with pytest.raises(ArithmeticError, match="of no kind"):
        start()
    assert (store.audited, store.refused) == (["approved", "stopped"], [])
    raised = KeyError("first")

    def store_is_gone(*_: object, event: str, **__: object) -> None:
        if event == "stopped":
            raise SQLAlchemyError("second")

    monkeypatch.setattr(action_log, "append_audit", store_is_gone)
    with pytest.raises(KeyError, match="first"):
        start()


STOPPED = SwitchSetting(contract=None, stopped=True, by="dan", because="why", at_utc=NOON)


def test_while_acting_is_stopped_nothing_is_even_looked_at_and_a_rehearsal_goes_on(store: Store) -> None:
    store.switch = STOPPED
    with pytest.raises(ActingStopped):
        start()
    assert (store.work, store.audited) == ([], ["approved", "stopped"])
    assert fates(start(DRY)) == [("would_publish", "")] * 2


def test_what_a_start_has_begun_when_it_is_stopped_is_refused_for_that_reason(store: Store) -> None:
    publishing = store.execute_publishing

    def then_stopped(work: ExecutionContext, items: Sequence[PlanItem]) -> tuple[ItemOutcome, ...]:
        store.switch = STOPPED
        return publishing(work, items)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(execute_plan, "execute_publishing", then_stopped)
        with pytest.raises(ActingStopped) as stopped:
            start()
    assert store.refused == [(item.action_id, str(stopped.value)) for item in sorted(TWO.items, key=_by_id)]
    assert str(stopped.value).startswith("payouts: dan stopped all compensations")


def _by_id(item: PlanItem) -> UUID:
    return item.action_id


# A rehearsal.


def test_a_rehearsal_says_of_each_item_what_would_come_of_it(store: Store) -> None:
    would = ItemOutcome(action_id=ONE.action_id, match_key=ONE.match_key, fate=ActionResult.WOULD_PUBLISH)
    store.fates = {OTHER.action_id: refused(OTHER, "the event stands")}
    assert start(DRY).outcomes == (would, refused(OTHER, "the event stands"))
    store.unproven = {ONE.action_id: refused(ONE, "not read whole"), OTHER.action_id: refused(OTHER, "not read whole")}
    assert fates(start(DRY)) == [("refused", "not read whole"), ("refused", "the event stands")]
