"""A shop for docs/walk.md and docker-compose.yml: it publishes orders, and a careless consumer books them.

    python docs/examples/walk/shop.py open                # make the topic and the table
    python docs/examples/walk/shop.py sell 20 --forget 1  # publish 20 orders; the consumer forgets to book one
    python docs/examples/walk/shop.py trade CONTRACT DIR  # open, put CONTRACT into DIR, sell until stopped

SHOP_BROKER is the broker's address, SHOP_DATABASE the database's, of a role that may write.
"""

import argparse
import json
import os
import random
import re
import signal
import threading
import uuid
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC, TABLE = "shop.orders", "shop.booking"


def open_shop() -> None:
    """Make the topic and the table; quiet when they are there."""
    admin = AdminClient({"bootstrap.servers": os.environ["SHOP_BROKER"]})
    if TOPIC not in admin.list_topics(timeout=30).topics:
        admin.create_topics([NewTopic(TOPIC, num_partitions=2)])[TOPIC].result(30)
    with psycopg.connect(os.environ["SHOP_DATABASE"]) as database:
        database.execute("CREATE SCHEMA IF NOT EXISTS shop")
        database.execute(
            f"CREATE TABLE IF NOT EXISTS {TABLE} (booking_id bigserial PRIMARY KEY, event_id uuid NOT NULL, "
            "order_id text NOT NULL, leg text NOT NULL, cents bigint NOT NULL, currency text NOT NULL)"
        )
        database.execute(f"CREATE INDEX IF NOT EXISTS booking_by_event ON {TABLE} (event_id)")
    print(f"{TOPIC} and {TABLE} are there")


def sell(orders: int, *, forget: int) -> None:
    """Publish orders in one producer transaction, then book all but the last few."""
    sold = [
        {
            "event_id": str(uuid.uuid4()),
            "order_id": f"order-{uuid.uuid4().hex[:8]}",
            "leg": "order",
            "amount_minor": random.randint(100, 20_000),
            "currency": "EUR",
        }
        for _ in range(orders)
    ]
    producer = Producer({"bootstrap.servers": os.environ["SHOP_BROKER"], "transactional.id": f"shop-{os.getpid()}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for order in sold:
        producer.produce(TOPIC, key=order["order_id"], value=json.dumps(order))
    producer.commit_transaction(30)
    with psycopg.connect(os.environ["SHOP_DATABASE"]) as database, database.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {TABLE} (event_id, order_id, leg, cents, currency) "
            "VALUES (%(event_id)s, %(order_id)s, %(leg)s, %(amount_minor)s, %(currency)s)",
            sold[: orders - forget],
        )
    print(f"{orders} orders are published, {orders - forget} are booked")


def trade(contract: Path, folder: Path, *, every_seconds: float) -> None:
    """Open the shop, publish the contract, and sell three orders at a time until SIGTERM or SIGINT."""
    closing = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: closing.set())
    open_shop()
    publish_contract(contract, folder, datetime.now(UTC))
    while not closing.wait(every_seconds):
        sell(3, forget=0)


def publish_contract(contract: Path, folder: Path, now: datetime) -> None:
    """Put the contract into the folder, to begin now; leave one alone that is there, for it has begun already."""
    published = folder / contract.name
    if published.exists():
        return
    beginning = f"start_date: {now:%Y-%m-%dT%H:%M:%SZ}"
    text, changed = re.subn(r"^start_date: \S+", beginning, contract.read_text(), flags=re.MULTILINE)
    if changed != 1:
        raise SystemExit(f"{contract}: expected one line start_date, got {changed}")
    unfinished = published.with_suffix(".new")
    unfinished.write_text(text)
    unfinished.rename(published)
    print(f"{published} is there: {beginning}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="A shop that publishes orders and books them.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("open", help="make the topic and the table")
    selling = commands.add_parser("sell", help="publish orders and book them")
    selling.add_argument("orders", type=int)
    selling.add_argument("--forget", type=int, default=0, help="so many are published and never booked")
    trading = commands.add_parser("trade", help="open, publish a contract, and sell until stopped")
    trading.add_argument("contract", type=Path)
    trading.add_argument("folder", type=Path, help="where Tallystick looks for contracts")
    trading.add_argument("--every", type=float, default=5, help="seconds between two sales")
    arguments = parser.parse_args()
    if arguments.command == "open":
        open_shop()
    elif arguments.command == "trade":
        trade(arguments.contract, arguments.folder, every_seconds=arguments.every)
    else:
        sell(arguments.orders, forget=arguments.forget)


if __name__ == "__main__":
    main()
