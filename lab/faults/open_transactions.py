"""Transactions that stay open on purpose: the broker's log and the ledger are held back behind them."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import psycopg
from confluent_kafka import KafkaException

from lab.servers.stack import LabAddresses
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Leg, Payment, partition_of
from lab.services.kafka_clients import new_producer
from lab.services.ledger import Ledger
from lab.services.namespace import Namespace

_TIMEOUT_SECONDS = 30.0
_TRANSACTION_TIMEOUT_MS = 30 * 60 * 1000  # a hold may outlast a slow test


@dataclass(frozen=True, kw_only=True)
class Held:
    """What holds a side back, in the words a reconciler would use to name it."""

    side: str  # topic or ledger
    holder: str  # the transactional id, or the application name of the database session
    places: tuple[str, ...]  # topic[partition], or the schema
    since_utc: datetime
    payments: tuple[Payment, ...]  # what becomes visible at the release


class OpenProducerTransaction:
    """A producer transaction with both legs of a payment, flushed and not ended: the LSO of its partitions stands."""

    def __init__(self, addresses: LabAddresses, names: Namespace, payment: Payment, number: int) -> None:
        transactional_id = names.group(f"open-{number}")
        self.producer = new_producer(
            addresses.bootstrap_servers,
            DeliveryMode.EXACTLY_ONCE,
            client_id=transactional_id,
            transactional_id=transactional_id,
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
        )
        self.producer.init_transactions(_TIMEOUT_SECONDS)
        self.producer.begin_transaction()
        events = [payment.event(leg) for leg in (Leg.PAYMENT, Leg.INVOICE)]
        for event in events:
            self.producer.produce(
                names.topic(event.leg),
                key=event.message_key,
                value=event.to_value(),
                headers={"session": f"{transactional_id}:{payment.payment_id}", **event.headers},
            )
        if self.producer.flush(_TIMEOUT_SECONDS):
            raise TimeoutError(f"{transactional_id}: unanswered after {_TIMEOUT_SECONDS:.0f} s")
        topics = [names.topic(event.leg) for event in events]
        self.partitions = [(topic, partition_of(events[0].message_key, names.partitions[topic])) for topic in topics]
        self.held = Held(
            side="topic",
            holder=transactional_id,
            places=tuple(f"{topic}[{partition}]" for topic, partition in self.partitions),
            since_utc=datetime.now(UTC),
            payments=(payment,),
        )

    def commit(self) -> None:
        self.producer.commit_transaction()

    def give_up(self) -> None:
        """End it without effect, where the round itself has failed; with the broker gone, its time-out ends it."""
        with suppress(KafkaException):
            self.producer.abort_transaction(_TIMEOUT_SECONDS)


class OpenDatabaseTransaction:
    """A database transaction with a payout and a note, not ended: the ledger horizon stands."""

    def __init__(self, addresses: LabAddresses, names: Namespace, payment: Payment, number: int) -> None:
        application_name = names.group(f"month-end-{number}")
        self.connection = psycopg.connect(addresses.ledger_owner_dsn, application_name=application_name)
        ledger = Ledger(names)
        ledger.add_note(self.connection, "month-end run, still working")
        ledger.add_payout(self.connection, payment)
        self.held = Held(
            side="ledger",
            holder=application_name,
            places=(names.schema,),
            since_utc=datetime.now(UTC),
            payments=(payment,),
        )

    def commit(self) -> None:
        self.connection.commit()
        self.connection.close()

    def give_up(self) -> None:
        """End it without effect, where the round itself has failed."""
        self.connection.close()
