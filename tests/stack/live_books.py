"""One contract's two sides on the real servers, in words: literal events are produced, posted, cut and judged.

A test says which events stand on which side; this module knows topics, tables, producers and the store.

One file, since its words for events, sides and cuts stand for the same real servers.
"""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import psycopg
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from sqlalchemy import Engine, text

from lab.servers.postgres import STORE_OWNER, STORE_ROLE
from lab.servers.process import wait_until
from lab.servers.stack import LabStack
from tallystick.connections.connections import Connections, connections_from_environment, environment_variable
from tallystick.contract.contract import Contract
from tallystick.kafka_log.fetch import open_admin
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.model.cut import Cut, PartitionSnapshot
from tallystick.model.run_result import RunResult
from tallystick.model.stored_run import StoredRun
from tallystick.pipeline.lookups import LookUps
from tallystick.pipeline.make_cut import resolve_cut
from tallystick.pipeline.sources import observe
from tallystick.store.engine import open_store
from tallystick.store.runs.run_store import read_run
from tallystick_spark import reconcile_app

KAFKA, LEDGER = "kafka_billing", "ledger_billing"
TWO_LEGS = ("payment", "invoice")
ONE_LEG = ("payment",)

_POSTING = """
CREATE TABLE {table} (
    entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id uuid NOT NULL, payment_id uuid NOT NULL,
    leg text NOT NULL, side text NOT NULL, amount_minor bigint NOT NULL, currency text NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT now(), written_xid bigint DEFAULT pg_current_xact_id()::text::bigint)"""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One leg of a payment. Its ids follow from the payment's name, so they are the same in every test run."""

    payment: str
    leg: str
    amount_minor: int
    currency: str

    @property
    def payment_id(self) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, self.payment))

    @property
    def event_id(self) -> str:
        return str(uuid.uuid5(uuid.UUID(self.payment_id), self.leg))

    @property
    def partition(self) -> int:
        return uuid.UUID(self.payment_id).int % 2

    @property
    def value(self) -> bytes:
        document = {
            "event_id": self.event_id,
            "payment_id": self.payment_id,
            "leg": self.leg,
            "amount_minor": self.amount_minor,
            "currency": self.currency,
            "occurred_at": "2026-01-01T00:00:00Z",
        }
        return json.dumps(document).encode()


def payment(name: str, amount_minor: int = 1000, currency: str = "EUR") -> Event:
    return Event(payment=name, leg="payment", amount_minor=amount_minor, currency=currency)


def invoice(name: str, amount_minor: int = 1000, currency: str = "EUR") -> Event:
    return Event(payment=name, leg="invoice", amount_minor=amount_minor, currency=currency)


def both_legs(*names: str) -> tuple[Event, ...]:
    return tuple(make(name) for name in names for make in (payment, invoice))


def payments(*names: str) -> tuple[Event, ...]:
    return tuple(payment(name) for name in names)


@dataclass(frozen=True)
class RawEvent:
    """An event as the lab's raw producer wants it."""

    event: Event

    headers: ClassVar[dict[str, str]] = {}

    @property
    def message_key(self) -> bytes:
        return self.event.payment_id.encode()

    def to_value(self) -> bytes:
        return self.event.value


