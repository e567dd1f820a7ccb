"""R1: offsets that an earlier run read, or that stood below the baseline, hold other records now.

Evidence: a batch's bounds and checksum, kept by the run that read it, are not what the log shows. Not to be mistaken
for the same batch under a later leader epoch (sent again after a clean move), for one that expired, for a topic that
was created again (R2), nor for a compacting topic, whose cleaner writes batches anew.
"""

from collections.abc import Iterator

from tallystick.kafka_cluster.state import ClusterState
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound


def log_rewritten(cluster: ClusterState) -> Iterator[DoubtFound]:
    """One per partition, with the first batch that differs."""
    rewritten = cluster.rewritten
    for part in sorted({one.topic_partition for one in rewritten}):
        batches = [one for one in rewritten if one.topic_partition == part]
        first = min(batches, key=lambda one: one.kafka_offset)
        seen = f"read by run {first.read_by_cut}" if first.read_by_cut else "which stood below the baseline"
        yield DoubtFound(
            doubt=Doubt.LOG_REWRITTEN,
            sentence=f"{part}: {len(batches)} of the last batches that were read are not what they were, from offset "
            f"{first.kafka_offset} on ({seen}): {first.before} before, {first.now} now.",
            details={
                "topic": part.topic,
                "partition": part.partition,
                "batches": len(batches),
                "kafka_offset": first.kafka_offset,
                "read_by_cut": first.read_by_cut,
                "before": first.before,
                "now": first.now,
            },
        )
