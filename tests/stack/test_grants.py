"""What `tallystick grants` prints is what a contract needs: applied to real servers as it is, and one short of it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AclOperation, AdminClient, ResourceType
from kafka import TopicPartition
from kafka.admin import AbortTransactionSpec
from kafka.errors import ClusterAuthorizationFailedError
from typer.testing import CliRunner

from lab.doors.acls import all_acls, grant, revoke
from lab.servers.ports import free_port
from lab.servers.postgres import LEDGER_DATABASE
from lab.servers.stack import LabStack
from tallystick.cli.app import app
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.connections.connections import KafkaSettings, environment_variable
from tallystick.contract.compensation import REPUBLISHABLE
from tallystick.executor.effects.action_log import ActionResult
from tallystick.executor.effects.publish_events import TransactionAborted
from tallystick.kafka_cluster import open_transactions
from tallystick.kafka_cluster.settings import read_broker_settings, read_topic_settings
from tallystick.kafka_log.fetch import BrokerUnreachable, open_admin
from tallystick.kafka_log.topic_snapshot import TopicNotFound, read_topic_snapshot
from tallystick.ledger.protocol import LedgerRefused
from tests.stack.live_books import KAFKA, LEDGER, LiveBooks, doubts, payment

from .live import NewBooks
from .repairs import effects, executed, planned, posting_books
from .secured_servers import GuardedBroker

REPAIRS = {
    "classes": list(REPUBLISHABLE),
    "abort_hanging_transactions": True,
    "max_amount_minor": {"EUR": 10_000},
    "four_eyes_above_minor": {"EUR": 10_000},
}
LOST = payment("lost", 700)


def printed(books: LiveBooks, *arguments: str) -> str:
    result = CliRunner().invoke(app, ["grants", str(books.contract_file), *arguments])
    assert result.exit_code == 0, result.stderr
    return result.stdout


# Kafka.


@pytest.fixture(scope="module")
def broker(build_folder: Path) -> Iterator[GuardedBroker]:
    folder = build_folder / f"guarded-{uuid4().hex[:8]}"
    broker = GuardedBroker(folder=folder, proxied_port=free_port(), accounts=("reader", "executor"))
    broker.initialise()
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


@dataclass(frozen=True)
class Guarded:
    """Books on a broker that asks for rights, and who administers it."""

    books: LiveBooks
    broker: GuardedBroker
    admin: AdminClient

    def account(self, name: str) -> KafkaSettings:
        return KafkaSettings(self.broker.as_account(name))

    @contextmanager
    def without(self, principal: str, kind: ResourceType, operation: AclOperation, name: str = "") -> Iterator[None]:
        """One printed right short."""
        (acl,) = [
            acl
            for acl in all_acls(printed(self.books, "--for", "kafka", *ROLES))
            if (acl.principal, acl.restype, acl.operation) == (f"User:{principal}", kind, operation)
            and name in acl.name
        ]
        revoke(self.admin, acl)
        try:
            yield
        finally:
            grant(self.admin, acl)


ROLES = ("--reader", "reader", "--executor", "executor", "--environment", "test")


@pytest.fixture
def guarded(
    stack: LabStack, broker: GuardedBroker, new_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Guarded]:
    monkeypatch.setenv(environment_variable(KAFKA), json.dumps(broker.as_account("reader")))
    on_broker = replace(stack, bootstrap_servers=broker.bootstrap_servers)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    with new_books(direction="ledger_to_topic", compensation=REPAIRS) as opened:
        books = replace(opened, stack=on_broker, producers={})
        books.make_topics()
        grant(admin, *all_acls(printed(books, "--for", "kafka", *ROLES)))
        yield Guarded(books, broker, admin)
        books.producers.clear()  # before their broker goes


def test_with_the_printed_acls_a_run_and_a_repair_work_and_with_one_less_they_do_not(
    guarded: Guarded, spark: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    books, topic = guarded.books, guarded.books.contract.topics[0]
    books.take_cut()
    books.post(LOST)
    books.both(payment("w1"))
    run = books.next_run()
    assert [str(found.break_class) for found in run.result.breaks] == ["missing_in_topic_never_produced"]
    assert doubts(run) == []

    # The reader's, one by one.
    assert seen_by(guarded, "reader") == Seen(topics=True, settings=True, brokers=True, ids=True, coordinators=True)
    for kind, operation, name, unseen in (
        (ResourceType.TOPIC, AclOperation.READ, topic, "topics"),
        (ResourceType.TOPIC, AclOperation.DESCRIBE_CONFIGS, topic, "settings"),
        (ResourceType.BROKER, AclOperation.DESCRIBE_CONFIGS, "", "brokers"),
        (ResourceType.TRANSACTIONAL_ID, AclOperation.DESCRIBE, "*", "ids"),
        (ResourceType.TOPIC, AclOperation.DESCRIBE, "__transaction_state", "coordinators"),
    ):
        with guarded.without("reader", kind, operation, name):
            assert not getattr(seen_by(guarded, "reader"), unseen)

    # The executor's.
    monkeypatch.setenv(environment_variable(KAFKA), json.dumps(guarded.broker.as_account("executor")))
    plan = planned(books, run.cut.n)
    progress = f"tallystick.compensation.{books.contract.name}"
    for kind, operation, name in (
        (ResourceType.TOPIC, AclOperation.CREATE, progress),
        (ResourceType.TOPIC, AclOperation.DESCRIBE_CONFIGS, progress),
        (ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE, ""),
        (ResourceType.TOPIC, AclOperation.READ, topic),
        (ResourceType.TOPIC, AclOperation.WRITE, progress),
        (ResourceType.TOPIC, AclOperation.WRITE, topic),
    ):
        with guarded.without("executor", kind, operation, name), pytest.raises(NOT_ALLOWED):
            executed(books, plan)
    assert [outcome.fate for outcome in executed(books, plan).outcomes] == [ActionResult.PUBLISHED]
    assert effects(books, plan) == [RepairEffect.CLEARED]
    short = guarded.without("executor", ResourceType.TOPIC, AclOperation.READ, progress)  # an empty one is not read
    with short, pytest.raises(NOT_ALLOWED):
        executed(books, plan)


NOT_ALLOWED = (KafkaException, TransactionAborted, BrokerUnreachable)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What an account is shown."""

    topics: bool
    settings: bool
    brokers: bool
    ids: bool
    coordinators: bool


