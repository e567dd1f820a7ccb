"""M3: records that a producer was told are there, and that no consumer can see, since too few replicas have them.

Evidence: the leader's log reaches further than the high watermark. It does for a moment after each write; it stays so
while fewer replicas are in sync than min.insync.replicas asks for, and a producer with acks=1 or 0 writes on meanwhile.
Not to be mistaken for a producer transaction that is open: that one holds the last stable offset, and not the high
watermark. Source: KIP-966.
"""

from collections.abc import Iterator

from tallystick.kafka_cluster.state import ClusterState
from tallystick.model.cut import Cut, PartitionSnapshot, TopicSlice
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.text.verdict_sentence import counted


def held_by_replication(cut: Cut, cluster: ClusterState) -> Iterator[DoubtFound]:
    """One per partition whose mark lies above its high watermark, or may: not every broker tells where a log ends."""
    for topic_slice in cut.topic_slices:
        if topic_slice.held_by_replication or cluster.may_hide_records(topic_slice.snapshot):
            yield _held(cluster, topic_slice)


def _held(cluster: ClusterState, topic_slice: TopicSlice) -> DoubtFound:
    now, mark, part = topic_slice.snapshot, topic_slice.mark, topic_slice.offsets.topic_partition
    settings = cluster.settings_of(part.topic)
    needed = settings.min_insync_replicas if settings else None
    held = max(0, mark - max(now.high_watermark, topic_slice.offsets.kafka_offset_end))
    many = counted(held, "offset") if held or now.log_end is not None else "nobody says how many offsets"
    return DoubtFound(
        doubt=Doubt.HELD_BY_REPLICATION,
        sentence=f"{part}: {many} could not be read: the high watermark stands at {now.high_watermark}, the "
        f"mark is {mark}. {replicas_text(now, mark=mark, needed=needed)}",
        details={
            "topic": part.topic,
            "partition": part.partition,
            "held_offsets": held,
            "high_watermark": now.high_watermark,
            "log_end": now.log_end,
            "mark": mark,
            "replicas": list(now.replicas),
            "in_sync_replicas": list(now.in_sync),
            "out_of_sync_replicas": list(now.out_of_sync),
            "min_insync_replicas": needed,
        },
    )


def replicas_text(now: PartitionSnapshot, *, mark: int, needed: int | None) -> str:
    """Say why the high watermark is behind. needed: min.insync.replicas, where this client may see it."""
    if now.written_end < mark:
        return f"The leader of then had so much; now the log ends at {now.written_end}, and the rest is gone."
    asked = "" if needed is None else f", and min.insync.replicas is {needed}"
    if not now.out_of_sync:
        return f"All replicas count as in sync{asked}; not all of them have confirmed it."
    out = ", ".join(map(str, now.out_of_sync))
    return f"In sync are {len(now.in_sync)} of {len(now.replicas)} replicas{asked}. Out of sync: {out}."
