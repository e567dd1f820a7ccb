"""Messages of a reader of the log beside its events, as blobs: from our own tasks to our own driver."""

import pickle
from collections.abc import Iterable
from typing import NamedTuple

from tallystick.kafka_cluster.state import BatchFingerprint
from tallystick.kafka_log.header_cache import BatchHeads
from tallystick.model.census_values import PartitionCensus
from tallystick.model.offsets import TopicPartition


class RecordDigest(NamedTuple):
    """Records of a range. xor, total: of their content, as `frame_match.event_content` has it."""

    rows: int
    xor: int
    total: int

    def plus(self, more: "RecordDigest") -> "RecordDigest":
        """Add two digests that have no record in common."""
        return RecordDigest(self.rows + more.rows, self.xor ^ more.xor, self.total + more.total)


NOTHING_SEEN = RecordDigest(0, 0, 0)


class PartitionScan(NamedTuple):
    """One slice that was walked. fetched_bytes: of its log, batches beyond its end and transactions around it too.

    heads: None where there are too many, or where the walk did not come across each offset. last: its last batches.
    """

    census: PartitionCensus
    fetched_bytes: int
    heads: BatchHeads | None
    last: tuple[BatchFingerprint, ...]


def heads_of(walked: Iterable[PartitionScan]) -> dict[TopicPartition, BatchHeads]:
    """Return the heads that were kept."""
    return {one.heads.offsets.topic_partition: one.heads for one in walked if one.heads is not None}


def walked_blob(walked: PartitionScan) -> bytes:
    return pickle.dumps(tuple(walked))


def walked_in(blob: bytes) -> PartitionScan:
    return PartitionScan(*pickle.loads(blob))


def seen_blob(topic_partition: TopicPartition, seen: RecordDigest) -> bytes:
    return pickle.dumps((topic_partition, seen))


def seen_in(blob: bytes) -> tuple[TopicPartition, RecordDigest]:
    topic_partition, seen = pickle.loads(blob)
    return topic_partition, RecordDigest(*seen)
