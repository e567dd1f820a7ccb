"""Raw reads of a partition's log: batches with their headers, which no public consumer shows.

Through kafka-python's network layer, so that TLS and SASL work as for any client. Decides nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError, LeaderNotAvailableError, RetriableError, UnknownBrokerIdError, for_code
from kafka.protocol.consumer import FetchRequest
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from tallystick.connections.connections import KafkaSettings
from tallystick.model.errors import TallystickError
from tallystick.model.offsets import TopicPartition

FETCH_BYTES = 8 << 20
TOGETHER_BYTES = 1 << 20
"""Size of an answer about several partitions; at this size a round trip costs less than the data it brings."""
_FETCH_VERSIONS = {"min_version": 4, "max_version": 11}
"""11 is the last version before flexible fields; Kafka 4 still speaks 4 and up (KIP-896)."""
_OFFSET_OUT_OF_RANGE = 1
_NO_LEADER = -1

_ELECTION_SECONDS = 5
"""A leader may move while it is asked; by then the next one is known."""


class BrokerUnreachable(TallystickError, ConnectionError):
    """The cluster did not answer. A retry may cure it, so it leaves no verdict."""

    retryable = True


class OffsetNotInLog(TallystickError):
    """The log no longer has, or does not yet have, the offset that was asked for."""

    retryable = True


@dataclass(frozen=True, kw_only=True)
class FetchedLog:
    """One answer of the broker.

    aborted: (producer id, first offset) of the aborted transactions that overlap it; empty at isolation 0.
    """

    records: bytes
    high_watermark: int
    lso: int
    log_start: int
    aborted: tuple[tuple[int, int], ...]


Fetch = Callable[[TopicPartition, int, bool], FetchedLog]
"""(partition, offset, read_committed) -> what lies there. read_committed stops at the LSO and names the aborted."""


class Asked(NamedTuple):
    """The arguments of a Fetch."""

    topic_partition: TopicPartition
    kafka_offset: int
    read_committed: bool


FetchTogether = Callable[[Sequence[Asked]], Mapping[Asked, FetchedLog]]
"""Ask several with one request, all under one isolation. The answer lacks those that are not led by the first one's
broker, that have nothing there, for which it had no more room, or for which the broker reports an error."""


@contextmanager
def open_admin(kafka: KafkaSettings) -> Iterator[KafkaAdminClient]:
    """Connect a client, and close it at the end. Raises BrokerUnreachable, ConnectionNotGiven."""
    try:
        admin = KafkaAdminClient(
            **{"client_id": "tallystick", "request_timeout_ms": 30_000, **kafka.for_kafka_python()},
            bootstrap_timeout_ms=10_000,
        )
    except (KafkaError, OSError) as error:
        from tallystick.connections.kafka_failures import (
            why_unreachable,  # another client, which a run that goes well needs not
        )

        raise BrokerUnreachable(f"Kafka at {kafka.bootstrap_servers}: {why_unreachable(kafka)}") from error
    try:
        yield admin
    finally:
        admin.close()


def until_led() -> Retrying:
    """Return what asks again for as long as an election takes, where a leader may have moved or its broker is gone."""
    return Retrying(
        stop=stop_after_delay(_ELECTION_SECONDS),
        wait=wait_fixed(0.2),
        retry=retry_if_exception(_may_have_moved),
        reraise=True,
    )


def _may_have_moved(error: BaseException) -> bool:
    """Return whether another broker may answer; a refusal of ours, such as TokenNotGiven, none of them cures."""
    if isinstance(error, OSError):
        return not isinstance(error, TallystickError)
    return isinstance(error, RetriableError | UnknownBrokerIdError)


def fetcher(admin: KafkaAdminClient, *, fetch_bytes: int = FETCH_BYTES) -> Fetch:
    """Return a function that fetches from each partition's leader. Raises OffsetNotInLog, kafka.errors.KafkaError."""
    return fetchers(admin, fetch_bytes=fetch_bytes)[0]