@dataclass(frozen=True, kw_only=True)
class LiveBooks:
    """One contract, its topics and its ledger table, all of this test's own."""

    stack: LabStack
    store: Engine
    contract: Contract
    contract_file: Path
    ledger: psycopg.Connection
    """The owner's connection, in autocommit."""
    producers: dict[str, Producer] = field(default_factory=dict)

    @property
    def table(self) -> str:
        return self.contract.ledger.table

    @property
    def connections(self) -> Connections:
        return connections_from_environment(
            kafka_id=KAFKA,
            ledger_id=self.contract.ledger.connection,
            primary_id=self.contract.ledger.primary_connection,
        )

    def producer(self, transactional_id: str = "writer", **settings: Any) -> Producer:
        """A transactional producer, made once per id. settings: librdkafka's, where the defaults will not do."""
        name = f"{self.contract.name}-{transactional_id}"
        if name not in self.producers:
            self.producers[name] = Producer(self._client(**{"transactional.id": name, **settings}))
            self.producers[name].init_transactions(30)
        return self.producers[name]

    @contextmanager
    def transaction(self, *, abort: bool = False, writer: str = "writer") -> Iterator[Producer]:
        """A producer transaction around the block; all that it produces is there before it ends."""
        producer = self.producer(writer)
        producer.begin_transaction()
        yield producer
        assert producer.flush(30) == 0
        if abort:
            producer.abort_transaction()
        else:
            producer.commit_transaction()

    def send(self, producer: Producer, *events: Event, headers: Mapping[str, str] | None = None) -> None:
        """Hand events to a producer and wait until the broker has them."""
        for event in events:
            producer.produce(
                self.contract.legs[event.leg],
                key=event.payment_id,
                value=event.value,
                headers=dict(headers or {}),
                partition=event.partition,
            )
        assert producer.flush(30) == 0

    def produce(self, *events: Event, abort: bool = False, writer: str = "writer", **headers: str) -> None:
        """One producer transaction with these events."""
        with self.transaction(abort=abort, writer=writer) as producer:
            self.send(producer, *events, headers=headers)

    def produce_plain(self, *events: Event, idempotent: bool = False, **headers: str) -> None:
        """Events of one new producer without transactions; its producer id is -1 unless it is idempotent."""
        self.send(Producer(self._client(**{"enable.idempotence": idempotent})), *events, headers=headers)

    def produce_raw(self, value: bytes | None, *, leg: str = "payment", partition: int = 0) -> None:
        """A committed record with any value."""
        with self.transaction() as producer:
            producer.produce(self.contract.legs[leg], value=value, partition=partition)

    def post(self, *events: Event, connection: psycopg.Connection | None = None) -> None:
        """Two postings per event, debit and credit, in one database transaction."""
        writer = connection or self.ledger
        with writer.transaction(), writer.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {self.table} (event_id, payment_id, leg, side, amount_minor, currency) "
                "VALUES (%s, %s, %s, %s, %s, %s)",
                [
                    (event.event_id, event.payment_id, event.leg, side, event.amount_minor, event.currency)
                    for event in events
                    for side in ("debit", "credit")
                ],
            )

    def both(self, *events: Event) -> None:
        """Events that stand on both sides."""
        self.produce(*events)
        self.post(*events)

    def make_topics(self) -> None:
        """Make the contract's topics, of two partitions each; the input's too, where it has one."""
        admin = AdminClient({"bootstrap.servers": self.stack.bootstrap_servers})
        topics = (*self.contract.topics, *self.contract.input_topics)
        made = admin.create_topics([NewTopic(topic, num_partitions=2) for topic in topics])
        for future in made.values():
            future.result(30)
        # The controller answers before the broker tells others of the topic.
        wait_until(lambda: set(topics) <= admin.list_topics(timeout=30).topics.keys(), what="the topics to be known")

    def remake_topic(self, leg: str, *, partitions: int = 2) -> None:
        """Delete a leg's topic and create it again: the same name, another id."""
        topic, admin = self.contract.legs[leg], AdminClient({"bootstrap.servers": self.stack.bootstrap_servers})
        admin.delete_topics([topic])[topic].result(30)
        admin.create_topics([NewTopic(topic, num_partitions=partitions)])[topic].result(30)
        self.producers.clear()  # they would write to the old id for a while

    def configure_topic(self, leg: str, **settings: str) -> None:
        """Change settings of a leg's topic; _ stands for the dot in their names."""
        entries = [
            ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, self.contract.legs[leg], incremental_configs=entries)
        admin = AdminClient({"bootstrap.servers": self.stack.bootstrap_servers})
        admin.incremental_alter_configs([resource])[resource].result(30)

    def connect(self) -> psycopg.Connection:
        """Another session of the ledger's owner, in autocommit."""
        return psycopg.connect(self.stack.ledger_owner_dsn, autocommit=True)

    def snapshot(self) -> tuple[PartitionSnapshot, ...]:
        with open_admin(self.connections.kafka) as admin:
            return read_topic_snapshot(admin, self.contract.topics)

    def wait_stable(self) -> None:
        """Wait until no transaction is open and replicas have all: a commit returns before its markers are there."""
        wait_until(lambda: all(part.lso == part.written_end for part in self.snapshot()), what="a stable log")

    def take_cut(self, *, settled: bool = True, later: timedelta = timedelta()) -> Cut:
        """Fix the next cut, as sensor and cut task do. settled: wait until both sides have reached their marks.

        later: how far the cut task's clock is ahead.
        """
        end = datetime.now(UTC)
        if settled:
            wait_until(lambda: self._observe(end), what="both sides")
        else:
            self._observe(end)
        return self.resolve(end, later=later)

    def resolve(self, window_end_utc: datetime, *, later: timedelta = timedelta()) -> Cut:
        """The cut task alone. Windows are told apart by their end."""
        return resolve_cut(
            self.store,
            self.contract,
            self.connections,
            window_start_utc=window_end_utc - timedelta(minutes=1),
            window_end_utc=window_end_utc,
            now_utc=datetime.now(UTC) + later,
            scheduler_run_id=f"run-{window_end_utc.isoformat()}",
        )

    def judge(self, cut: Cut) -> StoredRun:
        """Judge a stored cut in this process and give back what was stored."""
        reconcile_app.run_cut(self.store, self.contract, self.connections, cut)
        return self.stored_run(cut)

    def next_run(self, *, settled: bool = True) -> StoredRun:
        return self.judge(self.take_cut(settled=settled))

    def judge_again(self, run: StoredRun) -> RunResult:
        """Read the cut of a stored run again, with the look-ups of the first time; stores nothing."""
        look_ups = LookUps.from_json(run.result.look_ups)
        result, heads = reconcile_app.judge_cut(
            self.store, self.contract, self.connections, run.cut, stored_look_ups=look_ups
        )
        return reconcile_app.with_logs_around(self.contract, self.connections.kafka, result, heads)

    def stored_run(self, cut: Cut) -> StoredRun:
        run = read_run(self.store, self.contract.name, cut.n)
        assert run is not None
        return run

    def delete_records(self, leg: str, partition: int, *, before: int) -> None:
        """What retention does: the log of this partition starts at `before`."""
        self.delete_records_of(self.contract.legs[leg], partition, before=before)

    def delete_records_of(self, topic: str, partition: int, *, before: int) -> None:
        asked = TopicPartition(topic, partition, before)
        admin = AdminClient({"bootstrap.servers": self.stack.bootstrap_servers})
        admin.delete_records([asked])[asked].result(30)

    def _observe(self, window_end_utc: datetime) -> bool:
        now = datetime.now(UTC)
        readiness = observe(self.store, self.contract, self.connections, window_end_utc=window_end_utc, now_utc=now)
        return readiness.settled

    def _client(self, **settings: Any) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.stack.bootstrap_servers,
            "enable.metrics.push": False,
            "log_level": 0,
            "linger.ms": 0,
            **settings,
        }


