"""Ask the cluster, once and after the scan, what stands around a cut. Decides nothing: the classes do."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from kafka.admin import KafkaAdminClient

from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.batch_fingerprints import (
    cut_off_since,
    find_rewritten,
    newest_anchors,
    read_anchors_left,
    span_of,
    stands_below,
    written_since,
)
from tallystick.kafka_cluster.blocked_events import read_held_events
from tallystick.kafka_cluster.open_transactions import (
    OpenTransaction,
    TransactionsNotTold,
    read_open_transactions,
)
from tallystick.kafka_cluster.retention_forecast import read_unread_expiry
from tallystick.kafka_cluster.settings import read_broker_settings, read_topic_settings
from tallystick.kafka_cluster.state import (
    BatchFingerprint,
    BlockedEvents,
    ClusterState,
    FirstSight,
    RewrittenBatch,
)
from tallystick.kafka_log.fetch import Fetch, FetchTogether, fetchers
from tallystick.kafka_log.prefetch import fetch_ahead
from tallystick.kafka_log.topic_snapshot import read_topic_snapshot
from tallystick.model.cut import Cut, Discontinuity, PartitionSnapshot, TopicSlice, discontinuity
from tallystick.model.offsets import OffsetRange, TopicPartition

_FETCH_BYTES = 1 << 20
"""Of most partitions only a few batches are asked for."""

LastBatches = Mapping[TopicPartition, Sequence[BatchFingerprint]]
"""Of each slice what a scan has read last, oldest first."""


def read_cluster(
    admin: KafkaAdminClient,
    contract: Contract,
    topics: tuple[str, ...],
    cut: Cut,
    *,
    partitions_before: tuple[PartitionSnapshot, ...],
    scanned: LastBatches,
    earlier: ClusterState,
) -> ClusterState:
    """Read the state of those topics of a cut that this cluster has. earlier: what the run before saw. scanned: what
    this one has read last of each slice.

    Raises BrokerUnreachable, OffsetNotInLog.
    """
    fetch, together = fetchers(admin, fetch_bytes=_FETCH_BYTES)
    after = read_topic_snapshot(admin, topics)
    settings = read_topic_settings(admin, topics)
    above = [part.topic_partition for part in after if part.lso < part.high_watermark]
    open_transactions, are_told = _read_told(admin, above)
    going_on = _going_on(cut, after)
    compacting = frozenset(one.topic for one in settings if one.compacts)
    anchors, rewritten = follow_anchors(
        fetch, together, cut.n, after, going_on, earlier.anchors, scanned=scanned, compacting=compacting
    )
    anchors = _with_cut_off(anchors, cut, _as_they_end(admin, topics, after, going_on, anchors))
    by_topic = {one.topic: one for one in settings}
    expiries = (read_unread_expiry(fetch, topic_slice, now, by_topic.get(now.topic)) for topic_slice, now in going_on)
    return ClusterState(
        partitions_before=partitions_before,
        partitions_after=after,
        topic_settings=settings,
        broker_settings=read_broker_settings(admin),
        open_transactions=open_transactions,
        transactions_are_told=are_told,
        first_sights=first_sights(open_transactions, earlier.first_sights, now_utc=cut.now_utc),
        held_events=_read_held(fetch, contract, going_on, open_transactions),
        anchors=anchors,
        rewritten=rewritten,
        expiries=tuple(one for one in expiries if one),
    )


def read_below_baseline(
    clusters: Iterable[tuple[KafkaAdminClient, tuple[str, ...]]], baseline: Cut
) -> tuple[BatchFingerprint, ...]:
    """Anchors for the first run to compare: a baseline reads nothing, but a log that is cut back below it may grow
    again before that run looks, or have done so since the cut was made. Raises BrokerUnreachable.
    """
    found: list[BatchFingerprint] = []
    for admin, topics in clusters:
        fetch, together = fetchers(admin, fetch_bytes=_FETCH_BYTES)
        after = read_topic_snapshot(admin, topics)
        going_on = _going_on(baseline, after)
        anchors, _ = follow_anchors(fetch, together, baseline.n, after, going_on, (), scanned={})
        ends = _as_they_end(admin, topics, after, going_on, anchors)
        found += _with_cut_off(_with_written_anew(anchors, baseline), baseline, ends)
    return tuple(found)


def read_clusters(
    clusters: Iterable[tuple[KafkaAdminClient, tuple[str, ...]]],
    contract: Contract,
    cut: Cut,
    *,
    partitions_before: tuple[PartitionSnapshot, ...],
    scanned: LastBatches,
    earlier: ClusterState,
) -> ClusterState:
    """Read the state of each client's topics, together; the brokers' settings are those of the first, the outputs'."""
    first, *others = (
        read_cluster(
            admin, contract, topics, cut, partitions_before=partitions_before, scanned=scanned, earlier=earlier
        )
        for admin, topics in clusters
    )
    for other in others:
        first = replace(
            first,
            transactions_are_told=first.transactions_are_told and other.transactions_are_told,
            **{name: getattr(first, name) + getattr(other, name) for name in _OF_EACH_CLUSTER},
        )
    return first


