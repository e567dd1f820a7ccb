"""An independent look at both sides: a console-like consumer, and SQL. Uses nothing of the lab's workload code."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import psycopg
from confluent_kafka import Consumer, KafkaError, TopicPartition


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


def ledger_copies(dsn: str, schema: str) -> dict[str, Counter[str]]:
    """Count the rows of each event: its postings by side, and its payouts."""
    with psycopg.connect(dsn) as connection:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for side, event_id, count in connection.execute(
            f"SELECT side, event_id::text, count(*) FROM {schema}.posting GROUP BY 1, 2"
            f" UNION ALL SELECT 'payout', event_id::text, count(*) FROM {schema}.payout GROUP BY 1, 2"
        ):
            counts[side][event_id] = count
        return counts
