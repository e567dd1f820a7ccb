"""The last word of a run comes from its stored row; an approval counts once, and every answer is kept.

One file, since a run's last word and its approval are judged over one set of tasks and answers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from airflow.providers.standard.exceptions import HITLTriggerEventError
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, DagRunTriggerException

from tallystick.compensation.approval_rules import machine_of
from tallystick.compensation.plan_text import describe_plan
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.executor import draw_plan, verify_plan
from tallystick.executor.effects.action_log import ItemCheck
from tallystick.executor.verify_plan import VerifyResult
from tallystick.model.finding_names import BreakClass
from tallystick.model.verdict import Verdict, merge_verdicts
from tallystick.report.masking import Mask
from tallystick.store import clock
from tallystick.store.clock import StoreClock
from tallystick.store.plans import approval_store, plan_store
from tallystick.store.plans.approval_store import ApprovalStep
from tallystick.store.runs import run_store
from tallystick_airflow.approval import APPROVALS, NotApproved, approved_plan
from tallystick_airflow.operators import (
    approve_operator,
    judge_operator,
    offer_compensation_operator,
    plan_operator,
    verify_operator,
)
from tallystick_airflow.operators.approve_operator import ApprovePlanOperator, SecondApprovalOperator
from tallystick_airflow.operators.contract_operator import NoCut
from tallystick_airflow.operators.judge_operator import BooksDisagree, JudgeOperator, NoVerdict
from tallystick_airflow.operators.offer_compensation_operator import OfferCompensationOperator
from tallystick_airflow.operators.plan_operator import PlanOperator
from tallystick_airflow.operators.verify_operator import NotToBeSeenYet, VerifyOperator
from tests.stored_books import payouts, waiting_plan

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CONTRACT_FILE = str(Path(__file__).parents[2] / "dags" / "contracts" / "billing_payouts.yaml")


def stored_run(verdict: Verdict, *break_classes: BreakClass, hanging: tuple[str, ...] = ()) -> Any:
    breaks = tuple(
        SimpleNamespace(break_class=break_class, currency="EUR", amount_minor=79_611) for break_class in break_classes
    )
    doubts = (SimpleNamespace(doubt="held_by_ledger_horizon", sentence="the ledger is held back"),)
    notices = (
        SimpleNamespace(notice="retention_overtakes", sentence="3 unread offsets expire.", pages=True),
        SimpleNamespace(notice="late_partner", sentence="1 item was late.", pages=False),
    )
    return SimpleNamespace(
        result=SimpleNamespace(verdict=verdict, breaks=breaks, doubts=doubts, notices=notices),
        hanging=tuple(SimpleNamespace(action_id=action_id) for action_id in hanging),
    )


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    """Cut number to stored run: what the verdict store will say."""

    @contextmanager
    def no_store(_: str) -> Iterator[None]:
        yield None

    runs: dict[int, Any] = {}
    for module in (judge_operator, offer_compensation_operator, approve_operator, plan_operator, verify_operator):
        monkeypatch.setattr(module, "open_verdict_store", no_store)
    monkeypatch.setattr(run_store, "read_run", lambda engine, name, n: runs.get(n))
    monkeypatch.setattr(draw_plan, "endable_transactions", lambda engine, contract, run: run.hanging)
    return runs


def judge(cut_n: str = "7") -> None:
    JudgeOperator(task_id="judge", contract_file=CONTRACT_FILE, cut_n=cut_n).execute({})


def test_a_broken_verdict_turns_the_run_red_and_is_not_tried_again(stored: dict[int, Any]) -> None:
    stored[7] = stored_run(Verdict.BROKEN, BreakClass.PHANTOM_IN_TOPIC)
    with pytest.raises(
        BooksDisagree, match=r"billing_payouts cut 7: BROKEN: 1 phantom_in_topic; 796\.11 EUR at stake"
    ) as red:
        judge()
    assert isinstance(red.value, AirflowFailException)


def test_what_a_broken_run_could_not_see_stands_in_the_log(
    stored: dict[int, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    logged = Mock()
    monkeypatch.setattr(JudgeOperator, "log", logged)
    stored[7] = stored_run(Verdict.BROKEN, BreakClass.PHANTOM_IN_TOPIC)
    with pytest.raises(BooksDisagree):
        judge()
    told = [template % tuple(words) for template, *words in (one.args for one in logged.warning.call_args_list)]
    assert told[-1:] == ["besides: held_by_ledger_horizon: the ledger is held back"]


@pytest.mark.parametrize("verdict", [Verdict.MATCHED, Verdict.INCONCLUSIVE])
def test_any_other_verdict_does_not(stored: dict[int, Any], verdict: Verdict) -> None:
    stored[7] = stored_run(verdict)
    judge()


def test_a_missing_verdict_is_red_too(stored: dict[int, Any]) -> None:
    stored[6] = stored_run(Verdict.MATCHED)  # another cut's
    with pytest.raises(NoVerdict, match="nothing is proven"):
        judge()
    with pytest.raises(NoCut):
        judge(cut_n="None")


def offer() -> None:
    OfferCompensationOperator(task_id="offer", contract_file=CONTRACT_FILE, cut_n="7").execute({})


def test_a_repairable_break_starts_the_compensation_once_per_cut(stored: dict[int, Any]) -> None:
    stored[7] = stored_run(Verdict.BROKEN, BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY)
    with pytest.raises(DagRunTriggerException) as start:
        offer()
    assert (start.value.trigger_dag_id, start.value.dag_run_id) == ("compensate_billing_payouts", "cut_7")
    assert (start.value.conf, start.value.skip_when_already_exists) == ({"cut_n": 7}, True)
    assert start.value.wait_for_completion is False


def test_a_break_that_the_contract_does_not_repair_starts_nothing(stored: dict[int, Any]) -> None:
    stored[7] = stored_run(Verdict.BROKEN, BreakClass.PHANTOM_IN_TOPIC)
    with pytest.raises(AirflowSkipException):
        offer()


def test_a_transaction_that_may_be_ended_is_offered_once_whatever_cut_finds_it_again(stored: dict[int, Any]) -> None:
    stored[7] = stored_run(Verdict.INCONCLUSIVE, hanging=("a1",))
    with pytest.raises(DagRunTriggerException) as start:
        offer()
    assert (start.value.dag_run_id, start.value.conf) == ("hanging_a1", {"cut_n": 7})
    assert start.value.skip_when_already_exists is True
    stored[7] = stored_run(Verdict.BROKEN, BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY, hanging=("a1",))
    with pytest.raises(DagRunTriggerException) as together:
        offer()
    assert together.value.dag_run_id == "cut_7"


PLAN = waiting_plan(payouts())
PLAN_ID, KEPT = str(PLAN.plan_id), {"plan_hash": PLAN.plan_hash, "scheduler_run_id": "cut_7"}
YES = {"chosen_options": ["Approve"], "responded_by_user": {"id": "approver", "name": "approver"}}
ENGINE: Any = None


@dataclass
class Trail:
    """What the audit trail holds of run cut_7, and what it gets. last: what came last of its approval.

    requesters: who asked for the plan.
    """

    asked: ApprovalStep | None = None
    last: ApprovalStep | None = None
    agreed: tuple[ApprovalStep, ...] = ()
    requesters: tuple[str, ...] = ("ada",)
    lines: list[Any] = field(default_factory=list)

    def say_yes(self, *who: str) -> None:
        self.agreed = tuple(step("agreed", name) for name in who)
        self.last = self.agreed[-1]


def step(event: str, actor: str) -> ApprovalStep:
    return ApprovalStep(
        plan_id=PLAN.plan_id,
        plan_hash=PLAN.plan_hash,
        event=event,
        actor=actor,
        recorded_at=NOON - timedelta(hours=1),
    )


@pytest.fixture
def trail(monkeypatch: pytest.MonkeyPatch, stored: dict[int, Any]) -> Trail:
    trail = Trail()

    def of_run(found: Callable[[], Any]) -> Any:
        def ask(engine: Any, contract_name: str, *, scheduler_run_id: str) -> Any:
            assert (contract_name, scheduler_run_id) == ("billing_payouts", "cut_7")
            return found()

        return ask

    monkeypatch.setattr(approval_store, "plan_asked_in", of_run(lambda: trail.asked))
    monkeypatch.setattr(approval_store, "last_approval_step", of_run(lambda: trail.last))
    monkeypatch.setattr(approval_store, "agreements_in", of_run(lambda: trail.agreed))
    monkeypatch.setattr(approval_store, "requesters", lambda engine, plan: trail.requesters)
    monkeypatch.setattr(plan_store, "read_plan", lambda engine, plan_id: PLAN if plan_id == PLAN.plan_id else None)
    monkeypatch.setattr(
        plan_store,
        "append_audit",
        lambda engine, contract, *, plan_id, actor, event, detail: trail.lines.append(
            (event, actor, contract, str(plan_id), detail)
        ),
    )
    read = StoreClock(now_utc=NOON + timedelta(hours=1), host_ahead=timedelta(minutes=2))
    monkeypatch.setattr(clock, "read_clock", lambda engine: read)
    return trail


class TaskInstance:
    """The answers in the XComs of the approval tasks, the first one's first."""

    def __init__(self, *answers: Any, try_number: int = 1) -> None:
        self.answers = dict(zip(APPROVALS, answers, strict=False))
        self.try_number = try_number

    def xcom_pull(self, *, task_ids: str) -> Any:
        return self.answers.get(task_ids)


