"""The last word of a run comes from its stored row; an approval counts once, and every answer is kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.exceptions import HITLTriggerEventError
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, DagRunTriggerException

from tallystick import compensation, compensation_source
from tallystick.break_class import BreakClass
from tallystick.compensation import VerifyResult
from tallystick.executor_work import ItemCheck
from tallystick.repair_effect import Effect
from tallystick.store import clock, plan_store, run_store
from tallystick.store.clock import StoreClock
from tallystick.verdict import Verdict, merge_verdicts
from tallystick_airflow import approve_operator, judge_operator, offer_compensation_operator, verify_operator
from tallystick_airflow.approval import NotApproved, approved_plan
from tallystick_airflow.approve_operator import ApprovePlanOperator
from tallystick_airflow.contract_operator import NoCut
from tallystick_airflow.judge_operator import BooksDisagree, JudgeOperator, NoVerdict
from tallystick_airflow.offer_compensation_operator import OfferCompensationOperator
from tallystick_airflow.verify_operator import NotToBeSeenYet, VerifyOperator

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CONTRACT_FILE = str(Path(__file__).parents[2] / "dags" / "contracts" / "billing_payouts.yaml")


def stored_run(verdict: Verdict, *break_classes: BreakClass, hanging: tuple[str, ...] = ()) -> Any:
    breaks = tuple(
        SimpleNamespace(break_class=break_class, currency="EUR", amount_minor=79_611) for break_class in break_classes
    )
    doubts = (SimpleNamespace(sentence="the ledger is held back"),)
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
    def no_store() -> Iterator[None]:
        yield None

    runs: dict[int, Any] = {}
    for module in (judge_operator, offer_compensation_operator, approve_operator, verify_operator):
        monkeypatch.setattr(module, "open_verdict_store", no_store)
    monkeypatch.setattr(run_store, "read_run", lambda engine, name, n: runs.get(n))
    monkeypatch.setattr(compensation_source, "endable_transactions", lambda engine, contract, run: run.hanging)
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


SHOWN = {"plan_id": "130e5ce5-6658-50c6-8945-99b412ca8480", "plan_hash": "h", "contract": "billing_payouts"}
YES = {"chosen_options": ["Approve"], "responded_by_user": {"id": "approver", "name": "approver"}}


KEPT = {"plan_hash": "h", "scheduler_run_id": "cut_7"}


@pytest.fixture
def trail(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the audit trail gets."""
    lines: list[Any] = []
    monkeypatch.setattr(
        plan_store,
        "append_audit",
        lambda engine, contract, *, plan_id, actor, event, detail: lines.append(
            (event, actor, contract, str(plan_id), detail)
        ),
    )
    monkeypatch.setattr(plan_store, "asked_at", lambda engine, plan_id, *, scheduler_run_id: NOON - timedelta(hours=1))
    read = StoreClock(now_utc=NOON + timedelta(hours=1), host_ahead=timedelta(minutes=2))
    monkeypatch.setattr(clock, "read_clock", lambda engine: read)
    return lines


class TaskInstance:
    """XComs of the approval task, by key."""

    def __init__(self, *, try_number: int = 1, **values: Any) -> None:
        self.values = values
        self.try_number = try_number

    def xcom_pull(self, *, task_ids: str, key: str = "return_value") -> Any:
        return self.values.get(key)


def test_a_persons_yes_counts() -> None:
    ti = TaskInstance(plan=SHOWN, return_value=YES)
    assert approved_plan({"ti": ti}) == (SHOWN, "approver")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "no approval is on record"),
        ({"plan": SHOWN}, "no approval is on record"),
        ({"plan": SHOWN, "return_value": YES | {"chosen_options": ["Reject"]}}, "no approval is on record"),
        ({"plan": SHOWN, "return_value": YES | {"responded_by_user": None}}, "names no person"),
    ],
)
def test_anything_else_does_not(values: dict[str, Any], message: str) -> None:
    with pytest.raises(NotApproved, match=message):
        approved_plan({"ti": TaskInstance(**values)})


