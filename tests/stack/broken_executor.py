"""The executor with one rule of its protocol broken: python -m tests.stack.broken_executor RULE SCRIPT ARGUMENTS...

Not a test: test_crash.py runs it as a process of its own, in place of the executor.
"""

import json
import os
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import psycopg
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from psycopg import sql
from sqlalchemy import Engine, text

from lab.crash.barrier_script import run_step_by_step
from tallystick.compensation import plan as compensation_plan
from tallystick.compensation import planning
from tallystick.compensation.abort_plan import AbortItem
from tallystick.compensation.plan import Plan
from tallystick.executor import draw_plan, execute_plan, prove_repairs, publish_repairs
from tallystick.executor.effects import abort_marker, action_log, post_to_ledger, publish_events
from tallystick.executor.effects.publish_events import OutgoingRecord, TransactionAborted, publish_together
from tallystick.executor.progress_proof import ProgressProof
from tallystick.executor.progress_topic import progress_topic_name
from tallystick.store.plans import claim_store, plan_store


def transaction_dropped() -> None:
    """Events and progress are flushed, and that is all."""

    class PlainProducer(Producer):
        def __init__(self, settings: Mapping[str, Any]) -> None:
            super().__init__({name: value for name, value in settings.items() if not name.startswith("transaction")})

        def init_transactions(self, *_: object) -> None: ...

        def begin_transaction(self, *_: object) -> None: ...

        def commit_transaction(self, *_: object) -> None: ...

    publish_events.Producer = PlainProducer  # type: ignore[misc]


def fresh_transactional_id() -> None:
    """Nobody is fenced by a name that was never heard of."""
    publish_repairs._refuse_unfenced = lambda *_: None
    action_log.ExecutionContext.transactional_id = property(lambda self: f"tallystick-{uuid.uuid4()}")  # type: ignore[assignment]


def progress_outside_the_transaction() -> None:
    """It is written first, by a producer of its own."""

    def apart(publisher: Producer, records: Sequence[OutgoingRecord], **told: Any) -> Any:
        half = len(records) // 2
        outside = Producer(_kafka())
        for record in records[half:]:
            outside.produce(record.topic, key=record.key, value=record.value)
        outside.flush()
        return publish_together(publisher, records[:half], **told)

    publish_repairs.publish_together = apart


def progress_read_before_fencing() -> None:
    """The publisher is opened only once everything was read; nor is the store asked who has claimed since."""
    action_log.ExecutionContext.refuse_overtaken = lambda *_: None  # type: ignore[method-assign]
    opened = publish_repairs.open_publisher

    def publish_later(publisher: Callable[[], Producer], *records: Any, **told: Any) -> Any:
        return publish_together(publisher(), *records, **told)

    publish_repairs.open_publisher = lambda *address, **names: lambda: opened(*address, **names)
    publish_repairs.publish_together = publish_later


def error_of_a_partition_ignored() -> None:
    """What one partition did not take is told as published."""

    def hopeful(publisher: Producer, records: Sequence[OutgoingRecord], **told: Any) -> Any:
        try:
            return publish_together(publisher, records, **told)
        except TransactionAborted:
            return tuple({"topic": record.topic} for record in records)

    publish_repairs.publish_together = hopeful


def key_of_the_plan() -> None:
    """An action belongs to the cut that its plan was made for, not to its break alone; nor does what it does to a side
    tell two actions of one break.
    """
    claim_store.done_elsewhere = lambda *_, **__: {}  # type: ignore[assignment]
    post_to_ledger._hold_key = lambda *_: None  # type: ignore[assignment]
    made = draw_plan.make_plan

    def make_plan(contract: Any, run: Any, *candidates: Any, **rules: Any) -> Plan:
        own = compensation_plan.uuid5
        planning.action_id_of = lambda name, break_id: own(break_id, f"{name}/{run.cut.n}")
        return made(contract, run, *candidates, **rules)

    draw_plan.make_plan = make_plan


