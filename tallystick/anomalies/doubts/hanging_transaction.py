"""T3, T5: an open producer transaction that nobody will end, and one that waits on purpose.

Evidence of hanging: it is open on the partition; no coordinator lists its producer id, or the coordinator's transaction
does not list the partition, or has ended; and it was still open after that answer. Not to be mistaken for one that is
long but live (a coordinator lists it, its time-out runs), nor for a marker that is under way. Its age is counted from
the first run that saw it: the coordinator's start, if any, is of another transaction, and a record's timestamp is
whatever its client wrote. Source: KIP-664, KIP-890.
"""

from collections.abc import Iterator
from datetime import datetime

from tallystick.anomalies.doubts.held import (
    held_sentence,
    holder_details,
    holder_of,
    is_prepared,
    moment_text,
    seconds_since,
)
from tallystick.kafka_cluster.open_transactions import OpenTransaction
from tallystick.kafka_cluster.state import ClusterState
from tallystick.model.cut import Cut, TopicSlice
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.text.plain import format_time
from tallystick.text.verdict_sentence import counted


def hanging_transaction(cut: Cut, cluster: ClusterState) -> Iterator[DoubtFound]:
    """One per transaction that hangs, also above what this cut reads: it will hold the next ones."""
    slices = {part.offsets.topic_partition: part for part in cut.topic_slices}
    for one in cluster.open_transactions:
        topic_slice = slices.get(one.topic_partition)
        if one.hangs and topic_slice is not None:
            yield _hanging(cut, cluster, topic_slice, one)


def hanging_unseen(cluster: ClusterState) -> Iterator[str]:
    """Yield partitions of which nobody could say whether something hangs: the broker names no transaction, and one is
    open there; or one that no coordinator seems to end is not confirmed, as where not all of them answered.
    """
    if not cluster.transactions_are_told:
        yield from (str(now.topic_partition) for now in cluster.partitions_after if now.lso < now.high_watermark)
    yield from (str(one.topic_partition) for one in cluster.open_transactions if not (one.confirmed or one.will_end))


def _hanging(cut: Cut, cluster: ClusterState, topic_slice: TopicSlice, one: OpenTransaction) -> DoubtFound:
    part, first_seen_utc = one.topic_partition, _first_seen(cut, cluster, one)
    holds = topic_slice.held and holder_of(cluster, topic_slice) == one
    held = "this cut was read up to its mark, the next ones will not be"
    if holds:
        held = f"{counted(topic_slice.mark - topic_slice.offsets.kafka_offset_end, 'offset')} could not be read"
    elif topic_slice.held:
        held = "something else holds this cut, and this transaction will hold the next ones"
    return DoubtFound(
        doubt=Doubt.HANGING_TRANSACTION,
        sentence=f"{part}: the transaction of producer {one.producer_id} (epoch {one.producer_epoch}) is open from "
        f"offset {one.kafka_offset_start} on, and nobody will end it: {_why(one)}. First seen "
        f"{format_time(first_seen_utc)}; {held}.{held_sentence(cluster, part)}",
        details=holder_details(cut, cluster, topic_slice, one)
        | {
            "holds": holds,
            "coordinator_epoch": one.coordinator_epoch,
            "first_seen_utc": format_time(first_seen_utc),
            "age_seconds": seconds_since(cut, first_seen_utc),
        },
    )


def _why(one: OpenTransaction) -> str:
    if not one.transactional_id:
        return "no coordinator lists its producer id"
    if not one.lists_partition:
        return f"the coordinator's transaction of {one.transactional_id} does not list this partition"
    return f"the coordinator's transaction of {one.transactional_id} has ended ({one.coordinator_state})"


def _first_seen(cut: Cut, cluster: ClusterState, one: OpenTransaction) -> datetime:
    return cluster.first_seen_utc(one) or cut.now_utc


def held_by_prepared_transaction(cut: Cut, cluster: ClusterState) -> Iterator[DoubtFound]:
    """One per partition whose slice is held by a two-phase transaction. Never to be aborted from here."""
    for topic_slice in cut.topic_slices:
        holder = holder_of(cluster, topic_slice)
        if topic_slice.held and holder is not None and is_prepared(cluster, holder):
            yield _prepared(cut, cluster, topic_slice, holder)


def _prepared(cut: Cut, cluster: ClusterState, topic_slice: TopicSlice, holder: OpenTransaction) -> DoubtFound:
    part, end = topic_slice.offsets.topic_partition, topic_slice.offsets.kafka_offset_end
    since = moment_text(holder.started_ms)
    return DoubtFound(
        doubt=Doubt.HELD_BY_PREPARED_TRANSACTION,
        sentence=f"{part}: {counted(topic_slice.mark - end, 'offset')} could not be read: the two-phase transaction of "
        f"{holder.transactional_id} (producer {holder.producer_id}{f', since {since}' if since else ''}), which no "
        f"time-out ends, holds the LSO at {end}.{held_sentence(cluster, part)}",
        details=holder_details(cut, cluster, topic_slice, holder) | {"since_utc": since},
    )
