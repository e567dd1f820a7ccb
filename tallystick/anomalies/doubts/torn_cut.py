"""Q2: the topic changed while the run read it, so that its two readers and its look-ups saw different logs.

Evidence: the partitions' bounds and identity before and after the scan; and events that the scan has read and the log
did not hold any more when it was asked whether they take another one back. Not to be mistaken for what moves all the
time: a high watermark that grows, a log start that stays below the slice, a partition that got another leader.
"""

from collections.abc import Iterator

from tallystick.kafka_cluster.state import ClusterState
from tallystick.matching.evidence import LookedUp
from tallystick.matching.scan_result import topic_place
from tallystick.model.cut import Cut, PartitionSnapshot, TopicSlice
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.offsets import TopicPartition


def torn_cut(cut: Cut, cluster: ClusterState, looked_up: LookedUp) -> Iterator[DoubtFound]:
    """One per partition that came, went, or lost some of what was being read."""
    changed = dict(partitions_changed(cut, cluster))
    for item_id in looked_up.gone_unread:
        part, offset = topic_place(item_id)
        changed.setdefault(part, f"what stood at offset {offset} left the log")
    for part, what in sorted(changed.items()):
        yield _torn(part, what)


def partitions_changed(cut: Cut, cluster: ClusterState) -> Iterator[tuple[TopicPartition, str]]:
    """Yield each partition that changed around the scan, and what changed."""
    around = cluster
    before = {part.topic_partition: part for part in around.partitions_before}
    after = {part.topic_partition: part for part in around.partitions_after}
    slices = {part.offsets.topic_partition: part for part in cut.topic_slices}
    if not before or not after:
        return
    for part in sorted({*before, *after}):
        what = _changed(before.get(part), after.get(part), slices.get(part))
        if what:
            yield part, what


def _changed(before: PartitionSnapshot | None, after: PartitionSnapshot | None, read: TopicSlice | None) -> str:
    if before is None:
        return "it was added"
    if after is None:
        return "it was deleted"
    if before.topic_id != after.topic_id:
        return "its topic was deleted and created again"
    if read is None or not len(read.readable):
        return ""
    start, end = read.readable.kafka_offset_start, read.readable.kafka_offset_end
    if before.log_start <= start < after.log_start:
        return f"its log start moved to {after.log_start}, and the slice begins at {start}"
    if after.high_watermark < end <= before.high_watermark:
        return f"its log was cut back to {after.high_watermark}, and the slice ends at {end}"
    return ""


def _torn(part: TopicPartition, what: str) -> DoubtFound:
    return DoubtFound(
        doubt=Doubt.TORN_CUT,
        sentence=f"{part}: while the run read, {what}.",
        details={"topic": part.topic, "partition": part.partition, "changed": what},
    )
