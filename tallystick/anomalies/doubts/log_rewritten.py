"""R1: offsets that an earlier run read, or that stood below the baseline or a cut, hold other records now.

Evidence: a batch's bounds and checksum, kept by the run that read it, are not what the log shows; or a batch of a slice
has a later leader epoch than its leader had when the cut was made. Nothing of such a slice is read. Or the log
ended below what was read, goes on by now, and what came in its place has expired. Or it was cut back above that, where
markers stood. Not to be mistaken for the same batch under a later leader epoch (sent again after a clean move), for one
that expired, for a topic that was created again (R2), nor for what a compacting topic's cleaner took, or wrote anew
under its old leader epoch.
"""

from collections.abc import Iterator

from tallystick.kafka_cluster.state import ClusterState, RewrittenBatch
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound


def log_rewritten(cluster: ClusterState) -> Iterator[DoubtFound]:
    """One per partition, with the first batch that differs."""
    rewritten = cluster.rewritten
    for part in sorted({one.topic_partition for one in rewritten}):
        batches = [one for one in rewritten if one.topic_partition == part]
        left_out = next((one for one in batches if one.unread_offsets), None)
        if left_out is not None:
            yield _left_out(left_out)
            continue
        first = min(batches, key=lambda one: (one.is_above, one.kafka_offset))
        if first.is_gone:
            yield _gone(first)
            continue
        if first.is_above:
            yield _above(first)
            continue
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


def _left_out(slice_end: RewrittenBatch) -> DoubtFound:
    part = slice_end.topic_partition
    return DoubtFound(
        doubt=Doubt.LOG_REWRITTEN,
        sentence=f"{part}: the log was cut back and grew again since cut {slice_end.read_by_cut} was made: "
        f"{slice_end.before} before, {slice_end.now} now. Nothing of the slice's {slice_end.unread_offsets} offsets is "
        "read.",
        details={
            "topic": part.topic,
            "partition": part.partition,
            "unread_offsets": slice_end.unread_offsets,
            "kafka_offset": slice_end.kafka_offset,
            "before": slice_end.before,
            "now": slice_end.now,
        },
    )


def _above(last: RewrittenBatch) -> DoubtFound:
    return _seen_by_its_cut(
        last,
        f"above what cut {last.read_by_cut} could read, the log was cut back: "
        f"{last.before} before, {last.now} now. What had stood there is gone, and with it perhaps the markers that had "
        "ended transactions below: what was read as committed may be aborted by now, and the other way round.",
    )


def _gone(last: RewrittenBatch) -> DoubtFound:
    return _seen_by_its_cut(
        last,
        f"the log was cut back and grew again ({last.before} when cut {last.read_by_cut} was made, "
        f"{last.now} now), and retention took what came in the place of what was read before anybody could read it.",
    )


def _seen_by_its_cut(last: RewrittenBatch, what: str) -> DoubtFound:
    part = last.topic_partition
    return DoubtFound(
        doubt=Doubt.LOG_REWRITTEN,
        sentence=f"{part}: {what}",
        details={
            "topic": part.topic,
            "partition": part.partition,
            "kafka_offset": last.kafka_offset,
            "read_by_cut": last.read_by_cut,
            "before": last.before,
            "now": last.now,
        },
    )
