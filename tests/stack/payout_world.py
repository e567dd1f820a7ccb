"""A contract over one topic and one table, and a store whose literal runs found events missing; on real servers."""

import json
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from confluent_kafka import OFFSET_END, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, TopicPartition
from sqlalchemy import Engine, text

from lab.servers.stack import LabStack
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Event, Leg, Payment
from lab.services.ledger import Ledger, PayoutRow
from lab.services.namespace import Namespace
from tallystick.compensation.plan import Plan
from tallystick.connections.connections import Connections, KafkaSettings
from tallystick.contract.contract import Contract
from tallystick.executor.execute_plan import Execution
from tallystick.executor.progress_topic import progress_topic_name
from tallystick.kafka_log.fetch import open_admin
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.model.finding_names import BreakClass
from tallystick.model.verdict import Verdict
from tallystick.store.plans.plan_store import read_audit

from .repairs import executed, planned
from .store_owner import as_owner

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
KILLED_EXECUTOR = Path(__file__).with_name("killed_executor.py")


@dataclass
class Books:
    """One contract with its ledger table, its topic, and a store whose last run found events missing."""

    stack: LabStack
    store: Engine
    store_dsn: str
    contract: Contract
    names: Namespace
    runs: Any

    @property
    def topic(self) -> str:
        return self.names.topic(Leg.PAYOUT)

    @property
    def connections(self) -> Connections:
        kafka = KafkaSettings({"bootstrap.servers": self.stack.bootstrap_servers})
        return Connections(kafka=kafka, ledger_dsn=self.stack.ledger_reader_dsn)

    @property
    def ledger(self) -> psycopg.Connection:
        return psycopg.connect(self.stack.ledger_owner_dsn, autocommit=True)

    def pay(self, count: int) -> list[PayoutRow]:
        """Write outbox rows that nobody publishes."""
        with self.ledger as connection:
            return [
                Ledger(self.names).add_payout(
                    connection,
                    Payment(payment_id=uuid.uuid4(), amount_minor=100 + n, currency="EUR", occurred_at=NOON),
                )
                for n in range(count)
            ]

    def find_missing(self, rows: list[PayoutRow], *, n: int = 1) -> None:
        """Commit run n, which found these rows' events missing."""
        found = tuple(
            replace(
                self.runs.missing(str(row.event.event_id), amount_minor=row.payment.amount_minor),
                transaction_key=str(row.payment.payment_id),
            )
            for row in rows
        )
        items = tuple(self.runs.item(one, n=n) for one in found)
        self.runs.commit(self.store, self.runs.result(n, verdict=Verdict.BROKEN, breaks=found, items=items))

    def plan(self, *, cut_n: int = 1, dry_run: bool = False) -> Plan:
        return planned(self, cut_n, dry_run=dry_run)

    def execute(self, plan: Plan, **how: Any) -> Execution:
        return executed(self, plan, **how)

    def start_executor(self, plan: Plan, *, die_at: str) -> subprocess.Popen[str]:
        told = {
            "die_at": die_at,
            "store_dsn": self.store_dsn,
            "plan_id": str(plan.plan_id),
            "contract": self.contract.model_dump(mode="json"),
            "bootstrap_servers": self.stack.bootstrap_servers,
            "ledger_dsn": self.stack.ledger_reader_dsn,
        }
        return subprocess.Popen([sys.executable, KILLED_EXECUTOR, json.dumps(told)], stderr=subprocess.PIPE, text=True)

    def publish(self, event: Event, *, transactional_id: str = "") -> Producer:
        """Publish as the outbox relay would; in a transaction that stays open where an id is given."""
        producer = Producer(
            {"bootstrap.servers": self.stack.bootstrap_servers, "partitioner": "murmur2_random"}
            | ({"transactional.id": transactional_id} if transactional_id else {})
        )
        if transactional_id:
            producer.init_transactions()
            producer.begin_transaction()
        producer.produce(self.topic, key=event.message_key, value=event.to_value())
        producer.flush()
        return producer

    def copies(self) -> Counter[str]:
        """How often each event id stands, as a read_committed reader of another make sees it."""
        return Counter(json.loads(record.value)["event_id"] for record in self.records())

    def records(self) -> list[Any]:
        """Committed records up to the high watermark: a commit returns before its markers are written."""
        address = {"bootstrap_servers": self.stack.bootstrap_servers, "enable_auto_commit": False}
        parts = [TopicPartition(self.topic, n) for n in range(2)]
        with_open = KafkaConsumer(**address, isolation_level="read_uncommitted")
        ends = with_open.end_offsets(parts)
        with_open.close()
        consumer = KafkaConsumer(**address, isolation_level="read_committed")
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        records: list[Any] = []
        while any(consumer.position(part) < ends[part] for part in parts):
            records += [record for batch in consumer.poll(200).values() for record in batch]
        consumer.close()
        return records

    def ends(self) -> dict[int, int]:
        """High watermark of each partition: nothing is written, ever, that does not move one."""
        parts = self.snapshot()
        return {part.partition: part.high_watermark for part in parts}

    def snapshot(self) -> Any:
        """Partitions of the topic as they are now."""
        with open_admin(self.connections.kafka) as admin:
            return read_topic_snapshot(admin, [self.topic])

    def expire(self) -> None:
        """What retention does in time, at once: all records are gone."""
        admin = AdminClient({"bootstrap.servers": self.stack.bootstrap_servers})
        ends = [ConfluentPartition(self.topic, n, OFFSET_END) for n in range(2)]
        for deleted in admin.delete_records(ends).values():
            deleted.result()

    def events(self) -> list[str]:
        return [entry.event for entry in read_audit(self.store, self.contract.name)]

    def forget_actions(self) -> None:
        """Lose what the store knows of them, as a store that came back from a backup would."""
        with as_owner(self.stack, self.store).begin() as connection:
            connection.execute(text("delete from tallystick.compensation_action"))

    def states(self) -> Counter[str]:
        statement = text("select state from tallystick.compensation_action")
        with self.store.connect() as connection:
            return Counter(connection.execute(statement).scalars())