def fetchers(admin: KafkaAdminClient, *, fetch_bytes: int = FETCH_BYTES) -> tuple[Fetch, FetchTogether]:
    """Return the same, and one that asks a leader for several of its partitions at once.

    Where a leader moves, both ask the next one, and give up when an election takes too long.
    """
    leaders: dict[TopicPartition, int] = {}

    def known_leader(topic_partition: TopicPartition) -> int:
        """Return the broker's id, or _NO_LEADER."""
        if topic_partition not in leaders:
            leaders.update(_read_leaders(admin, topic_partition.topic))
        return leaders.setdefault(topic_partition, _NO_LEADER)

    def leader_of(topic_partition: TopicPartition) -> int:
        leader = known_leader(topic_partition)
        if leader == _NO_LEADER:
            raise LeaderNotAvailableError(f"{topic_partition} has no leader")
        return leader

    @contextmanager
    def forgetting(group: Sequence[Asked]) -> Iterator[None]:
        """Forget the leaders of these where they may have moved, and have the brokers' addresses read anew."""
        try:
            yield
        except (KafkaError, OSError) as error:
            if _may_have_moved(error):
                for one in group:
                    leaders.pop(one.topic_partition, None)
                admin._manager.cluster.request_update()
            raise

    def ask(asked: Asked) -> Any:
        with forgetting([asked]):
            ((_, answer),) = _send(admin, leader_of(asked.topic_partition), [asked], fetch_bytes)
            if answer.error_code and answer.error_code != _OFFSET_OUT_OF_RANGE:
                raise for_code(answer.error_code)(f"fetch of {asked.topic_partition} at {asked.kafka_offset}")
            return answer

    def ask_together(group: Sequence[Asked]) -> list[tuple[Asked, Any]]:
        with forgetting(group):
            node = leader_of(group[0].topic_partition)
            there = [asked for asked in group if known_leader(asked.topic_partition) == node]
            return _send(admin, node, there, min(fetch_bytes, TOGETHER_BYTES))

    def fetch(topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        answer = until_led()(ask, Asked(topic_partition, offset, read_committed))
        if answer.error_code:
            raise OffsetNotInLog(
                f"{topic_partition}: offset {offset} is not in the log (log start {answer.log_start_offset})"
            )
        return _fetched(answer)

    def together(group: Sequence[Asked]) -> dict[Asked, FetchedLog]:
        answers = until_led()(ask_together, group)
        return {asked: _fetched(answer) for asked, answer in answers if answer.records and not answer.error_code}

    return fetch, together


def _fetched(answer: Any) -> FetchedLog:
    return FetchedLog(
        records=bytes(answer.records or b""),
        high_watermark=answer.high_watermark,
        lso=answer.last_stable_offset,
        log_start=answer.log_start_offset,
        aborted=tuple((entry.producer_id, entry.first_offset) for entry in answer.aborted_transactions or ()),
    )


def _read_leaders(admin: KafkaAdminClient, topic: str) -> dict[TopicPartition, int]:
    (described,) = admin.describe_topics([topic])
    return {
        TopicPartition(topic=topic, partition=part["partition_index"]): part["leader_id"]
        for part in described["partitions"]
    }


def _send(admin: KafkaAdminClient, node: int, group: Sequence[Asked], fetch_bytes: int) -> list[tuple[Asked, Any]]:
    """Send one request to one broker and return its answer to each; all under the first one's isolation."""
    response = admin._manager.run(_send_fetch, admin._manager, node, group, fetch_bytes)
    asked = {(one.topic_partition.topic, one.topic_partition.partition): one for one in group}
    return [
        (asked[topic.topic, answer.partition_index], answer)
        for topic in response.responses
        for answer in topic.partitions
    ]


async def _send_fetch(manager: Any, node: int, group: Sequence[Asked], fetch_bytes: int) -> Any:
    partitions: dict[str, list[Any]] = {}
    for one in group:
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=one.topic_partition.partition,
            current_leader_epoch=-1,
            fetch_offset=one.kafka_offset,
            log_start_offset=-1,
            partition_max_bytes=fetch_bytes,
        )
        partitions.setdefault(one.topic_partition.topic, []).append(partition)
    request = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=fetch_bytes,
        isolation_level=int(group[0].read_committed),
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=asked) for topic, asked in partitions.items()],
        forgotten_topics_data=[],
        rack_id="",
        **_FETCH_VERSIONS,
    )
    return await manager.send(request, node_id=node)
