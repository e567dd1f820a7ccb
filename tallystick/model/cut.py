"""The slices one run reads, fixed before anything is read.

Decides where a cut ends. Does not ask the broker or the ledger: `topic_snapshot` and `ledger_snapshot` do.

Stored documents call positions by PostgreSQL's names, whatever the ledger is. They keep them, as the fields' aliases.

One file, since a cut is one value: each of its parts, and how a side goes on where the cut before it ended.
"""

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Annotated

from pydantic import Field

from tallystick.model.errors import TallystickError
from tallystick.model.offsets import OffsetRange, TopicPartition, partition_of


class PartitionsVanished(TallystickError):
    """A partition that earlier cuts read is gone from the topic."""


@dataclass(frozen=True, kw_only=True)
class PartitionSnapshot:
    """One partition as the broker describes it. Unit: log positions."""

    topic: str
    partition: int
    topic_id: str
    leader_epoch: int
    log_start: int
    lso: int
    high_watermark: int
    log_end: int | None = None
    """Where the leader's log ends: what lies above the high watermark no consumer sees yet. None: nobody asked."""
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()
    """Brokers that keep the partition, and those of them that count as having all of it."""

    @property
    def topic_partition(self) -> TopicPartition:
        return partition_of(self.topic, self.partition)

    @property
    def written_end(self) -> int:
        """All that a producer was told to be there lies below it, with acks=1 too."""
        return self.high_watermark if self.log_end is None else self.log_end

    def stable_from(self, kafka_offset: int) -> OffsetRange:
        """Return the offsets from this one up to the LSO: what is decided there. Not of an offset above it."""
        return OffsetRange(
            topic=self.topic, partition=self.partition, kafka_offset_start=kafka_offset, kafka_offset_end=self.lso
        )

    @property
    def out_of_sync(self) -> tuple[int, ...]:
        return tuple(sorted(set(self.replicas) - set(self.in_sync)))


@dataclass(frozen=True, kw_only=True)
class JudgedPart:
    """The position up to which cuts with a verdict have read one partition, and what the newest of them found there.
    kafka_offset_end: exclusive.
    """

    topic_id: str
    leader_epoch: int
    log_start: int
    kafka_offset_end: int


@dataclass(frozen=True, kw_only=True)
class LedgerSnapshot:
    """The ledger's server as it describes itself. Unit: positions, in PostgreSQL 64-bit database transaction ids; the
    low mark is the horizon. Other kinds have no timeline and no log, and write 0 and 0/0.

    Every transaction below the low mark has ended; every id that had been given out by then, to open ones and
    their savepoints too, is below the high mark.
    """

    low_mark: Annotated[int, Field(alias="xmin")]
    high_mark: Annotated[int, Field(alias="xmax")]
    system_identifier: str
    timeline: int
    lsn: str

    @property
    def keeps_history(self) -> bool:
        """Return whether the server keeps a timeline and a log, so that neither its horizon nor its ids
        ever fall back.
        """
        return self.timeline > 0

    @property
    def log_position(self) -> int:
        """The LSN as a number of bytes. Source: PostgreSQL manual, pg_lsn."""
        high, low = self.lsn.split("/")
        return (int(high, 16) << 32) + int(low, 16)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Both sides at one moment: what had been written by then lies below the high watermarks and the ledger's mark.

    high_watermarks: how far each log had been written by its leader, so that records which too few replicas had at that
    moment lie below them as well.
    """

    at_utc: datetime
    high_watermarks: tuple[tuple[TopicPartition, int], ...]
    ledger_low_mark: int
    ledger_high_mark: int

    def high_watermark(self, topic_partition: TopicPartition) -> int | None:
        return self._by_partition.get(topic_partition)

    @cached_property
    def _by_partition(self) -> Mapping[TopicPartition, int]:
        return dict(self.high_watermarks)

    def of_topics(self, topics: Collection[str]) -> "Sample":
        """The same without the partitions of other topics."""
        marks = tuple((part, mark) for part, mark in self.high_watermarks if part.topic in topics)
        return self if len(marks) == len(self.high_watermarks) else replace(self, high_watermarks=marks)


@dataclass(frozen=True, kw_only=True)
class TopicSlice:
    """One partition's part of a cut, with what the broker said when it was fixed."""

    offsets: OffsetRange
    snapshot: PartitionSnapshot
    mark: int
    """How far the log had been written by the sample that ends the window; the slice is whole when its end has reached
    it.
    """
    expired: int = 0
    """Offsets that retention took before any cut read them; they lie before the slice."""

    @property
    def held(self) -> bool:
        return self.offsets.kafka_offset_end < self.mark

    @property
    def held_by_replication(self) -> bool:
        """Return whether some of its records are invisible to consumers, since too few replicas have them."""
        return self.held and self.snapshot.high_watermark < self.mark

    @property
    def held_by_transaction(self) -> bool:
        """Return whether some are behind an open producer transaction."""
        return self.held and self.snapshot.lso < min(self.mark, self.snapshot.high_watermark)

    @property
    def readable(self) -> OffsetRange:
        """The part of the slice that the log still has."""
        if not self.expired:
            return self.offsets
        return replace(self.offsets, kafka_offset_start=self.offsets.kafka_offset_start + self.expired)


