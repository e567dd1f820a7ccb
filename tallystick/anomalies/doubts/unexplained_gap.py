"""R4: offsets below the LSO that are in none of the census' classes: no record, no marker, aborted or not."""

from collections.abc import Iterator

from tallystick.model.census_values import PartitionCensus
from tallystick.model.cut import Cut
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound


def unexplained_gap(cut: Cut, census: tuple[PartitionCensus, ...]) -> Iterator[DoubtFound]:
    """One per partition whose census does not add up, or that has no census at all."""
    counted = {(counts.topic, counts.partition): counts for counts in census}
    for topic_slice in cut.topic_slices:
        part = topic_slice.offsets.topic_partition
        counts = counted.get((part.topic, part.partition))
        unexplained = counts.unexplained if counts else len(topic_slice.readable)
        if unexplained:
            yield DoubtFound(
                doubt=Doubt.UNEXPLAINED_GAP,
                sentence=f"{part}: {unexplained} offsets of {topic_slice.readable.kafka_offset_start} to "
                f"{topic_slice.readable.kafka_offset_end} are neither records nor markers.",
                details={"topic": part.topic, "partition": part.partition, "unexplained": unexplained},
            )
