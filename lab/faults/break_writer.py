"""One disagreement's tools: a payment of its own, and every step by which a faulty service would have written it.

Progress of poster and relay can be moved past what was written, so that traffic that runs later neither heals nor
doubles it.
"""

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from lab.servers import process
from lab.servers.log_ends import Partition
from lab.servers.stack import LabAddresses
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Event, Leg, Payment, partition_of
from lab.services.kafka_clients import TRANSACTION_TIMEOUT_MS, new_consumer, new_producer
from lab.services.ledger import Ledger, PayoutRow, horizon_xid
from lab.services.namespace import Namespace
from lab.services.partition_reader import save_progress
from lab.services.poster import POSTER
from lab.services.relay import RELAY
from lab.truth.truth import Anomaly, Fault

_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Planter:
    """Both sides of a namespace, and a payment to plant in them."""

    addresses: LabAddresses
    names: Namespace
    dice: random.Random
    payment: Payment
    connection: psycopg.Connection

    @classmethod
    def open(cls, addresses: LabAddresses, namespace: str, dice: random.Random) -> "Planter":
        connection = psycopg.connect(addresses.ledger_owner_dsn, autocommit=True)
        return cls(
            addresses=addresses,
            names=Namespace(namespace),
            dice=dice,
            payment=new_payment(dice),
            connection=connection,
        )

    def __enter__(self) -> "Planter":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    @property
    def transactional_id(self) -> str:
        return self.names.group("plant")

    def truth(self, break_class: str, event: Event) -> tuple[Anomaly, ...]:
        return (Anomaly.of(event, break_class, Fault.PLANTED, place=self.place(event)),)

    def place(self, event: Event) -> Partition:
        """Give the partition where this event belongs."""
        topic = self.names.topic(event.leg)
        return topic, partition_of(event.message_key, self.names.partitions[topic])

    def payment_at(self, leg: Leg, place: Partition) -> Payment:
        """Draw a payment whose event of this leg belongs to that partition."""
        while self.place((payment := new_payment(self.dice)).event(leg)) != place:
            pass
        return payment

    def add_payout(self, payment: Payment) -> PayoutRow:
        return Ledger(self.names).add_payout(self.connection, payment)

    def post(self, event: Event) -> None:
        with self.connection.transaction():
            Ledger(self.names).post(self.connection, event, once=False)

    def plant_wrong_posting(self, break_class: str, wrong: Payment) -> tuple[Anomaly, ...]:
        """Publish both legs; post the invoice as it is, and the payment wrongly."""
        events = [self.payment.event(leg) for leg in (Leg.PAYMENT, Leg.INVOICE)]
        self.publish_in_transaction(events, source="plant", commit=True)
        self.post(wrong.event(Leg.PAYMENT))
        self.post(events[1])
        self.move_poster_to_end()
        return self.truth(break_class, events[0])

    def send_payout(self, payment: Payment, place: Partition, *, key: bytes | None = None) -> tuple[PayoutRow, int]:
        """Write an outbox row, and its event alone to this partition; give the row, and the event's offset."""
        row = self.add_payout(payment)
        kafka_offset = self.send(self.producer(), row.event, place, key=key, source=row.source)
        self.move_relay_past(row)
        return row, kafka_offset

    def send(
        self, producer: Producer, event: Event, place: Partition, *, key: bytes | None = None, **headers: str
    ) -> int:
        """Write one event to this partition; give the offset that the broker acknowledges."""
        acknowledged = self.hand_over(producer, event, place, key=key, **headers)
        self._flush(producer)
        if not acknowledged:
            raise TimeoutError(f"plant: {place} did not take the event")
        kafka_offset = acknowledged[0].offset()
        assert kafka_offset is not None
        return kafka_offset

    def hand_over(
        self, producer: Producer, event: Event, place: Partition, *, key: bytes | None = None, **headers: str
    ) -> list[Message]:
        """Give one event to the producer and do not wait; the list is filled once the broker acknowledges it."""
        acknowledged: list[Message] = []
        producer.produce(
            place[0],
            partition=place[1],
            key=key or event.message_key,
            value=event.to_value(),
            headers=[*new_headers(**event.headers, **headers).items()],
            on_delivery=lambda error, message: acknowledged.append(message) if error is None else None,
        )
        return acknowledged

    def publish_in_transaction(self, events: list[Event], *, source: str, commit: bool) -> None:
        producer = self.producer(transactional=True)
        producer.init_transactions(_TIMEOUT_SECONDS)
        producer.begin_transaction()
        for event in events:
            self._produce(producer, event, {"source": source})
        self._flush(producer)
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()

    def publish_alone(self, event: Event, headers: dict[str, str]) -> None:
        producer = self.producer()
        self._produce(producer, event, headers)
        self._flush(producer)

    def move_relay_past(self, row: PayoutRow) -> None:
        """Save the relay's progress behind this row: the flag, and the exactly-once cursor."""
        Ledger(self.names).mark_sent(self.connection, row)
        process.wait_until(lambda: horizon_xid(self.connection) > row.written_xid, what="the ledger horizon")
        cursor = TopicPartition(self.names.topic(Leg.PAYOUT), 0, row.written_xid + 1)
        with self._group(RELAY) as consumer:
            save_progress(consumer, [cursor])

    def move_poster_to_end(self) -> None:
        """Save the poster's progress behind everything: in its group, and in the ledger."""
        topics = [self.names.topic(leg) for leg in (Leg.PAYMENT, Leg.INVOICE)]
        places = [(topic, number) for topic in topics for number in range(self.names.partitions[topic])]
        with self._group(POSTER) as consumer:
            ends = [TopicPartition(*place, _end(consumer, place)) for place in places]
            save_progress(consumer, ends)
        for end in ends:
            Ledger(self.names).save_offset(
                self.connection, topic=end.topic, partition=end.partition, next_kafka_offset=end.offset
            )

    @contextmanager
    def _group(self, service: str) -> Iterator[Consumer]:
        consumer = new_consumer(
            self.addresses.bootstrap_servers,
            client_id=self.names.group("plant"),
            group=self.names.group(service),
            read_committed=False,
        )
        try:
            yield consumer
        finally:
            consumer.close()

    def producer(self, *, transactional: bool = False) -> Producer:
        return new_producer(
            self.addresses.bootstrap_servers,
            DeliveryMode.EXACTLY_ONCE,
            client_id=self.names.group("plant"),
            transactional_id=self.transactional_id if transactional else None,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        )

    def _produce(self, producer: Producer, event: Event, headers: dict[str, str]) -> None:
        producer.produce(
            self.names.topic(event.leg),
            key=event.message_key,
            value=event.to_value(),
            headers=[*new_headers(**event.headers, **headers).items()],
        )

    def _flush(self, producer: Producer) -> None:
        if producer.flush(_TIMEOUT_SECONDS):
            raise TimeoutError(f"plant: unanswered after {_TIMEOUT_SECONDS:.0f} s")


def new_headers(**more: str) -> dict[str, str]:
    """Give the headers of an event: a session that no other event has, and what else is said."""
    return {"session": str(uuid.uuid4()), **more}


def new_payment(dice: random.Random) -> Payment:
    """Draw a payment; only its time is the clock's."""
    return Payment(
        payment_id=uuid.UUID(int=dice.getrandbits(128), version=4),
        amount_minor=dice.randint(1000, 500_000),
        currency=dice.choice(("EUR", "USD", "JPY")),
        occurred_at=datetime.now(UTC),
    )


def _end(consumer: Consumer, place: tuple[str, int]) -> int:
    _, end = consumer.get_watermark_offsets(TopicPartition(*place), timeout=_TIMEOUT_SECONDS)
    return int(end)