_OF_EACH_CLUSTER = (
    "partitions_after",
    "topic_settings",
    "open_transactions",
    "first_sights",
    "held_events",
    "anchors",
    "rewritten",
    "expiries",
)


def _read_told(
    admin: KafkaAdminClient, partitions: Sequence[TopicPartition]
) -> tuple[tuple[OpenTransaction, ...], bool]:
    """What is open there, and whether the broker says so at all."""
    try:
        return read_open_transactions(admin, partitions) if partitions else (), True
    except TransactionsNotTold:
        return (), False


def first_sights(
    open_transactions: Iterable[OpenTransaction], earlier: Iterable[FirstSight], *, now_utc: datetime
) -> tuple[FirstSight, ...]:
    """Return when each of these was first seen open: by an earlier run in a row of them, or now."""
    known = {(one.topic_partition, one.producer_id, one.kafka_offset_start): one for one in earlier}
    seen_now = (
        FirstSight(
            topic_partition=one.topic_partition,
            producer_id=one.producer_id,
            kafka_offset_start=one.kafka_offset_start,
            first_seen_utc=now_utc,
        )
        for one in open_transactions
    )
    return tuple(known.get((one.topic_partition, one.producer_id, one.kafka_offset_start), one) for one in seen_now)


_GoingOn = Sequence[tuple[TopicSlice, PartitionSnapshot]]


def _going_on(cut: Cut, after: Iterable[PartitionSnapshot]) -> _GoingOn:
    """Slices with their partition as it stands, where its log goes on at the slice's end."""
    known = ((cut.slice_of(now.topic_partition), now) for now in after)
    return [(read, now) for read, now in known if read is not None and discontinuity(cut, now) is None]


def follow_anchors(
    fetch: Fetch,
    together: FetchTogether,
    cut_n: int,
    after: Sequence[PartitionSnapshot],
    going_on: _GoingOn,
    earlier: Sequence[BatchFingerprint],
    *,
    scanned: LastBatches,
    compacting: Collection[str] = (),
) -> tuple[tuple[BatchFingerprint, ...], tuple[RewrittenBatch, ...]]:
    """Anchors to keep, and what is not as it was read. Where a log does not go on, its old anchors wait for it.

    scanned: the last batches of each slice as they were judged, whatever the log shows by now. compacting: topics.

    Where nothing is left to compare, by a first run or since what was kept has been told, and where the slice was left
    out, what stands below the cut's end now is kept: a partition that is idle then may be cut back and grow again as
    well.
    """
    known: dict[TopicPartition, list[BatchFingerprint]] = {now.topic_partition: [] for now in sorted(after, key=_place)}
    for one in earlier:
        kept = known.get(one.topic_partition)
        if kept is not None:
            kept.append(one)
    going_on = sorted(going_on, key=lambda pair: _place(pair[1]))
    spans = [span_of(known[now.topic_partition], log_start=now.log_start) for _, now in going_on]
    fetch_known = fetch_ahead(fetch, together, [span for span in spans if span])
    rewritten: list[RewrittenBatch] = []
    for _, now in going_on:
        before = known[now.topic_partition]
        compacts = now.topic in compacting
        differs = find_rewritten(fetch_known, before, log_start=now.log_start, compacts=compacts)
        rewritten += differs
        new = [replace(one, read_by_cut=cut_n) for one in scanned.get(now.topic_partition, ())]
        known[now.topic_partition] = [*newest_anchors(() if differs else before, new)]
    bare = [stands_below(read, now) for read, now in going_on if not known[now.topic_partition] or _is_left_out(read)]
    fetch_below = fetch_ahead(fetch, together, bare)
    for offsets in bare:
        stands = read_anchors_left(fetch_below, offsets, cut_n=cut_n)
        known[offsets.topic_partition] = [*newest_anchors(known[offsets.topic_partition], stands)]
    return tuple(one for anchors in known.values() for one in anchors), tuple(rewritten)