@dataclass(frozen=True, kw_only=True)
class LedgerFile:
    """A file as its folder lists it. path: below the ledger's folder."""

    path: str
    size_bytes: int
    modified_ns: int
    """Since 1970, by the clock of whoever keeps the file."""


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """A file that a cut had taken, and what the folder lists now; None: it is gone."""

    before: LedgerFile | None
    after: LedgerFile | None


@dataclass(frozen=True, kw_only=True)
class LedgerAnchor:
    """One of the newest rows of a ledger: another one in its place later says that an earlier state was put back."""

    position: int
    """0 where its row id alone tells."""
    row_id: str
    key_checksum: int
    taken: bool = False
    """Another row has its row id by now."""


ANCHORS_MAX = 5
"""Rows kept per cut."""


def anchor_of(row_id: str, match_key: str, *, position: int = 0) -> LedgerAnchor:
    """Return what a row is known by. Its key stays out of what is stored: a CRC-32 tells two keys apart."""
    checksum = zlib.crc32(match_key.encode("utf-8", "surrogatepass"))
    return LedgerAnchor(position=position, row_id=row_id, key_checksum=checksum)


@dataclass(frozen=True, kw_only=True)
class LedgerSlice:
    """Half-open range of positions, in PostgreSQL transaction ids, with the state of the server when it was fixed."""

    position_start: Annotated[int, Field(alias="xid_start")]
    position_end: Annotated[int, Field(alias="xid_end")]
    snapshot: LedgerSnapshot
    mark: int
    """The high mark of the sample that ends the window; the slice is whole when its end has reached it."""
    baseline_position: Annotated[int, Field(alias="baseline_xid")]
    """Where the contract began; older rows are not decidable."""
    reused_below: int = 0
    """Ids below it may have been given out again, by another server or a restored one: whether a cut has read a row
    there, its id does not say."""
    files: tuple[LedgerFile, ...] = ()
    """What it holds, where the ledger is files; the positions alone would not say."""
    changed: tuple[FileChange, ...] = ()
    """Files of earlier slices that were not as they had been, when this one was fixed."""
    left: tuple[LedgerFile, ...] = ()
    """New files that were not left alone for long enough, when this one was fixed: a later slice takes them."""
    left_from: int | None = None
    """Where rows of those may have been written first: they may come from files that an earlier slice left, too, and
    that were written anew before any took them."""
    reused_from: int = 0
    """Positions below it are those of before."""
    row_ids_reused: bool | None = None
    """Whether row ids may have been given out again too. None: they may, where positions may."""
    anchors: tuple[LedgerAnchor, ...] = ()
    """The newest rows when it was fixed: by position those below its end, or by row id whatever their position."""
    lost: tuple[LedgerAnchor, ...] = ()
    """Those of the slice before that were not there any more, or others, when this one was fixed."""

    def __post_init__(self) -> None:
        if not 0 <= self.position_start <= self.position_end:
            raise ValueError(f"ledger: expected 0 <= start <= end, got [{self.position_start}, {self.position_end})")

    @property
    def held(self) -> bool:
        return self.position_end < self.mark

    def may_reuse(self, position: int) -> bool:
        """Return whether the position may have been given out again, so that no row there counts as read."""
        return self.reused_from <= position < self.reused_below

    @property
    def row_ids_came_again(self) -> bool:
        """Return whether a row may have the row id of an earlier one, and not be that one written anew."""
        return self.reused_below > 0 if self.row_ids_reused is None else self.row_ids_reused


