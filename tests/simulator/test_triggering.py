"""What a start of somebody's DAG is told as, where Airflow's answer is lost, strange or late: in the world, beside an
Airflow in memory.

One file, since every case is one start of a DAG against that Airflow.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import httpx
import pytest

from tallystick.compensation.plan import Plan
from tallystick.compensation.write_off import WriteOffRefused
from tallystick.contract.contract import Contract
from tallystick.executor import draw_plan, execute_plan, prove_handed_over, verify_plan
from tallystick.executor.effects import trigger_dags
from tallystick.executor.effects.action_log import ItemCheck
from tallystick.executor.effects.airflow_api import AirflowApi, AirflowRefused, AirflowUnreachable
from tallystick.executor.effects.publish_events import ExecutorFenced
from tallystick.kafka_log.fetch import BrokerUnreachable
from tallystick.model.open_item import ItemState, WriteOff
from tallystick.model.verdict import Verdict
from tallystick.store.plans.plan_store import ActionState
from tests.simulator.schedule.play import Play, Schedule, steps_of
from tests.simulator.standins import plan_functions, run_functions
from tests.simulator.world.config import Config
from tests.simulator.world.contracts import contract_of

pytestmark = pytest.mark.usefixtures("in_the_world")

LOST = ("window", ("half_trade", 2, 7), ("trade", 1, 1), "window", "window")
"""A row whose event nobody ever publishes, beside a pair."""
TWO_LOST = ("window", ("half_trade", 2, 7), ("half_trade", 3, 7), ("trade", 1, 1), "window", "window")
DAG_ID = "by_hand"
LOOK = "a person has to look: "
NONE_LEFT = "and Airflow has none: it was deleted, or never began"
Answer = tuple[int, Any]


@dataclass
class AirflowOfAnOwner:
    """Airflow with one DAG. started: run ids, each time that one was. begin: what a request to start one is answered
    by, instead of by `start`.
    """

    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    started: list[str] = field(default_factory=list)
    is_paused: bool = False
    begin: Callable[[Any], Answer] | None = None

    def answer(self, request: httpx.Request) -> httpx.Response:
        status, document = self._answer(request)
        return (
            httpx.Response(status, html=document)
            if isinstance(document, str)
            else httpx.Response(status, json=document)
        )

    def _answer(self, request: httpx.Request) -> Answer:
        if request.method == "POST":
            return (self.begin or self.start)(httpx.Response(200, content=request.content).json())
        if "/dagRuns/" in request.url.path:
            run = self.runs.get(request.url.path.rpartition("/")[2])
            return (200, run) if run else (404, {})
        return 200, {"is_paused": self.is_paused, "is_stale": False, "has_import_errors": False}

    def start(self, body: Any) -> Answer:
        run_id = body["dag_run_id"]
        if run_id in self.runs:
            return 409, {}
        self.runs[run_id] = {"dag_run_id": run_id, "conf": body["conf"], "state": "queued"}
        self.started.append(run_id)
        return 200, self.runs[run_id]

    def start_and_say(self, body: Any, *, answer: Answer) -> Answer:
        self.start(body)
        return answer

    @contextmanager
    def opened(self, _: Any) -> Iterator[AirflowApi]:
        transport = httpx.MockTransport(self.answer)
        with httpx.Client(transport=transport, base_url="http://airflow") as client:
            yield AirflowApi(client, "token")


@dataclass
class HandedBooks:
    """Books whose missing events are handed to that DAG."""

    play: Play
    airflow: AirflowOfAnOwner

    def __post_init__(self) -> None:
        self.world, self.store = self.play.world, self.play.world.store

    def plan(self) -> Plan:
        newest = run_functions.last_cut(self.store, "books")
        assert newest is not None
        connections: Any = self.world
        drawn = draw_plan.draw_plan(self.store, self.world.contract, connections, cut_n=newest.n, dry_run=False)
        plan_functions.save_plan(self.store, drawn, requested_by="asker")
        return drawn

    def start(self, plan: Plan) -> list[tuple[str, str]]:
        """Fate and reason of each action."""
        connections: Any = self.world
        done = execute_plan.execute_plan(
            self.store,
            self.world.contract,
            connections,
            plan,
            approved_hash=plan.plan_hash,
            approver="carol",
            environment="world",
        )
        return [(str(one.fate), one.reason) for one in done.outcomes]

    def look(self, plan: Plan) -> Sequence[ItemCheck]:
        connections: Any = self.world
        return verify_plan.verify_and_keep(self.store, self.world.contract, plan, connections, actor="carol").checks

    def state(self, plan: Plan) -> ActionState:
        return self.store.actions[plan.items[0].action_id].stored.state

    def write_off(self, plan: Plan) -> ItemState:
        given_up = WriteOff(by="dan", reason="paid by hand", at_utc=self.world.clock.now)
        return plan_functions.write_off_break(self.store, "books", str(plan.items[0].break_id), given_up).items[0].state

    def reopen(self, plan: Plan) -> None:
        """What the store has once a person has looked and reopened it."""
        row = self.store.actions[plan.items[0].action_id]
        row.stored = replace(row.stored, state=ActionState.REFUSED, outcome={}, reopened=row.stored.reopened + 1)


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> HandedBooks:
    return handed_books(monkeypatch, "xmin", LOST)


def handed_books(monkeypatch: pytest.MonkeyPatch, slice_by: str, begin: Sequence[Any], **ledger: Any) -> HandedBooks:
    config = Config(direction="ledger_to_topic", slice_by=slice_by, producer_mode="plain", carrier_mode="at_most")
    play = Play(Schedule(config, ()))
    document = contract_of("ledger_to_topic", slice_by, 1).model_dump(mode="json", exclude_defaults=True)
    document["ledger"] |= ledger
    document["compensation"] = {
        "trigger": {"connection": "airflow", "dags": {"missing_in_topic_never_produced": DAG_ID}},
        "max_amount_minor": {"EUR": 10_000_000},
        "four_eyes_above_minor": {"EUR": 10_000_000},
    }
    play.world.contracts = (Contract.model_validate(document),)
    for step in steps_of(*begin):
        play.do(step)
    airflow = AirflowOfAnOwner()
    monkeypatch.setattr(trigger_dags, "_airflow_of", lambda *_: None)
    monkeypatch.setattr(trigger_dags, "open_airflow", airflow.opened)
    return HandedBooks(play, airflow)


LOST_ANSWERS: dict[str, Answer] = {
    "gateway timeout": (504, {}),
    "a page": (200, "<html>all is well</html>"),
    "elsewhere": (302, {}),
    "a list": (200, []),
    "an error in a 200": (200, {"error": "session expired"}),
    "another run": (200, {"dag_run_id": "other", "conf": {}, "state": "queued"}),
}


@pytest.mark.parametrize("answer", LOST_ANSWERS.values(), ids=LOST_ANSWERS)
def test_a_start_with_an_answer_that_tells_nothing_is_neither_done_nor_refused(
    handed: HandedBooks, answer: Answer
) -> None:
    plan = handed.plan()
    handed.airflow.begin = partial(handed.airflow.start_and_say, answer=answer)
    with pytest.raises(AirflowUnreachable, match=f"answered {answer[0]} when asked to start {DAG_ID}"):
        handed.start(plan)
    assert handed.state(plan) is ActionState.EXECUTING
    with pytest.raises(WriteOffRefused, match="is repairing it"):
        handed.write_off(plan)
    handed.airflow.begin = None
    assert handed.start(plan) == [("already_done", "")]
    assert (len(handed.airflow.started), handed.state(plan)) == (1, ActionState.DONE)


def test_an_answer_with_another_conf_than_was_sent_is_no_start(handed: HandedBooks) -> None:
    plan = handed.plan()
    answer = {"dag_run_id": str(plan.items[0].action_id), "conf": {}, "state": "queued"}
    handed.airflow.begin = lambda _: (200, answer)
    with pytest.raises(AirflowUnreachable, match="with another conf than was sent"):
        handed.start(plan)
    assert handed.state(plan) is ActionState.EXECUTING


@pytest.mark.parametrize("is_paused", [False, True])
def test_a_run_that_is_gone_after_a_lost_answer_waits_for_a_person_and_is_not_started_again(
    handed: HandedBooks, is_paused: bool
) -> None:
    plan = handed.plan()
    handed.airflow.begin = partial(handed.airflow.start_and_say, answer=(504, {}))
    with pytest.raises(AirflowUnreachable):
        handed.start(plan)
    handed.airflow.begin = None
    handed.airflow.runs.clear()
    handed.airflow.is_paused = is_paused
    for _ in range(2):
        ((fate, reason),) = handed.start(plan)
        assert (fate, handed.state(plan)) == ("refused", ActionState.WAITING)
        assert reason.startswith(LOOK)
        assert NONE_LEFT in reason
        assert f"compensation reopen CONTRACT_FILE {plan.items[0].action_id}" in reason
    handed.play.product.window()
    assert handed.plan().items == ()
    with pytest.raises(WriteOffRefused, match="a person has to look"):
        handed.write_off(plan)
    assert len(handed.airflow.started) == 1


def test_what_a_person_reopened_is_started_once_more_by_the_next_plan(handed: HandedBooks) -> None:
    plan = handed.plan()
    handed.airflow.begin = lambda _: (504, {})
    with pytest.raises(AirflowUnreachable):
        handed.start(plan)
    handed.airflow.begin = None
    handed.start(plan)
    assert handed.airflow.started == []
    handed.reopen(plan)
    handed.play.product.window()
    assert handed.start(handed.plan()) == [("done", "")]
    assert len(handed.airflow.started) == 1


@pytest.mark.parametrize("state", ["failed", "success", "running"])
def test_a_run_of_before_a_reopening_is_not_what_was_reopened(handed: HandedBooks, state: str) -> None:
    plan = handed.plan()
    handed.start(plan)
    handed.airflow.runs[str(plan.items[0].action_id)]["state"] = state
    assert handed.start(plan) == [("already_done", "")]
    handed.reopen(plan)
    for _ in range(2):
        ((fate, reason),) = handed.start(plan)
        assert (fate, handed.state(plan)) == ("refused", ActionState.WAITING)
        assert reason.startswith(
            f"{LOOK}it was reopened, and Airflow still has run {plan.items[0].action_id} of {DAG_ID}"
        )
    handed.airflow.runs.clear()
    handed.reopen(plan)
    assert handed.start(plan) == [("done", "")]
    assert len(handed.airflow.started) == 2


def test_a_run_that_this_start_has_asked_for_is_not_one_of_before_a_reopening(handed: HandedBooks) -> None:
    """A proxy sent the request once more, since the first answer was lost to it. The run was said to have to go."""
    plan = handed.plan()
    handed.start(plan)
    handed.airflow.runs.clear()
    handed.reopen(plan)

    def twice(body: Any) -> Answer:
        handed.airflow.start(body)
        return handed.airflow.start(body)

    handed.airflow.begin = twice
    assert handed.start(plan) == [("already_done", "")]
    assert (len(handed.airflow.started), handed.state(plan)) == (2, ActionState.DONE)


def test_a_run_that_this_start_has_asked_for_and_nobody_found_is_found_later_as_ever(handed: HandedBooks) -> None:
    plan = handed.plan()
    handed.start(plan)
    handed.airflow.runs.clear()
    handed.reopen(plan)
    hidden: dict[str, dict[str, Any]] = {}

    def out_of_sight(body: Any) -> Answer:
        handed.airflow.start(body)
        hidden.update(handed.airflow.runs)
        handed.airflow.runs.clear()
        return 409, {}

    handed.airflow.begin = out_of_sight
    assert NONE_LEFT in handed.start(plan)[0][1]
    handed.airflow.runs = hidden
    assert handed.start(plan) == [("already_done", "")]


def test_a_run_that_was_asked_for_since_a_reopening_is_found_as_ever(handed: HandedBooks) -> None:
    plan = handed.plan()
    handed.start(plan)
    handed.airflow.runs.clear()
    handed.reopen(plan)
    handed.airflow.begin = partial(handed.airflow.start_and_say, answer=(504, {}))
    with pytest.raises(AirflowUnreachable):
        handed.start(plan)
    hidden, handed.airflow.runs = handed.airflow.runs, {}
    for _ in range(2):
        assert NONE_LEFT in handed.start(plan)[0][1]
    handed.airflow.runs = hidden
    assert handed.start(plan) == [("already_done", "")]
    assert (len(handed.airflow.started), handed.state(plan)) == (2, ActionState.DONE)


def test_what_waits_is_done_once_its_run_is_found(handed: HandedBooks) -> None:
    plan = handed.plan()
    handed.airflow.begin = partial(handed.airflow.start_and_say, answer=(504, {}))
    with pytest.raises(AirflowUnreachable):
        handed.start(plan)
    hidden, handed.airflow.runs = handed.airflow.runs, {}
    handed.start(plan)
    assert handed.state(plan) is ActionState.WAITING
    handed.airflow.runs = hidden
    assert handed.start(plan) == [("already_done", "")]
    assert handed.state(plan) is ActionState.DONE


def under_connection(handed: HandedBooks, name: str) -> None:
    document = handed.world.contract.model_dump(mode="json", exclude_defaults=True)
    document["compensation"]["trigger"]["connection"] = name
    handed.world.contracts = (Contract.model_validate(document),)


ELSEWHERE = (
    "its run was asked for, or may have been, under compensation.trigger.connection airflow, and the contract has "
    "another, whose Airflow has no such run; the other one may have it"
)


UNKNOWN = (
    "under which compensation.trigger.connection its run was asked for is not known, since the contract that its plan "
    "began under is not stored or not readable; the Airflow of the contract's own has no such run"
)


@pytest.mark.parametrize(("readable", "why"), [(True, ELSEWHERE), (False, UNKNOWN)])
def test_of_a_run_that_the_airflow_of_before_may_have_the_one_of_now_says_nothing(
    handed: HandedBooks, monkeypatch: pytest.MonkeyPatch, readable: bool, why: str
) -> None:
    """It has none, and said that it was deleted or never began."""
    plan = handed.plan()
    handed.airflow.begin = partial(handed.airflow.start_and_say, answer=(504, {}))
    with pytest.raises(AirflowUnreachable):
        handed.start(plan)
    before, another = handed.airflow, AirflowOfAnOwner()
    under_connection(handed, "another")
    monkeypatch.setattr(trigger_dags, "open_airflow", another.opened)
    if not readable:
        monkeypatch.setattr(trigger_dags, "contract_of_fingerprint", lambda *_: None)
    for _ in range(2):
        ((fate, reason),) = handed.start(plan)
        assert (fate, handed.state(plan)) == ("refused", ActionState.WAITING)
        assert reason.startswith(f"{LOOK}{why}. Look whether it was done")
        assert [(str(one.effect), one.reason) for one in handed.look(plan)] == [("hidden", why)]
    under_connection(handed, "airflow")
    monkeypatch.setattr(trigger_dags, "open_airflow", before.opened)
    assert handed.start(plan) == [("already_done", "")]
    assert (len(before.started), another.started) == (1, [])


def test_a_connection_that_was_only_renamed_finds_its_runs(
    handed: HandedBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = handed.plan()
    handed.airflow.begin = partial(handed.airflow.start_and_say, answer=(504, {}))
    with pytest.raises(AirflowUnreachable):
        handed.start(plan)
    under_connection(handed, "another")
    assert handed.start(plan) == [("already_done", "")]
    assert [str(one.effect) for one in handed.look(plan)] == ["handed_over"]


def test_what_was_done_in_the_airflow_of_before_cannot_be_seen_and_what_was_never_asked_for_is_not_done(
    handed: HandedBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, another = handed.plan(), AirflowOfAnOwner()
    handed.airflow.is_paused = True
    assert handed.start(plan)[0][0] == "refused"
    before = handed.world.contracts
    under_connection(handed, "another")
    monkeypatch.setattr(trigger_dags, "open_airflow", another.opened)
    assert [(str(one.effect), one.reason) for one in handed.look(plan)] == [("not_cleared", "")]
    handed.world.contracts, handed.airflow.is_paused = before, False
    monkeypatch.setattr(trigger_dags, "open_airflow", handed.airflow.opened)
    assert handed.start(plan) == [("done", "")]
    under_connection(handed, "another")
    monkeypatch.setattr(trigger_dags, "open_airflow", another.opened)
    (seen,) = handed.look(plan)
    assert (str(seen.effect), seen.reason, seen.verdict) == ("hidden", ELSEWHERE, Verdict.INCONCLUSIVE)
    assert handed.start(plan) == [("already_done", "")]


def test_a_run_of_that_id_with_another_conf_waits_for_a_person(handed: HandedBooks) -> None:
    plan = handed.plan()
    run_id = str(plan.items[0].action_id)
    handed.airflow.runs[run_id] = {"dag_run_id": run_id, "conf": {"items": "theirs"}, "state": "success"}
    ((fate, reason),) = handed.start(plan)
    assert (fate, handed.state(plan)) == ("refused", ActionState.WAITING)
    assert reason.startswith(f"{LOOK}Airflow has a run {run_id} of {DAG_ID} with another conf: ")
    handed.airflow.runs.clear()
    assert NONE_LEFT in handed.start(plan)[0][1]
    assert (handed.airflow.started, handed.state(plan)) == ([], ActionState.WAITING)


@pytest.mark.parametrize("status", [401, 403])
def test_a_start_that_airflow_forbids_is_refused_and_the_next_plan_may_take_it(
    handed: HandedBooks, status: int
) -> None:
    plan = handed.plan()
    handed.airflow.begin = lambda _: (status, {})
    with pytest.raises(AirflowRefused):
        handed.start(plan)
    assert handed.state(plan) is ActionState.REFUSED
    handed.airflow.begin = None
    handed.play.product.window()
    assert handed.start(handed.plan()) == [("done", "")]


def test_a_start_that_airflow_does_not_take_or_that_is_paused_is_refused_and_can_be_written_off(
    handed: HandedBooks,
) -> None:
    plan = handed.plan()
    handed.airflow.is_paused = True
    assert handed.start(plan)[0][1].startswith(f"the DAG {DAG_ID} is paused")
    handed.airflow.is_paused, handed.airflow.begin = False, lambda _: (422, {})
    assert "answered 422 to a start" in handed.start(plan)[0][1]
    assert handed.state(plan) is ActionState.REFUSED
    assert handed.write_off(plan) is ItemState.WRITTEN_OFF


def test_a_conflict_whose_run_nobody_finds_or_may_see_is_no_refusal(handed: HandedBooks) -> None:
    plan = handed.plan()
    handed.airflow.begin = lambda _: (409, {})
    assert NONE_LEFT in handed.start(plan)[0][1]
    assert handed.state(plan) is ActionState.WAITING


def test_a_run_that_exists_and_may_not_be_looked_at_after_a_conflict_leaves_its_action_begun(
    handed: HandedBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = handed.plan()

    def conflict(_: Any) -> Answer:
        monkeypatch.setattr(handed.airflow, "_answer", lambda request: (403, {}))
        return 409, {}

    handed.airflow.begin = conflict
    with pytest.raises(AirflowUnreachable, match="answered 403"):
        handed.start(plan)
    assert handed.state(plan) is ActionState.EXECUTING


def test_while_a_start_sleeps_between_its_note_and_its_request_its_break_is_free_for_nobody(
    handed: HandedBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = handed.plan()
    told: list[str] = []

    def asleep(engine: Any, action_id: UUID, *, executor: str) -> bool:
        noted = plan_functions.note_starting(engine, action_id, executor=executor)
        told.append(handed.start(plan)[0][1])
        with pytest.raises(WriteOffRefused, match="a person has to look"):
            handed.write_off(plan)
        return noted

    monkeypatch.setattr(trigger_dags, "note_starting", asleep)
    assert handed.start(plan) == [("done", "")]
    assert [NONE_LEFT in reason for reason in told] == [True]
    assert (len(handed.airflow.started), handed.state(plan)) == (1, ActionState.DONE)


# What has come since the plan is not handed over.

COMES_LATE = (("carry", 2, 0, 0), ("commit_second", 2, 0))
"""The row's event comes after all."""


