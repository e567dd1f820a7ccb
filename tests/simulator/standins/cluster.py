"""What the product asks of a cluster's clients, answered by the broker in memory."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_cluster.state import BrokerSettings, TopicSettings
from tallystick.kafka_log.fetch import FETCH_BYTES, Asked, BrokerUnreachable, Fetch, FetchedLog, FetchTogether
from tallystick.kafka_log.topic_snapshot import TopicNotFound
from tallystick.model.cut import PartitionSnapshot
from tallystick.model.offsets import TopicPartition
from tests.simulator.world.broker import Broker, PartitionLog
from tests.simulator.world.interleaving import Interleaving

_DAY_MS = 24 * 3600 * 1000
_BROKER_SETTINGS = BrokerSettings(
    transaction_max_timeout_ms=300_000,
    transactional_id_expiration_ms=7 * _DAY_MS,
    producer_id_expiration_ms=_DAY_MS,
    transaction_version=2,
)


@dataclass(kw_only=True)
class WorldAdmin:
    """A client of the cluster. down: nobody answers."""

    broker: Broker
    point: Interleaving
    down: bool = False
    replicas: tuple[int, ...] = (1, 2, 3)
    retention_ms: int = 7 * _DAY_MS
    broker_settings: BrokerSettings = _BROKER_SETTINGS
    compacted_topics: frozenset[str] = frozenset()

    def ask(self, question: str) -> None:
        self.point.reached(question)
        if self.down:
            raise BrokerUnreachable(f"{question}: nobody answers")

    def close(self) -> None:
        pass


@contextmanager
def open_admin(kafka: Any) -> Iterator[WorldAdmin]:
    yield kafka.admin


def fetchers(admin: WorldAdmin, *, fetch_bytes: int = FETCH_BYTES) -> tuple[Fetch, FetchTogether]:
    def fetch(topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        admin.ask("fetch")
        log = admin.broker.partitions[topic_partition]
        return log.fetch(offset, read_committed, one_batch=fetch_bytes == 1)

    return fetch, _nothing_together


def fetcher(admin: WorldAdmin, *, fetch_bytes: int = FETCH_BYTES) -> Fetch:
    return fetchers(admin, fetch_bytes=fetch_bytes)[0]


def _nothing_together(group: Sequence[Asked]) -> dict[Asked, FetchedLog]:
    """A broker whose answers have no room for a second partition."""
    return {}


def read_topic_snapshot(admin: WorldAdmin, topics: Sequence[str]) -> tuple[PartitionSnapshot, ...]:
    admin.ask("read_topic_snapshot")
    logs = admin.broker.logs_of(topics)
    there = {log.place.topic for log in logs}
    for topic in topics:
        if topic not in there:
            raise TopicNotFound(f"topic {topic}: the cluster has no such topic")
    return tuple(_snapshot(log, admin.replicas) for log in logs)


def _snapshot(log: PartitionLog, replicas: tuple[int, ...]) -> PartitionSnapshot:
    """The one that was told last, while nothing of it has changed."""
    in_sync = replicas if log.replicated is None else replicas[:1]
    bounds = (log.topic_id, log.leader_epoch, log.log_start, log.lso, log.high_watermark, log.end, replicas, in_sync)
    if log.told is None or log.told[0] != bounds:
        log.told = (bounds, _made_of(log.place, *bounds))
    return log.told[1]


def _made_of(
    place: TopicPartition,
    topic_id: str,
    leader_epoch: int,
    log_start: int,
    lso: int,
    high_watermark: int,
    log_end: int,
    replicas: tuple[int, ...],
    in_sync: tuple[int, ...],
) -> PartitionSnapshot:
    return PartitionSnapshot(
        topic=place.topic,
        partition=place.partition,
        topic_id=topic_id,
        leader_epoch=leader_epoch,
        log_start=log_start,
        lso=lso,
        high_watermark=high_watermark,
        log_end=log_end,
        replicas=replicas,
        in_sync=in_sync,
    )


def read_offsets_at(
    admin: WorldAdmin, partitions: Iterable[TopicPartition], *, at_utc: datetime
) -> dict[TopicPartition, int]:
    admin.ask("read_offsets_at")
    at_ms = int(at_utc.timestamp() * 1000)
    found = {}
    for place in partitions:
        later = (batch.first for batch in admin.broker.partitions[place].batches if batch.timestamp_ms >= at_ms)
        first = next(later, None)
        if first is not None:
            found[place] = max(first, admin.broker.partitions[place].log_start)
    return found


def read_open_transactions(admin: WorldAdmin, partitions: Iterable[TopicPartition]) -> tuple[OpenTransaction, ...]:
    admin.ask("read_open_transactions")
    by_id = {one.producer_id: one for one in admin.broker.producers.values() if not one.forgotten}
    found = []
    for place in partitions:
        for producer_id, first in sorted(admin.broker.partitions[place].open_since.items(), key=lambda one: one[1]):
            producer = by_id.get(producer_id)
            listed = producer is not None and place in producer.wrote
            state = "" if producer is None else _STATES[producer.decided] if producer.wrote else "CompleteCommit"
            found.append(
                OpenTransaction(
                    topic_partition=place,
                    producer_id=producer_id,
                    producer_epoch=producer.epoch if producer else 0,
                    kafka_offset_start=first,
                    transactional_id=producer.name if producer else "",
                    started_ms=producer.started_ms if producer and listed else None,
                    timeout_ms=60_000 if listed else None,
                    coordinator_state=state,
                    lists_partition=listed,
                    confirmed=not listed,
                )
            )
    return tuple(found)


_STATES = {None: "Ongoing", "commit": "PrepareCommit", "abort": "PrepareAbort"}


def read_topic_settings(admin: WorldAdmin, topics: Sequence[str]) -> tuple[TopicSettings, ...]:
    behind = {log.place.topic for log in admin.broker.logs_of(topics) if log.replicated is not None}
    return tuple(
        TopicSettings(
            topic=topic,
            replication_factor=len(admin.replicas),
            in_sync_replicas=1 if topic in behind else len(admin.replicas),
            min_insync_replicas=admin.broker.min_insync,
            unclean_leader_election=False,
            cleanup_policy=("compact",) if topic in admin.compacted_topics else ("delete",),
            retention_ms=admin.retention_ms,
            retention_bytes=-1,
            message_timestamp_type="CreateTime",
        )
        for topic in topics
    )


def read_broker_settings(admin: WorldAdmin) -> BrokerSettings | None:
    return admin.broker_settings
