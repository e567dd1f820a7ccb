"""A start of an executor that a later one has claimed from publishes nothing: its actions may be refused by now."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
import tenacity.nap
from sqlalchemy import Engine
from sqlalchemy.dialects import postgresql

from tallystick.compensation.plan import Plan, PlanItem, PlanRefused
from tallystick.compensation.progress_record import ExecutorKey, progress_record
from tallystick.executor import publish_repairs
from tallystick.executor.effects import action_log
from tallystick.executor.effects.action_log import ActionResult, ExecutionContext
from tallystick.executor.effects.publish_events import ExecutorFenced, OutgoingRecord, TransactionAborted
from tallystick.store.plans import claim_store
from tallystick.store.plans.plan_store import ActionState, StoredAction
from tests.planned_items import ITEM
from tests.unit.builders import contract_of, partition_at

ITEMS = (ITEM, replace(ITEM, match_key="ev-2", action_id=UUID(int=2), break_id=UUID(int=12)))
PLAN = Plan(contract="payouts", contract_fingerprint="f", cut_n=4, dry_run=False, items=ITEMS, left_out=())


class Cluster:
    """What was published, and which actions the store says that this start holds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.published: list[str] = []
        self.held = {item.action_id for item in ITEMS}
        self.refused: list[UUID] = []
        monkeypatch.setattr(publish_repairs, "_TOGETHER", 1)
        monkeypatch.setattr(publish_repairs, "open_publisher", lambda *_, **__: None)
        proof = SimpleNamespace(settled=SimpleNamespace(of=lambda _: ()))
        monkeypatch.setattr(publish_repairs, "prove_actions", lambda *_, **__: proof)
        monkeypatch.setattr(publish_repairs, "fate_of_action", lambda *_: None)
        monkeypatch.setattr(publish_repairs, "why_unproven", lambda *_: None)
        monkeypatch.setattr(publish_repairs, "_publish", self.publish)
        monkeypatch.setattr(action_log, "held_among", lambda _, ids, __: frozenset(self.held & set(ids)))
        monkeypatch.setattr(action_log, "record_refusal", self.refuse)
        monkeypatch.setattr(ExecutionContext, "refuse_for_now", lambda _: None)
        monkeypatch.setattr(ExecutionContext, "why_not_now", lambda *_: {})
        monkeypatch.setattr(ExecutionContext, "audit", lambda *_, **__: None)

    def publish(
        self, _work: ExecutionContext, _publisher: Any, items: Sequence[PlanItem], _proof: Any
    ) -> dict[UUID, Any]:
        self.published += [item.match_key for item in items]
        return {item.action_id: {"topic": item.topic} for item in items}

    def refuse(self, _engine: Engine, action_id: UUID, **_: Any) -> bool:
        self.refused.append(action_id)
        return True


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


@pytest.fixture
def work() -> ExecutionContext:
    contract: Any = SimpleNamespace(name="payouts")
    unused: Any = SimpleNamespace(kafka=None)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return ExecutionContext(
        engine=unused,
        contract=contract,
        connections=unused,
        plan=PLAN,
        approver="bob",
        environment="test",
        on_progress=lambda *_: None,
        now=lambda: now,
    )


def test_who_holds_its_actions_publishes_them(cluster: Cluster, work: ExecutionContext) -> None:
    fates = [one.fate for one in publish_repairs._attempt(work, ITEMS, {})]
    assert (fates, cluster.published) == ([ActionResult.PUBLISHED] * 2, ["ev-1", "ev-2"])


def test_what_a_later_start_has_claimed_or_refused_is_not_published(cluster: Cluster, work: ExecutionContext) -> None:
    cluster.held.remove(ITEMS[0].action_id)
    with pytest.raises(ExecutorFenced, match=f"payouts: another executor has claimed {ITEMS[0].action_id} since"):
        publish_repairs._attempt(work, ITEMS, {})
    assert cluster.published == []


