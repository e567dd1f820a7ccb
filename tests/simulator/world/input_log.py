"""The input topics of topic_to_topic as the ledger that services write: its rows are the inputs that a reader may see.

Whoever writes a row publishes an input, and a transaction of the database is one of its producer. What only a database
has, such as savepoints, updates and prepared transactions, does nothing here.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from tallystick.kafka_log.batch_header import Marker
from tallystick.model.offsets import TopicPartition
from tests.simulator.world.batches import Record
from tests.simulator.world.broker import Batch, Broker, PartitionLog
from tests.simulator.world.clock import Clock
from tests.simulator.world.database import Database, Row, Writer
from tests.simulator.world.event_json import value_of
from tests.simulator.world.truth import Money


@dataclass(slots=True)
class Input:
    """One record on an input topic. lost: the log was cut back below it, or its topic was made anew."""

    row: Row
    place: TopicPartition
    topic_id: str
    offset: int
    raw: bytes
    lost: bool = False


@dataclass(kw_only=True)
class InputLog(Database):
    """transactional: by transactions; else without a producer id, so that each input stands at once."""

    broker: Broker
    clock: Clock
    topic: str
    partitions: int
    transactional: bool
    inputs: list[Input] = field(default_factory=list)

    def insert(self, name: str, row: Row) -> int:
        row_id, self.next_row_id = self.next_row_id, self.next_row_id + 1
        place = TopicPartition(topic=self.topic, partition=row_id % self.partitions)
        money = Money(row.match_key, row.transaction_key, row.leg, row.amount_minor, row.currency)
        record = Record(row.transaction_key.encode(), value_of(money, match_key="request_id"), self.clock.now_ms)
        if self.transactional:
            self._open(name, place, record)
        else:
            self.broker.write_plain(place, [record])
        log = self.broker.partitions[place]
        stored = Row(row_id, *(getattr(row, one) for one in _COPIED))
        batch = log.batches[-1]
        self.inputs.append(Input(stored, place, log.topic_id, batch.first, batch.raw))
        self.refresh()
        return row_id

    def _open(self, name: str, place: TopicPartition, record: Record) -> None:
        producer = self.broker.producers.get(name)
        if producer is None or producer.forgotten:
            producer = self.broker.init(name, now_ms=self.clock.now_ms)
        self.broker.finish(producer, now_ms=self.clock.now_ms)
        self.broker.write(producer, place, [record], now_ms=self.clock.now_ms)
        self.writers[name] = Writer()

    def commit(self, name: str) -> None:
        self._end_transaction(name, Marker.COMMIT)

    def rollback(self, name: str) -> None:
        self._end_transaction(name, Marker.ABORT)

    def _end_transaction(self, name: str, marker: Marker) -> None:
        producer = self.broker.producers.get(name)
        if self.writers.pop(name, None) is not None and producer is not None:
            self.broker.decide(producer, marker)
            self.broker.finish(producer, now_ms=self.clock.now_ms)
        self.refresh()

    def refresh(self) -> None:
        """What has become of the inputs, and whose transactions are open still."""
        known = self.broker.producers
        self.writers = {name: one for name, one in self.writers.items() if name in known and known[name].wrote}
        self.rows = {one.row.row_id: one.row for one in self.inputs if not one.lost and self._is_there(one)}

    def _is_there(self, one: Input) -> bool:
        """Does it stand, or did it until retention took it?"""
        log = self.broker.partitions[one.place]
        if log.topic_id == one.topic_id and one.offset < log.log_start:
            return one.row.row_id in self.rows
        batch = _batch_at(log, one.offset) if log.topic_id == one.topic_id and one.offset < log.end else None
        one.lost = batch is None or batch.raw is not one.raw
        return not one.lost and log.outcome_of(one.offset) in ("committed", "plain")

    def not_committed(self) -> Iterator[tuple[str, Row]]:
        """Inputs on the log whose transaction is open or was aborted: the word for which, and the row they would be."""
        for one in self.inputs:
            log = self.broker.partitions[one.place]
            if not one.lost and one.offset >= log.log_start and one.row.row_id not in self.rows:
                yield log.outcome_of(one.offset), one.row

    def place_of(self, row_id: int) -> tuple[TopicPartition, int]:
        """Where an input stands: row ids are given in order from 1 on."""
        one = self.inputs[row_id - 1]
        return one.place, one.offset

    def update(self, name: str, row_id: int, **columns: object) -> bool:
        return False

    def delete(self, name: str, row_id: int) -> bool:
        return False

    def savepoint(self, name: str) -> None:
        """No producer has that, nor the next ones."""

    def prepare(self, name: str) -> None: ...

    def rewrite(self) -> None: ...

    def crash(self) -> None: ...

    def switch_over(self) -> None: ...


_COPIED = ("match_key", "transaction_key", "leg", "amount_minor", "currency", "written_ms")


def _batch_at(log: PartitionLog, offset: int) -> Batch | None:
    at = bisect_right(log.batches, offset, key=lambda batch: batch.next)
    return log.batches[at] if at < len(log.batches) else None
