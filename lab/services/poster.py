"""The poster: reads payments and invoices, writes two postings for each event. One process per partition number.

It follows the topic: an event that stands there twice is posted twice, unless the ledger refuses it (exactly_once).
"""

import uuid
from dataclasses import replace

import psycopg
from confluent_kafka import Message

from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Event, Leg
from lab.services.ledger import Ledger
from lab.services.partition_reader import PartitionReader
from lab.services.service_protocol import Barrier, Control

POSTER = "poster"


class Poster:
    """Consume and post; the mode decides where the progress is saved."""

    def __init__(self, control: Control) -> None:
        self.control = control
        settings = control.settings
        names = settings.names
        topics = (names.topic(Leg.PAYMENT), names.topic(Leg.INVOICE))
        self.once = settings.mode is DeliveryMode.EXACTLY_ONCE
        self.ledger = Ledger(names)
        self.connection = psycopg.connect(settings.ledger_dsn, autocommit=True, application_name=settings.name)
        self.reader = PartitionReader(
            control,
            group=names.group(POSTER),
            partitions=tuple((topic, settings.index) for topic in topics if settings.index < names.partitions[topic]),
        )
        self.handle = {
            DeliveryMode.AT_MOST_ONCE: self._at_most_once,
            DeliveryMode.AT_LEAST_ONCE: self._at_least_once,
            DeliveryMode.EXACTLY_ONCE: self._exactly_once,
        }[settings.mode]

    def run(self) -> None:
        self.reader.assign(self.ledger.saved_offsets(self.connection) if self.once else self.reader.committed())
        self.control.report("ready")
        while not self.control.stopping:
            message = self.reader.next_message()
            if message is None:
                self.reader.answer_syncs()
                continue
            value = message.value()
            assert isinstance(value, bytes)
            event = Event.from_value(value)
            self.handle(message, event)
            self.control.barrier(Barrier.AFTER_PROGRESS, event.event_id)
            self.reader.finished(message)
            self.control.report("handled")
        self.reader.close()
        self.connection.close()

    def _at_most_once(self, message: Message, event: Event) -> None:
        self.reader.commit(message)
        self.control.barrier(Barrier.BEFORE_OUTPUT, event.event_id)
        with self.connection.transaction():
            self._post(event)

    def _at_least_once(self, message: Message, event: Event) -> None:
        with self.connection.transaction():
            self._post(event)
        self.control.barrier(Barrier.AFTER_OUTPUT, event.event_id)
        self.reader.commit(message)

    def _exactly_once(self, message: Message, event: Event) -> None:
        (progress,) = self.reader.progress(message)
        with self.connection.transaction():
            self.ledger.save_offset(
                self.connection,
                topic=progress.topic,
                partition=progress.partition,
                next_kafka_offset=progress.offset,
            )
            self._post(event)

    def _post(self, event: Event) -> None:
        if str(event.event_id) in self.control.settings.savepoints:
            self._post_under_savepoints(event)
        else:
            self.ledger.post(self.connection, event, once=self.once)
        self.control.barrier(Barrier.BEFORE_LEDGER_COMMIT, event.event_id)

    def _post_under_savepoints(self, event: Event) -> None:
        """Post something that is rolled back to a savepoint, then the event under another: its rows get an inner id."""
        with self.connection.transaction(force_rollback=True):
            mistake = replace(event, payment=replace(event.payment, payment_id=uuid.uuid4()))
            self.ledger.post(self.connection, mistake, once=self.once)
        with self.connection.transaction():
            self.ledger.post(self.connection, event, once=self.once)


def main() -> None:
    Poster(Control.open()).run()


if __name__ == "__main__":
    main()