def progress_in_group_offsets() -> None:
    """An offset of a group of its own says that an action is done; no such group, that it never began."""

    class OffsetProducer(Producer):
        def produce(self, topic: str, **record: Any) -> None:
            if not topic.startswith(progress_topic_name("")):
                super().produce(topic, **record)
                return
            group = Consumer(_kafka() | {"group.id": f"action-{record['key'].decode()}"})
            offset = TopicPartition(topic, 0, 1)
            self.send_offsets_to_transaction([offset], group.consumer_group_metadata())
            group.close()

    def prove_by_offsets(work: action_log.ExecutionContext, *_: object) -> ProgressProof:
        groups = AdminClient(work.connections.kafka.for_confluent()).list_consumer_groups().result().valid
        begun = [group.group_id for group in groups if group.group_id.startswith("action-")]
        return ProgressProof(published=frozenset(uuid.UUID(name.removeprefix("action-")) for name in begun))

    publish_events.Producer = OffsetProducer  # type: ignore[misc]
    prove_repairs.prove_progress = prove_by_offsets


def refusal_of_the_overtaken() -> None:
    """Whoever could not prove an absence says that the event was not published."""

    def refuse(engine: Engine, action_id: uuid.UUID, *, outcome: Mapping[str, Any], **_: object) -> bool:
        row = {"action_id": action_id, "reason": outcome["reason"]}
        statement = text(
            "update tallystick.compensation_action set state = 'refused',"
            " outcome = jsonb_build_object('reason', cast(:reason as text)) where action_id = :action_id"
        )
        with engine.begin() as connection:
            connection.execute(statement, row)
        return True

    action_log.record_refusal = refuse


def post_without_a_key() -> None:
    """The action's id is not inserted with the rows; nor is the lock on the event's key taken, which is enough too."""

    class Keyless(psycopg.Connection[Any]):
        def execute(self, query: Any, *arguments: Any, **told: Any) -> Any:
            said = query.as_string() if isinstance(query, sql.Composed) else query
            if "ON CONFLICT DO NOTHING" in said or "pg_advisory_xact_lock" in said:
                return super().execute("SELECT 1")
            return super().execute(query, *arguments, **told)

    psycopg.connect = Keyless.connect


def outstanding_not_asked() -> None:
    """A plan that has begun is done to its end, whatever became of its breaks."""
    claim_store._outstanding = lambda _, __, break_ids: frozenset(break_ids)  # type: ignore[assignment]
    action_log.outstanding_among = lambda _, __, break_ids: frozenset(break_ids)
    execute_plan.why_not_any_more = lambda *_: {}


def other_contracts_not_asked() -> None:
    """What another contract does, or has done, is no matter of ours."""
    claim_store.done_elsewhere = lambda *_, **__: {}  # type: ignore[assignment]


def evidence_not_kept() -> None:
    """What stood there before the marker is not written into the trail."""
    kept = plan_store.append_audit

    def append_audit(*arguments: Any, event: str, **entry: Any) -> None:
        if event != "evidence":
            kept(*arguments, event=event, **entry)

    _put(kept, append_audit)


def second_look_left_out() -> None:
    """The marker is written on what the first look found."""
    looked = abort_marker.look_at
    found: dict[uuid.UUID, abort_marker.TransactionState] = {}

    def look_once(admin: Any, item: AbortItem) -> abort_marker.TransactionState:
        if item.action_id not in found:
            found[item.action_id] = looked(admin, item)
        return found[item.action_id]

    _put(looked, look_once, but_not_in=abort_marker)


def _put(own: Any, broken: Any, *, but_not_in: ModuleType | None = None) -> None:
    """Under each name that some module of ours has it by."""
    for module in [one for name, one in sys.modules.items() if name.startswith("tallystick") and one is not but_not_in]:
        for name in [name for name, value in vars(module).items() if value is own]:
            setattr(module, name, broken)


def _kafka() -> dict[str, Any]:
    return dict(json.loads(os.environ["TALLYSTICK_CONN_KAFKA_LAB"]))


RULES = {
    rule.__name__: rule
    for rule in (
        transaction_dropped,
        fresh_transactional_id,
        progress_outside_the_transaction,
        progress_read_before_fencing,
        error_of_a_partition_ignored,
        key_of_the_plan,
        progress_in_group_offsets,
        refusal_of_the_overtaken,
        post_without_a_key,
        outstanding_not_asked,
        other_contracts_not_asked,
        evidence_not_kept,
        second_look_left_out,
    )
}

if __name__ == "__main__":
    RULES[sys.argv.pop(1)]()
    run_step_by_step()
