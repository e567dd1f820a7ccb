"""The real broker's side of a replay: services' producers, retention, topics made again."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.admin import KafkaAdminClient

from lab.servers.broker import Broker
from lab.servers.process import NotReadyInTime, wait_until
from tallystick.connections.connections import KafkaSettings
from tallystick.kafka_cluster.settings import read_broker_settings
from tallystick.kafka_log.fetch import open_admin
from tallystick.kafka_log.record import ACTION_HEADER
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tests.simulator.replay.record import BROKER_SETTINGS
from tests.simulator.replay.tape import Ended, Entry, Led, LogEnds, LogsStand, Opened, Published, Recreated, Retained

SECONDS = 30
POISON = b"x"
"""The session that writes what is no event."""
OPEN_FOR_MS = 3_600_000
"""A simulated service's transaction stays open until somebody ends it."""


class LogDiffers(Exception):
    """The real log does not hold what the simulated one holds."""


@dataclass
class RealLog:
    """One schedule's topics on a real broker. prefix: of its transactional ids, since a broker keeps these."""

    kafka: KafkaSettings
    topics: tuple[str, ...]
    partitions: int
    prefix: str
    reader: KafkaAdminClient
    admin: AdminClient
    restart: Callable[[], None]
    """Stop the broker and start it again: each partition's leader is elected anew."""
    producers: dict[str | None, Producer] = field(default_factory=dict)
    in_transaction: set[str] = field(default_factory=set)

    def do(self, entry: Entry) -> bool:
        """False where it is not the log's."""
        match entry:
            case Opened(name):
                self._open(name)
            case Published():
                self._publish(entry)
            case Ended(name, commit):
                self.in_transaction.discard(name)
                producer = self.producers[name]
                (producer.commit_transaction if commit else producer.abort_transaction)(SECONDS)
            case LogsStand(logs):
                self._wait(logs)
            case Retained(place, offset):
                asked = TopicPartition(place.topic, place.partition, offset)
                self.admin.delete_records([asked])[asked].result(SECONDS)
            case Recreated(topic):
                self.delete([topic])
                self.create([topic])
            case Led():
                self.restart()
            case _:
                return False
        return True

    def events(self) -> list[Any]:
        """As a reader of another make gets them: key, amount, and whether a repair wrote it."""
        settings = {"group.id": self.prefix, "isolation.level": "read_committed", "enable.partition.eof": True}
        consumer = Consumer({**self.kafka.for_confluent(), "enable.auto.commit": False, **settings})
        places = [(topic, number) for topic in self.topics for number in range(self.partitions)]
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in places])
        found: list[Any] = []
        unread = set(places)
        while unread:
            message = consumer.poll(SECONDS)
            assert message is not None, f"{unread}: nothing to read"
            if message.error():
                unread.discard((message.topic(), message.partition()))
            elif (headers := dict(message.headers()))["session"] != POISON:
                said = json.loads(message.value())
                found.append((said["event_id"], said["amount_minor"], ACTION_HEADER in headers))
        consumer.close()
        return sorted(found)

    def create(self, topics: list[str]) -> None:
        made = self.admin.create_topics([NewTopic(topic, num_partitions=self.partitions) for topic in topics])
        for future in made.values():
            future.result(SECONDS)
        wait_until(lambda: set(topics) <= self._known(), what="the topics to be known")

    def delete(self, topics: list[str]) -> None:
        for future in self.admin.delete_topics(topics).values():
            future.result(SECONDS)
        wait_until(lambda: not set(topics) & self._known(), what="the topics to be gone")

    def _known(self) -> set[str]:
        return set(self.admin.list_topics(timeout=SECONDS).topics)

    def _open(self, name: str) -> None:
        self.in_transaction.discard(name)
        settings = {"transactional.id": f"{self.prefix}-{name}", "transaction.timeout.ms": OPEN_FOR_MS}
        self.producers[name] = self._producer(**settings)
        self.producers[name].init_transactions(SECONDS)

    def _publish(self, entry: Published) -> None:
        name, place, record = entry.producer, entry.place, entry.record
        if name is None and None not in self.producers:
            self.producers[None] = self._producer(**{"enable.idempotence": False})
        producer = self.producers[name]
        if name is not None and name not in self.in_transaction:
            producer.begin_transaction()
            self.in_transaction.add(name)
        landed: list[int] = []
        producer.produce(
            place.topic,
            partition=place.partition,
            key=record.key,
            value=record.value,
            timestamp=record.timestamp_ms,
            headers=list(record.headers),
            on_delivery=lambda error, message: landed.append(-1 if error else message.offset()),
        )
        producer.flush(SECONDS)
        if landed != [entry.offset]:
            raise LogDiffers(f"{name or 'a plain producer'} wrote to {place}: got offset {landed}, not {entry.offset}")

    def _producer(self, **settings: Any) -> Producer:
        return Producer({**self.kafka.for_confluent(), "linger.ms": 0, "acks": "all", "log_level": 0, **settings})

    def _wait(self, logs: Mapping[Any, LogEnds]) -> None:
        """Markers are written behind a commit's answer."""
        found: dict[Any, LogEnds] = {}

        def stand() -> bool:
            for one in read_topic_snapshot(self.reader, self.topics):
                found[one.topic_partition] = LogEnds(one.log_start, one.lso, one.written_end)
            return found == logs

        try:
            wait_until(stand, what="the logs", deadline_seconds=SECONDS)
        except NotReadyInTime:
            wrong = [f"{place}: {found.get(place)}, not {ends}" for place, ends in logs.items() if found[place] != ends]
            raise LogDiffers("; ".join(wrong)) from None


@contextmanager
def open_log(
    broker: Broker, topics: tuple[str, ...], partitions: int, *, prefix: str, beside: Iterable[str]
) -> Iterator[RealLog]:
    """Topics of the contract's names; they are gone at the end, and so are those that the product has made beside."""
    kafka = KafkaSettings({"bootstrap.servers": broker.bootstrap_servers})
    with open_admin(kafka) as reader:
        assert read_broker_settings(reader) == BROKER_SETTINGS, "the simulated broker has the lab's settings"
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        log = RealLog(kafka, topics, partitions, prefix, reader, admin, broker.restart)
        log.create(list(topics))
        try:
            yield log
        finally:
            log.producers.clear()
            log.delete(sorted({*topics, *beside} & log._known()))
