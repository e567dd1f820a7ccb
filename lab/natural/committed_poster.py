"""A consumer that keeps to what is committed, and posts each event that it is given."""

from collections.abc import Sequence

import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from lab.natural.natural_fault import NaturalBook
from lab.servers.log_ends import Partition
from lab.services.event import Event
from lab.services.ledger import Ledger
from lab.services.namespace import Namespace

_TIMEOUT_SECONDS = 30.0


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
    unread = set(places)
    try:
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in places])
        with psycopg.connect(book.stack.ledger_owner_dsn, autocommit=True) as connection:
            while unread:
                message = consumer.poll(_TIMEOUT_SECONDS)
                if message is None:
                    raise TimeoutError(f"{sorted(unread)}: nothing to read for {_TIMEOUT_SECONDS:.0f} s, and no end")
                error = message.error()
                if error is None:
                    event = Event.from_json(message.value() or b"")
                    Ledger(Namespace(book.name)).post(connection, event, once=False)
                    posted.add(str(event.event_id))
                elif error.code() == KafkaError._PARTITION_EOF:
                    unread.discard((str(message.topic()), int(message.partition() or 0)))
                elif not error.retriable():
                    raise KafkaException(error)
    finally:
        consumer.close()
    return posted