def go_on(handed: HandedBooks, *steps: Any) -> None:
    for step in steps_of(*steps):
        handed.play.do(step)


def test_an_event_that_has_come_since_the_plan_is_not_handed_over_and_its_action_is_refused_like_any_other(
    handed: HandedBooks,
) -> None:
    plan = handed.plan()
    go_on(handed, *COMES_LATE)
    for _ in range(2):
        ((fate, reason),) = handed.start(plan)
        assert (fate, handed.state(plan)) == ("refused", ActionState.REFUSED)
        assert reason.startswith("its event stands: topic:")
    go_on(handed, "window", "window")
    assert (handed.plan().items, handed.airflow.started) == ((), [])


def test_an_event_that_has_come_since_the_plan_and_expired_unread_is_not_handed_over(handed: HandedBooks) -> None:
    """Found by review: the DAG paid it a second time."""
    plan = handed.plan()
    go_on(handed, *COMES_LATE, "retain_all")
    ((fate, reason),) = handed.start(plan)
    assert (fate, handed.state(plan)) == ("refused", ActionState.REFUSED)
    assert "runs have read it up to" in reason
    go_on(handed, "window")
    assert (handed.plan().items, handed.airflow.started) == ((), [])


def test_what_expired_once_a_run_had_read_it_hinders_no_start(handed: HandedBooks) -> None:
    plan = handed.plan()
    go_on(handed, "retain_all")
    assert handed.start(plan) == [("done", "")]