@pytest.fixture
def world(
    stack: LabStack, store: Engine, store_dsn: str, new_contract: Callable[..., Contract], books: Any
) -> Iterator[Books]:
    names = Namespace(f"c{uuid.uuid4().hex[:12]}")
    topic = names.topic(Leg.PAYOUT)
    contract = new_contract(
        contract=names.name,
        legs={"payout": topic},
        ledger={
            "connection": "ledger_billing",
            "table": f"{names.schema}.payout",
            "slice_by": "written_xid",
            "where": "currency LIKE '%R'",
        },
        compensation={
            "classes": [BreakClass.MISSING_IN_TOPIC_NEVER_PRODUCED],
            "max_items": 10,
            "max_amount_minor": {"EUR": 10_000},
            "four_eyes_above_minor": {"EUR": 10_000},
        },
    )
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    admin.create_topics([NewTopic(topic, num_partitions=2)])[topic].result()
    with psycopg.connect(stack.ledger_owner_dsn, autocommit=True) as connection:
        Ledger(names).create(connection, DeliveryMode.EXACTLY_ONCE)
    with open_admin(KafkaSettings({"bootstrap.servers": stack.bootstrap_servers})) as reader:
        (topic_id,) = {part.topic_id for part in read_topic_snapshot(reader, [topic])}
    runs = type(books)(contract, topic_id, partitions=2)
    runs.commit(store, runs.result(0))
    yield Books(stack=stack, store=store, store_dsn=store_dsn, contract=contract, names=names, runs=runs)
    created = set(admin.list_topics().topics) & {topic, progress_topic_name(names.name)}
    for deleted in admin.delete_topics(sorted(created)).values():
        deleted.result()


def once(rows: list[PayoutRow]) -> Counter[str]:
    return Counter(str(row.event.event_id) for row in rows)
