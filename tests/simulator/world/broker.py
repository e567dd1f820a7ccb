"""A Kafka cluster in memory: partitions as bytes, producers, their coordinator, replicas, and what is done to logs.

The facts that rules about a log rest on, and that a simpler model would hide:
- a marker stands on each partition by itself, so a transaction may have ended on one and not yet on another;
- the LSO waits for the marker to be replicated, not only to be written;
- below the high watermark only; what a leader has and too few replicas, no consumer sees;
- what retention takes goes as whole batches, and the log's start may be inside one;
- what compaction takes goes from anywhere below the LSO, and leaves a hole;
- a producer that comes back ends its predecessor's transaction, under a later epoch;
- clients of transaction.version 2 raise their epoch with each transaction, others never.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tallystick.kafka_log import batch_header
from tallystick.kafka_log.batch_header import BatchHeader, Marker
from tallystick.kafka_log.fetch import FetchedLog, OffsetNotInLog
from tallystick.model.cut import PartitionSnapshot
from tallystick.model.offsets import TopicPartition
from tests.simulator.world.batches import Record, data_batch, marker_batch

NO_PRODUCER = -1


class Batch(NamedTuple):
    """One batch as the log holds it. first, next: half-open offsets. keys: of its records. read: what the product's
    reader makes of it.
    """

    first: int
    next: int
    keys: tuple[bytes | None, ...]
    producer_id: int
    marker: Marker | None
    raw: bytes
    timestamp_ms: int
    read: tuple[BatchHeader, memoryview]


class Answered(bytes):
    """Some whole batches, one behind the other, which also knows them one by one."""

    batches: Sequence[Batch]

    @classmethod
    def of(cls, batches: Sequence[Batch]) -> "Answered":
        made = cls(b"".join([batch.raw for batch in batches]))
        made.batches = batches
        return made


def read_batches(records: bytes) -> Iterable[tuple[BatchHeader, memoryview]]:
    """Stands for `batch_header.read_batches`, which has read each batch of an answer when it was written."""
    if isinstance(records, Answered):
        return [batch.read for batch in records.batches]
    return batch_header.read_batches(records)


class Ended(NamedTuple):
    """A transaction that has its marker on a partition."""

    producer_id: int
    first: int
    marker_offset: int
    marker: Marker


@dataclass
class PartitionLog:
    """One partition. replicated: how far the replicas have it; None: all of it."""

    place: TopicPartition
    topic_id: str
    log_start: int = 0
    end: int = 0
    leader_epoch: int = 0
    replicated: int | None = None
    batches: list[Batch] = field(default_factory=list)
    open_since: dict[int, int] = field(default_factory=dict)
    ended: list[Ended] = field(default_factory=list)
    told: tuple[tuple[object, ...], PartitionSnapshot] | None = None
    """What the newest answer about its bounds was made of, and the answer."""

    @property
    def high_watermark(self) -> int:
        return self.end if self.replicated is None else min(self.end, self.replicated)

    @property
    def lso(self) -> int:
        """Never below the log's start, wherever what is open began. Source: Kafka's UnifiedLog."""
        high_watermark = self.high_watermark
        firsts: list[int] = []
        if self.replicated is not None:
            firsts = [one.first for one in self.ended if one.marker_offset >= high_watermark]
        if not firsts and not self.open_since:
            return high_watermark
        return max(self.log_start, min(high_watermark, *self.open_since.values(), *firsts))

    def append(
        self, records: Iterable[Record], *, producer_id: int, epoch: int, sequence: int, transactional: bool
    ) -> int:
        """A data batch; its first offset."""
        some = tuple(records)
        first, self.end = self.end, self.end + len(some)
        if transactional:
            self.open_since.setdefault(producer_id, first)
        raw = data_batch(
            some,
            base_offset=first,
            leader_epoch=self.leader_epoch,
            producer_id=producer_id,
            epoch=epoch,
            sequence=sequence,
            transactional=transactional,
        )
        self._keep(first, producer_id, None, raw, some[-1].timestamp_ms, keys=tuple(one.key for one in some))
        return first

    def end_transaction(self, producer_id: int, marker: Marker, *, epoch: int, timestamp_ms: int) -> int:
        """A marker, which the broker writes; its offset."""
        at, self.end = self.end, self.end + 1
        raw = marker_batch(
            marker,
            base_offset=at,
            leader_epoch=self.leader_epoch,
            producer_id=producer_id,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
        )
        self._keep(at, producer_id, marker, raw, timestamp_ms)
        first = self.open_since.pop(producer_id, None)
        if first is not None:
            self.ended.append(Ended(producer_id, first, at, marker))
        return at

    def _keep(
        self,
        first: int,
        producer_id: int,
        marker: Marker | None,
        raw: bytes,
        timestamp_ms: int,
        *,
        keys: tuple[bytes | None, ...] = (),
    ) -> None:
        (read,) = batch_header.read_batches(raw)
        self.batches.append(Batch(first, self.end, keys, producer_id, marker, raw, timestamp_ms, read))

    def fetch(self, offset: int, read_committed: bool, *, one_batch: bool = False) -> FetchedLog:
        """Answer as a broker: whole batches from the one that holds the offset on, and the aborted list for them."""
        if not self.log_start <= offset <= self.end:
            raise OffsetNotInLog(f"{self.place}: offset {offset} is not in the log (log start {self.log_start})")
        upper = self.lso if read_committed else self.high_watermark
        begin = bisect_right(self.batches, offset, key=_next_of)
        end = bisect_left(self.batches, upper, key=_first_of)
        if one_batch:
            end = min(end, begin + 1)
        answered = self.batches[begin:end]
        return FetchedLog(
            records=Answered.of(answered),
            high_watermark=self.high_watermark,
            lso=self.lso,
            log_start=self.log_start,
            aborted=tuple(self._aborted(offset, answered)) if read_committed and answered else (),
        )

    def _aborted(self, offset: int, answered: list[Batch]) -> Iterator[tuple[int, int]]:
        behind = answered[-1].next
        for one in self.ended:
            if one.marker is Marker.ABORT and one.marker_offset >= offset and one.first < behind:
                yield one.producer_id, one.first

    def retain_from(self, offset: int) -> None:
        """Retention or delete-records: the log begins there. Never above the high watermark."""
        self.log_start = max(self.log_start, min(offset, self.high_watermark))
        del self.batches[: bisect_right(self.batches, self.log_start, key=_next_of)]
        self.ended = [one for one in self.ended if one.marker_offset >= self.log_start]

    def compact(self) -> list[int]:
        """The cleaner, below the LSO: batches go that were aborted, or of whose records each has a later one of its
        key. The newest batch stays, as the active segment does. Returns the offsets that are gone.

        Source: KIP-58, KIP-98.
        """
        lso = self.lso
        clean = [one for one in self.batches[:-1] if one.marker is None and one.next <= lso]
        read = [one for one in clean if self.outcome_of(one.first) != "aborted"]
        newest = {key: one.first for one in read for key in one.keys}
        stay = {one.first for one in read if any(newest[key] == one.first for key in one.keys)}
        gone = [one for one in clean if one.first not in stay]
        taken = {one.first for one in gone}
        self.batches = [one for one in self.batches if one.first not in taken]
        return [offset for one in gone for offset in range(one.first, one.next)]

    def truncate_to(self, offset: int) -> None:
        """An unclean election: the new leader has no more than that, in whole batches."""
        keep = bisect_right(self.batches, offset, key=_next_of)
        self.end = self.batches[keep - 1].next if keep else self.log_start
        gone = self.batches[keep:]
        del self.batches[keep:]
        self.leader_epoch += 1
        if self.replicated is not None:
            self.replicated = min(self.replicated, self.end)
        lost_markers = {batch.first for batch in gone if batch.marker is not None}
        for one in [one for one in self.ended if one.marker_offset in lost_markers]:
            self.ended.remove(one)
            if one.first < self.end:
                self.open_since[one.producer_id] = one.first
        self.open_since = {producer: first for producer, first in self.open_since.items() if first < self.end}

    def outcome_of(self, offset: int) -> str:
        """What became of a record, by the markers: committed, aborted, open or plain."""
        batch = self.batches[bisect_right(self.batches, offset, key=_next_of)]
        if batch.producer_id == NO_PRODUCER:
            return "plain"
        for one in self.ended:
            if one.producer_id == batch.producer_id and one.first <= offset < one.marker_offset:
                return "committed" if one.marker is Marker.COMMIT else "aborted"
        return "open"


def _first_of(batch: Batch) -> int:
    return batch.first


def _next_of(batch: Batch) -> int:
    return batch.next


@dataclass
class Producer:
    """A transactional id, with what its coordinator knows. wrote: partitions of the transaction that is open.

    decided: how it ends, once somebody has said so, while markers are still due. forgotten: the coordinator has lost
    it, so that nobody will ever end what is open.
    """

    name: str
    producer_id: int
    epoch: int = 0
    sequence: int = 0
    started_ms: int = 0
    wrote: list[TopicPartition] = field(default_factory=list)
    decided: Marker | None = None
    forgotten: bool = False


@dataclass
class Broker:
    """All partitions by place and in its order, and all producers by transactional id."""

    partitions: dict[TopicPartition, PartitionLog] = field(default_factory=dict)
    producers: dict[str, Producer] = field(default_factory=dict)
    next_producer_id: int = 1000
    topics_made: int = 0
    min_insync: int = 2
    fenced_brokers: int = 0

    def create_topic(self, topic: str, partitions: int) -> None:
        """Or create it again: other id, empty logs. Coordinators know topics by name: what was open in the old one has
        its marker written to the new one.
        """
        self.topics_made += 1
        for number in range(partitions):
            place = TopicPartition(topic=topic, partition=number)
            self.partitions[place] = PartitionLog(place=place, topic_id=f"{topic}-{self.topics_made}")
        self.partitions = dict(sorted(self.partitions.items()))

    def logs_of(self, topics: Iterable[str]) -> list[PartitionLog]:
        names = set(topics)
        return [log for place, log in self.partitions.items() if place.topic in names]

    def init(self, name: str, *, now_ms: int) -> Producer:
        """InitProducerId: fence whoever had the id, end its transaction, and give the next epoch."""
        producer = self.producers.get(name)
        if producer is None or producer.forgotten:
            producer = self.producers[name] = Producer(name=name, producer_id=self.next_producer_id)
            self.next_producer_id += 1
            return producer
        if producer.wrote and producer.decided is None:
            producer.decided = Marker.ABORT
            producer.epoch += 1
        self.finish(producer, now_ms=now_ms)
        producer.epoch += 1
        producer.sequence = 0
        return producer

    def write(self, producer: Producer, place: TopicPartition, records: Iterable[Record], *, now_ms: int) -> int:
        """Records in the producer's transaction, which begins with the first."""
        if not producer.wrote:
            producer.started_ms = now_ms
        if place not in producer.wrote:
            producer.wrote.append(place)
        some = tuple(records)
        first = self.partitions[place].append(
            some, producer_id=producer.producer_id, epoch=producer.epoch, sequence=producer.sequence, transactional=True
        )
        producer.sequence += len(some)
        return first

    def write_plain(self, place: TopicPartition, records: Iterable[Record]) -> int:
        """Records outside any transaction, by a producer without an id."""
        return self.partitions[place].append(
            records, producer_id=NO_PRODUCER, epoch=-1, sequence=-1, transactional=False
        )

    def decide(self, producer: Producer, marker: Marker) -> None:
        """EndTxn: from now on only markers are due. By version 2 they carry the next transaction's epoch (KIP-890)."""
        if producer.wrote and producer.decided is None:
            producer.decided = marker
            if self.speaks_version_2(producer.name):
                producer.epoch += 1
                producer.sequence = 0

    def speaks_version_2(self, name: str) -> bool:
        """transaction.version: the executor's client and some services keep one epoch for all their transactions."""
        return not name.startswith("tallystick-") and not name.endswith("1")

    def mark_one(self, producer: Producer, *, now_ms: int) -> None:
        """One more partition gets its marker."""
        if not producer.wrote or producer.decided is None or producer.forgotten:
            return
        log = self.partitions.get(producer.wrote.pop(0))
        if log is not None:
            log.end_transaction(producer.producer_id, producer.decided, epoch=producer.epoch, timestamp_ms=now_ms)
        if not producer.wrote:
            producer.decided = None

    def finish(self, producer: Producer, *, now_ms: int) -> None:
        """All that is due."""
        while producer.wrote and producer.decided is not None and not producer.forgotten:
            self.mark_one(producer, now_ms=now_ms)