def test_a_dry_run_says_what_the_topics_do_not_prove(handed: HandedBooks) -> None:
    plan = replace(handed.plan(), dry_run=True)
    plan_functions.save_plan(handed.store, plan, requested_by="asker")
    assert handed.start(plan) == [("would_do", "")]
    go_on(handed, *COMES_LATE)
    assert handed.start(plan)[0][1].startswith("its event stands: topic:")


def test_a_run_that_was_asked_for_is_found_though_its_event_stands_by_now(handed: HandedBooks) -> None:
    plan = handed.plan()
    handed.airflow.begin = partial(handed.airflow.start_and_say, answer=(504, {}))
    with pytest.raises(AirflowUnreachable):
        handed.start(plan)
    handed.airflow.begin = None
    go_on(handed, *COMES_LATE)
    for _ in range(2):
        assert handed.start(plan) == [("already_done", "")]
    assert (len(handed.airflow.started), handed.state(plan)) == (1, ActionState.DONE)


def test_what_is_reopened_while_a_start_looks_is_not_started_by_it(
    handed: HandedBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by review: its event had come after all, and nobody had looked."""
    plan, look = handed.plan(), trigger_dags.prove_handed_over
    handed.airflow.begin = lambda _: (504, {})
    with pytest.raises(AirflowUnreachable):
        handed.start(plan)
    handed.airflow.begin = None
    assert NONE_LEFT in handed.start(plan)[0][1]
    go_on(handed, *COMES_LATE)

    def reopened(work: Any, items: Any) -> Any:
        found = look(work, items)
        handed.reopen(plan)
        return found

    with monkeypatch.context() as during:
        during.setattr(trigger_dags, "prove_handed_over", reopened)
        with pytest.raises(ExecutorFenced):
            handed.start(plan)
    assert handed.start(plan)[0][1].startswith("its event stands: topic:")
    assert (handed.airflow.started, handed.state(plan)) == ([], ActionState.REFUSED)


def away(*_: Any, **__: Any) -> Any:
    raise BrokerUnreachable("no answer")


def test_where_the_topics_do_not_answer_nothing_stays_begun(
    handed: HandedBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = handed.plan()
    with monkeypatch.context() as outage:
        outage.setattr(prove_handed_over, "settle_topics", away)
        outage.setattr(trigger_dags, "open_airflow", away)
        with pytest.raises(BrokerUnreachable):
            handed.start(plan)
    assert handed.state(plan) is ActionState.REFUSED
    assert handed.start(plan) == [("done", "")]


def test_a_start_that_ended_while_it_looked_has_asked_for_no_run_and_its_break_is_free_though_its_topic_is_gone(
    handed: HandedBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by review: it was executing for ever."""
    plan = handed.plan()

    def killed(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(prove_handed_over, "settle_topics", killed)
        with pytest.raises(KeyboardInterrupt):
            handed.start(plan)
    assert handed.state(plan) is ActionState.EXECUTING
    monkeypatch.setattr(prove_handed_over, "settle_topics", away)
    with pytest.raises(BrokerUnreachable):
        handed.start(plan)
    assert handed.state(plan) is ActionState.REFUSED
    assert handed.write_off(plan) is ItemState.WRITTEN_OFF


def test_topics_that_do_not_answer_hide_no_run_that_was_asked_for_and_hold_no_other_break(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found by review: a run that stands in Airflow was never recorded, and neither break could be written off."""
    handed = handed_books(monkeypatch, "xmin", TWO_LOST)
    plan = handed.plan()
    asked, other = plan.items
    handed.airflow.begin = partial(handed.airflow.start_and_say, answer=(504, {}))
    with pytest.raises(AirflowUnreachable):
        handed.start(plan)
    handed.airflow.begin = None
    actions = handed.store.actions
    assert [actions[one.action_id].stored.state for one in plan.items] == [ActionState.EXECUTING] * 2
    monkeypatch.setattr(prove_handed_over, "settle_topics", away)
    for _ in range(2):
        with pytest.raises(BrokerUnreachable):
            handed.start(plan)
        assert actions[asked.action_id].stored.state is ActionState.DONE
        assert actions[other.action_id].stored.state is ActionState.REFUSED
    assert actions[other.action_id].stored.outcome["reason"] == "no answer"
    assert handed.airflow.started == [str(asked.action_id)]


def test_topics_that_do_not_answer_stop_nothing_that_asks_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by review: so they did."""
    handed = handed_books(monkeypatch, "xmin", TWO_LOST)
    plan, as_ours = handed.plan(), prove_handed_over._as_ours
    asks, asks_none = plan.items
    monkeypatch.setattr(
        prove_handed_over,
        "_as_ours",
        lambda contract, item, at: () if item == asks_none else as_ours(contract, item, at),
    )
    monkeypatch.setattr(prove_handed_over, "settle_topics", away)
    with pytest.raises(BrokerUnreachable):
        handed.start(plan)
    assert handed.airflow.started == [str(asks_none.action_id)]
    assert handed.store.actions[asks_none.action_id].stored.state is ActionState.DONE
    assert handed.store.actions[asks.action_id].stored.state is ActionState.REFUSED


def test_a_dry_run_fails_where_the_topics_do_not_answer(handed: HandedBooks, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(handed.plan(), dry_run=True)
    plan_functions.save_plan(handed.store, plan, requested_by="asker")
    monkeypatch.setattr(prove_handed_over, "settle_topics", away)
    with pytest.raises(BrokerUnreachable):
        handed.start(plan)


# A run that was started has repaired nothing yet.


@pytest.mark.parametrize("state", ["success", "failed"])
def test_what_a_dag_has_is_written_off_once_its_run_was_seen_ended_and_a_cut_has_looked_since(
    handed: HandedBooks, state: str
) -> None:
    plan = handed.plan()
    run_id = str(plan.items[0].action_id)
    handed.start(plan)
    handed.look(plan)
    handed.play.product.window()
    with pytest.raises(WriteOffRefused, match=f"nobody has seen its run {run_id} ended; .* execute CONTRACT_FILE"):
        handed.write_off(plan)
    handed.airflow.runs[run_id]["state"] = "running"
    handed.look(plan)
    handed.play.product.window()
    with pytest.raises(WriteOffRefused, match="nobody has seen"):
        handed.write_off(plan)
    handed.airflow.runs[run_id]["state"] = state
    handed.world.clock.now += timedelta(seconds=1)
    handed.look(plan)
    with pytest.raises(WriteOffRefused, match="no cut made since has read"):
        handed.write_off(plan)
    handed.play.product.window()
    assert handed.write_off(plan) is ItemState.WRITTEN_OFF
    assert handed.start(plan) == [("already_done", "")]
    assert len(handed.airflow.started) == 1


@pytest.mark.parametrize(("slice_by", "ledger"), [("jdbc", {}), ("parquet", {"quiet_seconds": 3600})])
def test_what_a_dag_has_is_written_off_where_each_cut_leaves_the_newest_rows_to_the_next_one(
    monkeypatch: pytest.MonkeyPatch, slice_by: str, ledger: dict[str, Any]
) -> None:
    rows = (("trade", 0, 0),) * 5
    lost = ("window", ("half_trade", 2, 7), ("lose", 0, 0), *rows, "window", *rows, "window", *rows, "window")
    handed = handed_books(monkeypatch, slice_by, lost, **ledger)
    plan = handed.plan()
    handed.start(plan)
    handed.airflow.runs[str(plan.items[0].action_id)]["state"] = "failed"
    handed.world.clock.now += timedelta(seconds=1)
    handed.look(plan)
    for is_read in (False, True):
        for step in steps_of(*rows, "window"):
            handed.play.do(step)
        newest = run_functions.last_cut(handed.store, "books")
        assert newest is not None
        assert newest.ledger_slice.held
        if not is_read:
            with pytest.raises(WriteOffRefused, match="no cut made since has read"):
                handed.write_off(plan)
    assert handed.write_off(plan) is ItemState.WRITTEN_OFF


def test_a_cut_that_was_closed_unread_has_not_looked_and_the_next_one_has(handed: HandedBooks) -> None:
    plan = handed.plan()
    handed.start(plan)
    handed.airflow.runs[str(plan.items[0].action_id)]["state"] = "success"
    handed.world.clock.now += timedelta(seconds=1)
    handed.look(plan)
    for step in steps_of(("cluster_down", 0, 0, 20), "window", "close_cut", "cluster_down"):
        handed.play.do(step)
    assert len(run_functions.closed_cuts_before(handed.store, "books", 99)) == 1
    with pytest.raises(WriteOffRefused, match="no cut made since has read"):
        handed.write_off(plan)
    handed.play.product.window()
    assert handed.write_off(plan) is ItemState.WRITTEN_OFF


def test_of_a_topic_that_was_made_again_no_cut_has_looked(handed: HandedBooks) -> None:
    plan = handed.plan()
    handed.start(plan)
    handed.airflow.runs[str(plan.items[0].action_id)]["state"] = "success"
    handed.world.clock.now += timedelta(seconds=1)
    handed.look(plan)
    for step in steps_of("recreate", "window", "window"):
        handed.play.do(step)
    with pytest.raises(WriteOffRefused, match="no cut made since has read"):
        handed.write_off(plan)


def test_a_run_that_is_gone_or_not_ours_was_not_seen_ended(handed: HandedBooks) -> None:
    plan = handed.plan()
    run_id = str(plan.items[0].action_id)
    handed.start(plan)
    handed.airflow.runs[run_id] |= {"state": "success", "conf": {"items": "theirs"}}
    handed.look(plan)
    handed.airflow.runs.clear()
    handed.look(plan)
    handed.play.product.window()
    with pytest.raises(WriteOffRefused, match=f"compensation reopen CONTRACT_FILE {run_id}"):
        handed.write_off(plan)
    handed.reopen(plan)
    assert handed.write_off(plan) is ItemState.WRITTEN_OFF


def test_a_look_from_before_an_action_was_done_again_says_nothing_of_its_run_now(handed: HandedBooks) -> None:
    plan = handed.plan()
    handed.start(plan)
    handed.airflow.runs[str(plan.items[0].action_id)]["state"] = "failed"
    handed.look(plan)
    handed.airflow.runs.clear()
    handed.reopen(plan)
    handed.play.product.window()
    assert handed.start(plan) == [("done", "")]
    handed.play.product.window()
    with pytest.raises(WriteOffRefused, match="nobody has seen its run"):
        handed.write_off(plan)