def context(ti: TaskInstance, **more: Any) -> Any:
    return {"ti": ti, "run_id": "cut_7"} | more


@pytest.mark.parametrize(
    ("user", "asks"), [("ada", "ada"), (None, machine_of("billing_payouts")), ("", machine_of("billing_payouts"))]
)
def test_a_plan_is_asked_for_by_the_person_who_started_the_run_or_by_the_machine_which_is_none(
    stored: dict[int, Any], monkeypatch: pytest.MonkeyPatch, user: str | None, asks: str
) -> None:
    saved = Mock()
    monkeypatch.setattr(plan_operator, "read_connections", lambda contract: None)
    monkeypatch.setattr(draw_plan, "draw_plan", lambda *_, **__: PLAN)
    monkeypatch.setattr(plan_store, "save_plan", saved)
    run: Any = {"run_id": "cut_7", "dag_run": SimpleNamespace(triggering_user_name=user)}
    PlanOperator(task_id="plan", contract_file=CONTRACT_FILE, cut_n="7").execute(run)
    saved.assert_called_once_with(ENGINE, PLAN, requested_by=asks, scheduler_run_id="cut_7")


def test_a_persons_yes_counts(trail: Trail) -> None:
    trail.say_yes("approver")
    assert approved_plan(ENGINE, "billing_payouts", context(TaskInstance(YES))) == (PLAN, "approver")
    assert trail.lines == []


