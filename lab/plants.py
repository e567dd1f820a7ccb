"""Breaks planted one by one, each for real, for tests that need a single known disagreement.

For an idle namespace: prepared, drained, no services at work. Each function gives the truth about what it planted.
The progress of poster and relay is moved past the plant, as the faulty service would have moved it, so that traffic
that runs later neither heals a plant nor doubles it.
"""

import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
from confluent_kafka import Consumer, Producer, TopicPartition

from lab import process
from lab.clients import new_consumer, new_producer
from lab.event import Event, Leg, Payment
from lab.ledger import Ledger, PayoutRow, horizon_xid
from lab.mode import DeliveryMode
from lab.namespace import Namespace
from lab.poster import POSTER
from lab.relay import RELAY
from lab.stack import LabAddresses
from lab.truth import Anomaly, Fault

_TIMEOUT_SECONDS = 30.0


def plant_never_produced(addresses: LabAddresses, namespace: str, *, seed: int = 1) -> tuple[Anomaly, ...]:
    """A payout whose relay saved its progress and never wrote the event."""
    with _Planter.open(addresses, namespace, "never_produced", seed) as planter:
        row = planter.add_payout()
        planter.move_relay_past(row)
        return planter.truth("missing_in_topic_never_produced", row.event)


def plant_aborted_only(addresses: LabAddresses, namespace: str, *, seed: int = 1) -> tuple[Anomaly, ...]:
    """A payout whose event stands only in an aborted producer transaction: written, aborted, never redone."""
    with _Planter.open(addresses, namespace, "aborted_only", seed) as planter:
        row = planter.add_payout()
        planter.publish_in_transaction([row.event], source=row.source, commit=False)
        planter.move_relay_past(row)
        return planter.truth("missing_in_topic_aborted_only", row.event)


def plant_new_session_duplicate(addresses: LabAddresses, namespace: str, *, seed: int = 1) -> tuple[Anomaly, ...]:
    """A payout sent again by hand: two idempotent producers, two producer ids, and the second names no source."""
    with _Planter.open(addresses, namespace, "new_session", seed) as planter:
        row = planter.add_payout()
        for headers in ({"source": row.source}, {}):
            planter.publish_alone(row.event, headers)
        planter.move_relay_past(row)
        return planter.truth("duplicate_in_topic_new_session", row.event)


def plant_phantom_in_topic(addresses: LabAddresses, namespace: str, *, seed: int = 1) -> tuple[Anomaly, ...]:
    """A dual write: the event is committed, then its ledger transaction is rolled back."""
    with _Planter.open(addresses, namespace, "phantom_in_topic", seed) as planter:
        with planter.connection.transaction(force_rollback=True):
            row = planter.add_payout()
            planter.publish_in_transaction([row.event], source=row.source, commit=True)
        return planter.truth("phantom_in_topic", row.event)


def plant_phantom_in_ledger(addresses: LabAddresses, namespace: str, *, seed: int = 1) -> tuple[Anomaly, ...]:
    """A payment posted by hand, without an event."""
    with _Planter.open(addresses, namespace, "phantom_in_ledger", seed) as planter:
        event = planter.payment.event(Leg.PAYMENT)
        planter.post(event)
        return planter.truth("phantom_in_ledger", event)


