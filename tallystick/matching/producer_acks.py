"""The acknowledgement that a producer stored beside its row, compared with what the log has at that offset now.

Decides whether an acknowledgement proves anything. A broker acknowledges an offset once, and never gives it to another
record of the same topic: what was acknowledged there stands there until retention or compaction takes it. Else it was
lost. Source: KIP-101, KIP-279 (how an unclean election or a lost disk takes acknowledged records away).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from tallystick.kafka_cluster.state import ClusterState
from tallystick.kafka_log.record import LogRecord
from tallystick.ledger.protocol import LedgerRow
from tallystick.matching.match_case import LookupHit, RecordLocation
from tallystick.matching.pairing import topic_of
from tallystick.matching.scan_result import topic_item_id
from tallystick.model.cut import PartitionSnapshot
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide


@dataclass(frozen=True, kw_only=True)
class AckedOffset:
    """The place where a broker said it had written the event of one row."""

    match_key: str
    topic_partition: TopicPartition
    kafka_offset: int


def acks_of(rows: Iterable[LedgerRow], legs: Mapping[str, str]) -> tuple[AckedOffset, ...]:
    """Return the acknowledgements that rows hold, on the topic of the row's leg. A negative offset is none: acks=0
    gives it.
    """
    return tuple(
        AckedOffset(
            match_key=row.match_key,
            topic_partition=TopicPartition(topic=legs[row.leg], partition=row.receipt_partition),
            kafka_offset=row.receipt_offset,
        )
        for row in rows
        if row.receipt_partition is not None
        and row.receipt_offset is not None
        and row.receipt_offset >= 0
        and row.leg in legs
    )


def locate_acked(
    ack: AckedOffset,
    standing: LogRecord | None,
    *,
    partitions: Collection[PartitionSnapshot],
    first_topic_ids: Mapping[str, str],
) -> LookupHit | None:
    """Return what an acknowledgement proves of its event: nothing where the event is at that offset, whatever its
    outcome, or where the offset cannot be read yet.

    standing: the record at the offset, if there is one. first_topic_ids: topic to the id it had when the books began.
    """
    if standing is not None and standing.match_key == ack.match_key:
        return None
    part = ack.topic_partition
    now = next((one for one in partitions if one.topic_partition == part), None)
    if now is None:
        place, because = RecordLocation.EXPIRED, "there is no such partition"
    elif first_topic_ids.get(part.topic, now.topic_id) != now.topic_id:
        place, because = RecordLocation.EXPIRED, "the topic was deleted and created again"
    elif ack.kafka_offset < now.log_start:
        place, because = RecordLocation.EXPIRED, "retention has taken that offset"
    elif now.high_watermark <= ack.kafka_offset < now.written_end:
        return None
    else:
        place, because = RecordLocation.LOST, _stands_there(ack, standing, now)
    return LookupHit(
        side=ItemSide.TOPIC,
        place=place,
        item_id=topic_item_id(part.topic, part.partition, ack.kafka_offset),
        detail={"stands_there": because, **_bounds(now)},
    )


def _bounds(now: PartitionSnapshot | None) -> dict[str, int]:
    if now is None:
        return {}
    return {"leader_epoch": now.leader_epoch, "log_start": now.log_start, "high_watermark": now.high_watermark}


def _stands_there(ack: AckedOffset, standing: LogRecord | None, now: PartitionSnapshot) -> str:
    if ack.kafka_offset >= now.high_watermark:
        return f"nothing: the log ends at {now.high_watermark}"
    if standing is None:
        return "no record"
    return f"another event ({standing.outcome})"


def without_compacted(lookup_hits: Iterable[LookupHit], cluster_state: ClusterState) -> tuple[LookupHit, ...]:
    """Take no loss as proven on compacted topics: they may drop acknowledged records."""
    return tuple(_if_compacted(seen, cluster_state) for seen in lookup_hits)


def _if_compacted(seen: LookupHit, cluster_state: ClusterState) -> LookupHit:
    if seen.place is not RecordLocation.LOST:
        return seen
    settings = cluster_state.settings_of(topic_of(seen.item_id))
    if settings is None or not settings.compacts:
        return seen
    return replace(seen, place=RecordLocation.EXPIRED, detail={**seen.detail, "stands_there": "the topic compacts"})
