"""The state of the cluster around a cut when it was first judged: settings, open transactions, bounds, earlier sights.

Not a function of the cut, so it is stored with the verdict and read back when the cut is judged again. Decides nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from uuid import UUID

from pydantic import TypeAdapter

from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.model.break_history import KnownRepair
from tallystick.model.cut import (
    Cut,
    Discontinuity,
    FileChange,
    LedgerAnchor,
    LedgerSnapshot,
    PartitionSnapshot,
    TopicSlice,
    discontinuity,
)
from tallystick.model.findings import Money
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import OpenItem

END_OF_TIME_MS = 253_402_300_800_000
"""The year 10000: a longer retention, or a client's wild timestamp, is never."""


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

    @property
    def expires_by_time(self) -> bool:
        """Return whether retention takes records by their age, within the years that a time can tell."""
        return "delete" in self.cleanup_policy and 0 <= self.retention_ms < END_OF_TIME_MS


@dataclass(frozen=True, kw_only=True)
class BrokerSettings:
    """The brokers' settings for transactional producers. transaction_version: the finalized feature, 0 if unknown."""

    transaction_max_timeout_ms: int
    transactional_id_expiration_ms: int
    producer_id_expiration_ms: int
    transaction_version: int


@dataclass(frozen=True, kw_only=True)
class ServerProof:
    """The protection of one connection on the network, by the setting that says so. value "": not known.

    proven: the server proves who it is, and nobody can read along. is_local: it lies on this very machine.
    """

    connection: str
    setting: str
    value: str
    needs: str
    proven: bool = False
    is_local: bool = False


@dataclass(frozen=True, kw_only=True)
class BlockedEvents:
    """Events of one producer above one partition's LSO, aborted ones left out. producer_id -1: of all that have none.

    holds: is it this producer's transaction that holds the LSO? complete: was all up to the high watermark read?
    """

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    kafka_offset_start: int
    events: int
    money: Money
    holds: bool
    complete: bool = True


@dataclass(frozen=True, kw_only=True)
class BatchFingerprint:
    """The identity of a batch that a run has read. The checksum covers its records, not its place.

    crc32c: None stands for all that the log had lost of a slice when its run had read it: nothing that stands there
    later is what was read.
    """

    topic_partition: TopicPartition
    kafka_offset_start: int
    kafka_offset_end: int
    crc32c: int | None
    leader_epoch: int
    read_by_cut: int

    @property
    def content(self) -> tuple[int, int, int | None]:
        """Return the part that may never change. The same bytes under a later leader epoch are the same records, sent
        again.
        """
        return (self.kafka_offset_start, self.kafka_offset_end, self.crc32c)


@dataclass(frozen=True, kw_only=True)
class RewrittenBatch:
    """A batch that an earlier run read and that is not what it was. before, now: what identifies its content.

    unread_offsets: of a slice that is left out, since its end was written anew before the run of its cut, which is
    read_by_cut; 0: none is. is_gone: retention has taken what came in its place; read_by_cut is then the cut that
    saw the log end below it. is_above: it stands above what the cut read_by_cut could read.
    """

    topic_partition: TopicPartition
    kafka_offset: int
    read_by_cut: int
    before: str
    now: str
    unread_offsets: int = 0
    is_gone: bool = False
    is_above: bool = False


@dataclass(frozen=True, kw_only=True)
class UnreadExpiry:
    """The time at which retention may take the first offset that no cut has read."""

    topic_partition: TopicPartition
    kafka_offset: int
    expires_utc: datetime


@dataclass(frozen=True, kw_only=True)
class ExecutedAction:
    """A compensation that was published, and the item it was to repair, which was broken still when the cut was made.

    executed_utc: when the published event was known to stand, so never before it did.
    """

    action_id: UUID
    executed_utc: datetime
    item: OpenItem


@dataclass(frozen=True, kw_only=True)
class CursorPosition:
    """The position at which a cut ended on one side, and the mark that it was to reach. topic_partition None: the
    ledger.

    Unit: log positions, or database transaction ids.
    """

    topic_partition: TopicPartition | None
    cut_n: int
    window_start_utc: datetime
    cursor: int
    mark: int

    @property
    def waits(self) -> int:
        """Return how much had been written by the window's end and was not read."""
        return max(0, self.mark - self.cursor)


@dataclass(frozen=True, kw_only=True)
class PositionSums:
    """Sums over the positions of ledger rows: below the slice, as the cut before left them and now; and below its end.

    expected None: the cut before kept none. scattered: the same of numbers that nobody reaches by moving rows about, as
    `jdbc.scattered` makes them; None where an older release has stored it.
    """

    expected: int | None
    now: int
    at_end: int
    scattered_expected: int | None = None
    scattered_now: int | None = None
    scattered_at_end: int | None = None