@pytest.mark.parametrize("last", [None, *(step(event, "x") for event in ("shown", "rejected", "approval_failed"))])
def test_whatever_xcom_says_a_yes_that_the_store_does_not_hold_is_none(trail: Trail, last: ApprovalStep | None) -> None:
    trail.last = last
    with pytest.raises(NotApproved, match="the verdict store has no approval in run cut_7"):
        approved_plan(ENGINE, "billing_payouts", context(TaskInstance(YES)))


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "Approve",
        YES | {"chosen_options": ["Reject"]},
        YES | {"responded_by_user": None},
        YES | {"responded_by_user": {"id": "approver", "name": "Grace Hopper"}},
    ],
)
def test_an_answer_that_was_rewritten_is_refused_and_stands_in_the_trail(trail: Trail, answer: Any) -> None:
    trail.say_yes("approver")
    with pytest.raises(NotApproved, match="somebody has rewritten the answer"):
        approved_plan(ENGINE, "billing_payouts", context(TaskInstance(answer)))
    ((event, actor, contract, plan_id, detail),) = trail.lines
    assert (event, actor, contract, plan_id) == ("approval_rewritten", "airflow", "billing_payouts", PLAN_ID)
    assert KEPT.items() <= detail.items()


def test_each_of_two_answers_is_held_against_its_own_line(trail: Trail) -> None:
    trail.say_yes("approver", "grace")
    second = YES | {"responded_by_user": {"id": "grace", "name": "grace"}}
    assert approved_plan(ENGINE, "billing_payouts", context(TaskInstance(YES, second))) == (PLAN, "grace")
    for answers, task in (((YES, YES), "second_approval"), ((second, second), "approve"), ((YES,), "second_approval")):
        with pytest.raises(NotApproved, match=f"task {task}'s XCom"):
            approved_plan(ENGINE, "billing_payouts", context(TaskInstance(*answers)))


def test_a_plan_whose_stored_text_is_another_is_not_shown(trail: Trail) -> None:
    trail.last = replace(step("agreed", "approver"), plan_hash="h")
    with pytest.raises(NotApproved, match="of hash h is not in the verdict store"):
        approved_plan(ENGINE, "billing_payouts", context(TaskInstance(YES)))


def new_approval() -> ApprovePlanOperator:
    return ApprovePlanOperator(task_id="approve", contract_file=CONTRACT_FILE)


