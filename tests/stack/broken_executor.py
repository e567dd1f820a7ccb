"""The executor with one rule of its protocol broken, step by step: python broken_executor.py RULE SCRIPT ARGUMENTS...

Not a test: test_crash.py runs it as a process of its own, in place of the executor.
"""

import json
import os
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from sqlalchemy import Engine, text

from lab.step_by_step import run_step_by_step
from tallystick import compensation, compensation_plan, compensation_source, event_publisher, executor_work
from tallystick.committed_records import SettledTopics
from tallystick.compensation_plan import Plan
from tallystick.connections import KafkaSettings
from tallystick.event_publisher import OutgoingRecord, TransactionAborted, publish_together
from tallystick.progress_topic import Progress, progress_topic_name


def transaction_dropped() -> None:
    """Events and progress are flushed, and that is all."""

    class PlainProducer(Producer):
        def __init__(self, settings: Mapping[str, Any]) -> None:
            super().__init__({name: value for name, value in settings.items() if not name.startswith("transaction")})

        def init_transactions(self, *_: object) -> None: ...

        def begin_transaction(self, *_: object) -> None: ...

        def commit_transaction(self, *_: object) -> None: ...

    event_publisher.Producer = PlainProducer  # type: ignore[misc]


def fresh_transactional_id() -> None:
    """Nobody is fenced by a name that was never heard of."""
    executor_work.Work.transactional_id = property(lambda self: f"tallystick-{uuid.uuid4()}")  # type: ignore[assignment]


def progress_outside_the_transaction() -> None:
    """It is written first, by a producer of its own."""

    def apart(publisher: Producer, records: Sequence[OutgoingRecord], **told: Any) -> Any:
        half = len(records) // 2
        outside = Producer(_kafka())
        for record in records[half:]:
            outside.produce(record.topic, key=record.key, value=record.value)
        outside.flush()
        return publish_together(publisher, records[:half], **told)

    compensation.publish_together = apart


def progress_read_before_fencing() -> None:
    """The publisher is opened only once everything was read."""
    opened = compensation.open_publisher

    def publish_later(publisher: Callable[[], Producer], *records: Any, **told: Any) -> Any:
        return publish_together(publisher(), *records, **told)

    compensation.open_publisher = lambda *address, **names: lambda: opened(*address, **names)
    compensation.publish_together = publish_later


def error_of_a_partition_ignored() -> None:
    """What one partition did not take is told as published."""

    def hopeful(publisher: Producer, records: Sequence[OutgoingRecord], **told: Any) -> Any:
        try:
            return publish_together(publisher, records, **told)
        except TransactionAborted:
            return tuple({"topic": record.topic} for record in records)

    compensation.publish_together = hopeful


def key_of_the_plan() -> None:
    """An action belongs to the cut that its plan was made for, not to its break alone."""
    made = compensation_source.make_plan

    def make_plan(contract: Any, run: Any, *candidates: Any, **rules: Any) -> Plan:
        own = compensation_plan.uuid5
        compensation_plan.action_id_of = lambda name, break_id: own(break_id, f"{name}/{run.cut.n}")
        return made(contract, run, *candidates, **rules)

    compensation_source.make_plan = make_plan


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

    def read_offsets(kafka: KafkaSettings, contract_name: str, settled: SettledTopics) -> dict[uuid.UUID, Progress]:
        groups = AdminClient(kafka.for_confluent()).list_consumer_groups().result().valid
        begun = [group.group_id for group in groups if group.group_id.startswith("action-")]
        ids = [uuid.UUID(name.removeprefix("action-")) for name in begun]
        return {one: Progress(action_id=one, plan_id=one, topic=contract_name) for one in ids}

    event_publisher.Producer = OffsetProducer  # type: ignore[misc]
    compensation.read_progress = read_offsets


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

    executor_work.record_refusal = refuse


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
    )
}

if __name__ == "__main__":
    RULES[sys.argv.pop(1)]()
    run_step_by_step()
