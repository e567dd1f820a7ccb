"""A consumer that keeps to what is committed, and posts each event that it is given."""

from collections.abc import Sequence

import psycopg
from confluent_kafka import Consumer

from lab.natural.natural_fault import NaturalBook
from lab.servers.log_ends import Partition
from lab.services.event import Event
from lab.services.ledger import Ledger
from lab.services.namespace import Namespace
from lab.truth.committed_reader import records_to_the_end


def post_committed(book: NaturalBook, places: Sequence[Partition], **settings: object) -> set[str]:
    """Post all that stands there; give the ids of the events. settings: the consumer's, _ for the dot."""
    consumer = Consumer(
        {
            "bootstrap.servers": book.stack.bootstrap_servers,
            "group.id": f"{book.name}.poster",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "enable.metrics.push": False,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    posted: set[str] = set()
    try:
        with psycopg.connect(book.stack.ledger_owner_dsn, autocommit=True) as connection:
            for message in records_to_the_end(consumer, places):
                event = Event.from_value(message.value() or b"")
                Ledger(Namespace(book.name)).post(connection, event, once=False)
                posted.add(str(event.event_id))
    finally:
        consumer.close()
    return posted
