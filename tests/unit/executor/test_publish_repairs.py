"""A start of an executor that a later one has claimed from publishes nothing: its actions may be refused by now."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from sqlalchemy import Engine
from sqlalchemy.dialects import postgresql

from tallystick.compensation.plan import Plan, PlanItem
from tallystick.executor import publish_repairs
from tallystick.executor.effects import action_log
from tallystick.executor.effects.action_log import ActionResult, ExecutionContext
from tallystick.executor.effects.publish_events import ExecutorFenced, TransactionAborted
from tallystick.store.plans import claim_store
from tests.planned_items import ITEM

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