@dataclass(frozen=True, kw_only=True)
class Cut:
    """The exact data that one run reads. n = 0 is the baseline: empty slices that say where the contract begins."""

    contract: str
    n: int
    window_start_utc: datetime
    window_end_utc: datetime
    marked_at_utc: datetime
    """Moment of the sample that ends the window: all that the slices hold was written by then, but for what came where
    a log was cut back since."""
    now_utc: datetime
    topic_slices: tuple[TopicSlice, ...]
    ledger_slice: LedgerSlice
    by_time: bool = False
    """Its slices end where the window's end lies by timestamp: nobody looked at the time, so that no sample says."""
    host_ahead_ms: int | None = None
    """How far the clock of the host that made it was ahead of the verdict store's, by which all of it is dated."""

    @property
    def is_baseline(self) -> bool:
        return self.n == 0

    @property
    def has_expired(self) -> bool:
        """Return whether retention took any of its offsets before they were read."""
        return any(part.expired for part in self.topic_slices)

    def slice_of(self, topic_partition: TopicPartition) -> TopicSlice | None:
        """One partition's part; None where the cut did not know it."""
        return self._by_partition.get(topic_partition)

    def topic_ids(self, topic: str) -> Collection[str]:
        """The topic's ids, as its partitions were seen; none where the cut did not know it."""
        return self._ids_by_topic.get(topic, ())

    @cached_property
    def _by_partition(self) -> Mapping[TopicPartition, TopicSlice]:
        """Each partition asks for its own, and a topic may have thousands."""
        return {part.offsets.topic_partition: part for part in self.topic_slices}

    @cached_property
    def _ids_by_topic(self) -> Mapping[str, Collection[str]]:
        ids: dict[str, set[str]] = {}
        for part in self.topic_slices:
            ids.setdefault(part.offsets.topic, set()).add(part.snapshot.topic_id)
        return ids


def choose_sample(samples: Sequence[Sample], *, window_end_utc: datetime) -> Sample:
    """The first sample at or after the window's end; without one, the newest there is."""
    later = [sample for sample in samples if sample.at_utc >= window_end_utc]
    if later:
        return min(later, key=lambda sample: sample.at_utc)
    return max(samples, key=lambda sample: sample.at_utc)


def is_late(sample: Sample, *, window_end_utc: datetime, next_end_utc: datetime) -> bool:
    """Return whether the sample was taken when a later window had ended too. next_end_utc: of the window after this
    one.
    """
    return sample.at_utc >= next_end_utc > window_end_utc


def mark_by_time(sample: Sample, *, offsets: Mapping[TopicPartition, int], position: int | None) -> Sample:
    """A late sample's marks, moved back to where the window's end lies by timestamp, so that windows share an outage.

    offsets: of the first record of each partition that is not older than the window's end; a partition without one
    keeps its mark. position: of the first row of that kind; None keeps the mark. Timestamps are not in order, and need
    not be: they choose where a slice stops, and the next one goes on there. What a slice holds was written by
    the sample's moment; by no earlier one can that be proven.
    """
    return replace(
        sample,
        high_watermarks=tuple((part, min(mark, offsets.get(part, mark))) for part, mark in sample.high_watermarks),
        ledger_high_mark=min(sample.ledger_high_mark, sample.ledger_high_mark if position is None else position),
    )


def with_lost(ledger_slice: LedgerSlice, previous: LedgerSlice, lost: tuple[LedgerAnchor, ...]) -> LedgerSlice:
    """Return the slice of a ledger that has lost anchors of the slice before: the positions above the newest one that
    all of them leave standing may be given out again.
    """
    if not lost:
        return ledger_slice
    oldest = min(one.position for one in lost)
    reused_from = max((one.position + 1 for one in previous.anchors if one.position < oldest), default=0)
    if previous.reused_below:
        reused_from = min(reused_from, previous.reused_from)
    return replace(
        ledger_slice,
        lost=lost,
        reused_from=reused_from,
        reused_below=ledger_slice.position_start,
        row_ids_reused=previous.row_ids_came_again or any(one.taken for one in lost) or len(lost) == ANCHORS_MAX,
    )


def is_failed_over(before: LedgerSnapshot, now: LedgerSnapshot) -> bool:
    """Return whether another server or timeline answers. It has its own history behind the point where the two part."""
    return (before.system_identifier, before.timeline) != (now.system_identifier, now.timeline)


