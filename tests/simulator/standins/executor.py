"""What an executor of repairs reaches outside of the store: a transactional producer, a progress topic, source rows."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException
from kafka.partitioner.default import murmur2

from tallystick.compensation.plan import CurrentRow
from tallystick.contract.ledger import LedgerSection
from tallystick.executor.progress_topic import progress_topic_name
from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.record import ACTION_HEADER, REVERSES_HEADER
from tallystick.model.cut import PartitionSnapshot
from tallystick.model.offsets import TopicPartition
from tests.simulator.standins.cluster import read_topic_snapshot
from tests.simulator.world.batches import Record
from tests.simulator.world.broker import Producer
from tests.simulator.world.database import Database, Row
from tests.simulator.world.truth import EventFact, Money

TIMEOUT_SECONDS = 60
POSTER = "poster-"
"""How the name of a session begins that posts."""


class Delivered:
    """What a delivery report tells of a record."""

    def __init__(self, place: TopicPartition, offset: int) -> None:
        self._place, self._offset = place, offset

    def partition(self) -> int:
        return self._place.partition

    def offset(self) -> int:
        return self._offset


class WorldProducer:
    """confluent_kafka.Producer with a transactional id. Each call may be where the process is killed."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.world = settings["world"]
        self.name = settings["transactional.id"]
        self.epoch = -1
        self.reports: list[Callable[[], None]] = []

    def init_transactions(self, seconds: float) -> None:
        self.world.admin.ask("producer.init")
        self.epoch = self.world.broker.init(self.name, now_ms=self.world.clock.now_ms).epoch
        self.world.look()
        self.world.point.reached("producer.init answered")

    def begin_transaction(self) -> None:
        self.world.point.reached("producer.begin")

    def produce(
        self,
        topic: str,
        *,
        key: bytes,
        value: bytes | None,
        headers: list[tuple[str, bytes]],
        on_delivery: Callable[[Any, Any], None],
    ) -> None:
        self.world.point.reached("producer.produce")
        producer = self._mine()
        count = sum(place.topic == topic for place in self.world.broker.partitions)
        place = TopicPartition(topic=topic, partition=(murmur2(key) & 0x7FFFFFFF) % max(1, count))
        record = Record(key, value, self.world.clock.now_ms, headers)
        offset = self.world.broker.write(producer, place, [record], now_ms=self.world.clock.now_ms)
        self._note(place, offset, value, dict(headers))
        self.reports.append(lambda: on_delivery(None, Delivered(place, offset)))

    def _note(self, place: TopicPartition, offset: int, value: bytes | None, headers: dict[str, bytes]) -> None:
        """The truth knows what it wrote on the contract's topics."""
        if place.topic not in self.world.contract.topics or value is None:
            return
        said = json.loads(value)
        money = Money(said["event_id"], said["payment_id"], said["leg"], said["amount_minor"], said["currency"])
        self.world.truth.event_written(
            EventFact(
                money=money,
                place=place,
                topic_id=self.world.broker.partitions[place].topic_id,
                leader_epoch=self.world.broker.partitions[place].leader_epoch,
                offset=offset,
                written_at=self.world.clock.now,
                outcome="open",
                by="repair",
                negated=REVERSES_HEADER in headers,
                action_id=headers[ACTION_HEADER].decode(),
                reverses=headers.get(REVERSES_HEADER, b"").decode(),
            )
        )
        self.world.tell(f"the executor publishes {money.match_key}: {money.amount_minor} at {place}:{offset}")

    def flush(self) -> int:
        self.world.point.reached("producer.flush")
        self._mine()
        while self.reports:
            self.reports.pop(0)()
        return 0

    def poll(self, seconds: float) -> int:
        return 0

    def commit_transaction(self, seconds: float) -> None:
        self._end(Marker.COMMIT)

    def abort_transaction(self, seconds: float) -> None:
        self._end(Marker.ABORT)

    def _end(self, marker: Marker) -> None:
        self.world.point.reached(f"producer.{marker}")
        producer = self._mine()
        self.world.tell(f"the executor's transaction ends: {marker}")
        self.world.broker.decide(producer, marker)
        self.world.broker.finish(producer, now_ms=self.world.clock.now_ms)
        self.epoch = producer.epoch
        self.world.look()
        self.world.point.reached(f"producer.{marker} answered")

    def _mine(self) -> Producer:
        """Raises KafkaException where another one has fenced this one, or its transaction ran out of time."""
        producer: Producer = self.world.broker.producers[self.name]
        if producer.epoch != self.epoch:
            raise KafkaException(KafkaError(KafkaError._FENCED))
        return producer


def expire_transactions(world: Any) -> None:
    """A coordinator aborts what is open for longer than its client asked for."""
    for name, producer in world.broker.producers.items():
        late = world.clock.now_ms - producer.started_ms > TIMEOUT_SECONDS * 1000
        if name.startswith("tallystick-") and producer.wrote and producer.decided is None and late:
            producer.epoch += 1
            world.tell("the coordinator aborts a transaction that an executor left open")
            world.broker.decide(producer, Marker.ABORT)
            world.broker.finish(producer, now_ms=world.clock.now_ms)
            world.look()


def ensure_progress_topic(kafka: Any, contract_name: str) -> PartitionSnapshot:
    name = progress_topic_name(contract_name)
    if not kafka.broker.logs_of([name]):
        kafka.broker.create_topic(name, 1)
    (part,) = read_topic_snapshot(kafka.admin, [name])
    return part


@contextmanager
def open_ledger(dsn: Any, *, may_write: bool = False) -> Iterator[Database]:
    yield dsn.database


def read_source_rows(
    connection: Database, ledger: LedgerSection, match_keys: Collection[str]
) -> dict[str, tuple[CurrentRow, ...]]:
    return current_rows(connection.rows.values(), match_keys)


def current_rows(rows: Iterable[Row], match_keys: Collection[str]) -> dict[str, tuple[CurrentRow, ...]]:
    """Those of these keys, in order of their ids as texts."""
    found: dict[str, list[CurrentRow]] = {}
    for row in sorted(rows, key=lambda row: str(row.row_id)):
        if row.match_key in match_keys:
            found.setdefault(row.match_key, []).append(
                CurrentRow(
                    row_id=str(row.row_id),
                    match_key=row.match_key,
                    transaction_key=row.transaction_key,
                    leg=row.leg,
                    amount_minor=row.amount_minor,
                    currency=row.currency,
                    occurred_at="2026-03-01T00:00:00+00:00",
                    takes_back=row.reverses,
                )
            )
    return {key: tuple(rows) for key, rows in found.items()}


def writers_end(connection: Database, table: str, *, wait_seconds: float) -> bool:
    """Nobody goes on while the executor waits, so that whoever is writing now writes still; executors do not count."""
    return all(name.startswith(POSTER) for name in connection.writers)


class WorldTime:
    """Stands for the module `time`: sleeping moves the world's clock on, in longer steps than asked for."""

    def __init__(self, current: Any) -> None:
        self.current = current

    def monotonic(self) -> float:
        return float(self.current.it.clock.now.timestamp())

    def sleep(self, seconds: float) -> None:
        self.current.it.clock.go(10)


class WorldUuids:
    """Stands for the module `uuid`: the same ones in each play of a schedule."""

    def __init__(self, current: Any) -> None:
        self.current = current

    def uuid4(self) -> UUID:
        return UUID(int=self.current.drawn.getrandbits(128), version=4)