@dataclass(frozen=True, kw_only=True)
class FirstSight:
    """The time when a run of this contract first saw a producer transaction open: its age, where no coordinator knows
    it.
    """

    topic_partition: TopicPartition
    producer_id: int
    kafka_offset_start: int
    first_seen_utc: datetime


@dataclass(frozen=True, kw_only=True)
class ClusterState:
    """All of it. partitions_before and partitions_after: the topics' bounds and identity around the scan."""

    partitions_before: tuple[PartitionSnapshot, ...] = ()
    partitions_after: tuple[PartitionSnapshot, ...] = ()
    topic_settings: tuple[TopicSettings, ...] = ()
    broker_settings: BrokerSettings | None = None
    server_proofs: tuple[ServerProof, ...] = ()
    """Of the connections that this run read by."""
    open_transactions: tuple[OpenTransaction, ...] = ()
    transactions_are_told: bool = True
    """False: the broker does not know KIP-664's questions, so that open_transactions are empty, whatever is open."""
    first_sights: tuple[FirstSight, ...] = ()
    held_events: tuple[BlockedEvents, ...] = ()
    anchors: tuple[BatchFingerprint, ...] = ()
    """The last batches that this run and those before it have read, a few per partition."""
    rewritten: tuple[RewrittenBatch, ...] = ()
    gone_unseen: tuple[TopicPartition, ...] = ()
    """Partitions that may have been cut back and written anew with nothing left that could be compared."""
    expiries: tuple[UnreadExpiry, ...] = ()
    actions: tuple[ExecutedAction, ...] = ()
    posted: tuple[str, ...] = ()
    """Item ids of rows that such a compensation wrote: they name its action, for an item that was broken still."""
    repairs: tuple[KnownRepair, ...] | None = None
    """Actions that were begun, of those that records and rows of this cut name; None: not kept."""
    ledger: LedgerSnapshot | None = None
    """The ledger's server once it had been read, where it does not go on from the one that the cut was made on."""
    ledger_files: tuple[FileChange, ...] = ()
    """Files of the slice that were not as the cut had taken them, when they had been read."""
    ledger_lost: tuple[LedgerAnchor, ...] = ()
    """Anchors of the slice that were not there any more, or others, when it had been read."""
    ledger_sums: PositionSums | None = None
    cursor_positions: tuple[CursorPosition, ...] = ()
    """Where the last cuts before this one ended, on the sides that this one could not read up to its mark."""

    def leaves_out(self, topic_partition: TopicPartition) -> bool:
        """Return whether nothing of the slice was read, since its end had been written anew."""
        return any(one.unread_offsets and one.topic_partition == topic_partition for one in self.rewritten)

    def settings_of(self, topic: str) -> TopicSettings | None:
        return next((one for one in self.topic_settings if one.topic == topic), None)

    def compacts(self, topic: str) -> bool:
        """Return whether the topic compacts. One whose settings are not known is taken not to: then a hole in it is
        unexplained.
        """
        settings = self.settings_of(topic)
        return settings is not None and settings.compacts

    def may_hide_records(self, part: PartitionSnapshot) -> bool:
        """Return whether too few replicas are in sync for the high watermark to move, and how much is above it is not
        known.
        """
        settings = self.settings_of(part.topic)
        if settings is None or part.log_end is not None or not part.replicas:
            return False
        return len(part.in_sync) < min(settings.min_insync_replicas, len(part.replicas))

    def held_on(self, topic_partition: TopicPartition) -> tuple[BlockedEvents, ...]:
        return tuple(one for one in self.held_events if one.topic_partition == topic_partition)

    def first_seen_utc(self, one: OpenTransaction) -> datetime | None:
        """Return when a run of this contract first saw this transaction open; None: no run before has."""
        return next(
            (
                sight.first_seen_utc
                for sight in self.first_sights
                if (sight.topic_partition, sight.producer_id, sight.kafka_offset_start)
                == (one.topic_partition, one.producer_id, one.kafka_offset_start)
            ),
            None,
        )

    def discontinuity_of(self, cut: Cut, topic_slice: TopicSlice) -> Discontinuity | None:
        """Return why the log did not continue where the slice ends, when the cut was made or before it was read."""
        part = topic_slice.offsets.topic_partition
        for one in (topic_slice.snapshot, self._before.get(part)):
            if one is not None and one.topic_partition == part and (why := discontinuity(cut, one)):
                return why
        return None

    @cached_property
    def _before(self) -> Mapping[TopicPartition, PartitionSnapshot]:
        return {one.topic_partition: one for one in self.partitions_before}


CLUSTER_STATE = TypeAdapter(ClusterState)
"""To JSON and back."""
