"""One data set for every program that the benchmark compares: committed events in Kafka, the same rows in PostgreSQL.

Made by seed. Of the aborted transactions each carries events that are committed by the next one, as a producer's retry
does, so that both sides agree under read_committed and only there.
"""

import random
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import psycopg
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from lab.stack import LabStack

TOPIC = "bench.payments"
AGREES, BROKEN = "bench.agrees", "bench.broken"
"""The two ledger tables: one that agrees with the topic, and one where one event of a hundred has its row wrong."""

_MAKE_TABLE = """
CREATE TABLE {table} (
    entry_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event_id uuid NOT NULL UNIQUE, payment_id text NOT NULL,
    leg text NOT NULL, amount_minor bigint NOT NULL, currency text NOT NULL,
    written_xid bigint DEFAULT pg_current_xact_id()::text::bigint);
GRANT SELECT ON {table} TO tallystick_reader;
"""
_COLUMNS = "event_id, payment_id, leg, amount_minor, currency"
_WRONG_OF_A_HUNDRED = 1


@dataclass(frozen=True, kw_only=True)
class DataSize:
    """How much of what. filler_bytes: so much text that nobody asks for is in each event."""

    events: int = 3_000_000
    partitions: int = 2
    transaction_events: int = 2_000
    aborted_percent: int = 5
    filler_bytes: int = 0
    hot_partition_percent: int = 0
    seed: int = 1


def make_empty(stack: LabStack, size: DataSize) -> None:
    """The topic and both tables, with nothing in them: here the books begin."""
    admin = AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, num_partitions=size.partitions)])[TOPIC].result(30)
    with psycopg.connect(stack.ledger_owner_dsn, autocommit=True) as owner:
        owner.execute("CREATE SCHEMA bench; GRANT USAGE ON SCHEMA bench TO tallystick_reader")
        for table in (AGREES, BROKEN):
            owner.execute(_MAKE_TABLE.format(table=table))


def write_topic(stack: LabStack, size: DataSize) -> None:
    """Write the events, transaction by transaction."""
    producer = Producer(
        {
            "bootstrap.servers": stack.bootstrap_servers,
            "transactional.id": "bench-writer",
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
            "enable.metrics.push": False,
            "log_level": 0,
        }
    )
    producer.init_transactions(60)
    chance = random.Random(size.seed)
    for first in range(0, size.events, size.transaction_events):
        members = range(first, min(first + size.transaction_events, size.events))
        if chance.randrange(100) < size.aborted_percent:
            _write(producer, size, members)
            producer.abort_transaction()
        _write(producer, size, members)
        producer.commit_transaction()


def write_ledger(stack: LabStack, size: DataSize) -> dict[str, int]:
    """Write the rows of both tables by COPY, and vacuum; returns how many rows of the broken one are wrong, by kind."""
    wrong: Counter[str] = Counter()
    with psycopg.connect(stack.ledger_owner_dsn, autocommit=True) as owner:
        for table in (AGREES, BROKEN):
            chance = random.Random(size.seed + 1)
            with owner.cursor() as cursor, cursor.copy(f"COPY {table} ({_COLUMNS}) FROM STDIN") as rows:
                for number in range(size.events):
                    event_id, payment_id, amount_minor = event(size, number)
                    if table == BROKEN and chance.randrange(100) < _WRONG_OF_A_HUNDRED:
                        kind = chance.choice(("missing_in_ledger", "missing_in_topic", "different"))
                        wrong[kind] += 1
                        if kind == "missing_in_ledger":
                            continue
                        if kind == "different":
                            amount_minor += 1
                        else:
                            event_id, wrong["missing_in_ledger"] = str(uuid.uuid4()), wrong["missing_in_ledger"] + 1
                    rows.write(f"{event_id}\t{payment_id}\tpayment\t{amount_minor}\tEUR\n")
            owner.execute(f"VACUUM (ANALYZE) {table}")
    with psycopg.connect(stack.ledger_admin_dsn, autocommit=True) as admin:
        admin.execute("CHECKPOINT")
    return dict(wrong)


def event(size: DataSize, number: int) -> tuple[str, str, int]:
    """Event id, payment id and amount of one event. Follows from seed and number alone."""
    digest = blake2b(b"%d:%d" % (size.seed, number), digest_size=20).digest()
    amount_minor = 1 + int.from_bytes(digest[16:]) % 1_000_000
    return str(uuid.UUID(bytes=digest[:16], version=4)), f"p-{number:010d}", amount_minor


def _write(producer: Producer, size: DataSize, members: range) -> None:
    producer.begin_transaction()
    for number, value in _values(size, members):
        hot = number % 100 < size.hot_partition_percent
        partition = 0 if hot else number % size.partitions
        while True:
            try:
                producer.produce(TOPIC, value=value, partition=partition)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise RuntimeError(f"{TOPIC}: the broker did not take all events within 120 s; see its log")


def _values(size: DataSize, members: range) -> Iterator[tuple[int, bytes]]:
    filler = f',"note":"{"x" * size.filler_bytes}"' if size.filler_bytes else ""
    for number in members:
        event_id, payment_id, amount_minor = event(size, number)
        yield (
            number,
            f'{{"event_id":"{event_id}","payment_id":"{payment_id}","leg":"payment",'
            f'"amount_minor":{amount_minor},"currency":"EUR"{filler}}}'.encode(),
        )
