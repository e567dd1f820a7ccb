"""One partition that every kind of producer has written to, as the broker serves it, and the truth about it."""

import itertools
from collections.abc import Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from lab.servers.process import wait_until
from lab.servers.stack import LabStack
from tallystick.connections.connections import KafkaSettings
from tallystick.kafka_log.fetch import Fetch, fetcher, open_admin
from tallystick.model import offsets
from tallystick.model.offsets import OffsetRange


class Log:
    """One partition that every kind of producer has written to, and the truth about each value."""

    def __init__(self, stack: LabStack) -> None:
        self.servers = stack.bootstrap_servers
        self.topic = f"census-{uuid4().hex[:10]}"
        self.committed: list[str] = []
        self.aborted: list[str] = []
        self.plain: list[str] = []

    def producer(self, **settings: object) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.servers,
                "linger.ms": 20,
                "enable.metrics.push": False,
                "log_level": 0,
                **settings,
            }
        )

    def write(self, producer: Producer, values: list[str]) -> None:
        for value in values:
            producer.produce(self.topic, value=value, partition=0)
        assert producer.flush(30) == 0

    def fill(self) -> None:
        """Plain and idempotent records, every codec, transactions interleaved, empty, aborted, fenced and timed out."""
        number = itertools.count()

        def values(count: int) -> list[str]:
            return [str(next(number)) for _ in range(count)]

        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            self.plain += (some := values(7))
            self.write(self.producer(**{"compression.type": codec, "enable.idempotence": codec == "lz4"}), some)
        first, second = (self.producer(**{"transactional.id": f"{self.topic}-{name}"}) for name in ("one", "two"))
        for producer in (first, second):
            producer.init_transactions(30)
        for aborts in ((False, True), (True, False), (False, False), (True, True)):
            for producer in (first, second):
                producer.begin_transaction()
            mine: tuple[list[str], list[str]] = ([], [])
            for _ in range(3):
                for producer, ours in zip((first, second), mine, strict=True):
                    ours.extend(some := values(2))
                    self.write(producer, some)
            for producer, ours, abort in zip((first, second), mine, aborts, strict=True):
                (producer.abort_transaction if abort else producer.commit_transaction)()
                (self.aborted if abort else self.committed).extend(ours)
        first.begin_transaction()
        first.commit_transaction()  # empty: no marker anywhere
        self._fenced_zombie(values(3), values(2))
        self._timed_out(values(2))

    def _fenced_zombie(self, lost: list[str], kept: list[str]) -> None:
        """A second producer of the same id ends the first one's transaction, at a later epoch."""
        name = {"transactional.id": f"{self.topic}-zombie"}
        zombie = self.producer(**name)
        zombie.init_transactions(30)
        zombie.begin_transaction()
        self.write(zombie, lost)
        heir = self.producer(**name)
        heir.init_transactions(30)
        heir.begin_transaction()
        self.write(heir, kept)
        heir.commit_transaction()
        with pytest.raises(KafkaException, match="fenced"):
            zombie.commit_transaction()
        self.aborted += lost
        self.committed += kept

    def _timed_out(self, lost: list[str]) -> None:
        silent = self.producer(**{"transactional.id": f"{self.topic}-silent", "transaction.timeout.ms": 1000})
        silent.init_transactions(30)
        silent.begin_transaction()
        self.write(silent, lost)
        self.aborted += lost

    def range(self, start: int, end: int) -> OffsetRange:
        return OffsetRange(topic=self.topic, partition=0, kafka_offset_start=start, kafka_offset_end=end)

    def consumed(self, end: int) -> dict[int, str]:
        """Offset to value, as a read_committed consumer of another make sees it."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": self.topic,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "enable.metrics.push": False,
            }
        )
        consumer.assign([TopicPartition(self.topic, 0, 0)])
        seen: dict[int, str] = {}
        while (message := consumer.poll(10)) is not None and message.error() is None:
            seen[message.offset()] = message.value().decode()
        assert consumer.position([TopicPartition(self.topic, 0)])[0].offset == end
        consumer.close()
        return seen


@pytest.fixture(scope="module")
def log(stack: LabStack) -> Iterator[Log]:
    log, admin = Log(stack), AdminClient({"bootstrap.servers": stack.bootstrap_servers})
    admin.create_topics([NewTopic(log.topic, num_partitions=1)])[log.topic].result(30)
    log.fill()
    yield log
    admin.delete_topics([log.topic])[log.topic].result(30)


@pytest.fixture(scope="module")
def fetch(stack: LabStack) -> Iterator[Fetch]:
    """Answers of about 300 bytes, so that most end within a transaction."""
    with open_admin(KafkaSettings({"bootstrap.servers": stack.bootstrap_servers})) as admin:
        yield fetcher(admin, fetch_bytes=300)


@pytest.fixture(scope="module")
def end(log: Log, fetch: Fetch) -> int:
    part = offsets.TopicPartition(topic=log.topic, partition=0)

    def stable() -> bool:
        fetched = fetch(part, 0, True)
        return fetched.lso == fetched.high_watermark

    wait_until(stable, what="the broker to abort the transaction that timed out")
    return fetch(part, 0, True).lso
