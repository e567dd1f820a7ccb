"""What the progress topic and the store prove of a plan's actions, and which of them a person has to look at."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tallystick.compensation.plan import Plan, PlanItem
from tallystick.compensation.progress_record import ExecutorKey, progress_record
from tallystick.executor import progress_proof, progress_topic
from tallystick.executor.progress_proof import ProgressProof, prove_progress
from tallystick.executor.progress_topic import ProgressHeld, progress_topic_name
from tallystick.kafka_log.committed_records import CommittedRecord, SettledTopics
from tallystick.store.plans.plan_store import ActionState, StoredAction
from tests.planned_items import ITEM
from tests.unit.builders import NOON, partition_at

NAME = progress_topic_name("books")
PLACE = f"{NAME}[0]"
KEY = ExecutorKey(b"k" * 32)
OTHER = replace(ITEM, action_id=UUID(int=2), break_id=UUID(int=12), match_key="ev-2")
PLAN = Plan(contract="books", contract_fingerprint="f", cut_n=4, dry_run=False, items=(ITEM, OTHER), left_out=())
BEFORE = replace(PLAN, cut_n=3)
ENDS = {"payouts": {"0": 9}}
HIDDEN = "its batch is damaged"


@dataclass
class World:
    """A progress topic from `log_start` on, what the store has, and what is audited. records: by offset."""

    plans: dict[UUID, Plan] = field(default_factory=dict)
    actions: dict[UUID, StoredAction] = field(default_factory=dict)
    begun: set[UUID] = field(default_factory=set)
    log_start: int = 0
    records: list[CommittedRecord] = field(default_factory=list)
    audited: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    ends_asked: list[set[UUID]] = field(default_factory=list)
    held: frozenset[str] = frozenset()

    @property
    def end(self) -> int:
        return self.log_start + len(self.records)

    def add(self, key: bytes, value: bytes, problem: str = "") -> None:
        self.records.append(
            CommittedRecord(
                topic=NAME, partition=0, kafka_offset=self.end, key=key, value=value, headers={}, problem=problem
            )
        )

    def publish(self, item: PlanItem = ITEM, *, plan: Plan = PLAN, reopened: int = 0) -> None:
        self.add(*progress_record(KEY, plan, item, reopened=reopened))

    def act(self, item: PlanItem, state: ActionState = ActionState.EXECUTING, **named: Any) -> None:
        """An earlier start has begun it. outcome: with the end of the topic at that time."""
        stored = {
            "action_id": item.action_id,
            "break_id": item.break_id,
            "plan_id": PLAN.plan_id,
            "state": state,
            "recorded_at": NOON,
            "outcome": {"progress_topic_id": "t", "progress_from": 0},
        }
        self.actions[item.action_id] = StoredAction(**stored | named)

    def read_committed(self, kafka: str, partitions: Collection[Any]) -> Iterator[CommittedRecord]:
        assert (kafka, [part.topic for part in partitions]) == ("kafka", [NAME])
        yield from self.records

    def read_plan(self, engine: str, plan_id: UUID) -> Plan | None:
        assert engine == "engine"
        assert plan_id != PLAN.plan_id, "this start has it"
        return self.plans.get(plan_id)

    def published_behind(self, engine: str, plan_ids: Mapping[UUID, Any]) -> dict[UUID, Any]:
        assert engine == "engine"
        self.ends_asked.append(set(plan_ids))
        return {ITEM.action_id: ENDS}

    def prove(self) -> ProgressProof:
        work: Any = SimpleNamespace(
            connections=SimpleNamespace(kafka="kafka"),
            contract=SimpleNamespace(name="books"),
            engine="engine",
            plan=PLAN,
            begun=self.begun,
            audit=lambda event, **detail: self.audited.append((event, detail)),
        )
        part = partition_at(topic=NAME, topic_id="t", log_start=self.log_start, lso=self.end, high_watermark=self.end)
        return prove_progress(work, PLAN.items, self.actions, SettledTopics(partitions=(part,), held=self.held))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    it = World()
    monkeypatch.setattr(progress_topic, "read_committed", it.read_committed)
    monkeypatch.setattr(progress_proof, "read_executor_key", lambda engine: {"engine": KEY}[engine])
    monkeypatch.setattr(progress_proof, "read_plan", it.read_plan)
    monkeypatch.setattr(progress_proof, "published_behind", it.published_behind)
    return it


def test_of_a_topic_that_says_nothing_nothing_is_published_and_nothing_doubtful(world: World) -> None:
    seen = {"progress_topic_id": "t", "progress_end": 0}
    assert world.prove() == ProgressProof(seen=seen)
    assert (world.ends_asked, world.audited) == ([], [])


def test_what_a_sealed_record_says_is_published_with_where_its_topics_ended(world: World) -> None:
    world.publish()
    assert world.prove() == ProgressProof(
        published=frozenset({ITEM.action_id}),
        behind={ITEM.action_id: ENDS},
        seen={"progress_topic_id": "t", "progress_end": 1},
    )
    assert world.ends_asked == [{PLAN.plan_id}]


def test_a_plan_of_before_that_the_store_knows_counts_and_one_that_it_does_not_is_doubted(world: World) -> None:
    world.publish(plan=BEFORE)
    (doubt,) = world.prove().doubts.values()
    assert doubt.startswith(f"{PLACE} at 0 has the action's key and names plan {BEFORE.plan_id}, which an executor")
    world.plans = {BEFORE.plan_id: BEFORE}
    assert world.prove().published == {ITEM.action_id}
    assert world.ends_asked == [{PLAN.plan_id, BEFORE.plan_id}]


def test_a_record_of_before_an_action_was_reopened_proves_nothing_and_one_since_does(world: World) -> None:
    world.publish(plan=BEFORE)
    world.plans = {BEFORE.plan_id: BEFORE}
    world.act(ITEM, reopened=1)
    proof = world.prove()
    assert (proof.published, list(proof.doubts)) == (set(), [ITEM.action_id])
    world.publish(plan=BEFORE, reopened=1)
    assert world.prove().published == {ITEM.action_id}


@pytest.mark.parametrize(("topic_id", "is_void"), [("t", True), ("another", False)])
def test_what_a_person_has_looked_at_is_doubted_no_more_on_that_topic(
    world: World, topic_id: str, is_void: bool
) -> None:
    world.publish()
    world.act(ITEM, reopened=1, void_progress={"progress_topic_id": topic_id, "before": 1})
    assert (world.prove().doubts == {}) is is_void


def test_a_doubt_is_about_its_own_action_alone(world: World) -> None:
    world.add(str(OTHER.action_id).encode(), b"{}")
    world.publish()
    proof = world.prove()
    assert (proof.published, list(proof.doubts)) == ({ITEM.action_id}, [OTHER.action_id])
    assert proof.doubts[OTHER.action_id].startswith(f"{PLACE} at 0 has the action's key and ")


def test_records_about_no_action_are_audited_by_their_first_offsets(world: World) -> None:
    for _ in range(11):
        world.add(b"somebody's", b"")
    world.publish()
    assert world.prove().published == {ITEM.action_id}
    strays = {"place": PLACE, "records": 11, "first_offsets": list(range(10))}
    assert world.audited == [("progress_not_ours", strays)]


def test_records_of_other_plans_actions_are_neither_strays_nor_proof(world: World) -> None:
    world.publish(replace(ITEM, action_id=UUID(int=77)))
    assert (world.prove().published, world.audited) == (set(), [])


def test_while_another_executor_holds_the_topic_nothing_is_proven(world: World) -> None:
    world.held = frozenset({NAME})
    with pytest.raises(ProgressHeld, match=f"^topic {NAME}: a transaction that began after our init_transactions"):
        world.prove()


# An action that an earlier start has begun, and whose record may be gone.


def doubts(world: World) -> list[str]:
    return list(world.prove().doubts.values())


@pytest.mark.parametrize("state", [ActionState.DONE, ActionState.REFUSED, ActionState.WAITING])
def test_only_what_is_being_executed_may_have_lost_its_record(world: World, state: ActionState) -> None:
    world.log_start = 5
    world.act(ITEM, state)
    assert doubts(world) == []
    world.act(ITEM)
    assert doubts(world) == [
        f"an earlier start has begun it, and records of {PLACE} below 5 were deleted since: its own may be gone"
    ]


def test_what_this_start_is_the_first_to_begin_has_no_record_to_lose(world: World) -> None:
    world.log_start = 5
    world.act(ITEM)
    world.begun = {ITEM.action_id}
    assert doubts(world) == []


def test_a_record_that_was_written_behind_what_is_deleted_cannot_be_gone(world: World) -> None:
    world.log_start = 5
    world.act(ITEM, outcome={"progress_topic_id": "t", "progress_from": 5})
    assert doubts(world) == []
    world.act(ITEM, outcome={"progress_topic_id": "t", "progress_from": 4})
    assert len(doubts(world)) == 1


def test_one_that_does_not_say_from_where_on_may_have_been_anywhere(world: World) -> None:
    world.act(ITEM, outcome={"progress_topic_id": "t"})
    assert doubts(world) == []
    world.log_start = 1
    assert len(doubts(world)) == 1


def test_a_topic_that_was_made_anew_may_have_had_it(world: World) -> None:
    world.act(ITEM, outcome={"progress_topic_id": "of old", "progress_from": 0})
    assert doubts(world) == [f"an earlier start has begun it, and {PLACE} was made anew since: its record may be gone"]


def test_a_batch_that_nobody_gets_to_read_may_be_the_record_if_it_stands_behind_the_beginning(world: World) -> None:
    world.add(b"somebody's", b"")
    world.add(b"", b"", HIDDEN)
    world.add(b"somebody's", b"")
    hidden = (
        f"an earlier start has begun it, and its record may be hidden: nobody gets to read the batch of {PLACE} at 1, "
        "which may have its key"
    )
    for begun_at, expected in ((0, [hidden]), (1, [hidden]), (2, [])):
        world.act(ITEM, outcome={"progress_topic_id": "t", "progress_from": begun_at})
        assert doubts(world) == expected, begun_at
    world.act(ITEM, outcome={"progress_topic_id": "t"})
    assert doubts(world) == [hidden]