def _is_left_out(read: TopicSlice) -> bool:
    """Tell whether nothing of a slice could be read: it was written anew since its cut, as its run says, or is gone."""
    return len(read.offsets) > 0 and not len(read.readable)


def _with_written_anew(anchors: Iterable[BatchFingerprint], cut: Cut) -> tuple[BatchFingerprint, ...]:
    """Anchors; a batch of a later leader than there was when the cut was made is not what stood there then."""
    return tuple(
        replace(one, crc32c=None) if written_since(one, cut.slice_of(one.topic_partition)) else one for one in anchors
    )


def _with_cut_off(
    anchors: tuple[BatchFingerprint, ...], cut: Cut, after: Iterable[PartitionSnapshot]
) -> tuple[BatchFingerprint, ...]:
    """Anchors, and what logs have lost since the cut, in the place of the batches that stood there: a log that has
    grown past the slice's end by the next run would look as if nothing had happened.
    """
    for now in after:
        read = cut.slice_of(now.topic_partition)
        if read and discontinuity(cut, now) is Discontinuity.TRUNCATED:
            cut_off = cut_off_since(read, now, cut_n=cut.n)
            of_it = [one for one in anchors if one.topic_partition == now.topic_partition]
            others = [one for one in anchors if one.topic_partition != now.topic_partition]
            below = [one for one in of_it if one.kafka_offset_start < cut_off.kafka_offset_start]
            anchors = (*others, *newest_anchors(below, [cut_off]))
    return anchors


def _as_they_end(
    admin: KafkaAdminClient,
    topics: Sequence[str],
    after: tuple[PartitionSnapshot, ...],
    going_on: _GoingOn,
    anchors: Iterable[BatchFingerprint],
) -> tuple[PartitionSnapshot, ...]:
    """Partitions, asked for again where anchors do not reach a slice's end: its log may have been cut back since, and a
    cleaner may have taken the batches there.
    """
    reached: dict[TopicPartition, int] = {}
    for one in anchors:
        reached[one.topic_partition] = max(one.kafka_offset_end, reached.get(one.topic_partition, 0))
    for read, now in going_on:
        if max(now.log_start, reached.get(now.topic_partition, 0)) < read.offsets.kafka_offset_end:
            return read_topic_snapshot(admin, topics)
    return after


def _place(now: PartitionSnapshot) -> TopicPartition:
    return now.topic_partition


def _read_held(
    fetch: Fetch,
    contract: Contract,
    going_on: _GoingOn,
    open_transactions: Sequence[OpenTransaction],
) -> tuple[BlockedEvents, ...]:
    """Of the partitions that are held up to their mark, and of those where something hangs."""
    hanging = {one.topic_partition for one in open_transactions if one.hangs}
    return tuple(
        held
        for topic_slice, now in going_on
        if (topic_slice.held or now.topic_partition in hanging) and now.lso < now.high_watermark
        for held in read_held_events(
            fetch,
            OffsetRange(
                topic=now.topic,
                partition=now.partition,
                kafka_offset_start=now.lso,
                kafka_offset_end=now.high_watermark,
            ),
            contract.event_on(now.topic),
            open_transactions,
        )
    )
