"""What stood around a cut when it was judged first: settings, open transactions, bounds, what an earlier run had seen.

Not a function of the cut, so it is stored with the verdict and read back when the cut is judged again. Decides nothing.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pydantic import TypeAdapter

from tallystick.cut import PartitionSnapshot
from tallystick.offsets import TopicPartition
from tallystick.run_result import Money
from tallystick.topic_snapshot import OpenTransaction


@dataclass(frozen=True, kw_only=True)
class TopicSettings:
    """One topic as configured and as it stands. Replica counts are the least over its partitions; -1: no limit."""

    topic: str
    replication_factor: int
    in_sync_replicas: int
    min_insync_replicas: int
    unclean_leader_election: bool
    cleanup_policy: tuple[str, ...]
    retention_ms: int
    retention_bytes: int
    message_timestamp_type: str

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy


@dataclass(frozen=True, kw_only=True)
class BrokerSettings:
    """What transactional producers are promised. transaction_version: the finalized feature, 0 if unknown."""

    transaction_max_timeout_ms: int
    transactional_id_expiration_ms: int
    producer_id_expiration_ms: int
    transaction_version: int


@dataclass(frozen=True, kw_only=True)
class HeldEvents:
    """Events of one producer above one partition's LSO. holds: is it this producer's transaction that holds it back?"""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    kafka_offset_start: int
    events: int
    money: Money
    holds: bool


@dataclass(frozen=True, kw_only=True)
class RewrittenBatch:
    """A batch that an earlier run read and that is not what it was. before, now: what identifies its content."""

    topic_partition: TopicPartition
    kafka_offset: int
    read_by_cut: int
    before: str
    now: str


@dataclass(frozen=True, kw_only=True)
class UnreadExpiry:
    """When retention may take the first offset that no cut has read."""

    topic_partition: TopicPartition
    kafka_offset: int
    expires_utc: datetime


@dataclass(frozen=True, kw_only=True)
class ExecutedAction:
    """A compensation that was published, of a break that is still open."""

    action_id: UUID
    break_id: UUID
    executed_utc: datetime


@dataclass(frozen=True, kw_only=True)
class FirstSight:
    """When a run of this contract first saw a producer transaction open: its age, where no coordinator knows it."""

    topic_partition: TopicPartition
    producer_id: int
    kafka_offset_start: int
    first_seen_utc: datetime


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """All of it. partitions_before and partitions_after: the topics' bounds and identity around the scan."""

    partitions_before: tuple[PartitionSnapshot, ...] = ()
    partitions_after: tuple[PartitionSnapshot, ...] = ()
    topic_settings: tuple[TopicSettings, ...] = ()
    broker_settings: BrokerSettings | None = None
    open_transactions: tuple[OpenTransaction, ...] = ()
    first_sights: tuple[FirstSight, ...] = ()
    held_events: tuple[HeldEvents, ...] = ()
    rewritten: tuple[RewrittenBatch, ...] = ()
    expiries: tuple[UnreadExpiry, ...] = ()
    actions: tuple[ExecutedAction, ...] = ()

    def settings_of(self, topic: str) -> TopicSettings | None:
        return next((one for one in self.topic_settings if one.topic == topic), None)


SURROUNDINGS = TypeAdapter(Surroundings)
"""To JSON and back."""
