"""Several partitions in one request: each walk finds what it finds alone, and nothing is asked for twice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tallystick.kafka_log.batch_header import Marker
from tallystick.kafka_log.fetch import Asked, FetchedLog, OffsetNotInLog
from tallystick.kafka_log.log_walk import walk_batches
from tallystick.kafka_log.offset_census import take_census
from tallystick.kafka_log.prefetch import TOGETHER_OFFSETS, fetch_ahead
from tallystick.model.offsets import OffsetRange, TopicPartition
from tests.unit.synthetic_log import SyntheticLog

TOPIC = "payments"


def a_log() -> SyntheticLog:
    """0 plain, 1-2 aborted, 3 marker, 4 committed, 5 marker."""
    log = SyntheticLog()
    log.append(b"plain")
    log.append(b"lost", b"lost", producer_id=7, transactional=True)
    log.end_transaction(7, Marker.ABORT)
    log.append(b"kept", producer_id=7, transactional=True)
    log.end_transaction(7, Marker.COMMIT)
    return log


def place(partition: int) -> TopicPartition:
    return TopicPartition(topic=TOPIC, partition=partition)


def range_of(partition: int, end: int, *, start: int = 0) -> OffsetRange:
    return OffsetRange(topic=TOPIC, partition=partition, kafka_offset_start=start, kafka_offset_end=end)


@dataclass
class Brokers:
    """Partitions by number; a leader has every second one if there are two. room: bytes of an answer about several."""

    logs: list[SyntheticLog]
    leaders: int = 1
    room: int = 1 << 20
    alone: list[TopicPartition] = field(default_factory=list)
    groups: list[list[TopicPartition]] = field(default_factory=list)

    def fetch(self, topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        self.alone.append(topic_partition)
        return self.logs[topic_partition.partition].fetch(topic_partition, offset, read_committed)

    def together(self, group: Sequence[Asked]) -> Mapping[Asked, FetchedLog]:
        self.groups.append([asked.topic_partition for asked in group])
        assert len({asked.read_committed for asked in group}) == 1
        came, room = {}, self.room
        for asked in group:
            partition = asked.topic_partition.partition
            if partition % self.leaders == group[0].topic_partition.partition % self.leaders and room:
                try:
                    fetched = self.logs[partition].fetch(*asked)
                except OffsetNotInLog:
                    continue
                came[asked] = replace(fetched, records=fetched.records[:room])
                room -= len(came[asked].records)
        return came


def censuses(brokers: Brokers, ranges: Sequence[OffsetRange]) -> list[object]:
    fetch = fetch_ahead(brokers.fetch, brokers.together, ranges)
    return [take_census(fetch, part) for part in ranges]


@pytest.mark.parametrize("leaders", [1, 2])
@pytest.mark.parametrize("room", [1 << 20, 800, 10])
def test_whatever_room_an_answer_has_each_partition_is_counted_as_if_alone(leaders: int, room: int) -> None:
    """Of 10 bytes none holds a batch, and 800 cut one short: what did not come whole is asked for alone."""
    logs = [a_log() for _ in range(6)]
    ranges = [range_of(number, log.end) for number, log in enumerate(logs)]
    alone = [take_census(logs[number].fetch, part) for number, part in enumerate(ranges)]
    assert censuses(Brokers(logs, leaders=leaders, room=room), ranges) == alone


def test_small_ranges_come_in_one_request() -> None:
    brokers = Brokers([a_log() for _ in range(6)])
    censuses(brokers, [range_of(number, 6) for number in range(6)])
    assert (brokers.groups, brokers.alone) == ([[place(number) for number in range(6)]], [])


def test_of_what_an_answer_has_no_room_for_little_is_asked_for_again() -> None:
    """Each log goes on behind its range, and fills the answer."""
    count = 200
    brokers = Brokers([a_log() for _ in range(count)], room=len(a_log().fetch(place(0), 0, True).records))
    censuses(brokers, [range_of(number, 5) for number in range(count)])
    assert len(brokers.groups) == count - 1
    assert sum(map(len, brokers.groups)) < 100 + 2 * count


def test_those_of_another_leader_come_in_one_request_of_theirs() -> None:
    brokers = Brokers([a_log() for _ in range(6)], leaders=2)
    censuses(brokers, [range_of(number, 6) for number in range(6)])
    assert [group[0] for group in brokers.groups] == [place(0), place(1)]
    assert brokers.alone == []


def test_a_large_range_is_asked_for_alone_and_so_is_an_empty_one_never() -> None:
    brokers = Brokers([a_log() for _ in range(3)])
    large = range_of(0, 6 + TOGETHER_OFFSETS)
    fetch = fetch_ahead(brokers.fetch, brokers.together, [large, range_of(1, 0), range_of(2, 6)])
    fetch(place(0), 0, True)
    fetch(place(2), 0, True)
    assert (brokers.groups, brokers.alone) == ([], [place(0), place(2)])


def test_what_lies_further_in_a_range_is_asked_for_alone() -> None:
    brokers = Brokers([a_log() for _ in range(2)])
    fetch = fetch_ahead(brokers.fetch, brokers.together, [range_of(0, 6), range_of(1, 6)])
    assert fetch(place(1), 4, True).records == brokers.logs[1].fetch(place(1), 4, True).records
    assert brokers.groups == []


def test_each_answer_is_given_once() -> None:
    """Whoever asks again wants to know whether the log has moved."""
    brokers = Brokers([a_log() for _ in range(2)])
    fetch = fetch_ahead(brokers.fetch, brokers.together, [range_of(0, 6), range_of(1, 6)])
    fetch(place(0), 0, True)
    fetch(place(1), 0, True)
    brokers.logs[1].append(b"more")
    assert fetch(place(1), 0, True).high_watermark == 7


def test_isolation_is_part_of_the_question() -> None:
    brokers = Brokers([a_log() for _ in range(2)])
    brokers.logs[1].append(b"open", producer_id=9, transactional=True)
    fetch = fetch_ahead(brokers.fetch, brokers.together, [range_of(0, 6), range_of(1, 7)])
    fetch(place(0), 0, True)
    assert fetch(place(1), 0, False).records == brokers.logs[1].fetch(place(1), 0, False).records


def test_what_has_expired_is_refused_when_it_is_asked_for_and_not_before() -> None:
    gone = SyntheticLog(log_start=3)
    gone.append(b"left")
    brokers = Brokers([a_log(), gone])
    fetch = fetch_ahead(brokers.fetch, brokers.together, [range_of(0, 6), range_of(1, 4)])
    assert list(walk_batches(fetch, range_of(0, 6)))
    with pytest.raises(OffsetNotInLog, match="log start 3"):
        list(walk_batches(fetch, range_of(1, 4)))


@pytest.mark.parametrize("room", [1 << 20, 800, 10])
def test_a_walk_that_waits_for_no_more_ends_at_no_batch_that_was_cut_short(room: int) -> None:
    brokers = Brokers([a_log() for _ in range(6)], room=room)
    ranges = [range_of(number, 6) for number in range(6)]
    fetch = fetch_ahead(brokers.fetch, brokers.together, ranges)
    for part in ranges:
        assert sum(1 for _ in walk_batches(fetch, part, read_committed=False)) == 5
