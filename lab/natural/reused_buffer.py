"""KAFKA-19012: a producer of 2.8.0 to 4.1.1 puts a batch of one topic under another.

A batch that expires gives its buffer back to the pool, though the network may not have taken its bytes yet. The next
batch, for another node, is written into the same buffer; once the first connection moves on, these bytes follow its
header, which names the first topic. The checksum is of the batch, and right; so are producer id and sequence.

Here: a connection breaks with a request in it, the client sends that again, and the new connection stands still with
half of it; large records before the small one fill it. The small one, an invoice, expires, and a payment takes its
buffer.
"""

from collections.abc import Mapping, Sequence

from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from lab.faults.break_writer import Planter
from lab.natural.natural_fault import Happened, NaturalBook, NaturalFault, payment_of_one_size, wait_seconds
from lab.natural.steered_producer import NotAsExpected, SteeredProducer
from lab.rounds.round_contracts import payments_contract
from lab.servers import process
from lab.servers.log_ends import LogEnds
from lab.servers.proxy import Loss, StallEnd
from lab.services.event import Event, Leg, Payment
from lab.services.kafka_clients import new_admin
from lab.truth.effect_reader import EventReader

_ATTEMPTS = 9
_EXPIRES_MS = "3000"
_SECOND_TRY_SECONDS = 1.5  # so much younger is the request on the new connection than the batch in it
# Together more than a socket takes while its other end stands still.
_LARGE = "x" * 900_000
_LARGE_RECORDS = 8
_REQUEST_BYTES = str(16 << 20)


def reused_buffer(book: NaturalBook) -> Happened:
    """A producer takes the batches of a node in turn; each attempt begins a request with another one."""
    trail = _lead_apart(book)
    attempts: list[_Attempt] = []
    for number in range(_ATTEMPTS):
        attempts.append(_Attempt(book, trail, number))
        attempts[-1].make()
        copies = EventReader(book.stack.bootstrap_servers, [(f"{book.name}.invoices", 0)]).read()
        if copies[str(attempts[-1].astray.event_id)]:
            return _told(book, attempts, copies)
    raise NotAsExpected(f"no batch went astray in {_ATTEMPTS} attempts")


def _told(book: NaturalBook, attempts: Sequence["_Attempt"], copies: Mapping[str, int]) -> Happened:
    """The last attempt's batch went astray. copies: on the invoices' topic.

    A late invoice is sent again. It stands there twice, where its own bytes came after all; or never, where the
    sequence numbers of what came in its place are those of its repetition, which the broker takes for a duplicate.
    """
    astray = attempts[-1].astray
    due = [*book.breaks("misrouted_in_topic", astray), *book.breaks("duplicate_in_topic_new_session", astray)]
    for attempt in attempts:
        late = attempt.late.event(Leg.INVOICE)
        due += book.breaks("duplicate_in_topic_new_session", *[late] * (copies[str(late.event_id)] - 1))
    is_lost = not copies[str(late.event_id)]
    if is_lost:
        due += [*book.breaks("torn_transaction", late), *book.breaks("phantom_in_ledger", late)]
    lost = " That invoice, sent again and acknowledged, is nowhere: its sequence numbers were taken." if is_lost else ""
    return Happened(
        on_the_log="A payment that was written once stands on its own topic, and with a right checksum on that of the "
        f"invoices, in the place of an invoice.{lost} Attempts: {len(attempts)}.",
        due=tuple(due),
    )


