"""R3: offsets of the slice were compacted away before they were read.

Evidence: holes between or inside batches of a topic whose cleanup.policy has compact. Whether an event, an aborted
record or a marker lay there, nobody can say: a newer record of the same key, the cleaner's reason, proves no event.
The same hole on a topic that only deletes has no such excuse: unexplained_gap (R4).
"""

from collections.abc import Iterator

from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound


def log_compacted(evidence: Evidence) -> Iterator[DoubtFound]:
    """One per partition with holes."""
    for census in evidence.census:
        if census.compacted:
            yield DoubtFound(
                doubt=Doubt.LOG_COMPACTED,
                sentence=f"{census.topic}[{census.partition}]: {census.compacted} offsets of "
                f"{census.kafka_offset_start} to {census.kafka_offset_end} were compacted away before they were read.",
                details={"topic": census.topic, "partition": census.partition, "compacted": census.compacted},
            )
