"""The time at which retention may take what no run has read. A forecast from the batch at each slice's end."""

from datetime import UTC, datetime, timedelta

from tallystick.kafka_cluster.state import END_OF_TIME_MS, TopicSettings, UnreadExpiry
from tallystick.kafka_log.fetch import Fetch, OffsetNotInLog
from tallystick.kafka_log.log_walk import walk_batches
from tallystick.model.cut import PartitionSnapshot, TopicSlice
from tallystick.model.offsets import OffsetRange

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_unread_expiry(
    fetch: Fetch, topic_slice: TopicSlice, now: PartitionSnapshot, settings: TopicSettings | None
) -> UnreadExpiry | None:
    """Return when unread data may expire; None where nothing is unread, or nothing expires by time.

    retention.ms counts from the newest timestamp of a segment, so a batch cannot expire before its own has passed;
    segments only delay that. Source: KIP-32. retention.bytes cannot be foreseen.
    """
    first = max(topic_slice.offsets.kafka_offset_end, now.log_start)
    if settings is None or not settings.expires_by_time or first >= now.high_watermark:
        return None
    timestamp_ms = _timestamp_at(fetch, now, first)
    if timestamp_ms is None or timestamp_ms + settings.retention_ms >= END_OF_TIME_MS:
        return None
    return UnreadExpiry(
        topic_partition=now.topic_partition,
        kafka_offset=first,
        expires_utc=_EPOCH + timedelta(milliseconds=timestamp_ms + settings.retention_ms),
    )


def _timestamp_at(fetch: Fetch, now: PartitionSnapshot, kafka_offset: int) -> int | None:
    """The newest timestamp of the batch there; None where it has none, or has just expired."""
    one = OffsetRange(
        topic=now.topic,
        partition=now.partition,
        kafka_offset_start=kafka_offset,
        kafka_offset_end=kafka_offset + 1,
    )
    try:
        for batch in walk_batches(fetch, one, read_committed=False):
            return batch.header.max_timestamp_ms if batch.header.max_timestamp_ms >= 0 else None
    except OffsetNotInLog:
        pass
    return None
