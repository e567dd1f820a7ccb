"""The floor of any reconciliation: a warm process that lets both sides send their bytes, and drops them.

    python -m bench.raw_app --servers HOST:PORT --dsn-from VARIABLE --table NAME --times 4 --result FILE

The topic's batches come under read_committed and are not opened. The ledger's rows come by binary COPY, by halves of
the table over two sessions at once, and their bytes are read from the socket: to be cut into rows they would cost more
than to be sent. Answers how many offsets were left unread and how many rows came, so that an unread side shows.
"""

import argparse
import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
from kafka.admin import KafkaAdminClient

from bench.data_set import TOPIC
from bench.spark_session import time_each
from tallystick.connections.connections import KafkaSettings
from tallystick.kafka_log.batch_header import read_batches
from tallystick.kafka_log.fetch import fetcher, open_admin
from tallystick.model.offsets import TopicPartition

COPIED = "entry_id, event_id, payment_id, leg, amount_minor, currency"
_READ_BYTES = 1 << 20
_COMMAND_COMPLETE = re.compile(rb"C....COPY (\d+)\0Z\0\0\0\x05I\Z", re.DOTALL)
"""The last two messages of a COPY. Source: PostgreSQL manual, message formats."""
_TAIL_BYTES = 64


class CopyEndedEarly(ConnectionError):
    """The server closed a session before it said how many rows it sent."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", required=True, help="the broker's address")
    parser.add_argument("--dsn-from", required=True, help="environment variable with the ledger's address")
    parser.add_argument("--table", required=True, help="the ledger's table")
    parser.add_argument("--times", type=int, default=1, help="so many times in one process")
    parser.add_argument("--result", type=Path, required=True, help="where the figures go")
    given = parser.parse_args()
    dsn = os.environ[given.dsn_from]
    with open_admin(KafkaSettings({"bootstrap.servers": given.servers})) as admin:

        def once() -> Callable[[], dict[str, Any]]:
            answer = read_both_sides(admin, dsn, given.table)
            return lambda: answer

        time_each(given.times, once, given.result)


def read_both_sides(admin: KafkaAdminClient, dsn: str, table: str) -> dict[str, Any]:
    """Read the topic beside the two halves of the table."""
    with ThreadPoolExecutor(2) as beside:
        halves = [beside.submit(copy_and_drop, dsn, query) for query in halves_of(dsn, table)]
        unread = fetch_and_drop(admin)
        return {"unread_offsets": unread, "ledger_rows": sum(half.result() for half in halves)}


def fetch_and_drop(admin: KafkaAdminClient) -> int:
    """Fetch all partitions up to their LSO; returns how many of their offsets no batch covered that came."""
    fetch, unread = fetcher(admin), 0
    (described,) = admin.describe_topics([TOPIC])
    for part in described["partitions"]:
        partition = TopicPartition(topic=TOPIC, partition=part["partition_index"])
        position = 0
        while True:
            fetched = fetch(partition, position, True)
            position = end_of_batches(fetched.records, position)
            if position >= fetched.lso or not fetched.records:
                unread += max(0, fetched.lso - position)
                break
    return unread


def end_of_batches(records: bytes, position: int) -> int:
    """Return the offset behind the last whole batch, by headers alone; the given one where no batch came whole."""
    return max((header.next_offset for header, _ in read_batches(records)), default=position)


def halves_of(dsn: str, table: str) -> Sequence[str]:
    """Return two queries that together read the table once, by the place of its rows."""
    with psycopg.connect(dsn) as reader:
        size = "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int / 2"
        row = reader.execute(size, (table,)).fetchone()
    assert row is not None
    middle = f"'({row[0]},0)'::tid"
    return [f"SELECT {COPIED} FROM {table} WHERE ctid {side} {middle}" for side in ("<", ">=")]


def copy_and_drop(dsn: str, query: str) -> int:
    """Copy what a query returns, drop it, and return how many rows the server says it sent. Raises CopyEndedEarly."""
    with closing(psycopg.connect(dsn, autocommit=True)) as reader:
        reader.pgconn.send_query(f"COPY ({query}) TO STDOUT (FORMAT binary)".encode())
        while reader.pgconn.flush():
            continue
        os.set_blocking(reader.pgconn.socket, True)
        tail = b""
        while (rows := rows_said(tail)) is None:
            some = os.read(reader.pgconn.socket, _READ_BYTES)
            if not some:
                raise CopyEndedEarly(f"{query}: the server closed the session before it said how many rows it sent")
            tail = (tail + some)[-_TAIL_BYTES:]
        return rows


def rows_said(tail: bytes) -> int | None:
    """Return how many rows a COPY sent, by the last bytes of its answer; None where they are not its end."""
    ended = _COMMAND_COMPLETE.search(tail)
    return int(ended[1]) if ended else None


if __name__ == "__main__":
    main()