def reuses_ids(before: LedgerSnapshot, now: LedgerSnapshot, *, read_up_to: int) -> bool:
    """Return whether ids are, or were since `before`, given out below the position that had been read up to.

    While a server keeps its history neither its horizon nor its log falls back, a crash included: the horizon is
    flushed before it is used. One that was behind already gave such ids out until it had caught up. Of a ledger without
    history nothing follows from a horizon that falls back: its newest row was deleted, which moves no other row.
    """
    if not now.keeps_history:
        return False
    fell_back = now.low_mark < before.low_mark or (
        not is_failed_over(before, now) and now.log_position < before.log_position
    )
    return fell_back or before.low_mark < read_up_to


def continues_history(before: LedgerSnapshot, now: LedgerSnapshot, *, read_up_to: int) -> bool:
    """Return whether it is the same server with the same history, and its ids are above the position read up to."""
    return not is_failed_over(before, now) and not reuses_ids(before, now, read_up_to=read_up_to)


class Discontinuity(StrEnum):
    """The reason why a partition's log does not continue where a cut ended."""

    RECREATED = "recreated"
    """Its topic was deleted and created again: another topic id, other offsets. Source: KIP-516."""
    TRUNCATED = "truncated"
    """It ends below an offset that was stable once. A new leader shows no such end for a moment. Source: KIP-207."""


def discontinuity(cut: Cut, now: PartitionSnapshot) -> Discontinuity | None:
    """Return why this partition does not continue where the cut ended. One that the cut did not know does, if its topic
    is the same.
    """
    if is_recreated(cut, now):
        return Discontinuity.RECREATED
    read = cut.slice_of(now.topic_partition)
    return Discontinuity.TRUNCATED if read and now.high_watermark < read.offsets.kafka_offset_end else None


def is_recreated(cut: Cut, now: PartitionSnapshot) -> bool:
    """Return whether the topic has another id than the one that the cut read."""
    known = cut.topic_ids(now.topic)
    return len(known) > (now.topic_id in known)


def without_expired(cut: Cut, partitions: Sequence[PartitionSnapshot]) -> Cut:
    """The cut as the log still has it: what left the log since the cut was stored counts as expired too.

    All of it in a partition that is gone, or whose log does not go on where the cut ended.
    """
    now = {part.topic_partition: part for part in partitions}
    slices = tuple(_as_still_there(cut, part, now.get(part.offsets.topic_partition)) for part in cut.topic_slices)
    return cut if slices == cut.topic_slices else replace(cut, topic_slices=slices)


def _as_still_there(cut: Cut, part: TopicSlice, now: PartitionSnapshot | None) -> TopicSlice:
    if now is None or discontinuity(cut, now):
        return replace(part, expired=len(part.offsets))
    gone = min(now.log_start, part.offsets.kafka_offset_end) - part.offsets.kafka_offset_start
    return replace(part, expired=gone) if gone > part.expired else part


def next_topic_slice(
    snapshot: PartitionSnapshot, *, previous: TopicSlice | None, mark: int | None, topic_was_read: bool = True
) -> TopicSlice:
    """Start where the previous cut ended; end at the mark, never above the LSO, never below the start.

    A partition that came since then starts at 0, and what retention has taken of it by now expired unread; one of a
    topic that was no part of the books starts where its log does. `mark` None: the sample did not know the partition.
    """
    starts_at = previous.offsets.kafka_offset_end if previous else 0 if topic_was_read else snapshot.log_start
    start = max(starts_at, snapshot.log_start)
    wanted = snapshot.written_end if mark is None else mark
    end = max(start, min(wanted, snapshot.lso))
    return TopicSlice(
        offsets=OffsetRange(
            topic=snapshot.topic, partition=snapshot.partition, kafka_offset_start=starts_at, kafka_offset_end=end
        ),
        snapshot=snapshot,
        mark=wanted,
        expired=start - starts_at,
    )


def discontinued_slice(previous: TopicSlice, snapshot: PartitionSnapshot) -> TopicSlice:
    """Nothing, at the previous cut's end: this log does not go on there, so none of it is read.

    snapshot: what the slice is to remember; its topic id stays the one that cuts have read, so that every later run
    notices too.
    """
    end = previous.offsets.kafka_offset_end
    return TopicSlice(offsets=replace(previous.offsets, kafka_offset_start=end), snapshot=snapshot, mark=end)
