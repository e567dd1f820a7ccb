"""Q1: two independent readers of the same offsets must see the same number of records.

Spark reads as read_committed, the census counts committed and plain records from batch headers. More rows in Spark: it
was shown aborted or open data. Fewer: it skipped some. Where Spark's rows come from a reader of our own, Kafka's client
reads some of the same offsets, and must see the same bytes there.
"""

from collections.abc import Iterator

from tallystick.matching.evidence import ScanOddities
from tallystick.model.census_values import PartitionCensus
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound


def readers_disagree(census: tuple[PartitionCensus, ...], oddities: ScanOddities) -> Iterator[DoubtFound]:
    """One per partition, and one per second reading; a partition that Spark did not count disagrees too."""
    for part in census:
        if part.spark_rows != part.readable_records:
            yield DoubtFound(
                doubt=Doubt.READERS_DISAGREE,
                sentence=f"{part.topic}[{part.partition}]: Spark read {part.spark_rows} records, "
                f"the census counts {part.readable_records} that a read_committed reader may see.",
                details={
                    "topic": part.topic,
                    "partition": part.partition,
                    "spark_rows": part.spark_rows,
                    "census_rows": part.readable_records,
                },
            )
    for reading in oddities.second_readings:
        if not reading.is_same:
            offsets = reading.offsets
            yield DoubtFound(
                doubt=Doubt.READERS_DISAGREE,
                sentence=f"{offsets.topic_partition}: at offsets {offsets.kafka_offset_start} to "
                f"{offsets.kafka_offset_end - 1} Kafka's own client reads {reading.client_rows} records and Tallystick "
                f"{reading.rows}; they are not the same, byte by byte.",
                details={
                    "topic": offsets.topic,
                    "partition": offsets.partition,
                    "kafka_offset_start": offsets.kafka_offset_start,
                    "kafka_offset_end": offsets.kafka_offset_end,
                    "spark_rows": reading.rows,
                    "client_rows": reading.client_rows,
                },
            )