def plant_amount_mismatch(addresses: LabAddresses, namespace: str, *, seed: int = 1) -> tuple[Anomaly, ...]:
    """A poster that drops the last digit of a payment's amount."""
    with _Planter.open(addresses, namespace, "amount", seed) as planter:
        wrong = planter.payment.with_money(amount_minor=planter.payment.amount_minor // 10)
        return planter.plant_wrong_posting("amount_mismatch", wrong)


def plant_currency_mismatch(addresses: LabAddresses, namespace: str, *, seed: int = 1) -> tuple[Anomaly, ...]:
    """A poster that books every payment in Swiss francs."""
    with _Planter.open(addresses, namespace, "currency", seed) as planter:
        return planter.plant_wrong_posting("currency_mismatch", planter.payment.with_money(currency="CHF"))


PLANTS: tuple[Callable[..., tuple[Anomaly, ...]], ...] = (
    plant_never_produced,
    plant_aborted_only,
    plant_new_session_duplicate,
    plant_phantom_in_topic,
    plant_phantom_in_ledger,
    plant_amount_mismatch,
    plant_currency_mismatch,
)


@dataclass(frozen=True, kw_only=True)
class _Planter:
    """One payment, and both sides to plant it in."""

    addresses: LabAddresses
    names: Namespace
    payment: Payment
    connection: psycopg.Connection

    @classmethod
    def open(cls, addresses: LabAddresses, namespace: str, plant: str, seed: int) -> "_Planter":
        dice = random.Random(f"{namespace}:{plant}:{seed}")
        payment = Payment(
            payment_id=uuid.UUID(int=dice.getrandbits(128), version=4),
            amount_minor=dice.randint(1000, 500_000),
            currency=dice.choice(("EUR", "USD", "JPY")),
            occurred_at=datetime.now(UTC),
        )
        connection = psycopg.connect(addresses.ledger_owner_dsn, autocommit=True)
        return cls(addresses=addresses, names=Namespace(namespace), payment=payment, connection=connection)

    def __enter__(self) -> "_Planter":
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def truth(self, break_class: str, event: Event) -> tuple[Anomaly, ...]:
        return (Anomaly.of(event, break_class, Fault.PLANTED),)

    def add_payout(self) -> PayoutRow:
        return Ledger(self.names).add_payout(self.connection, self.payment)

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

    def publish_in_transaction(self, events: list[Event], *, source: str, commit: bool) -> None:
        producer = self._producer(transactional=True)
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
        producer = self._producer(transactional=False)
        self._produce(producer, event, headers)
        self._flush(producer)

    def move_relay_past(self, row: PayoutRow) -> None:
        """Save the relay's progress behind this row: the flag, and the exactly-once cursor."""
        Ledger(self.names).mark_sent(self.connection, row)
        process.wait_until(lambda: horizon_xid(self.connection) > row.written_xid, what="the ledger horizon")
        cursor = TopicPartition(self.names.topic(Leg.PAYOUT), 0, row.written_xid + 1)
        with self._group(RELAY) as consumer:
            consumer.commit(offsets=[cursor], asynchronous=False)

    def move_poster_to_end(self) -> None:
        """Save the poster's progress behind everything: in its group, and in the ledger."""
        topics = [self.names.topic(leg) for leg in (Leg.PAYMENT, Leg.INVOICE)]
        places = [(topic, number) for topic in topics for number in range(self.names.partitions[topic])]
        with self._group(POSTER) as consumer:
            ends = [TopicPartition(*place, _end(consumer, place)) for place in places]
            consumer.commit(offsets=ends, asynchronous=False)
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

    def _producer(self, *, transactional: bool) -> Producer:
        return new_producer(
            self.addresses.bootstrap_servers,
            DeliveryMode.EXACTLY_ONCE,
            client_id=self.names.group("plant"),
            transactional_id=self.names.group("plant") if transactional else None,
        )

    def _produce(self, producer: Producer, event: Event, headers: dict[str, str]) -> None:
        producer.produce(
            self.names.topic(event.leg),
            key=event.message_key,
            value=event.to_json(),
            headers={"session": str(uuid.uuid4()), **headers},
        )

    def _flush(self, producer: Producer) -> None:
        if producer.flush(_TIMEOUT_SECONDS):
            raise TimeoutError(f"plant: unanswered after {_TIMEOUT_SECONDS:.0f} s")


def _end(consumer: Consumer, place: tuple[str, int]) -> int:
    _, end = consumer.get_watermark_offsets(TopicPartition(*place), timeout=_TIMEOUT_SECONDS)
    return int(end)