def test_what_is_shown_is_the_stored_plan_that_the_run_asked_for(trail: Trail, monkeypatch: pytest.MonkeyPatch) -> None:
    trail.asked, operator = step("planned", "ada"), new_approval()
    shown = Mock()
    monkeypatch.setattr(ApprovalOperator, "execute", shown)
    operator.execute(context(TaskInstance({"markdown": "nothing much"})))
    shown.assert_called_once()
    assert operator.body == describe_plan(PLAN, shown_key=Mask(payouts()).key)
    assert trail.lines == [("shown", "airflow", "billing_payouts", PLAN_ID, KEPT)]


def test_a_run_that_asked_for_no_plan_shows_none(trail: Trail) -> None:
    with pytest.raises(NotApproved, match="no plan that run cut_7 has asked for"):
        new_approval().execute(context(TaskInstance()))
    assert trail.lines == []


def test_an_approval_that_was_cleared_is_not_asked_again_and_that_stands_in_the_trail(trail: Trail) -> None:
    trail.asked = step("planned", "ada")
    with pytest.raises(AirflowFailException, match="asked once per run"):
        new_approval().execute(context(TaskInstance(try_number=2)))
    assert trail.lines == [("not_asked_again", "airflow", "billing_payouts", PLAN_ID, KEPT)]


def second_approval() -> SecondApprovalOperator:
    return SecondApprovalOperator(task_id="second_approval", contract_file=CONTRACT_FILE)


def with_rules(monkeypatch: pytest.MonkeyPatch, **rules: Any) -> None:
    contract = payouts()
    assert contract.compensation is not None
    changed = contract.model_copy(update={"compensation": contract.compensation.model_copy(update=rules)})
    monkeypatch.setattr(approve_operator, "read_contract_file", lambda file: changed)


@pytest.fixture
def above(monkeypatch: pytest.MonkeyPatch) -> None:
    """A contract that names no limit, so that each plan needs two people."""
    with_rules(monkeypatch, four_eyes_above_minor={})


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Mock:
    shown = Mock()
    monkeypatch.setattr(ApprovalOperator, "execute", shown)
    return shown


@pytest.mark.parametrize(
    ("requesters", "agreed"), [((), "ada"), (("ada",), "ada"), (("Ada",), "ada")], ids=["machine", "same", "letters"]
)
def test_another_person_is_asked_where_one_is_not_enough(
    trail: Trail, shown: Mock, above: None, requesters: tuple[str, ...], agreed: str
) -> None:
    trail.requesters, operator = requesters, second_approval()
    trail.say_yes(agreed)
    operator.execute(context(TaskInstance()))
    shown.assert_called_once()
    assert operator.body is not None
    assert operator.body.startswith("**Another person has to agree too**, beside ada.")
    assert describe_plan(PLAN, shown_key=Mask(payouts()).key) in operator.body
    assert trail.lines == [("shown", "airflow", "billing_payouts", PLAN_ID, KEPT)]
    with pytest.raises(AirflowFailException, match="asked once per run"):
        second_approval().execute(context(TaskInstance(try_number=2)))


def test_nobody_else_is_asked_where_a_second_person_has_agreed(trail: Trail, shown: Mock, above: None) -> None:
    trail.say_yes("grace")
    assert second_approval().execute(context(TaskInstance())) is None
    shown.assert_not_called()
    assert trail.lines == []


def test_nobody_else_is_asked_up_to_the_limit(trail: Trail, shown: Mock) -> None:
    trail.requesters = ()
    trail.say_yes("ada")
    assert second_approval().execute(context(TaskInstance())) is None
    shown.assert_not_called()


@pytest.fixture
def effects(stored: dict[int, Any], monkeypatch: pytest.MonkeyPatch) -> list[RepairEffect]:
    """What is found of each action of the approved plan."""
    found: list[RepairEffect] = []

    def checked(*_: Any, actor: str) -> VerifyResult:
        checks = tuple(ItemCheck(match_key=effect, effect=effect, places=()) for effect in found)
        return VerifyResult(verdict=merge_verdicts(check.verdict for check in checks), checks=checks)

    monkeypatch.setattr(verify_operator, "read_acting_connections", lambda contract: None)
    monkeypatch.setattr(verify_operator, "approved_plan", lambda engine, contract_name, context: (PLAN, "approver"))
    monkeypatch.setattr(verify_plan, "verify_and_keep", checked)
    return found


def verify() -> None:
    VerifyOperator(task_id="verify", contract_file=CONTRACT_FILE, cut_n="7").execute({})


