"""M4: retention took offsets before any cut read them. Not provable as missing: a doubt, and the cursor goes on."""

from collections.abc import Iterator

from tallystick.kafka_cluster.state import ClusterState
from tallystick.model.cut import Cut
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound


def log_expired(cut: Cut, cluster: ClusterState) -> Iterator[DoubtFound]:
    """One per partition whose log start lies past the end of the previous cut, and whose log goes on there."""
    for topic_slice in cut.topic_slices:
        goes_on = cluster.discontinuity_of(cut, topic_slice) is None
        if topic_slice.expired and goes_on and not cluster.leaves_out(topic_slice.offsets.topic_partition):
            part, start = topic_slice.offsets.topic_partition, topic_slice.offsets.kafka_offset_start
            end = start + topic_slice.expired
            yield DoubtFound(
                doubt=Doubt.LOG_EXPIRED,
                sentence=f"{part}: {topic_slice.expired} offsets, {start} to {end}, had left the log before they were "
                "read: what they held can neither be matched nor be called missing.",
                details={"topic": part.topic, "partition": part.partition, "expired_offsets": topic_slice.expired},
            )
