"""One data set for every program that the benchmark compares: committed events in Kafka, the same rows in PostgreSQL.

Made by seed. Of the aborted transactions each carries events that are committed by the next one, as a producer's retry
does, so that both sides agree under read_committed and only there.
"""

import random
import uuid
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from multiprocessing import get_context

import psycopg
from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from lab.servers import process
from lab.servers.stack import LabAddresses, LabStack

TOPIC = "bench.payments"
AGREES, BROKEN = "bench.agrees", "bench.broken"
"""The two ledger tables: one that agrees with the topic, and one where some events have their row wrong."""

_MAKE_TABLE = """
CREATE TABLE {table} (
    entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id uuid NOT NULL, payment_id text NOT NULL,
    leg text NOT NULL, amount_minor bigint NOT NULL, currency text NOT NULL,
    written_xid bigint DEFAULT pg_current_xact_id()::text::bigint);
GRANT SELECT ON {table} TO tallystick_reader;
"""
_INDEX_TABLE = """
CREATE {unique} INDEX IF NOT EXISTS {name}_event_id_idx ON {table} (event_id);
CREATE INDEX IF NOT EXISTS {name}_written_xid_idx ON {table} (written_xid);
"""
_COLUMNS = "event_id, payment_id, leg, amount_minor, currency"
_MOVED_MINOR = 500
_MARKERS_SECONDS_MAX = 300

ValueOf = Callable[[int], bytes]
"""A record's value, by its event's number."""


@dataclass(frozen=True, kw_only=True)
class DataSize:
    """How much of what.

    filler_bytes: so much text that nobody asks for is in each event. hot_key_copies: the first so many events are one
    and the same, id and all; beyond 1 the ledger's key is then not unique, and only the table that agrees is filled.
    wrong_percent: of the rows, in the broken table.
    """

    events: int = 3_000_000
    partitions: int = 2
    transaction_events: int = 2_000
    aborted_percent: int = 5
    filler_bytes: int = 0
    hot_partition_percent: int = 0
    hot_key_copies: int = 1
    wrong_percent: int = 1
    seed: int = 1


def make_empty(stack: LabStack, size: DataSize, topics: Collection[str] = (TOPIC,)) -> None:
    """The topics and both tables, with nothing in them and no index yet: here the books begin."""
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    for made in admin.create_topics([NewTopic(topic, num_partitions=size.partitions) for topic in topics]).values():
        made.result(30)
    with psycopg.connect(stack.ledger_owner_dsn, autocommit=True) as owner:
        owner.execute("CREATE SCHEMA bench; GRANT USAGE ON SCHEMA bench TO tallystick_reader")
        for table in (AGREES, BROKEN):
            owner.execute(_MAKE_TABLE.format(table=table))


def write_topic(stack: LabAddresses, size: DataSize, topic: str = TOPIC, value_of: ValueOf | None = None) -> None:
    """Write the events, transaction by transaction; returns once a reader of committed records sees all of them.

    A commit is answered before its markers are written, and of a thousand partitions these take the broker seconds.
    value_of: what an event is written as, by its number; JSON without one.
    """
    producer, chance = _producer(stack, f"{topic}-writer"), random.Random(size.seed)
    value_of = value_of or partial(_json, size)
    for first in range(0, size.events, size.transaction_events):
        members = range(first, min(first + size.transaction_events, size.events))
        if chance.randrange(100) < size.aborted_percent:
            _write(producer, size, members, topic, value_of)
            producer.abort_transaction()
        _write(producer, size, members, topic, value_of)
        producer.commit_transaction()
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    committed, written = IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED
    process.wait_until(
        lambda: _ends(admin, size, topic, committed) == _ends(admin, size, topic, written),
        what=f"all transactions on {topic} ended",
        deadline_seconds=_MARKERS_SECONDS_MAX,
    )


def _ends(admin: AdminClient, size: DataSize, topic: str, isolation_level: IsolationLevel) -> list[int]:
    """LSO or high watermark of each partition."""
    newest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    asked = {TopicPartition(topic, partition): newest for partition in range(size.partitions)}
    answers = admin.list_offsets(asked, isolation_level=isolation_level)
    return [answers[one].result(60).offset for one in asked]