@pytest.mark.parametrize(
    "found", [[RepairEffect.CLEARED], [RepairEffect.HANDED_OVER], [RepairEffect.CLEARED, RepairEffect.HANDED_OVER]]
)
def test_what_is_cleared_and_what_a_dag_has_is_nothing_to_look_for_again(
    effects: list[RepairEffect], found: list[RepairEffect]
) -> None:
    effects += found
    verify()


@pytest.mark.parametrize(
    ("found", "error"),
    [
        ([RepairEffect.CLEARED, RepairEffect.HIDDEN, RepairEffect.HANDED_OVER], NotToBeSeenYet),
        ([RepairEffect.HANDED_OVER, RepairEffect.NOT_CLEARED], AirflowFailException),
        ([RepairEffect.CHANGED], AirflowFailException),
        ([], NotToBeSeenYet),
    ],
)
def test_what_is_hidden_is_looked_for_again_and_what_did_not_work_fails(
    effects: list[RepairEffect], found: list[RepairEffect], error: type[Exception]
) -> None:
    effects += found
    with pytest.raises(error):
        verify()


@pytest.mark.parametrize(("reason", "told"), [("the other one may have it", ": the other one may have it"), ("", "")])
def test_why_a_run_of_a_dag_cannot_be_seen_is_told(
    effects: list[RepairEffect], monkeypatch: pytest.MonkeyPatch, reason: str, told: str
) -> None:
    check = ItemCheck(match_key="e-1", effect=RepairEffect.HIDDEN, places=(), reason=reason)
    result = VerifyResult(verdict=Verdict.INCONCLUSIVE, checks=(check,))
    monkeypatch.setattr(verify_plan, "verify_and_keep", lambda *_, **__: result)
    with pytest.raises(NotToBeSeenYet, match=f": hidden{told}$"):
        verify()


NO = {"chosen_options": ["Reject"], "responded_by_user": {"id": "bob", "name": "bob"}}
TIMED_OUT = {"error": "no response", "error_type": "timeout"}


@pytest.mark.parametrize(
    ("event", "kept"),
    [
        (YES, ("agreed", "approver")),
        (NO, ("rejected", "bob")),
        (NO | {"responded_by_user": None}, ("rejected", "nobody")),
        (YES | {"responded_by_user": None}, ("approval_failed", "nobody")),
        (TIMED_OUT, ("unanswered", "airflow")),
        (TIMED_OUT | {"error_type": "unknown"}, ("approval_failed", "airflow")),
    ],
)
def test_every_answer_and_that_there_was_none_stands_in_the_trail(
    trail: Trail, event: dict[str, Any], kept: tuple[str, str]
) -> None:
    trail.last, operator = step("shown", "airflow"), new_approval()
    event = event if "error" in event else {"params_input": {}, "responded_at": NOON} | event
    answered = context(TaskInstance(), task=operator)
    if "error" in event:
        with pytest.raises(HITLTriggerEventError):
            operator.execute_complete(answered, event)
    else:
        operator.execute_complete(answered, event)
    answered_at = NOON - timedelta(minutes=2)  # by the store's clock
    detail = KEPT if "error" in event else KEPT | {"answered_at_utc": answered_at.isoformat()}
    assert trail.lines == [(*kept, "billing_payouts", PLAN_ID, detail)]


@pytest.mark.parametrize("last", [None, step("rejected", "bob")])
def test_an_answer_to_what_was_not_shown_counts_for_nothing(trail: Trail, last: ApprovalStep | None) -> None:
    trail.last, operator = last, new_approval()
    with pytest.raises(NotApproved, match="no plan that run cut_7 shows"):
        operator.execute_complete(
            context(TaskInstance(), task=operator), {"params_input": {}, "responded_at": NOON} | YES
        )
    assert trail.lines == []


def test_a_yes_of_somebody_whom_the_contract_does_not_name_fails_the_run(
    trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    event, answered = {"params_input": {}, "responded_at": NOON} | YES, context(TaskInstance(), task=new_approval())
    trail.last = step("shown", "airflow")
    with_rules(monkeypatch, approvers=("grace",))
    with pytest.raises(NotApproved, match="approver agreed, whom"):
        new_approval().execute_complete(answered, event)
    with_rules(monkeypatch, approvers=("Approver",))
    new_approval().execute_complete(answered, event)
    assert [line[:2] for line in trail.lines] == [("approval_failed", "approver"), ("agreed", "approver")]