@pytest.mark.usefixtures("stored")
def test_an_approval_that_was_cleared_is_not_asked_again_and_that_stands_in_the_trail(trail: list[Any]) -> None:
    context: Any = {"ti": TaskInstance(try_number=2, return_value=SHOWN), "run_id": "cut_7"}
    with pytest.raises(AirflowFailException, match="asked once per run"):
        ApprovePlanOperator(task_id="approve").execute(context)
    assert trail == [("not_asked_again", "airflow", "billing_payouts", SHOWN["plan_id"], KEPT)]


@pytest.fixture
def effects(stored: dict[int, Any], monkeypatch: pytest.MonkeyPatch) -> list[Effect]:
    """What is found of each action of the approved plan."""
    found: list[Effect] = []

    def checked(*_: Any, actor: str) -> VerifyResult:
        checks = tuple(ItemCheck(match_key=effect, effect=effect, places=()) for effect in found)
        return VerifyResult(verdict=merge_verdicts(check.verdict for check in checks), checks=checks)

    monkeypatch.setattr(verify_operator, "read_acting_connections", lambda contract: None)
    monkeypatch.setattr(verify_operator, "read_shown_plan", lambda engine, shown: None)
    monkeypatch.setattr(compensation, "verify_and_keep", checked)
    return found


def verify() -> None:
    ti = TaskInstance(plan=SHOWN, return_value=YES)
    VerifyOperator(task_id="verify", contract_file=CONTRACT_FILE, cut_n="7").execute({"ti": ti})


@pytest.mark.parametrize("found", [[Effect.CLEARED], [Effect.HANDED_OVER], [Effect.CLEARED, Effect.HANDED_OVER]])
def test_what_is_cleared_and_what_a_dag_has_is_nothing_to_look_for_again(
    effects: list[Effect], found: list[Effect]
) -> None:
    effects += found
    verify()


@pytest.mark.parametrize(
    ("found", "error"),
    [
        ([Effect.CLEARED, Effect.HIDDEN, Effect.HANDED_OVER], NotToBeSeenYet),
        ([Effect.HANDED_OVER, Effect.NOT_CLEARED], AirflowFailException),
        ([Effect.CHANGED], AirflowFailException),
        ([], NotToBeSeenYet),
    ],
)
def test_what_is_hidden_is_looked_for_again_and_what_did_not_work_fails(
    effects: list[Effect], found: list[Effect], error: type[Exception]
) -> None:
    effects += found
    with pytest.raises(error):
        verify()


NO = {"chosen_options": ["Reject"], "responded_by_user": {"id": "bob", "name": "bob"}}
TIMED_OUT = {"error": "no response", "error_type": "timeout"}


@pytest.mark.parametrize(
    ("event", "kept"),
    [
        (YES, ("agreed", "approver")),
        (NO, ("rejected", "bob")),
        (NO | {"responded_by_user": None}, ("rejected", "nobody")),
        (TIMED_OUT, ("unanswered", "airflow")),
        (TIMED_OUT | {"error_type": "unknown"}, ("approval_failed", "airflow")),
    ],
)
@pytest.mark.usefixtures("stored")
def test_every_answer_and_that_there_was_none_stands_in_the_trail(
    trail: list[Any], event: dict[str, Any], kept: tuple[str, str]
) -> None:
    operator = ApprovePlanOperator(task_id="approve")
    event = event if "error" in event else {"params_input": {}, "responded_at": NOON} | event
    context: Any = {"ti": TaskInstance(plan=SHOWN), "run_id": "cut_7", "task": operator}
    if "error" in event:
        with pytest.raises(HITLTriggerEventError):
            operator.execute_complete(context, event)
    else:
        operator.execute_complete(context, event)
    answered_at = NOON - timedelta(minutes=2)  # by the store's clock
    detail = KEPT if "error" in event else KEPT | {"answered_at_utc": answered_at.isoformat()}
    assert trail == [(*kept, "billing_payouts", SHOWN["plan_id"], detail)]
