"""What a run does in the driver grows with the partitions, and not with their square: counted, without a clock.

Where each of a thousand partitions looked through all slices, that took half a minute.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tallystick.judging.judge import judge
from tallystick.kafka_cluster.state import ClusterState
from tallystick.matching.evidence import RecordTimes
from tallystick.model.cut import Cut, Sample, without_expired
from tallystick.pipeline.make_cut import next_topic_slices
from tests.unit.builders import NOON, TOPIC, cut_of, evidence_of, partition_at, slice_of

FEW, MANY = 2, 40


class Counted(tuple[Any, ...]):
    """Counts how often somebody looks through it."""

    looked_through = 0

    def __iter__(self) -> Iterator[Any]:
        self.looked_through += 1
        return super().__iter__()


class Partitions:
    """A cut of so many partitions and what stood around it."""

    def __init__(self, count: int) -> None:
        plain = slice_of(10, 20)
        self.now = Counted(partition_at(partition=number) for number in range(count))
        self.slices = Counted(
            replace(plain, offsets=replace(plain.offsets, partition=number), snapshot=self.now[number])
            for number in range(count)
        )
        self.marks = Counted((one.topic_partition, 20) for one in self.now)
        self.cut: Cut = cut_of(topic_slices=self.slices)
        self.sample = Sample(at_utc=NOON, high_watermarks=self.marks, ledger_low_mark=300, ledger_high_mark=300)

    @property
    def looked_through(self) -> int:
        return sum(one.looked_through for one in (self.now, self.slices, self.marks))


def tile(given: Partitions) -> None:
    assert len(next_topic_slices(given.cut, given.now, given.sample)) == len(given.slices)


def leave_out_what_expired(given: Partitions) -> None:
    assert not without_expired(given.cut, given.now).has_expired


def judge_all_classes(given: Partitions) -> None:
    times = tuple(
        RecordTimes(topic=TOPIC, partition=one.partition, early=1, late=0, earliest_ms=0, latest_ms=0)
        for one in given.now
    )
    evidence = evidence_of(
        cut=given.cut,
        previous_cut=given.cut,
        record_times=times,
        cluster=ClusterState(partitions_before=given.now, partitions_after=given.now),
    )
    result = judge(evidence, matched_rows=9, matched_money={}, content_digests={}, look_ups={}, carried=())
    assert [one.count for one in result.notices] == [len(given.slices)]


@pytest.mark.parametrize("step", [tile, leave_out_what_expired, judge_all_classes])
def test_no_partition_looks_through_all_of_them(step: Callable[[Partitions], None]) -> None:
    few, many = Partitions(FEW), Partitions(MANY)
    step(few)
    step(many)
    assert few.looked_through == many.looked_through > 0