def write_both(stack: LabStack, size: DataSize, tables: Collection[str]) -> dict[str, int]:
    """Write topic and ledger side by side; returns what write_ledger does."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as beside:
        wrong = beside.submit(write_ledger, stack.addresses(), size, tables)
        write_topic(stack, size)
        return wrong.result()


def write_ledger(stack: LabAddresses, size: DataSize, tables: Collection[str] = (AGREES, BROKEN)) -> dict[str, int]:
    """Write the rows of the tables by COPY, index and vacuum; returns how many of the broken one are wrong, by kind.

    Indexes come last: an index of random keys that is larger than the server's memory is slow to insert into.
    """
    unique = "UNIQUE" if size.hot_key_copies == 1 else ""
    wrong: Counter[str] = Counter()
    with psycopg.connect(stack.ledger_owner_dsn, autocommit=True) as owner:
        for table in tables:
            chance = random.Random(size.seed + 1)
            with owner.cursor() as cursor, cursor.copy(f"COPY {table} ({_COLUMNS}) FROM STDIN") as rows:
                for number in range(size.events):
                    event_id, payment_id, amount_minor = event(size, number)
                    if table == BROKEN and chance.randrange(100) < size.wrong_percent:
                        kind = chance.choice(("missing_in_ledger", "missing_in_topic", "different"))
                        wrong[kind] += 1
                        if kind == "missing_in_ledger":
                            continue
                        if kind == "different":
                            amount_minor += 1
                        else:
                            event_id, wrong["missing_in_ledger"] = str(uuid.uuid4()), wrong["missing_in_ledger"] + 1
                    rows.write(f"{event_id}\t{payment_id}\tpayment\t{amount_minor}\tEUR\n")
            owner.execute(_INDEX_TABLE.format(table=table, name=table.partition(".")[2], unique=unique))
            owner.execute(f"VACUUM (ANALYZE) {table}")
    with psycopg.connect(stack.ledger_admin_dsn, autocommit=True) as admin:
        admin.execute("CHECKPOINT")
    return dict(wrong)


def plant_amounts(stack: LabStack, size: DataSize) -> None:
    """In the table that agrees, make one amount a cent more, and move five units from one key to another.

    The table's sum shows the first only, its count of rows neither.
    """
    cent = size.events // 3
    giver = next(number for number in range(size.events // 2, size.events) if event(size, number)[2] > _MOVED_MINOR)
    changes = {cent: 1, giver: -_MOVED_MINOR, giver + 1: _MOVED_MINOR}
    with psycopg.connect(stack.ledger_owner_dsn) as owner:
        for number, more_minor in changes.items():
            update = f"UPDATE {AGREES} SET amount_minor = amount_minor + %s WHERE event_id = %s"
            owner.execute(update, (more_minor, event(size, number)[0]))


def plant_copies(stack: LabStack, size: DataSize) -> None:
    """Write one event a second time, and its row too; for that the table's key is unique no longer."""
    number = size.events // 4
    producer = _producer(stack, "bench-second-writer")
    _write(producer, size, range(number, number + 1), TOPIC, partial(_json, size))
    producer.commit_transaction()
    with psycopg.connect(stack.ledger_owner_dsn) as owner:
        owner.execute(f"DROP INDEX {AGREES}_event_id_idx; CREATE INDEX ON {AGREES} (event_id)")
        copy = f"INSERT INTO {AGREES} ({_COLUMNS}) SELECT {_COLUMNS} FROM {AGREES} WHERE event_id = %s"
        owner.execute(copy, (event(size, number)[0],))


def event(size: DataSize, number: int) -> tuple[str, str, int]:
    """Event id, payment id and amount of one event. Follows from seed and number alone."""
    number = 0 if number < size.hot_key_copies else number
    digest = blake2b(b"%d:%d" % (size.seed, number), digest_size=20).digest()
    amount_minor = 1 + int.from_bytes(digest[16:]) % 1_000_000
    return str(uuid.UUID(bytes=digest[:16], version=4)), f"p-{number:010d}", amount_minor


def _producer(stack: LabAddresses, transactional_id: str) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": stack.bootstrap_servers,
            "transactional.id": transactional_id,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
            "enable.metrics.push": False,
            "log_level": 0,
        }
    )
    producer.init_transactions(60)
    return producer


def _write(producer: Producer, size: DataSize, members: range, topic: str, value_of: ValueOf) -> None:
    producer.begin_transaction()
    for number in members:
        value = value_of(number)
        hot = number % 100 < size.hot_partition_percent
        partition = 0 if hot else number % size.partitions
        while True:
            try:
                producer.produce(topic, value=value, partition=partition)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise RuntimeError(f"{topic}: the broker did not take all events within 120 s; see its log")


def _json(size: DataSize, number: int) -> bytes:
    filler = f',"note":"{"x" * size.filler_bytes}"' if size.filler_bytes else ""
    event_id, payment_id, amount_minor = event(size, number)
    return (
        f'{{"event_id":"{event_id}","payment_id":"{payment_id}","leg":"payment",'
        f'"amount_minor":{amount_minor},"currency":"EUR"{filler}}}'
    ).encode()
