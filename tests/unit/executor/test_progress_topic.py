"""The progress topic is made once, keeps its records for ever, and has one partition; by a client that the test writes.

tests/stack makes it on a broker.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import tenacity.nap
from confluent_kafka import KafkaError, KafkaException

from tallystick.executor import progress_topic
from tallystick.executor.progress_topic import ProgressLost, ensure_progress_topic
from tallystick.kafka_log.fetch import BrokerUnreachable
from tallystick.kafka_log.topic_snapshot import TopicNotFound
from tallystick.model.cut import PartitionSnapshot
from tests.unit.builders import partition_at

NAME, CENTURY_MS = "tallystick.compensation.books", "3153600000000"
KEEPS = {
    "cleanup.policy": "compact",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "delete.retention.ms": CENTURY_MS,
}


class Answer:
    """What a request comes to: a value, or what is raised."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def result(self) -> Any:
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value


class Setting:
    """An entry of a topic's settings."""

    def __init__(self, value: str) -> None:
        self.value = value


class Cluster:
    """Notes what is asked of it. made, altered: what these requests come to. unknown: what is raised before it knows
    the topic.
    """

    def __init__(self) -> None:
        self.settings = dict(KEEPS)
        self.made: BaseException | None = None
        self.altered: BaseException | None = None
        self.unknown: list[BaseException] = []
        self.partitions: Sequence[PartitionSnapshot] = (partition_at(topic=NAME),)
        self.not_read: list[BaseException] = []
        self.asked: list[tuple[Any, ...]] = []
        self.slept: list[float] = []

    def create_topics(self, topics: Sequence[Any], *, request_timeout: float) -> dict[str, Answer]:
        (topic,) = topics
        self.asked.append(("create", topic.topic, topic.num_partitions, dict(topic.config), request_timeout))
        return {topic.topic: Answer(self.made)}

    def describe_configs(self, resources: Sequence[Any], *, request_timeout: float) -> dict[Any, Answer]:
        (resource,) = resources
        self.asked.append(("describe", resource.name, request_timeout))
        answer = self.unknown.pop(0) if self.unknown else {name: Setting(one) for name, one in self.settings.items()}
        return {resource: Answer(answer)}

    def incremental_alter_configs(self, resources: Sequence[Any], *, request_timeout: float) -> dict[Any, Answer]:
        (resource,) = resources
        said = [(one.name, one.value, one.incremental_operation.name) for one in resource.incremental_configs]
        self.asked.append(("alter", resource.name, said, request_timeout))
        return {resource: Answer(self.altered)}

    def read_topic_snapshot(self, reader: Any, topics: Sequence[str]) -> Sequence[PartitionSnapshot]:
        assert (reader, topics) == ("reader", [NAME])
        if self.not_read:
            raise self.not_read.pop(0)
        return self.partitions


class Kafka:
    """A connection's settings."""

    def for_confluent(self) -> dict[str, Any]:
        return {"bootstrap.servers": "broker:9092"}


def failure(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    it = Cluster()

    def client(settings: dict[str, Any]) -> Cluster:
        assert settings == {"bootstrap.servers": "broker:9092"}
        return it

    @contextmanager
    def open_admin(kafka: Any) -> Iterator[str]:
        assert isinstance(kafka, Kafka)
        yield "reader"

    monkeypatch.setattr(progress_topic, "AdminClient", client)
    monkeypatch.setattr(progress_topic, "open_admin", open_admin)
    monkeypatch.setattr(progress_topic, "read_topic_snapshot", it.read_topic_snapshot)
    monkeypatch.setattr(tenacity.nap, "time", SimpleNamespace(sleep=it.slept.append))
    return it


def ensured() -> PartitionSnapshot:
    return ensure_progress_topic(Kafka(), "books")  # type: ignore[arg-type]


def test_the_topic_is_made_compacted_and_kept_for_ever_with_one_partition(cluster: Cluster) -> None:
    assert ensured() is cluster.partitions[0]
    assert cluster.asked == [("create", NAME, 1, KEEPS, 30), ("describe", NAME, 30)]


def test_one_that_is_there_is_taken_as_it_is(cluster: Cluster) -> None:
    cluster.made = failure(KafkaError.TOPIC_ALREADY_EXISTS)
    assert ensured() is cluster.partitions[0]
    cluster.made = failure(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaException):
        ensured()


@pytest.mark.parametrize(
    ("setting", "value"), [("cleanup.policy", "delete"), ("retention.ms", "604800000"), ("retention.bytes", "1")]
)
def test_one_that_forgets_records_is_refused(cluster: Cluster, setting: str, value: str) -> None:
    cluster.settings[setting] = value
    with pytest.raises(ProgressLost, match=rf"^topic {NAME}: {setting} is '{value}', expected '{KEEPS[setting]}'$"):
        ensured()


@pytest.mark.parametrize("partitions", [0, 2])
def test_one_with_another_number_of_partitions_is_refused(cluster: Cluster, partitions: int) -> None:
    cluster.partitions = tuple(partition_at(topic=NAME, partition=n) for n in range(partitions))
    with pytest.raises(ProgressLost, match=rf"^topic {NAME}: expected one partition, got {partitions}$"):
        ensured()


def test_one_of_old_that_forgets_deletions_is_told_to_keep_them(cluster: Cluster) -> None:
    cluster.settings["delete.retention.ms"] = "86400000"
    ensured()
    assert cluster.asked[-1] == ("alter", NAME, [("delete.retention.ms", CENTURY_MS, "SET")], 30)
    cluster.asked.clear()
    cluster.settings["delete.retention.ms"] = str(int(CENTURY_MS) + 1)
    ensured()
    assert "alter" not in [asked[0] for asked in cluster.asked]


def test_where_this_account_may_not_set_that_it_says_who_has_to(cluster: Cluster) -> None:
    cluster.settings["delete.retention.ms"] = "86400000"
    cluster.altered = failure(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(ProgressLost, match=rf"kafka-configs.sh --alter --entity-type topics --entity-name {NAME} "):
        ensured()
    cluster.altered = failure(KafkaError._TIMED_OUT)
    with pytest.raises(KafkaException):
        ensured()


def test_a_broker_that_has_not_heard_of_it_yet_is_asked_again(cluster: Cluster) -> None:
    cluster.unknown = [failure(KafkaError.UNKNOWN_TOPIC_OR_PART)] * 2
    cluster.not_read = [TopicNotFound("not yet"), BrokerUnreachable("not yet")]
    assert ensured() is cluster.partitions[0]
    assert [asked[0] for asked in cluster.asked] == ["create", "describe", "describe", "describe"]
    assert cluster.slept == [0.2] * 4


def test_a_broker_that_does_not_hear_of_it_in_time_is_told_as_it_says(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_topic, "_REQUEST_SECONDS", 0)
    cluster.unknown = [failure(KafkaError.UNKNOWN_TOPIC_OR_PART)] * 2
    with pytest.raises(KafkaException) as raised:
        ensured()
    assert raised.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


@pytest.mark.parametrize("error", [failure(KafkaError.TOPIC_AUTHORIZATION_FAILED), ValueError("no broker's")])
def test_what_waiting_does_not_help_is_raised_at_once(cluster: Cluster, error: BaseException) -> None:
    cluster.unknown = [error]
    with pytest.raises(type(error)):
        ensured()
    assert [asked[0] for asked in cluster.asked] == ["create", "describe"]
