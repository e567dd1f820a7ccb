"""Whom a fetch asks where a partition's leader moves, its broker goes, or nobody leads it for a while."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import tenacity.nap
from kafka.errors import (
    KafkaConnectionError,
    LeaderNotAvailableError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    TopicAuthorizationFailedError,
    UnknownBrokerIdError,
)

from tallystick.connections.kafka_tokens import TokenNotGiven
from tallystick.kafka_log.fetch import Asked, OffsetNotInLog, fetchers
from tallystick.model.offsets import TopicPartition

FIRST, SECOND = TopicPartition(topic="payouts", partition=0), TopicPartition(topic="payouts", partition=1)
_OUT_OF_RANGE = OffsetOutOfRangeError.errno


@dataclass
class MovingCluster:
    """Brokers whose partitions move. leads: whom each is led by; told: who describes the topics knows that, or less.

    down: what a broker answers with. In place of an admin client, its connections, and the brokers that it knows.
    """

    leads: dict[TopicPartition, int]
    told: dict[TopicPartition, int]
    down: dict[int, Exception] = field(default_factory=dict)
    refused: dict[TopicPartition, int] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    described: int = 0
    brokers_read: int = 0

    @property
    def _manager(self) -> "MovingCluster":
        return self

    @property
    def cluster(self) -> "MovingCluster":
        return self

    def request_update(self) -> None:
        self.brokers_read += 1

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        self.described += 1
        parts = [{"partition_index": part.partition, "leader_id": leader} for part, leader in self.told.items()]
        return [{"name": topics[0], "partitions": parts}]

    def run(self, function: Any, *given: Any) -> Any:
        return asyncio.run(function(*given))

    async def send(self, request: Any, node_id: int) -> Any:
        self.asked.append(node_id)
        if node_id in self.down:
            raise self.down[node_id]
        (topic,) = request.topics
        answers = [self.answer(TopicPartition(topic=topic.topic, partition=one.partition), node_id)
                   for one in topic.partitions]  # fmt: skip
        return SimpleNamespace(responses=[SimpleNamespace(topic=topic.topic, partitions=answers)])

    def answer(self, part: TopicPartition, node: int) -> SimpleNamespace:
        code = self.refused.get(part, 0 if self.leads[part] == node else NotLeaderForPartitionError.errno)
        return SimpleNamespace(
            partition_index=part.partition,
            error_code=code,
            records=None if code else f"of {node}".encode(),
            high_watermark=9,
            last_stable_offset=9,
            log_start_offset=3,
            aborted_transactions=None,
        )


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Things that come to pass while it waits, one after the other; each wait takes a second."""
    clock, happen = [0.0], list[Any]()

    def sleep(_: float) -> None:
        clock[0] += 1
        if happen:
            happen.pop(0)()

    monkeypatch.setattr(tenacity.nap, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr("tenacity.time", SimpleNamespace(monotonic=lambda: clock[0]))
    yield happen
    assert happen == [], "and all of it did"


def settled() -> MovingCluster:
    return MovingCluster(leads={FIRST: 1, SECOND: 1}, told={FIRST: 1, SECOND: 1})


def test_a_leader_that_stays_is_looked_up_once(waits: list[Any]) -> None:
    cluster = settled()
    fetch, together = fetchers(cluster)  # type: ignore[arg-type]
    assert [fetch(part, 3, True).records for part in (FIRST, SECOND, FIRST)] == [b"of 1"] * 3
    assert set(together([Asked(FIRST, 3, True), Asked(SECOND, 3, True)])) == {(FIRST, 3, True), (SECOND, 3, True)}
    assert (cluster.described, cluster.asked, cluster.brokers_read) == (1, [1, 1, 1, 1], 0)


def test_a_leader_that_moves_during_a_walk_is_looked_up_again(waits: list[Any]) -> None:
    cluster = settled()
    fetch, _ = fetchers(cluster)  # type: ignore[arg-type]
    fetch(FIRST, 3, True)
    cluster.leads[FIRST] = 2
    waits += [lambda: None, lambda: cluster.told.update({FIRST: 2})]
    assert fetch(FIRST, 4, True).records == b"of 2"
    assert cluster.asked == [1, 1, 1, 2]
    assert fetch(SECOND, 3, True).records == b"of 1"


@pytest.mark.parametrize(
    "error", [KafkaConnectionError("gone"), UnknownBrokerIdError(1), ConnectionResetError("gone")], ids=repr
)
def test_a_broker_that_is_gone_hands_its_partitions_to_the_next_one(waits: list[Any], error: Exception) -> None:
    cluster = settled()
    fetch, together = fetchers(cluster)  # type: ignore[arg-type]
    fetch(FIRST, 3, True)
    cluster.down[1] = error

    def elect() -> None:
        cluster.leads = cluster.told = {FIRST: 2, SECOND: 3}

    waits.append(elect)
    came = together([Asked(FIRST, 4, True), Asked(SECOND, 3, True)])
    assert {asked: log.records for asked, log in came.items()} == {(FIRST, 4, True): b"of 2"}
    assert fetch(SECOND, 3, True).records == b"of 3"
    assert cluster.brokers_read == 1, "the client may not know the next broker yet"


def test_a_partition_that_moves_alone_is_left_out_and_asked_for_by_itself(waits: list[Any]) -> None:
    cluster = settled()
    fetch, together = fetchers(cluster)  # type: ignore[arg-type]
    fetch(FIRST, 3, True)
    cluster.leads[SECOND] = cluster.told[SECOND] = 2
    assert set(together([Asked(FIRST, 4, True), Asked(SECOND, 3, True)])) == {(FIRST, 4, True)}
    waits.append(lambda: None)
    assert fetch(SECOND, 3, True).records == b"of 2"


def test_nobody_is_asked_for_a_partition_without_a_leader_until_it_has_one(waits: list[Any]) -> None:
    cluster = settled()
    cluster.told = {FIRST: -1, SECOND: 1}
    fetch, together = fetchers(cluster)  # type: ignore[arg-type]
    assert set(together([Asked(SECOND, 3, True), Asked(FIRST, 3, True)])) == {(SECOND, 3, True)}
    waits.append(lambda: cluster.told.update({FIRST: 1}))
    assert fetch(FIRST, 3, True).records == b"of 1"
    assert cluster.asked == [1, 1]


def test_an_election_that_does_not_end_is_told(waits: list[Any]) -> None:
    cluster = settled()
    cluster.told = {FIRST: -1, SECOND: -1}
    fetch, together = fetchers(cluster)  # type: ignore[arg-type]
    with pytest.raises(LeaderNotAvailableError, match=r"payouts\[0\] has no leader"):
        fetch(FIRST, 3, True)
    with pytest.raises(LeaderNotAvailableError, match=r"payouts\[0\] has no leader"):
        together([Asked(FIRST, 3, True), Asked(SECOND, 3, True)])
    assert cluster.described == 12, "once a second, for five seconds"


def test_what_no_other_broker_cures_is_told_at_once(waits: list[Any]) -> None:
    cluster = settled()
    fetch, _ = fetchers(cluster)  # type: ignore[arg-type]
    cluster.refused[FIRST] = TopicAuthorizationFailedError.errno
    with pytest.raises(TopicAuthorizationFailedError):
        fetch(FIRST, 3, True)
    cluster.refused[FIRST] = _OUT_OF_RANGE
    with pytest.raises(OffsetNotInLog, match=r"offset 2 is not in the log \(log start 3\)"):
        fetch(FIRST, 2, True)
    cluster.down[1] = TokenNotGiven("no token")
    with pytest.raises(TokenNotGiven):
        fetch(FIRST, 3, True)
    assert (cluster.asked, cluster.described) == ([1, 1, 1], 1)
