"""The census on a real log: whatever wrote it and wherever a slice begins and ends, every offset is one thing."""

import itertools
from collections import Counter
from collections.abc import Iterator
from random import Random
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from lab.servers.process import wait_until
from lab.servers.stack import LabStack
from tallystick.connections.connections import KafkaSettings
from tallystick.kafka_log.fetch import Fetch, OffsetNotInLog, fetcher, open_admin
from tallystick.kafka_log.log_walk import Outcome, walk_batches
from tallystick.kafka_log.offset_census import take_census
from tallystick.kafka_log.producer_history import MarkerProtocol
from tallystick.kafka_log.transaction_span import read_spans
from tallystick.model import offsets
from tallystick.model.census_values import PartitionCensus
from tallystick.model.offsets import OffsetRange
from tests.forward_outcomes import COMMITTED, outcomes_forward


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


def test_the_census_adds_up_to_what_was_written(log: Log, fetch: Fetch, end: int) -> None:
    census = take_census(fetch, log.range(0, end))
    assert census.unexplained == 0
    assert (census.committed, census.aborted, census.plain) == (len(log.committed), len(log.aborted), len(log.plain))
    assert (census.commit_markers, census.abort_markers) == (5, 6)
    assert census.without_producer_id == 28  # four codecs of five were written without idempotence
    assert _sum(census) == end


def test_every_slice_counts_what_a_consumer_of_another_make_reads_there(log: Log, fetch: Fetch, end: int) -> None:
    """Slices begin within batches and transactions, and end before their markers."""
    seen, random = log.consumed(end), Random(7)
    assert sorted(seen.values(), key=int) == sorted(log.committed + log.plain, key=int)
    cuts = [sorted(random.sample(range(end + 1), 2)) for _ in range(60)]
    for start, stop in [*cuts, *((at, at + 1) for at in range(end))]:
        census = take_census(fetch, log.range(start, stop))
        assert (_sum(census), census.unexplained) == (stop - start, 0)
        assert census.readable_records == sum(start <= offset < stop for offset in seen), f"[{start}, {stop})"


def test_both_ways_of_deciding_agree_on_a_hundred_slices(log: Log, fetch: Fetch, end: int) -> None:
    """By the aborted list, and forward from the markers. Slices begin inside batches and end before their markers."""
    walked = [batch.header for batch in walk_batches(fetch, log.range(0, end))]
    inside_batches = [at for one in walked for at in range(one.base_offset + 1, one.next_offset)]
    before_markers = [
        at for one in walked if one.is_transactional for at in range(one.base_offset + 1, one.next_offset)
    ]
    random = Random(11)
    slices = {(start, stop) for start in inside_batches for stop in before_markers if start < stop}
    chosen = random.sample(sorted(slices), 100)
    for start, stop in chosen:
        forward = Counter(outcomes_forward(fetch, log.range(start, stop)).values())
        census = take_census(fetch, log.range(start, stop))
        assert {name: getattr(census, name) for name in forward} == forward, f"[{start}, {stop})"
        assert (_sum(census), census.unexplained, forward.total()) == (stop - start, 0, stop - start)


def test_what_the_producers_did_is_seen(log: Log, fetch: Fetch, end: int) -> None:
    """The heir of a zombie commits under one epoch, so the abort before it was a fencing; nothing bled."""
    census = take_census(fetch, log.range(0, end))
    assert (census.fencings, census.bled_batches, census.empty_transactions, census.holes) == (1, 0, 0, 0)


def test_librdkafka_keeps_its_epoch_and_each_record_knows_its_marker(log: Log, fetch: Fetch, end: int) -> None:
    part = offsets.TopicPartition(topic=log.topic, partition=0)
    forward = outcomes_forward(fetch, log.range(0, end))
    wanted = {
        at
        for batch in walk_batches(fetch, log.range(0, end))
        if batch.header.is_transactional and not batch.header.is_control
        for at in range(batch.header.base_offset, batch.header.next_offset)
    }
    met: list[int] = []
    spans = read_spans(fetch, part, wanted, lambda batch, inside: met.extend(inside))
    assert sorted(met) == sorted(wanted)
    assert sorted(spans) == sorted(wanted)
    for at, span in spans.items():
        assert span.marker is not None and span.marker_offset is not None
        assert span.first_offset <= at < span.marker_offset
        assert (str(span.marker) == "commit") == (forward[at] == COMMITTED)
        assert span.protocol is not MarkerProtocol.EPOCH_PER_TRANSACTION
    assert MarkerProtocol.CONSTANT_EPOCH in {span.protocol for span in spans.values()}


def test_a_slice_holds_the_same_whatever_it_is_cut_into(log: Log, fetch: Fetch, end: int) -> None:
    whole = {batch.header.base_offset: batch.outcome for batch in walk_batches(fetch, log.range(0, end))}
    for start, stop in itertools.pairwise([0, 3, 11, 36, 40, 41, 60, end]):
        for batch in walk_batches(fetch, log.range(start, stop)):
            assert batch.outcome is whole[batch.header.base_offset]
    assert set(whole.values()) == {Outcome.COMMITTED, Outcome.ABORTED, Outcome.PLAIN, Outcome.MARKER}


def test_what_lies_past_the_end_of_the_log_is_unexplained_and_what_never_could_is_refused(
    log: Log, fetch: Fetch, end: int
) -> None:
    """As after a truncation: the slice was cut when the log reached further."""
    assert take_census(fetch, log.range(end - 1, end + 1)).unexplained == 1
    with pytest.raises(OffsetNotInLog, match="is not in the log"):
        take_census(fetch, log.range(end + 5, end + 6))


def _sum(census: PartitionCensus) -> int:
    markers = census.commit_markers + census.abort_markers
    return census.committed + census.aborted + census.plain + markers + census.unexplained