def test_each_producer_transaction_asks_again(
    cluster: Cluster, work: ExecutionContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def publish_and_lose(*arguments: Any) -> dict[UUID, Any]:
        cluster.held.clear()
        return cluster.publish(*arguments)

    monkeypatch.setattr(publish_repairs, "_publish", publish_and_lose)
    with pytest.raises(ExecutorFenced):
        publish_repairs._attempt(work, ITEMS, {})
    assert cluster.published == ["ev-1"]


def test_what_was_published_is_not_told_as_refused_when_a_later_transaction_fails(
    cluster: Cluster, work: ExecutionContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def publish_one(*arguments: Any) -> dict[UUID, Any]:
        if cluster.published:
            raise TransactionAborted("the second one")
        return cluster.publish(*arguments)

    work.begun.update(item.action_id for item in ITEMS)
    monkeypatch.setattr(publish_repairs, "_publish", publish_one)
    with pytest.raises(TransactionAborted):
        publish_repairs._attempt(work, ITEMS, {})
    action_log.refuse_begun(work, "the ledger is not what it was")
    assert (cluster.published, cluster.refused) == (["ev-1"], [ITEMS[1].action_id])


# The whole of a start, whose attempts come to what the test says.


class Starting:
    """A start over a progress topic that ends at 7. attempts: what each raises; None: it ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, work: ExecutionContext) -> None:
        self.work, self.asked = work, list[Any]()
        self.attempts: list[BaseException | None] = [None]
        self.stored: dict[UUID, StoredAction] = {}
        part = partition_at(topic="progress", topic_id="t", lso=5, high_watermark=7)
        monkeypatch.setattr(publish_repairs, "ensure_progress_topic", lambda *_: part)
        monkeypatch.setattr(publish_repairs, "_attempt", self.attempt)
        monkeypatch.setattr(publish_repairs, "record_each", lambda *told: self.asked.append(("recorded", told[1])))
        monkeypatch.setattr(ExecutionContext, "claim", self.claim)
        monkeypatch.setattr(ExecutionContext, "audit", lambda _, event, **told: self.asked.append((event, told)))
        self.slept: list[float] = []
        monkeypatch.setattr(tenacity.nap, "time", SimpleNamespace(sleep=self.slept.append))

    def claim(self, items: Sequence[PlanItem], **outcome: Any) -> dict[UUID, StoredAction]:
        self.asked.append(("claimed", outcome))
        return self.stored

    def attempt(self, *_: Any) -> tuple[str, ...]:
        error = self.attempts.pop(0)
        if error is not None:
            raise error
        return ("outcome",)

    def run(self) -> Any:
        return publish_repairs.execute_publishing(self.work, ITEMS)


@pytest.fixture
def starting(monkeypatch: pytest.MonkeyPatch, work: ExecutionContext) -> Starting:
    return Starting(monkeypatch, work)


UNDER = "tallystick-compensation-test-payouts"


def test_a_claim_says_where_its_progress_would_begin_and_under_which_id_it_stands(starting: Starting) -> None:
    assert starting.run() == ("outcome",)
    assert starting.asked == [
        ("claimed", {"progress_topic_id": "t", "progress_from": 7, "transactional_id": UNDER}),
        ("executing", {"progress_topic_id": "t", "transactional_id": UNDER}),
        ("recorded", ("outcome",)),
    ]


def test_a_transaction_that_kafka_could_not_take_is_tried_again_and_the_wait_grows_to_five_seconds(
    starting: Starting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish_repairs, "_ATTEMPTS", 8)
    starting.attempts = [*(TransactionAborted("no") for _ in range(7)), None]
    assert starting.run() == ("outcome",)
    assert [told for event, told in starting.asked if event == "aborted"] == [{"attempt": n} for n in range(1, 8)]
    assert starting.slept == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5, 5])


def test_what_is_tried_five_times_in_vain_is_raised_as_it_was(starting: Starting) -> None:
    starting.attempts = [TransactionAborted(str(n)) for n in range(1, 7)]
    with pytest.raises(TransactionAborted, match=r"^5$"):
        starting.run()
    assert "recorded" not in [event for event, _ in starting.asked]


def test_what_another_executor_has_taken_is_not_tried_again(starting: Starting) -> None:
    starting.attempts = [ExecutorFenced("overtaken"), None]
    with pytest.raises(ExecutorFenced):
        starting.run()


@pytest.mark.parametrize(
    ("state", "outcome", "is_refused"),
    [
        (ActionState.EXECUTING, {"transactional_id": "tallystick-compensation-other-payouts"}, True),
        (ActionState.EXECUTING, {"transactional_id": UNDER}, False),
        (ActionState.EXECUTING, {}, False),
        (ActionState.DONE, {"transactional_id": "tallystick-compensation-other-payouts"}, False),
    ],
)
def test_what_may_be_under_way_under_another_id_is_not_begun(
    starting: Starting, state: ActionState, outcome: dict[str, str], is_refused: bool
) -> None:
    starting.stored = {
        ITEM.action_id: StoredAction(
            action_id=ITEM.action_id,
            break_id=ITEM.break_id,
            plan_id=PLAN.plan_id,
            state=state,
            outcome=outcome,
            recorded_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
    }
    if not is_refused:
        starting.run()
        return
    with pytest.raises(PlanRefused, match=f"got {UNDER}; expected the same TALLYSTICK_ENVIRONMENT to finish it"):
        starting.run()
    assert [event for event, _ in starting.asked] == ["claimed"]


# What one producer transaction holds.


def test_events_and_their_progress_stand_in_one_transaction_and_each_place_is_audited(
    work: ExecutionContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited: list[tuple[str, dict[str, Any]]] = []
    sent: list[OutgoingRecord] = []
    key = ExecutorKey(b"k" * 32)
    places = [{"topic": "payouts", "partition": 0, "offset": n} for n in range(4)]

    def together(publisher: str, records: Sequence[OutgoingRecord], *, why_not_commit: Any, **_: Any) -> list[Any]:
        assert (publisher, why_not_commit()) == ("publisher", None)
        sent.extend(records)
        return places

    monkeypatch.setattr(ExecutionContext, "audit", lambda _, event, **told: audited.append((event, told)))
    monkeypatch.setattr(ExecutionContext, "refuse_for_now", lambda _: None)
    monkeypatch.setattr(ExecutionContext, "why_not_now", lambda *_: {})
    monkeypatch.setattr(publish_repairs, "publish_together", together)
    monkeypatch.setattr(publish_repairs, "read_executor_key", lambda engine: {id(work.engine): key}[id(engine)])
    work = replace(work, contract=contract_of(contract="payouts"), reopened={ITEMS[1].action_id: 2})
    work.begun.update(item.action_id for item in ITEMS)
    part = partition_at(topic="payouts", partition=3, lso=8, high_watermark=9)
    proof: Any = SimpleNamespace(settled=SimpleNamespace(of=lambda topic: {"payouts": (part,)}[topic]))
    publisher: Any = "publisher"
    outcomes = publish_repairs._publish_batch(work, publisher, ITEMS, proof)
    ids = [str(item.action_id) for item in ITEMS]
    assert audited == [
        ("publishing", {"actions": ids, "ends": {"payouts": {"3": 9}}}),
        ("published", {"places": dict(zip(ids, places, strict=False))}),
    ]
    assert [(one.topic, one.key) for one in sent[:2]] == [("payouts", b"pay-1")] * 2
    progress = [progress_record(key, PLAN, ITEMS[0], reopened=0), progress_record(key, PLAN, ITEMS[1], reopened=2)]
    assert [(one.topic, one.key, one.value) for one in sent[2:]] == [
        ("tallystick.compensation.payouts", *one) for one in progress
    ]
    assert work.begun == set()
    assert [(one.match_key, one.place, one.fate) for one in outcomes.values()] == [
        ("ev-1", places[0], ActionResult.PUBLISHED),
        ("ev-2", places[1], ActionResult.PUBLISHED),
    ]


def test_right_before_the_commit_the_switch_and_the_store_are_asked_once_more(
    work: ExecutionContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(_: ExecutionContext) -> None:
        raise PlanRefused("dan stopped all compensations")

    monkeypatch.setattr(ExecutionContext, "refuse_for_now", lambda _: None)
    monkeypatch.setattr(ExecutionContext, "why_not_now", lambda *_: {})
    assert publish_repairs._why_not_commit(work, ITEMS) is None
    monkeypatch.setattr(ExecutionContext, "why_not_now", lambda *_: {ITEM.action_id: "its approval is too old"})
    assert publish_repairs._why_not_commit(work, ITEMS) == "its approval is too old"
    monkeypatch.setattr(ExecutionContext, "refuse_for_now", stopped)
    assert publish_repairs._why_not_commit(work, ITEMS) == "dan stopped all compensations"


def test_a_cut_that_was_closed_before_the_plan_keeps_none_of_its_events_from_being_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The plan has left out whatever may stand in it."""
    asked: list[Any] = []

    class Store:
        def connect(self) -> "Store":
            return self

        def __enter__(self) -> "Store":
            return self

        def __exit__(self, *_: object) -> None: ...

        def execute(self, statement: Any) -> "Store":
            asked.append(statement)
            return self

        def all(self) -> Collection[Any]:
            return ()

    claim_store.judged_parts(cast("Engine", Store()), "payouts", planned_at=4)
    (statement,) = asked
    compiled = statement.compile(dialect=postgresql.dialect())
    (bound,) = re.findall(r"unread\.cut_n > %\((\w+)\)s", str(compiled))
    assert compiled.params[bound] == 4
