"""M4, as a forecast: what no run has read will expire before the next run is through.

Evidence: the newest timestamp of the batch at the slice's end, and retention.ms. Nothing is lost yet, so this changes
no verdict; it pages. Not to be mistaken for log_expired, which comes too late.
"""

from collections.abc import Iterator
from datetime import timedelta

from tallystick.contract.contract import Contract
from tallystick.contract.verdict_deadline import next_firing
from tallystick.kafka_cluster.state import ClusterState
from tallystick.model.cut import Cut, Discontinuity, PartitionSnapshot, TopicSlice, discontinuity
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tallystick.text.plain import format_time


def retention_overtakes(contract: Contract, cut: Cut, cluster: ClusterState) -> Iterator[NoticeFound]:
    """Yield one notice per partition. The next run begins when the schedule fires again, and ends a settle timeout
    later.
    """
    if not cluster.expiries:
        return
    next_run_utc = next_firing(contract.schedule, cut.now_utc)
    read_by_utc = next_run_utc + contract.settle_timeout
    for one in cluster.expiries:
        if one.expires_utc < read_by_utc:
            part, expires = one.topic_partition, _in(one.expires_utc - cut.now_utc)
            yield NoticeFound(
                notice=Notice.RETENTION_OVERTAKES,
                sentence=f"{part}: unread offsets, from {one.kafka_offset} on, expire {expires}, the "
                f"next run is in {_hours(next_run_utc - cut.now_utc)}.",
                pages=True,
                details={
                    "topic": part.topic,
                    "partition": part.partition,
                    "kafka_offset": one.kafka_offset,
                    "expires_utc": format_time(one.expires_utc),
                    "next_run_read_by_utc": format_time(read_by_utc),
                },
            )


def expiry_unseen(cut: Cut, cluster: ClusterState) -> Iterator[str]:
    """Yield partitions that are not there, whose log was cut back, or with unread offsets of which nobody knows when
    they expire. A topic that was made anew has nothing of the old one left to expire.
    """
    after = {now.topic_partition: now for now in cluster.partitions_after}
    for topic_slice in cut.topic_slices:
        part = topic_slice.offsets.topic_partition
        now = after.get(part)
        if now is None or _is_unseen(cluster, topic_slice, now, discontinuity(cut, now)):
            yield str(part)


def _is_unseen(
    cluster: ClusterState, topic_slice: TopicSlice, now: PartitionSnapshot, broken_off: Discontinuity | None
) -> bool:
    """Return whether unread offsets may expire, and no time of it was read: the settings are unknown, the batch names
    no time, or was gone when it was read, as one is that has just expired.
    """
    if broken_off is not None:
        return broken_off is Discontinuity.TRUNCATED
    settings, foreseen = cluster.settings_of(now.topic), {one.topic_partition for one in cluster.expiries}
    may_expire = settings is None or (settings.expires_by_time and now.topic_partition not in foreseen)
    return may_expire and topic_slice.offsets.kafka_offset_end < now.high_watermark


def _in(left: timedelta) -> str:
    return f"in {_hours(left)}" if left > timedelta(0) else "from now on"


def _hours(span: timedelta) -> str:
    """Format whole hours, or minutes and seconds where hours are too coarse."""
    seconds = int(span.total_seconds())
    if seconds >= 2 * 3600:
        return f"{seconds // 3600} h"
    return f"{seconds // 60} min" if seconds >= 120 else f"{seconds} s"