def seen_by(guarded: Guarded, name: str) -> Seen:
    topics = guarded.books.contract.topics
    with open_admin(guarded.account(name)) as admin:
        try:
            is_shown = bool(read_topic_snapshot(admin, topics))
        except TopicNotFound:
            is_shown = False
        return Seen(
            topics=is_shown,
            settings=is_shown and bool(read_topic_settings(admin, topics)),
            brokers=read_broker_settings(admin) is not None,
            ids=open_transactions._is_shown_all(admin),
            coordinators=is_shown_coordinators(admin),
        )


def is_shown_coordinators(admin: Any) -> bool:
    (log,) = admin.describe_topics(["__transaction_state"])
    return bool(log["partitions"])


def test_an_abort_marker_needs_the_clusters_alter(guarded: Guarded) -> None:
    place = TopicPartition(guarded.books.contract.topics[0], 0)
    with open_admin(guarded.account("executor")) as admin:
        marker = AbortTransactionSpec(place, 77, 0, 0)
        short = guarded.without("executor", ResourceType.BROKER, AclOperation.ALTER)
        with short, pytest.raises(ClusterAuthorizationFailedError):
            admin.abort_transaction(marker)
        admin.abort_transaction(marker)


# PostgreSQL.


def test_with_the_printed_grants_a_run_and_a_post_work_and_with_one_less_they_do_not(
    stack: LabStack, new_books: NewBooks, spark: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stack.ledger_server
    roles = {kind: f"{kind}_{uuid4().hex[:8]}" for kind in ("reader", "poster")}
    with new_books(direction="topic_to_ledger") as opened, server.connect(database=LEDGER_DATABASE) as admin:
        books = posting_books(opened, classes=["missing_in_ledger"])
        for role in roles.values():
            server.create_role(role, admin)
        text = printed(books, "--for", "postgres", "--reader", roles["reader"], "--poster", roles["poster"])
        admin.execute(text)
        reader, poster = (server.dsn(role, LEDGER_DATABASE) for role in roles.values())
        monkeypatch.setenv(environment_variable(LEDGER), reader)
        try:
            books.take_cut()
            books.produce(LOST)
            books.both(payment("w1"))
            run = books.next_run()
            assert [str(found.break_class) for found in run.result.breaks] == ["missing_in_ledger"]
            plan = planned(books, run.cut.n)
            connections = replace(books.connections, poster_dsn=poster)
            for grant_given in [line for line in text.splitlines() if line.startswith("GRANT")]:
                if "pg_read_all_stats" in grant_given:
                    continue  # without it a run is only told less of who holds it up
                admin.execute(grant_given.replace("GRANT", "REVOKE", 1).replace(" TO ", " FROM "))
                with pytest.raises((LedgerRefused, psycopg.errors.InsufficientPrivilege)):
                    books.take_cut(settled=False) if roles["reader"] in grant_given else executed(
                        books, plan, connections=connections
                    )
                admin.execute(grant_given)
            assert [one.fate for one in executed(books, plan, connections=connections).outcomes] == [
                ActionResult.PUBLISHED
            ]
            assert effects(books, plan) == [RepairEffect.CLEARED]
        finally:
            for role in roles.values():
                admin.execute(f"DROP OWNED BY {role}")
                admin.execute(f"DROP ROLE {role}")
