"""A shop for docs/walk.md: it publishes orders, and a careless consumer books them.

    python docs/examples/walk/shop.py open                # make the topic and the table
    python docs/examples/walk/shop.py sell 20 --forget 1  # publish 20 orders; the consumer forgets to book one

SHOP_BROKER is the broker's address, SHOP_DATABASE the database's, of a role that may write.
"""

import argparse
import json
import os
import random
import uuid

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
    producer = Producer({"bootstrap.servers": os.environ["SHOP_BROKER"], "transactional.id": "shop"})
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


def main() -> None:
    parser = argparse.ArgumentParser(description="A shop that publishes orders and books them.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("open", help="make the topic and the table")
    selling = commands.add_parser("sell", help="publish orders and book them")
    selling.add_argument("orders", type=int)
    selling.add_argument("--forget", type=int, default=0, help="so many are published and never booked")
    arguments = parser.parse_args()
    if arguments.command == "open":
        open_shop()
    else:
        sell(arguments.orders, forget=arguments.forget)


if __name__ == "__main__":
    main()
