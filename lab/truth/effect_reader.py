"""Counts how often each effect was ever committed. Shares no code with whoever brought it about.

What is published is read by kafka-python, another client library and another protocol implementation; what is posted,
by plain SQL; markers, in the files that the broker wrote.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import psycopg
from kafka import KafkaConsumer, TopicPartition
from kafka.record import MemoryRecords
from psycopg import sql

from lab.servers.log_ends import Partition

_POLL_MILLISECONDS = 200
_REVERSES = "tallystick-reverses"


class EffectReader(Protocol):
    """wrong: sentences about effects that are no repair of anything, found so far."""

    wrong: list[str]

    def read(self) -> Counter[str]:
        """The copies of each effect so far."""


class EventReader:
    """Events, by event id. What it has counted once stays counted, also when retention takes it."""

    def __init__(self, bootstrap_servers: str, partitions: Sequence[Partition]) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.reached = dict.fromkeys(partitions, 0)
        self.copies: Counter[str] = Counter()
        self.wrong: list[str] = []

    def read(self) -> Counter[str]:
        """Read on to the last stable offset; give the copies of each event id so far."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap_servers, isolation_level="read_committed", enable_auto_commit=False
        )
        try:
            parts = {TopicPartition(*place): kafka_offset for place, kafka_offset in self.reached.items()}
            ends = consumer.end_offsets(list(parts))
            consumer.assign(list(parts))
            for part, kafka_offset in parts.items():
                consumer.seek(part, kafka_offset)
            while any(consumer.position(part) < ends[part] for part in parts):
                for records in consumer.poll(_POLL_MILLISECONDS).values():
                    for record in records:
                        self.count(record)
            self.reached = {(part.topic, part.partition): consumer.position(part) for part in parts}
        finally:
            consumer.close()
        return self.copies

    def count(self, record: Any) -> None:
        self.copies[json.loads(record.value)["event_id"]] += 1


class ReversalReader(EventReader):
    """Events that take a copy back, by event id: each names a copy of its event, with the other sign."""

    def __init__(self, bootstrap_servers: str, partitions: Sequence[Partition]) -> None:
        super().__init__(bootstrap_servers, partitions)
        self.money: dict[str, tuple[str, int]] = {}  # of each copy, by its place

    def count(self, record: Any) -> None:
        event, place = json.loads(record.value), f"topic:{record.topic}:{record.partition}:{record.offset}"
        key, amount_minor = event["event_id"], event["amount_minor"]
        named = dict(record.headers).get(_REVERSES)
        if named is None:
            self.money[place] = key, amount_minor
            return
        self.copies[key] += 1
        if self.money.get(named.decode()) != (key, -amount_minor):
            self.wrong.append(f"{place} takes back {named.decode()}, which is no copy of it")


class PostReader:
    """Postings, by event id: a debit and a credit together are one. Those that were archived are counted too."""

    def __init__(self, dsn: str, schema: str) -> None:
        self.dsn = dsn
        self.asked = sql.SQL(
            "SELECT event_id::text, count(*) FILTER (WHERE side = 'debit'), count(*) FILTER (WHERE side = 'credit')"
            " FROM (SELECT event_id, side FROM {0}.posting"
            " UNION ALL SELECT event_id, side FROM {0}.posting_archive) AS standing"
            " GROUP BY 1"
        ).format(sql.Identifier(schema))
        self.wrong: list[str] = []

    def read(self) -> Counter[str]:
        with psycopg.connect(self.dsn) as connection:
            return self.count(connection.execute(self.asked).fetchall())

    def count(self, rows: Sequence[tuple[str, int, int]]) -> Counter[str]:
        """rows: event id, debits, credits."""
        self.wrong = [
            f"event {key} has {debits} debit and {credits_} credit rows"
            for key, debits, credits_ in rows
            if debits != credits_
        ]
        return Counter({key: max(debits, credits_) for key, debits, credits_ in rows})


class MarkerReader:
    """ABORT markers, by producer id: no producer of the lab's books aborts anything itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder  # the partition's own, where the broker keeps its segments
        self.wrong: list[str] = []

    def read(self) -> Counter[str]:
        return Counter(str(batch.producer_id) for batch in self._batches() if self._is_abort(batch))

    def _batches(self) -> Iterator[Any]:
        for segment in sorted(self.folder.glob("*.log")):
            yield from MemoryRecords(segment.read_bytes())

    @staticmethod
    def _is_abort(batch: Any) -> bool:
        return bool(batch.is_control_batch) and any(record.abort for record in batch)
