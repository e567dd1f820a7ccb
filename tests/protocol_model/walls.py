"""All that the product calls outside of itself, by its own names: broker, store, ledger and clock."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from confluent_kafka import KafkaError

from tallystick.compensation.kill_switch import SwitchSetting
from tallystick.compensation.plan import CurrentRow, DailyUsage, OffsetsUnread, Plan, PlanItem
from tallystick.compensation.progress_record import ExecutorKey
from tallystick.executor import progress_topic
from tallystick.executor.effects import action_log, publish_events
from tallystick.kafka_cluster.state import CLUSTER_STATE, ClusterState
from tallystick.kafka_log.committed_records import CommittedRecord
from tallystick.kafka_log.record import ACTION_HEADER
from tallystick.model.cut import JudgedPart, PartitionSnapshot
from tallystick.model.finding_names import BreakClass
from tallystick.model.offsets import TopicPartition
from tallystick.model.stored_run import OutstandingBreak, RunSummary
from tallystick.store.plans.claim_store import NOT_OUTSTANDING, Claims
from tallystick.store.plans.plan_store import (
    PROGRESS_END,
    PROGRESS_FROM,
    PROGRESS_TOPIC_ID,
    PUBLISHING,
    ActionState,
    StoredAction,
)

from .scene import CONTRACT_NAME, NOON, TOPIC, Scene, run_of, summary_of
from .start import Start
from .world import OPEN, OURS, Action, Record

STORE = SimpleNamespace()
PROGRESS_TOPIC = progress_topic.progress_topic_name(CONTRACT_NAME)
ENVIRONMENT, THIS_START = "model", "this start"
"""A start knows itself alone by its word; whose claim it is that stands in the store, the store knows."""
KEY = ExecutorKey(secret=b"of the model's store")
CONNECTIONS: Any = SimpleNamespace(kafka=SimpleNamespace(for_confluent=dict), ledger_dsn="", poster_dsn=None)
PARTIES: Mapping[str, str] = {PROGRESS_TOPIC: "progress", TOPIC: "events"}
_STOPPED = SwitchSetting(contract=None, stopped=True, by="eve", because="", at_utc=NOON)
_DOCUMENT = CLUSTER_STATE.dump_python(ClusterState(), mode="json")


class Publisher:
    """In the place of confluent_kafka.Producer."""

    def __init__(self, walls: "Walls", settings: Mapping[str, Any]) -> None:
        assert settings["transactional.id"] == publish_events.transactional_id_of(CONTRACT_NAME, ENVIRONMENT)
        self.start, self.places = walls.start, walls.scene.place_of_action
        self.start.publishers += 1
        self.number, self.refused = self.start.publishers, False

    @property
    def stands_for(self) -> tuple[int, bool]:
        return self.number, self.refused

    def init_transactions(self, _seconds: float) -> None:
        self.start.ask("init_transactions", self.number)

    def begin_transaction(self) -> None:
        """The broker hears of it with the first record."""

    def produce(
        self, topic: str, *, key: bytes, value: bytes, headers: Sequence[Any], on_delivery: Callable[..., None]
    ) -> None:
        about = dict(headers).get(ACTION_HEADER, key).decode()
        record = Record(
            OPEN, self.places[UUID(about)], ACTION_HEADER in dict(headers), OURS, key, value, tuple(headers)
        )
        offset = self.start.ask("produce", self.number, PARTIES[topic], record)
        message = SimpleNamespace(partition=lambda: 0, offset=lambda: offset)
        if offset == -2:
            self.refused = True
            on_delivery(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), message)
        else:
            on_delivery(None, message)

    def flush(self) -> None:
        self.start.ask("flush", self.number, self.refused)

    def commit_transaction(self, _seconds: float) -> None:
        self.start.ask("commit_transaction", self.number)

    def abort_transaction(self, _seconds: float) -> None:
        self.start.ask("abort_transaction", self.number)
        self.refused = False


class Walls:
    """What the product calls, by its own names. Those that do not ask the start for an answer tell what nothing in the
    model changes.
    """

    stands_for = "all that is outside"

    start: Start

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.Producer = partial(Publisher, self)
        self.time = SimpleNamespace(monotonic=lambda: self.start.clock, sleep=self._sleep)
        self.uuid = SimpleNamespace(uuid4=lambda: THIS_START)

    def _sleep(self, _seconds: float) -> None:
        """Whoever waits looks once more, whenever that is; how much else happens before, the model says."""
        self.start.clock += action_log.SETTLE_SECONDS

    def require_same_books(self, *_: object) -> None: ...

    def read_plan(self, _engine: object, plan_id: UUID) -> Plan | None:
        n = self.scene.cut_of_plan.get(plan_id)
        return None if n is None else self.scene.plans[n]

    def requesters(self, *_: object) -> frozenset[str]:
        return frozenset({"bob"})

    def last_voided(self, *_: object) -> None: ...

    def keep_contract(self, *_: object) -> None: ...

    def agreements(self, *_: object, **__: object) -> dict[str, timedelta]:
        return {"carol": timedelta(0)}

    def spent_today(self, *_: object, **__: object) -> DailyUsage:
        return DailyUsage()

    def open_actions(self, *_: object) -> dict[UUID, StoredAction]:
        return dict(self._stored(self.start.ask("open_actions")))

    def read_run(self, _engine: object, _name: str, cut_n: int) -> Any:
        return run_of(cut_n)

    def list_runs(self, *_: object, **__: object) -> list[RunSummary]:
        newest, lost = self.start.ask("list_runs")
        return [summary_of(newest, lost=lost)]

    def cluster_state_document(self, *_: object) -> Any:
        return _DOCUMENT

    def last_cuts_with_offsets_unread(self, *_: object, **__: object) -> OffsetsUnread:
        return OffsetsUnread(at=int(self.start.ask("last_cuts_with_offsets_unread")))

    def last_cuts_read_whole(self, *_: object) -> dict[object, int]:
        return {}

    def last_cut_with_rows_unread(self, *_: object) -> int:
        return -1

    def keys_whose_copies_differ(self, *_: object) -> dict[str, BreakClass]:
        return {}

    def transactions_with_lonely_copies(self, *_: object) -> dict[str, BreakClass]:
        return {}

    def outstanding_breaks(self, *_: object) -> list[OutstandingBreak]:
        every = tuple(range(self.scene.items))
        return [self.scene.breaks[n] for n in self.start.ask("outstanding_breaks", every)]

    def open_ledger(self, *_: object, **__: object) -> Any:
        return nullcontext()

    def read_source_rows(self, _ledger: object, _section: object, keys: Collection[str]) -> Any:
        found: dict[str, tuple[CurrentRow, ...]] = {row.match_key: (row,) for row in self.scene.rows}
        return {key: rows for key, rows in found.items() if key in keys}

    def ensure_progress_topic(self, *_: object) -> PartitionSnapshot:
        return _snapshot(PROGRESS_TOPIC, self.start.ask("ensure_progress_topic"))

    def read_executor_key(self, _engine: object) -> ExecutorKey:
        return KEY

    def open_admin(self, *_: object) -> Any:
        """To settle topics: the first look marks how far they are written."""
        self.start.looks = 0
        return nullcontext()

    def read_topic_snapshot(self, _admin: object, _names: object) -> tuple[PartitionSnapshot, ...]:
        self.start.looks += 1
        progress, events = self.start.ask("read_topic_snapshot", self.start.looks == 1)
        return _snapshot(PROGRESS_TOPIC, progress), _snapshot(TOPIC, events)

    def read_committed(self, _kafka: object, partitions: Sequence[PartitionSnapshot]) -> list[CommittedRecord]:
        (part,) = partitions
        if part.log_start >= part.lso:
            return []
        asked = PARTIES[part.topic], int(part.topic_id), part.log_start, part.lso
        return [self._committed(part.topic, n, one) for n, one in self.start.ask("read_committed", *asked)]

    def cleaned_partitions(self, _kafka: object, _ranges: object) -> frozenset[TopicPartition]:
        """No topic compacts here."""
        return frozenset()

    def _committed(self, topic: str, offset: int, record: Record) -> CommittedRecord:
        key, value, headers = record.key, record.value, dict(record.headers)
        if not value:
            key, value = self.scene.originals[record.of]
        return CommittedRecord(topic=topic, partition=0, kafka_offset=offset, key=key, value=value, headers=headers)

    def judged_parts(self, *_: object, **__: object) -> dict[TopicPartition, JudgedPart]:
        end = self.start.ask("judged_parts")
        return {
            TopicPartition(topic=TOPIC, partition=0): JudgedPart(
                topic_id="0", leader_epoch=0, log_start=0, kafka_offset_end=end
            )
        }

    def published_behind(self, _engine: object, plan_ids: Collection[UUID]) -> dict[UUID, Mapping[str, Any]]:
        plans = tuple(sorted(self.scene.cut_of_plan[one] for one in plan_ids))
        found = self.start.ask("published_behind", plans)
        return {self.scene.action_ids[n]: {TOPIC: {"0": end}} for n, end in found}

    def claim_actions(
        self,
        _engine: object,
        plan: Plan,
        actions: Sequence[PlanItem],
        *,
        outcome: Mapping[str, Any],
        stopped: Mapping[UUID, str],
        **_: object,
    ) -> Claims:
        asked = self._numbers(one.action_id for one in actions)
        made, starts_at = int(outcome[PROGRESS_TOPIC_ID]), outcome[PROGRESS_FROM]
        arguments = self.scene.cut_of_plan[plan.plan_id], asked, made, starts_at, self._numbers(stopped)
        claimed, begun, gone = self.start.ask("claim_actions", *arguments)
        ids = self.scene.action_ids
        return Claims(
            actions=dict(self._stored(claimed)),
            begun=frozenset(ids[n] for n in begun),
            unclaimed={ids[n]: NOT_OUTSTANDING for n in gone} | dict(stopped),
            taken_back={},
        )

    def held_among(self, _engine: object, action_ids: Collection[UUID], executor: str) -> frozenset[UUID]:
        assert executor == THIS_START
        found = self.start.ask("held_among", self._numbers(action_ids))
        return frozenset(self.scene.action_ids[n] for n in found)

    def outstanding_among(self, _engine: object, _name: str, break_ids: Collection[UUID]) -> frozenset[UUID]:
        asked = tuple(sorted(self.scene.place_of_break[one] for one in break_ids))
        found = self.start.ask("outstanding_among", asked)
        return frozenset(self.scene.breaks[n].item_break.break_id for n in found)

    def append_audit(self, *_: object, plan_id: UUID, event: str, detail: Mapping[str, Any], **__: object) -> None:
        """Of the trail only the lines before a producer transaction are read by an executor."""
        if event == PUBLISHING:
            about = self._numbers(UUID(one) for one in detail["actions"])
            end = detail["ends"][TOPIC]["0"]
            self.start.ask("append_audit publishing", self.scene.cut_of_plan[plan_id], about, end)

    def read_switch(self, *_: object) -> tuple[SwitchSetting | None, SwitchSetting | None]:
        stopped = self.start.ask("read_switch")
        return (
            (SwitchSetting(contract=None, stopped=True, by="eve", because="", at_utc=NOON), None)
            if stopped
            else (None, None)
        )

    def record_done(
        self, _engine: object, action_id: UUID, *, by_us: bool, reopened: int, outcome: Mapping[str, Any]
    ) -> None:
        self.start.ask("record_done", self.scene.place_of_action[action_id], by_us, reopened)

    def record_refusal(self, _engine: object, action_id: UUID, *, executor: str, outcome: Mapping[str, Any]) -> bool:
        return bool(self.start.ask("record_refusal", self.scene.place_of_action[action_id], executor == THIS_START))

    def record_waiting(self, _engine: object, action_id: UUID, *, executor: str, outcome: Mapping[str, Any]) -> bool:
        assert executor == THIS_START
        seen = (int(outcome[PROGRESS_TOPIC_ID]), outcome[PROGRESS_END]) if PROGRESS_END in outcome else None
        return bool(self.start.ask("record_waiting", self.scene.place_of_action[action_id], seen))

    def _numbers(self, action_ids: Any) -> tuple[int, ...]:
        return tuple(sorted(self.scene.place_of_action[one] for one in action_ids))

    def _stored(self, held: Sequence[tuple[int, Action]]) -> Iterator[tuple[UUID, StoredAction]]:
        for n, one in held:
            action_id = self.scene.action_ids[n]
            yield (
                action_id,
                StoredAction(
                    action_id=action_id,
                    break_id=self.scene.breaks[n].item_break.break_id,
                    plan_id=self.scene.plans[one.plan].plan_id,
                    state=one.state,
                    outcome=_outcome(one),
                    recorded_at=NOON,
                    reopened=one.reopened,
                    void_progress=one.void and {PROGRESS_TOPIC_ID: str(one.void[0]), "before": one.void[1]},
                ),
            )


def _outcome(action: Action) -> dict[str, Any]:
    match action.state:
        case ActionState.EXECUTING:
            named = publish_events.transactional_id_of(CONTRACT_NAME, ENVIRONMENT)
            begun = {PROGRESS_TOPIC_ID: str(action.made), PROGRESS_FROM: action.starts_at}
            return begun | {"transactional_id": named}
        case ActionState.WAITING:
            seen = {PROGRESS_TOPIC_ID: str(action.seen[0]), PROGRESS_END: action.seen[1]} if action.seen else {}
            return {"reason": "a person has to look"} | seen
        case ActionState.DONE:
            return {"topic": TOPIC}
        case ActionState.REFUSED:
            return {"reason": "refused"}


def _snapshot(topic: str, bounds: tuple[int, int, int, int]) -> PartitionSnapshot:
    made, log_start, lso, written_end = bounds
    return PartitionSnapshot(
        topic=topic,
        partition=0,
        topic_id=str(made),
        leader_epoch=0,
        log_start=log_start,
        lso=lso,
        high_watermark=written_end,
    )
