"""Where a topic's logs begin and end, also where no client is told where they end."""

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidRequestError,
    KafkaError,
    TopicAuthorizationFailedError,
    UnsupportedVersionError,
)
from kafka.protocol.consumer.offsets import OffsetSpec

from tallystick.kafka_log import topic_snapshot
from tallystick.kafka_log.topic_snapshot import read_log_ends
from tallystick.model.cut import next_topic_slice
from tallystick.pipeline.sources import sample_of
from tests.unit.builders import NOON, PART, TOPIC, ledger_at


class RefusesDebuggers:
    """A cluster of which no client learns where a log ends."""

    def __init__(self, error: type[KafkaError]) -> None:
        self.error = error

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        raise self.error("list offsets")


@pytest.mark.parametrize("error", [InvalidRequestError, UnsupportedVersionError, ClusterAuthorizationFailedError])
def test_a_cluster_that_tells_no_client_where_a_log_ends_is_read_by_its_high_watermark(error: type[KafkaError]) -> None:
    assert read_log_ends(RefusesDebuggers(error), [TOPIC]) == {}  # type: ignore[arg-type]


def test_what_a_broker_merely_fails_at_is_no_answer() -> None:
    with pytest.raises(TopicAuthorizationFailedError):
        read_log_ends(RefusesDebuggers(TopicAuthorizationFailedError), [TOPIC])  # type: ignore[arg-type]


def answer(offset: int, leader_epoch: int | None = None) -> SimpleNamespace:
    return SimpleNamespace(offset=offset, leader_epoch=leader_epoch)


@pytest.mark.parametrize(("answered", "epoch"), [(5, 5), (3, 4), (None, 4)])
def test_a_leader_s_epoch_is_at_least_that_of_its_answers(
    monkeypatch: pytest.MonkeyPatch, answered: int | None, epoch: int
) -> None:
    """Who describes the topics may know an older leader only, whose epoch the newest batches do not have."""

    class Moving:
        def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
            part = {"partition_index": 0, "leader_epoch": 4, "replica_nodes": [1, 2], "isr_nodes": [2, 1]}
            return [{"name": TOPIC, "error_code": 0, "topic_id": "id", "partitions": [part]}]

        def list_partition_offsets(self, asked: dict[Any, OffsetSpec], *_: object) -> dict[Any, Any]:
            return {part: answer(20, answered) for part in asked}

    monkeypatch.setattr(topic_snapshot, "read_log_ends", lambda *_: {PART: 20})
    (now,) = topic_snapshot.read_topic_snapshot(Moving(), [TOPIC])  # type: ignore[arg-type]
    assert now.leader_epoch == epoch


def test_what_is_written_while_a_snapshot_is_taken_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question finds one record more than the one before it."""
    written = itertools.count(20)

    class Busy:
        def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
            part = {"partition_index": 0, "leader_epoch": 4, "replica_nodes": [1, 2], "isr_nodes": [2, 1]}
            return [{"name": TOPIC, "error_code": 0, "topic_id": "id", "partitions": [part]}]

        def list_partition_offsets(self, asked: dict[Any, OffsetSpec], *_: object) -> dict[Any, Any]:
            return {part: answer(0 if spec < -1 else next(written)) for part, spec in asked.items()}

    monkeypatch.setattr(topic_snapshot, "read_log_ends", lambda *_: {PART: next(written)})
    (now,) = topic_snapshot.read_topic_snapshot(Busy(), [TOPIC])  # type: ignore[arg-type]
    taken = sample_of((now,), ledger_at(300), at_utc=NOON)
    assert not next_topic_slice(now, previous=None, mark=taken.high_watermark(PART)).held
    assert (now.replicas, now.in_sync) == ((1, 2), (1, 2))
