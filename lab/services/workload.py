"""One set of books as its services write it: events by producing processes, rows by the poster or the outbox.

The tools of the mixed round's faults. Each writer is one producing process, with a session of its own; faults that run
side by side share nothing but the namespace.
"""

import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import psycopg
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from lab.servers.log_ends import LogEnds
from lab.servers.stack import LabAddresses
from lab.services.delivery_mode import DeliveryMode
from lab.services.event import Event, Leg, Payment
from lab.services.kafka_clients import TRANSACTION_TIMEOUT_MS, new_admin, new_producer
from lab.services.ledger import Ledger, PayoutRow
from lab.services.namespace import Namespace
from lab.truth.committed_reader import is_committed

_TIMEOUT_SECONDS = 30.0
_END_SECONDS = 60.0  # to end a transaction: its coordinator may just have been killed and started again
_BY_DEFAULT: Mapping[str, str] = {}
_ACCOUNTS = 3
_BATCH_MAX = 4
CURRENCIES = ("EUR", "USD", "JPY")


@dataclass(frozen=True)
class Writer:
    """One producing process: its producer, its session, and the name it puts on all it writes."""

    names: Namespace
    producer: Producer
    service: str
    session: str

    def write(
        self,
        event: Event,
        *,
        source: str | None = None,
        headers: Mapping[str, str] | None = None,
        topic: str | None = None,
        **record: Any,
    ) -> None:
        """Write one event and wait until the broker has it. record: value, partition or timestamp, where it matters."""
        known = {"session": self.session, "service": self.service} | ({"source": source} if source else {})
        self.producer.produce(
            topic or self.names.topic(event.leg),
            key=event.message_key,
            headers={**known, **event.headers, **(headers or {})},
            **{"value": event.to_value(), **record},
        )
        if self.producer.flush(_TIMEOUT_SECONDS):
            raise TimeoutError(f"{self.service}: {event.leg} unanswered after {_TIMEOUT_SECONDS:.0f} s")

    @contextmanager
    def transaction(self, *, commit: bool = True) -> Iterator[None]:
        """A producer transaction around the block."""
        self.producer.begin_transaction()
        yield
        if commit:
            self.producer.commit_transaction(_END_SECONDS)
        else:
            self.producer.abort_transaction(_END_SECONDS)


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One contract's two sides, and the dice of one fault or of the ordinary traffic."""

    addresses: LabAddresses
    contract: str
    names: Namespace
    service: str  # billing or relay
    dice: random.Random
    connection: psycopg.Connection = field(repr=False)

    @classmethod
    @contextmanager
    def open(cls, addresses: LabAddresses, contract: str, service: str, seed: str) -> Iterator["Workload"]:
        """Work in the namespace that has the contract's name. The same seed draws the same payments."""
        with psycopg.connect(addresses.ledger_owner_dsn, autocommit=True) as connection:
            yield cls(
                addresses=addresses,
                contract=contract,
                names=Namespace(contract),
                service=service,
                dice=random.Random(f"{contract}:{seed}"),
                connection=connection,
            )

    @property
    def stray_topic(self) -> str:
        return f"{self.names.name}.stray"

    def payment(self, **fields: Any) -> Payment:
        """Draw a payment; unless told otherwise it is the only one of its account."""
        payment_id = uuid.UUID(int=self.dice.getrandbits(128), version=4)
        drawn = Payment(
            payment_id=payment_id,
            amount_minor=self.dice.randint(1000, 500_000),
            currency=self.dice.choice(CURRENCIES),
            occurred_at=datetime.now(UTC),
            account=str(payment_id),
            sequence=1,
        )
        return replace(drawn, **fields)

    def source(self) -> str:
        """Where the input of an event stood: each call draws another place."""
        return f"{self.names.requests}:0:{self.dice.getrandbits(40)}"

    def idempotent(self, service: str | None = None) -> Writer:
        """A new process that writes outside transactions, with a producer id."""
        return self._writer(service, DeliveryMode.EXACTLY_ONCE)

    def retrying(self, client_id: str) -> Writer:
        """A new process without a producer id that writes through the proxy, and tries again when it hears nothing."""
        servers = self.addresses.proxied_bootstrap_servers
        return self._writer(None, DeliveryMode.AT_LEAST_ONCE, client_id=client_id, servers=servers)

    def transactional(self, transactional_id: str | None = None) -> Writer:
        """A new process, and the newest of its transactional id: what an older one left open is aborted."""
        transactional_id = transactional_id or self.names.group(f"{self.service}-{self.dice.getrandbits(32):08x}")
        writer = self._writer(None, DeliveryMode.EXACTLY_ONCE, transactional_id=transactional_id)
        writer.producer.init_transactions(_TIMEOUT_SECONDS)
        return writer

    def publish(self, *events: Event, source: str | None = None, commit: bool = True) -> None:
        """Write events in one transaction of a process of its own."""
        writer = self.transactional()
        source = source or self.source()
        with writer.transaction(commit=commit):
            for event in events:
                writer.write(event, source=source)

    def post(self, *events: Event) -> None:
        """Post events in one database transaction."""
        with self.connection.transaction():
            for event in events:
                Ledger(self.names).post(self.connection, event, once=False)

    def add_payout(self, payment: Payment) -> PayoutRow:
        return Ledger(self.names).add_payout(self.connection, payment)

    def make_topic(self, topic: str, settings: Mapping[str, str] = _BY_DEFAULT) -> str:
        """Make a topic of one partition, and return its name once it can be written to."""
        admin = new_admin(self.addresses.bootstrap_servers)
        new = NewTopic(topic, num_partitions=1, config=dict(settings))
        admin.create_topics([new])[topic].result(_TIMEOUT_SECONDS)
        LogEnds(admin).wait_until_served([(topic, 0)])
        return topic

    def _writer(
        self,
        service: str | None,
        mode: DeliveryMode,
        *,
        client_id: str | None = None,
        transactional_id: str | None = None,
        servers: str | None = None,
    ) -> Writer:
        producer = new_producer(
            servers or self.addresses.bootstrap_servers,
            mode,
            client_id=client_id or transactional_id or self.names.group(service or self.service),
            transactional_id=transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
        )
        return Writer(self.names, producer, service or self.service, str(uuid.uuid4()))


