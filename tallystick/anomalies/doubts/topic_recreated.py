"""R2: a log that does not go on where the books ended, so that nothing of it was read.

Evidence: the topic's id, or a high watermark below an offset that a cut has read. The books of such a partition stand
still: its offsets mean other records than they did. Not to be mistaken for a log that expired (M4): its offsets go on.
"""

from collections.abc import Iterator

from tallystick.kafka_cluster.state import ClusterState
from tallystick.model.cut import Cut, Discontinuity, TopicSlice
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound


def topic_recreated(cut: Cut, cluster: ClusterState) -> Iterator[DoubtFound]:
    """One per topic, in this run and in every later one."""
    topics = [part.offsets.topic for part in _broken_off(cut, cluster, Discontinuity.RECREATED)]
    for topic in sorted(set(topics)):
        old = next(part for part in cut.topic_slices if part.offsets.topic == topic).snapshot.topic_id
        now = next((one for one in cluster.partitions_before if one.topic == topic), None)
        new = now.topic_id if now else ""
        yield DoubtFound(
            doubt=Doubt.TOPIC_RECREATED,
            sentence=f"{topic}: it was deleted and created again: these books read topic id {old}, the cluster has "
            f"{new}. Nothing of it is read; a new contract, under a new name, begins on it.",
            details={"topic": topic, "partitions": topics.count(topic), "topic_id": old, "topic_id_now": new},
        )


def log_truncated(cut: Cut, cluster: ClusterState) -> Iterator[DoubtFound]:
    """One per partition, until its log has grown past the books' end again; then log_rewritten tells."""
    for topic_slice in _broken_off(cut, cluster, Discontinuity.TRUNCATED):
        part, end = topic_slice.offsets.topic_partition, topic_slice.offsets.kafka_offset_end
        high_watermark = min(
            one.high_watermark
            for one in (topic_slice.snapshot, *cluster.partitions_before)
            if one.topic_partition == part
        )
        yield DoubtFound(
            doubt=Doubt.LOG_TRUNCATED,
            sentence=f"{part}: the log ends at {high_watermark}, and these books reach up to {end}: "
            f"{end - high_watermark} offsets are gone from its end. Nothing of it is read until it has passed {end}.",
            details={
                "topic": part.topic,
                "partition": part.partition,
                "high_watermark": high_watermark,
                "read_up_to": end,
                "lost_offsets": end - high_watermark,
            },
        )


def _broken_off(cut: Cut, cluster: ClusterState, why: Discontinuity) -> list[TopicSlice]:
    return [part for part in cut.topic_slices if cluster.discontinuity_of(cut, part) is why]
