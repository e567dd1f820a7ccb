"""Evidence that the tests of several rules plant: who doubled, held, bled or cut back what."""

from dataclasses import replace
from typing import Any

from tallystick.kafka_cluster.state import ClusterState
from tallystick.kafka_log.record import ACTION_HEADER, LogRecord
from tallystick.matching.evidence import Evidence
from tallystick.matching.match_case import Entry
from tallystick.model.census_values import BledBatch
from tallystick.model.cut import PartitionSnapshot, TopicSlice
from tests.unit.builders import cut_of, event, evidence_of, partition_at, positions_of, record_of, row, slice_of

ORIGINAL, COPY = event(11), event(12)


def doubled(*, original: object, copy: object) -> Evidence:
    """One row, its event, and the event again; by whom each was written."""
    return evidence_of(row(1), ORIGINAL, COPY, record_origins={ORIGINAL.item_id: original, COPY.item_id: copy})


def by_action(record: LogRecord, action_id: str) -> LogRecord:
    """The same record, published by a compensation."""
    return replace(record, headers={ACTION_HEADER: action_id})


def bled(stray: Entry, *others: Entry) -> Evidence:
    """An event that an earlier transaction of epoch 0 left behind, and that one of epoch 1 committed."""
    batch = BledBatch(
        kafka_offset_start=stray.order,
        kafka_offset_end=stray.order + 1,
        producer_id=7,
        producer_epoch=0,
        span_epoch=1,
        marker_offset=19,
    )
    evidence = evidence_of(stray, *others, record_origins={stray.item_id: record_of(stray, producer_id=7)})
    return replace(evidence, census=(replace(evidence.census[0], bled_batches=1, bled=(batch,)),))


def trailing(*earlier: tuple[int, int]) -> Evidence:
    """A slice that ends ten below its mark, and where the cuts before it ended: (cursor, mark), oldest first."""
    return replace(cut_with(slice_of(10, 20, mark=30)), cluster=ClusterState(cursor_positions=positions_of(*earlier)))


def cut_with(topic_slice: object) -> Evidence:
    return evidence_of(cut=cut_of(topic_slice))


def around(before: PartitionSnapshot, after: PartitionSnapshot | None = None) -> Evidence:
    """The partition as it stood before the scan, and after it."""
    return evidence_of(cluster=ClusterState(partitions_before=(before,), partitions_after=(after or before,)))


CLEAN = evidence_of()
SLICE = CLEAN.cut.topic_slices[0]


def held_at(**changes: Any) -> TopicSlice:
    """A slice [10, 20) whose leader had 23, seen when two of three replicas were out of sync."""
    seen = {"lso": 20, "high_watermark": 20, "log_end": 23, "replicas": (1, 2, 3), "in_sync": (1,)}
    return replace(slice_of(10, 20, mark=23), snapshot=partition_at(**(seen | changes)))


LEGS = {"payment": "billing.payments", "invoice": "billing.invoices"}
