"""Redelivery and loss by two coordinators of a sink, as in apache/iceberg#17551 and #16282.

A sink's coordinator consumes a control topic of one partition and applies what it says. After a rebalance an old one
lives on beside its successor: a member of the same group, without a partition, that still commits the offset it has in
memory. Kafka takes a commit for a partition that the member does not have. So the last writer wins; when the successor
goes, the old one begins where it once stood, and applies everything again; or, where retention was there first, at the
end, and everything in between is never applied.

The coordinators are of librdkafka, and the ledger stands for the table: Tallystick reads no Iceberg table.
"""

from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from lab.faults.break_writer import Planter
from lab.natural.natural_fault import Happened, NaturalBook, NaturalFault
from lab.natural.steered_producer import NotAsExpected
from lab.rounds.round_contracts import reads_contract
from lab.servers import process
from lab.servers.log_ends import LogEnds, Partition
from lab.services.event import Event, Leg
from lab.services.kafka_clients import new_admin, new_consumer
from lab.services.partition_reader import save_progress

_POLL_SECONDS = 0.05
_DEADLINE_SECONDS = 30.0
_PAYMENTS = 2


def two_coordinators(book: NaturalBook) -> Happened:
    """Once with all that was written still there, once after retention."""
    with Planter.open(book.stack, book.name, book.dice) as planter:
        again = _Sink(planter, "kept").change_over(expires=False)
        never = _Sink(planter, "short").change_over(expires=True)
    return Happened(
        on_the_log="The group's offset fell back to where the old coordinator stood: two payments were posted twice. "
        "Where retention had passed that offset, two were never posted.",
        due=(*book.breaks("duplicate_in_ledger", *again), *book.breaks("missing_in_ledger", *never)),
    )


class _Coordinator:
    """A member of the group; what it is given, it posts. position: in memory. end: where it had no more to read."""

    def __init__(self, sink: "_Sink", client_id: str) -> None:
        self.sink, self.position, self.end = sink, 0, 0
        self.posted: list[str] = []
        self.consumer = Consumer(
            {
                "bootstrap.servers": sink.planter.addresses.bootstrap_servers,
                "group.id": sink.group,
                "client.id": client_id,  # the group's first member in order of names gets the partition
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
                "enable.partition.eof": True,
                "partition.assignment.strategy": "range",
                "enable.metrics.push": False,
            }
        )
        self.consumer.subscribe([sink.topic])

    def poll(self) -> None:
        message = self.consumer.poll(_POLL_SECONDS)
        if message is None:
            return
        error = message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            self.end = message.offset() or 0
            return
        if error is not None:
            raise KafkaException(error)
        event = Event.from_value(message.value() or b"")
        self.sink.planter.post(event)
        self.posted.append(str(event.event_id))
        self.position = (message.offset() or 0) + 1

    def commit(self) -> None:
        """Where it believes to stand, whoever has the partition."""
        self.consumer.commit(offsets=[TopicPartition(self.sink.topic, 0, self.position)], asynchronous=False)


class _Sink:
    """A control topic, and who follows it."""

    def __init__(self, planter: Planter, name: str) -> None:
        self.planter, self.topic = planter, f"{planter.names.name}.control-{name}"
        self.log_ends = LogEnds(new_admin(planter.addresses.bootstrap_servers))
        self.log_ends.admin.create_topics([NewTopic(self.topic, num_partitions=1)])[self.topic].result(30)
        self.log_ends.wait_until_served([(self.topic, 0)])
        beginning = new_consumer(
            planter.addresses.bootstrap_servers, client_id="beginning", group=self.group, read_committed=True
        )
        save_progress(beginning, [TopicPartition(self.topic, 0, 0)])
        beginning.close()

    def change_over(self, *, expires: bool) -> list[Event]:
        """Payments for the old one, for its successor, and after that; gives those posted twice, or never."""
        self._write()
        old = _Coordinator(self, "old")
        self._until(lambda: len(old.posted) == _PAYMENTS, old)
        old.commit()
        heir = _Coordinator(self, "heir")
        self._until(lambda: heir.end == _PAYMENTS, old, heir)
        between = self._write()
        self._until(lambda: len(heir.posted) == _PAYMENTS, old, heir)
        heir.commit()
        old.commit()
        if expires:
            self.log_ends.expire({(self.topic, 0): heir.position})
        heir.consumer.close()
        after = self._write()
        self._until(lambda: old.end == 3 * _PAYMENTS, old)
        old.consumer.close()
        if len(old.posted) != _PAYMENTS * (1 if expires else 3):
            raise NotAsExpected(f"the old coordinator of {self.topic} posted {len(old.posted)} payments")
        return after if expires else between

    def _write(self) -> list[Event]:
        """Payments on their own topic; the worker tells the coordinator of each."""
        producer = self.planter.producer()
        events = [self.planter.payment_at(Leg.PAYMENT, self._place).event(Leg.PAYMENT) for _ in range(_PAYMENTS)]
        for event in events:
            self.planter.send(producer, event, self._place)
            self.planter.send(producer, event, (self.topic, 0))
        return events

    @property
    def group(self) -> str:
        return f"{self.topic}-coord"

    @property
    def _place(self) -> Partition:
        return self.planter.names.topic(Leg.PAYMENT), 0

    def _until(self, condition: Callable[[], bool], *alive: _Coordinator) -> None:
        def is_so() -> bool:
            for one in alive:
                one.poll()
            return condition()

        process.wait_until(is_so, what=f"the coordinators of {self.topic}", deadline_seconds=_DEADLINE_SECONDS)


TWO_COORDINATORS = NaturalFault(
    happen=two_coordinators,
    issue="iceberg#17551",
    made_with="librdkafka, broker 3.9.0",
    contract=lambda name: {**reads_contract(name, name), "settle_timeout_seconds": 60},
    unseen="Which coordinator was the second: group offsets have no history, and rows of the ledger no name of who "
    "wrote them.",
)