class Traffic:
    """What agrees: written by one long-lived process in transactions, of which some are aborted and written again.

    Every account's payments come in the order of their sequence.
    """

    def __init__(self, desk: Workload) -> None:
        self.desk = desk
        self.writer = self._open_writer()
        self._replaced: list[Writer] = []
        self.sequences = dict.fromkeys(range(_ACCOUNTS), 0)

    def payments(self, count: int) -> None:
        """Both legs of each payment, and their postings."""
        for batch in self._batches(count):
            legs = [payment.event(leg) for payment in batch for leg in (Leg.PAYMENT, Leg.INVOICE)]
            self.publish([(event, self.desk.source()) for event in legs])
            self.desk.post(*legs)

    def payouts(self, count: int) -> None:
        """A row for each payout, and its event."""
        for batch in self._batches(count):
            rows = [self.desk.add_payout(payment) for payment in batch]
            self.publish([(row.event, row.source) for row in rows])

    def draw_batch(self, size_max: int = _BATCH_MAX) -> list[Payment]:
        """The next few payments."""
        size = min(size_max, self.desk.dice.randint(1, _BATCH_MAX))
        return [self._next_payment() for _ in range(size)]

    def publish(self, sourced: Sequence[tuple[Event, str]], amid: Callable[[], object] = lambda: None) -> None:
        """Write events in one transaction, some of them once in vain before. amid: done before the commit."""
        if self.desk.dice.random() < 0.3:
            self._write(sourced, commit=False)
        if not self._write(sourced, amid) and not self._stands(sourced[0][0]):
            self.publish(sourced)

    def _write(
        self, sourced: Sequence[tuple[Event, str]], amid: Callable[[], object] = lambda: None, *, commit: bool = True
    ) -> bool:
        """Write events in one transaction. False where it did not end in time, and a new process has decided it.

        librdkafka's client may hang once its coordinator was killed under it. It is kept: to destroy it may hang, too.
        """
        try:
            with self.writer.transaction(commit=commit):
                for event, source in sourced:
                    self.writer.write(event, source=source)
                amid()
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError._TIMED_OUT:
                raise
            self._replaced.append(self.writer)
            self.writer = self._open_writer()
            return False
        return True

    def _open_writer(self) -> Writer:
        return self.desk.transactional(self.desk.names.group(self.desk.service))

    def _stands(self, event: Event) -> bool:
        """Is the event committed? All of a batch are, or none."""
        topic = self.desk.names.topic(event.leg)
        places = [(topic, number) for number in range(self.desk.names.partitions[topic])]
        servers = self.desk.addresses.bootstrap_servers
        LogEnds(new_admin(servers)).wait_until_decided(places)
        return is_committed(servers, places, event.to_value())

    def _batches(self, count: int) -> Iterator[list[Payment]]:
        while count > 0:
            batch = self.draw_batch(count)
            count -= len(batch)
            yield batch

    def _next_payment(self) -> Payment:
        account = self.desk.dice.randrange(_ACCOUNTS)
        self.sequences[account] += 1
        return self.desk.payment(account=f"account-{account}", sequence=self.sequences[account])
