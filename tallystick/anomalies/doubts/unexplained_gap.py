"""R4: offsets below the LSO that are in none of the census' classes: no record, no marker, aborted or not."""

from collections.abc import Iterator

from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound


def unexplained_gap(evidence: Evidence) -> Iterator[DoubtFound]:
    """One per partition whose census does not add up, or that has no census at all."""
    counted = {(census.topic, census.partition): census for census in evidence.census}
    for topic_slice in evidence.cut.topic_slices:
        part = topic_slice.offsets.topic_partition
        census = counted.get((part.topic, part.partition))
        unexplained = census.unexplained if census else len(topic_slice.readable)
        if unexplained:
            yield DoubtFound(
                doubt=Doubt.UNEXPLAINED_GAP,
                sentence=f"{part}: {unexplained} offsets of {topic_slice.readable.kafka_offset_start} to "
                f"{topic_slice.readable.kafka_offset_end} are neither records nor markers.",
                details={"topic": part.topic, "partition": part.partition, "unexplained": unexplained},
            )
