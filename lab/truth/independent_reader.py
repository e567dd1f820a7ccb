"""An independent look at both sides: a console-like consumer, and SQL. Uses nothing of the lab's workload code.

`find_breaks` compares key by key, over all there is, on an idle and drained namespace. It is what a patient person
would do by hand, and holds the lab's own truth to account; it knows no cuts, no windows and no horizon.
"""

import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from confluent_kafka import Consumer, KafkaError, TopicPartition

LEGS = ("payment", "invoice", "payout")


@dataclass(frozen=True)
class Record:
    """One committed message."""

    topic: str
    partition: int
    event: dict[str, Any]
    headers: dict[str, str]


def read_topic(bootstrap_servers: str, topic: str, *, isolation: str = "read_committed") -> list[Record]:
    """Read a topic from its first offset to its end, as a fresh consumer sees it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "books",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        open_partitions, records = set(partitions), []
        while open_partitions:
            message = consumer.poll(20)
            assert message is not None, f"{topic}: {open_partitions} did not end"
            if (error := message.error()) is None:
                records.append(_record(message))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                open_partitions.discard(message.partition())
        return records
    finally:
        consumer.close()


def _record(message: Any) -> Record:
    headers = {name: value.decode() for name, value in message.headers() or []}
    return Record(message.topic(), message.partition(), json.loads(message.value()), headers)


@dataclass(frozen=True)
class Row:
    """One posting, or one payout."""

    side: str  # debit, credit or payout
    event_id: str
    amount_minor: int
    currency: str


def read_ledger(dsn: str, schema: str) -> list[Row]:
    """Read all postings and payouts."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            f"SELECT side, event_id::text, amount_minor, currency FROM {schema}.posting"
            f" UNION ALL SELECT 'payout', event_id::text, amount_minor, currency FROM {schema}.payout"
        )
        return [Row(*row) for row in rows]


def count_copies(rows: Sequence[Row]) -> dict[str, Counter[str]]:
    """Count the rows of each event, by side."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row.side][row.event_id] += 1
    return counts


@dataclass(frozen=True)
class Books:
    """Everything both sides of a namespace hold."""

    topic: dict[str, list[Record]]  # by leg, committed
    uncommitted_ids: frozenset[str]  # event ids that stand in payouts in any producer transaction, ended how ever
    ledger: list[Row]


def read_books(bootstrap_servers: str, dsn: str, namespace: str) -> Books:
    """Read both sides whole."""
    everything = read_topic(bootstrap_servers, f"{namespace}.payouts", isolation="read_uncommitted")
    return Books(
        topic={leg: read_topic(bootstrap_servers, f"{namespace}.{leg}s") for leg in LEGS},
        uncommitted_ids=frozenset(record.event["event_id"] for record in everything),
        ledger=read_ledger(dsn, namespace),
    )


def find_breaks(books: Books) -> Counter[tuple[str, str]]:
    """Name every disagreement: (class, event id) -> copies."""
    return _payment_breaks(books) + _payout_breaks(books) + _duplicates(books)


def _payment_breaks(books: Books) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    records = books.topic["payment"] + books.topic["invoice"]
    in_topic = Counter(record.event["event_id"] for record in records)
    in_ledger = count_copies(books.ledger)["credit"]
    for payment_id in {record.event["payment_id"] for record in records}:
        for leg in ("payment", "invoice"):
            event_id = str(uuid.uuid5(uuid.UUID(payment_id), leg))
            if not in_topic[event_id]:
                found["torn_transaction", event_id] = 1
    for event_id in set(in_topic) | set(in_ledger):
        surplus = in_ledger[event_id] - in_topic[event_id]
        if not in_topic[event_id]:
            found["phantom_in_ledger", event_id] = surplus
        elif surplus:
            found["duplicate_in_ledger" if surplus > 0 else "missing_in_ledger", event_id] = abs(surplus)
    return found + _mismatches(records, [row for row in books.ledger if row.side == "credit"])


def _payout_breaks(books: Books) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    in_topic = Counter(record.event["event_id"] for record in books.topic["payout"])
    in_ledger = count_copies(books.ledger)["payout"]
    for event_id in set(in_ledger) - set(in_topic):
        cause = "aborted_only" if event_id in books.uncommitted_ids else "never_produced"
        found[f"missing_in_topic_{cause}", event_id] = in_ledger[event_id]
    for event_id in set(in_topic) - set(in_ledger):
        found["phantom_in_topic", event_id] = in_topic[event_id]
    return found + _mismatches(books.topic["payout"], [row for row in books.ledger if row.side == "payout"])


def _mismatches(records: Sequence[Record], rows: Sequence[Row]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    events = {record.event["event_id"]: record.event for record in records}
    for row in rows:
        event = events.get(row.event_id)
        if event is not None and event["amount_minor"] != row.amount_minor:
            found["amount_mismatch", row.event_id] += 1
        if event is not None and event["currency"] != row.currency:
            found["currency_mismatch", row.event_id] += 1
    return found


def _duplicates(books: Books) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for records in books.topic.values():
        for event_id, count in Counter(record.event["event_id"] for record in records).items():
            if count > 1:
                copies = [record for record in records if record.event["event_id"] == event_id]
                found[f"duplicate_in_topic_{_cause(copies)}", event_id] = count - 1
    return found


def _cause(copies: Sequence[Record]) -> str:
    """One process wrote all: it retried. Several, from one source: reprocessed. Else somebody sent it again."""
    if len({copy.headers["session"] for copy in copies}) == 1:
        return "no_idempotence"
    return "reprocessed" if len({copy.headers.get("source") for copy in copies}) == 1 else "new_session"
