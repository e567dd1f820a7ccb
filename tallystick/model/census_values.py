"""The counts of the census of one partition."""

from dataclasses import dataclass

from tallystick.model.offsets import TopicPartition, partition_of


@dataclass(frozen=True, kw_only=True)
class BledBatch:
    """A committed data batch of an earlier producer epoch than the data after it, before the same marker.

    span_epoch: the epoch of the transaction that the marker ended. marker_offset None: not found near the slice.
    Source: KIP-890.
    """

    kafka_offset_start: int
    kafka_offset_end: int
    producer_id: int
    producer_epoch: int
    span_epoch: int
    marker_offset: int | None


@dataclass(frozen=True, kw_only=True)
class PartitionCensus:
    """Every offset of one slice accounted for. Unit: offsets.

    Law: end - start = committed + aborted + plain + commit_markers + abort_markers + compacted + unexplained.
    Source: KIP-98.
    plain: records outside any producer transaction. spark_rows: what the first reader saw; must equal committed +
    plain. holes: offsets without a batch or record, part of unexplained. compacted: the same, where the topic compacts.
    empty_transactions: markers without data before them, as far as the census sees.
    bled: the first few batches of another epoch inside a marker span; bled_batches counts them all.
    fencings: aborts by a bumped epoch, of producers that keep one epoch otherwise.
    """

    topic: str
    partition: int
    kafka_offset_start: int
    kafka_offset_end: int
    committed: int
    aborted: int
    plain: int
    commit_markers: int
    abort_markers: int
    unexplained: int
    without_producer_id: int
    log_start: int
    lso: int
    high_watermark: int
    spark_rows: int | None = None
    holes: int = 0
    compacted: int = 0
    empty_transactions: int = 0
    fencings: int = 0
    bled_batches: int = 0
    bled: tuple[BledBatch, ...] = ()

    @property
    def topic_partition(self) -> TopicPartition:
        return partition_of(self.topic, self.partition)

    @property
    def readable_records(self) -> int:
        return self.committed + self.plain
