"""The strongest rival of Python's world: one warm process that joins both sides in DuckDB.

    python -m bench.duckdb_app --servers HOST:PORT --dsn-from VARIABLE --table NAME --times 4 --result FILE

librdkafka reads committed events, Arrow parses their JSON, ADBC copies the ledger into Arrow, and DuckDB joins fully on
the key and the n-th copy of it. Like the Spark job it counts, and finds no doubled event that both sides have; it keeps
no evidence and stores nothing.
"""

import argparse
import io
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as postgres
import duckdb
import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from pyarrow import json as arrow_json

from bench.data_set import TOPIC
from bench.spark_session import time_each

_EVENT = pa.schema(
    [
        ("event_id", pa.string()),
        ("payment_id", pa.string()),
        ("leg", pa.string()),
        ("amount_minor", pa.int64()),
        ("currency", pa.string()),
    ]
)
_COMPARED = ", ".join(_EVENT.names[1:])
_MESSAGES = 100_000
_SECONDS_MAX = 60.0
_LOOK_EVERY_SECONDS = 0.5
"""A consumer waits for so many messages as are asked for, also where the topic has fewer."""
_JOIN = """
WITH topic AS ({topic}), ledger AS ({ledger})
SELECT count(*) FILTER (ledger.event_id IS NULL) AS missing_in_ledger,
       count(*) FILTER (topic.event_id IS NULL) AS missing_in_topic,
       count(*) FILTER (topic.event_id IS NOT NULL AND ledger.event_id IS NOT NULL AND
                        (topic.payment_id, topic.leg, topic.amount_minor, topic.currency)
                        IS DISTINCT FROM (ledger.payment_id, ledger.leg, ledger.amount_minor, ledger.currency))
           AS different
FROM topic FULL OUTER JOIN ledger ON topic.event_id = ledger.event_id AND topic.copy = ledger.copy
"""


class TopicTooSlow(TimeoutError):
    """The broker sent nothing for a minute, and not all of the topic had come."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", required=True, help="the broker's address")
    parser.add_argument("--dsn-from", required=True, help="environment variable with the ledger's address")
    parser.add_argument("--table", required=True, help="the ledger's table")
    parser.add_argument("--times", type=int, default=1, help="so many times in one process")
    parser.add_argument("--result", type=Path, required=True, help="where the figures go")
    given = parser.parse_args()
    consumer, dsn = open_consumer(given.servers), os.environ[given.dsn_from]

    def once() -> Callable[[], dict[str, Any]]:
        with ThreadPoolExecutor(1) as beside:
            ledger = beside.submit(read_rows, dsn, given.table)
            topic = read_events(consumer)
            answer = join(topic, ledger.result())
        return lambda: answer

    time_each(given.times, once, given.result)
    consumer.close()


def open_consumer(servers: str) -> Consumer:
    """A consumer of committed events, with room enough that it never waits for us."""
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bench-duckdb",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.max.bytes": 64 << 20,
            "max.partition.fetch.bytes": 16 << 20,
            "queued.min.messages": 1_000_000,
            "enable.metrics.push": False,
        }
    )


def read_events(consumer: Consumer) -> pa.Table:
    """Read all partitions from their beginning to their LSO, and parse each chunk of events as it comes."""
    partitions = consumer.list_topics(TOPIC, timeout=_SECONDS_MAX).topics[TOPIC].partitions
    consumer.assign([TopicPartition(TOPIC, partition, OFFSET_BEGINNING) for partition in partitions])
    left, tables, came = set(partitions), list[pa.Table](), time.monotonic()
    while left:
        values: list[bytes | None] = []
        messages = consumer.consume(_MESSAGES, timeout=_LOOK_EVERY_SECONDS)
        came = time.monotonic() if messages else came
        for message in messages:
            error = message.error()
            if error is None:
                values.append(message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            else:
                raise KafkaException(error)
        if values:
            tables.append(parse(values))
        if left and time.monotonic() - came > _SECONDS_MAX:
            raise TopicTooSlow(f"{TOPIC}: partitions {sorted(left)} have not ended, and nothing came")
    return pa.concat_tables(tables) if tables else _EVENT.empty_table()


def parse(values: Iterable[bytes | None]) -> pa.Table:
    """Parse JSON objects, one a value, into the five columns; what else they hold is passed over, as is no value."""
    options = arrow_json.ParseOptions(explicit_schema=_EVENT, unexpected_field_behavior="ignore")
    reading = arrow_json.ReadOptions(block_size=32 << 20)
    return arrow_json.read_json(io.BytesIO(b"\n".join(filter(None, values))), reading, options)


def read_rows(dsn: str, table: str) -> pa.Table:
    """Copy the ledger's columns into Arrow."""
    with postgres.connect(dsn) as ledger, ledger.cursor() as cursor:
        cursor.execute(f"SELECT event_id::text AS event_id, {_COMPARED} FROM {table}")
        rows: pa.Table = cursor.fetch_arrow_table()
        return rows


def join(topic: pa.Table, ledger: pa.Table) -> dict[str, Any]:
    """Count what lacks a partner, and the pairs that differ."""
    with duckdb.connect() as database:
        database.register("events", topic)
        database.register("rows", ledger)
        sides = {"topic": _copies("events"), "ledger": _copies("rows")}
        counted = database.sql(_JOIN.format(**sides))
        (row,) = counted.fetchall()  # an aggregate over everything has one row
        return dict(zip(counted.columns, row, strict=True))


def _copies(side: str) -> str:
    return f"SELECT *, row_number() OVER (PARTITION BY event_id ORDER BY {_COMPARED}) AS copy FROM {side}"


if __name__ == "__main__":
    main()