def kinds(run: StoredRun) -> list[tuple[str, str, str]]:
    """(class, transaction key, leg) of each break, in order."""
    return sorted((str(one.break_class), one.transaction_key, one.leg) for one in run.result.breaks)


def expected(*breaks: tuple[str, Event]) -> list[tuple[str, str, str]]:
    """Say the same of literal events."""
    return sorted((name, event.payment_id, event.leg) for name, event in breaks)


def doubts(run: StoredRun) -> list[str]:
    return [str(found.doubt) for found in run.result.doubts]


def table_contents(
    store: Engine, *, contract: str | None = None, leave_out: Sequence[str] = ()
) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table of the store, or of one contract where a table names it; without the columns named."""
    tables = text(
        "SELECT table_name, bool_or(column_name = 'contract') FROM information_schema.columns "
        "WHERE table_schema = 'tallystick' GROUP BY 1 ORDER BY 1"
    )
    contents = {}
    with store.connect() as connection:
        for name, has_contract in connection.execute(tables).all():
            own = "WHERE t.contract = coalesce(:contract, t.contract)" if has_contract else ""
            query = text(f"SELECT to_jsonb(t) AS row FROM tallystick.{name} t {own} ORDER BY t::text")
            rows = connection.execute(query, {"contract": contract} if has_contract else {}).scalars()
            contents[name] = [
                tuple((key, str(value)) for key, value in sorted(row.items()) if key not in leave_out) for row in rows
            ]
    return contents


@contextmanager
def open_live_books(
    stack: LabStack,
    store: Engine,
    folder: Path,
    *,
    direction: str,
    legs: Sequence[str] = ONE_LEG,
    ledger: Mapping[str, Any] | None = None,
    unique_key: bool = False,
    **contract: Any,
) -> Iterator[LiveBooks]:
    """Make topics of two partitions and a table of postings; both are gone afterwards. No cut is taken yet.

    A window is late once the next one has ended too, so windows that end soon would be late by the test's own pace.
    """
    name = f"b{uuid.uuid4().hex[:10]}"
    table = {"connection": LEDGER, "table": f"{name}.posting", "where": "side LIKE 'cr%'"}
    inputs = {"kind": "topic", "connection": KAFKA, "topics": [f"{name}.requests"]}
    document = {
        "contract": name,
        "version": 1,
        "owner": "billing-team",
        "direction": direction,
        "schedule": "0 0 1 1 *",
        "start_date": "2026-01-01T00:00:00Z",
        "kafka": {"connection": KAFKA},
        "legs": {leg: f"{name}.{leg}" for leg in legs},
        "ledger": {**(inputs if direction == "topic_to_topic" else table), **(ledger or {})},
        "partner_grace_seconds": 0,
        **contract,
    }
    contract_file = folder / f"{name}.yaml"
    contract_file.write_text(json.dumps(document))
    with closing(psycopg.connect(stack.ledger_owner_dsn, autocommit=True)) as owner:
        owner.execute(f"CREATE SCHEMA {name}")
        owner.execute(_POSTING.format(table=f"{name}.posting"))
        owner.execute(f"CREATE {'UNIQUE' if unique_key else ''} INDEX ON {name}.posting (event_id, side)")
        books = LiveBooks(
            stack=stack,
            store=store,
            contract=Contract.model_validate(document),
            contract_file=contract_file,
            ledger=owner,
        )
        books.make_topics()
        try:
            yield books
        finally:
            with psycopg.connect(stack.ledger_owner_dsn, autocommit=True) as cleaner:  # the server may have been killed
                cleaner.execute(f"DROP SCHEMA {name} CASCADE")
            admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
            for future in admin.delete_topics([*books.contract.topics, *books.contract.input_topics]).values():
                future.result(30)


@contextmanager
def copy_of_store(books: LiveBooks) -> Iterator[LiveBooks]:
    """The same books in a store of their own, which begins as a copy of theirs and is gone afterwards."""
    server, name = books.stack.store_server, f"copy_{uuid.uuid4().hex}"
    books.store.dispose()  # who is connected holds up a copy
    end_all = "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE datname = %s"
    with server.connect() as admin:
        # other tests share that store, and one of them may have left a session behind; returns once it has ended
        admin.execute(end_all, [books.store.url.database])
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {books.store.url.database} OWNER {STORE_OWNER}")
    yield replace(books, store=open_store(server.dsn(STORE_ROLE, name)))
    with server.connect() as admin:
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


def environment_of(stack: LabStack, artifacts: Path) -> dict[str, str]:
    """What a task finds in its environment."""
    return {
        environment_variable(KAFKA): json.dumps({"bootstrap.servers": stack.bootstrap_servers}),
        environment_variable(LEDGER): stack.ledger_reader_dsn,
        "TALLYSTICK_ARTIFACTS_DIR": str(artifacts),
    }