class _Attempt:
    """Two payments with both legs, of one producer."""

    def __init__(self, book: NaturalBook, trail: str, number: int) -> None:
        self.book, self.trail, self.number = book, trail, number
        self.client_id = f"{book.name}-billing-{number}"
        self.proxy = book.stack.proxy
        self.log_ends = LogEnds(new_admin(book.stack.bootstrap_servers))
        with Planter.open(book.stack, book.name, book.dice) as planter:
            self.legs = {leg: (planter.names.topic(leg), 0) for leg in (Leg.PAYMENT, Leg.INVOICE)}
            self.first, self.late, self.other = (self._at_both(planter) for _ in range(3))
        self.astray = self.other.event(Leg.PAYMENT)

    def make(self) -> None:
        """All legs are written and posted, the late one a second time, since its client said that it had failed."""
        with self.book.producer(
            self.client_id,
            delivery_timeout_ms=_EXPIRES_MS,
            request_timeout_ms=_EXPIRES_MS,
            max_request_size=_REQUEST_BYTES,
        ) as producer:
            for leg in self.legs:
                self._write(producer, self.first.event(leg))
            for _ in range(self.number):
                producer.offset_of(self._send_text(producer, 0, "small"))
            self._let_expire(producer)
            for event in (self.late.event(Leg.INVOICE), self.late.event(Leg.PAYMENT), self.other.event(Leg.INVOICE)):
                self._write(producer, event)
        with Planter.open(self.book.stack, self.book.name, self.book.dice) as planter:
            for payment in (self.first, self.late, self.other):
                for leg in self.legs:
                    planter.post(payment.event(leg))

    def _let_expire(self, producer: SteeredProducer) -> None:
        """The late invoice expires while half of its request is in the socket; then the other payment is sent."""
        self._arm(1)
        expiring = [self._send_text(producer, partition, _LARGE) for partition in range(_LARGE_RECORDS)]
        expiring.append(producer.send(self.legs[Leg.INVOICE], self.late.event(Leg.INVOICE)))
        self.proxy.wait_fired(self.client_id, 1, loss=Loss.STALL)
        wait_seconds(_SECOND_TRY_SECONDS)
        self._arm(1)
        self.proxy.end_stall(self.client_id, StallEnd.CUT)
        self.proxy.wait_fired(self.client_id, 2, loss=Loss.STALL)
        for number in expiring:
            producer.failure_of(number)
        before = self._trail_ends()
        self._write(producer, self.astray)
        self.proxy.end_stall(self.client_id, StallEnd.PASS)
        # Not sooner: what is written next takes the buffer again.
        process.wait_until(lambda: self._trail_ends() > before, what=f"the request of {self.client_id}")

    def _trail_ends(self) -> int:
        places = [(self.trail, number) for number in range(_LARGE_RECORDS)]
        return sum(self.log_ends.stable_ends(places).values())

    def _send_text(self, producer: SteeredProducer, partition: int, text: str) -> int:
        return producer.send_text((self.trail, partition), key="trail", value=text, timestamp_ms=0, headers={})

    def _arm(self, times: int) -> None:
        self.proxy.arm(self.client_id, times=times, loss=Loss.STALL)

    def _write(self, producer: SteeredProducer, event: Event) -> None:
        producer.offset_of(producer.send(self.legs[event.leg], event))

    def _at_both(self, planter: Planter) -> Payment:
        """Draw a payment whose legs both belong to the first partition of their topic."""
        while True:
            payment = payment_of_one_size(self.book.dice)
            if all(planter.place(payment.event(leg)) == place for leg, place in self.legs.items()):
                return payment


def _lead_apart(book: NaturalBook) -> str:
    """Let one node lead the invoices and a topic of large records, and another the payments; give that topic's name."""
    stack, trail = book.stack, f"{book.name}.trail"
    one, two, three = (broker.node_id for broker in stack.cluster.brokers)
    admin = new_admin(stack.bootstrap_servers)
    nodes = [[one, two, three]] * _LARGE_RECORDS
    made = NewTopic(trail, num_partitions=_LARGE_RECORDS, replica_assignment=nodes)
    admin.create_topics([made])[trail].result(60)
    LogEnds(admin).wait_until_served([(trail, number) for number in range(_LARGE_RECORDS)])
    stack.cluster.assign((f"{book.name}.invoices", 0), [one, two, three])
    stack.cluster.assign((f"{book.name}.payments", 0), [two, three, one])
    return trail


REUSED_BUFFER = NaturalFault(
    happen=reused_buffer,
    issue="KAFKA-19012",
    made_with="client 3.9.0, brokers 4.3.1",
    contract=lambda name: payments_contract(name, name),
    unseen="That a client's buffer was the cause: the batch is one that the producer wrote, with a right checksum.",
)
