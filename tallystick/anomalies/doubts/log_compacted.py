"""R3: offsets of the slice were compacted away before they were read.

Evidence: holes between or inside batches of a topic whose cleanup.policy has compact. Whether an event, an aborted
record or a marker lay there, nobody can say: a newer record of the same key, the cleaner's reason, proves no event.
The same hole on a topic that only deletes has no such excuse: unexplained_gap (R4).
"""

from collections.abc import Iterator

from tallystick.model.census_values import PartitionCensus
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound


def log_compacted(census: tuple[PartitionCensus, ...]) -> Iterator[DoubtFound]:
    """One per partition with holes."""
    for part in census:
        if part.compacted:
            yield DoubtFound(
                doubt=Doubt.LOG_COMPACTED,
                sentence=f"{part.topic}[{part.partition}]: {part.compacted} offsets of "
                f"{part.kafka_offset_start} to {part.kafka_offset_end} were compacted away before they were read.",
                details={"topic": part.topic, "partition": part.partition, "compacted": part.compacted},
            )
