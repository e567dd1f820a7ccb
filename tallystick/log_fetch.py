"""Raw reads of a partition's log: batches with their headers, which no public consumer shows.

Through kafka-python's network layer, so that TLS and SASL work as for any client. Decides nothing.
"""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaConnectionError, KafkaError, for_code
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.consumer import FetchRequest

from tallystick.connections import KafkaSettings
from tallystick.offsets import TopicPartition

FETCH_BYTES = 8 << 20
RECEIVE_BYTES = 256 << 10
"""So much is asked of a socket at once. kafka-python asks for 4 KiB, which is 2,000 calls for one of our answers."""
_FETCH_VERSIONS = {"min_version": 4, "max_version": 11}
"""11 is the last version before flexible fields; Kafka 4 still speaks 4 and up (KIP-896)."""
_OFFSET_OUT_OF_RANGE = 1


class BrokerUnreachable(ConnectionError):
    """The cluster did not answer. A retry may cure it, so it leaves no verdict."""


class OffsetNotInLog(ValueError):
    """The log no longer has, or does not yet have, the offset that was asked for."""


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


@contextmanager
def open_admin(kafka: KafkaSettings) -> Iterator[KafkaAdminClient]:
    """A connected client, closed at the end. Raises BrokerUnreachable."""
    try:
        admin = KafkaAdminClient(
            **kafka.for_kafka_python(), client_id="tallystick", bootstrap_timeout_ms=10_000, request_timeout_ms=30_000
        )
    except (KafkaError, OSError) as error:
        raise BrokerUnreachable(f"Kafka at {kafka.bootstrap_servers}: {type(error).__name__}: {error}") from error
    try:
        yield admin
    finally:
        admin.close()


def fetcher(admin: KafkaAdminClient, *, fetch_bytes: int = FETCH_BYTES) -> Fetch:
    """A function that fetches from each partition's leader. Raises OffsetNotInLog, kafka.errors.KafkaError."""
    leaders: dict[TopicPartition, int] = {}

    def fetch(topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        if topic_partition not in leaders:
            leaders.update(_read_leaders(admin, topic_partition.topic))
        answer = admin._manager.run(
            _send_fetch, admin._manager, leaders[topic_partition], topic_partition, offset, read_committed, fetch_bytes
        )
        if answer.error_code == _OFFSET_OUT_OF_RANGE:
            raise OffsetNotInLog(
                f"{topic_partition}: offset {offset} is not in the log (log start {answer.log_start_offset})"
            )
        if answer.error_code:
            raise for_code(answer.error_code)(f"fetch of {topic_partition} at {offset}")
        return FetchedLog(
            records=bytes(answer.records or b""),
            high_watermark=answer.high_watermark,
            lso=answer.last_stable_offset,
            log_start=answer.log_start_offset,
            aborted=tuple((entry.producer_id, entry.first_offset) for entry in answer.aborted_transactions or ()),
        )

    return fetch


def _read_leaders(admin: KafkaAdminClient, topic: str) -> dict[TopicPartition, int]:
    (described,) = admin.describe_topics([topic])
    return {
        TopicPartition(topic=topic, partition=part["partition_index"]): part["leader_id"]
        for part in described["partitions"]
    }


async def _send_fetch(
    manager: Any, node: int, topic_partition: TopicPartition, offset: int, read_committed: bool, fetch_bytes: int
) -> Any:
    partition = FetchRequest.FetchTopic.FetchPartition(
        partition=topic_partition.partition,
        current_leader_epoch=-1,
        fetch_offset=offset,
        log_start_offset=-1,
        partition_max_bytes=fetch_bytes,
    )
    request = FetchRequest(
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=fetch_bytes,
        isolation_level=int(read_committed),
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic_partition.topic, partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
        **_FETCH_VERSIONS,
    )
    response = await manager.send(request, node_id=node)
    return response.responses[0].partitions[0]


def receive(transport: Any) -> tuple[bytes, KafkaError | None]:
    """All that has come in on a connection, and the error where no more can: what kafka-python does, by larger pieces.

    An encrypted socket keeps what it has decrypted, and nothing wakes us for that: it is asked until it has no more.
    """
    received: list[bytes] = []
    while True:
        try:
            piece = transport._sock.recv(RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return b"".join(received), None
        except (OSError, AttributeError) as error:  # once it was closed there is no socket
            return b"".join(received), KafkaConnectionError(error)
        if not piece:
            return b"".join(received), KafkaConnectionError("socket disconnected")
        received.append(piece)


KafkaTCPTransport._sock_recv = receive
KafkaSSLTransport._sock_recv = receive
