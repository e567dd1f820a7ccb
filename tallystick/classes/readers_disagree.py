"""Q1: two independent readers of the same offsets must see the same number of records.

Spark reads as read_committed, the census counts committed and plain records from batch headers. More rows in Spark: it
was shown aborted or open data. Fewer: it skipped some.
"""

from collections.abc import Iterator

from tallystick.break_class import Doubt
from tallystick.evidence import Evidence
from tallystick.run_result import DoubtFound


def readers_disagree(evidence: Evidence) -> Iterator[DoubtFound]:
    """One per partition; a partition that Spark did not count disagrees too."""
    for census in evidence.census:
        if census.spark_rows != census.readable_records:
            yield DoubtFound(
                doubt=Doubt.READERS_DISAGREE,
                sentence=f"{census.topic}[{census.partition}]: Spark read {census.spark_rows} records, "
                f"the census counts {census.readable_records} that a read_committed reader may see.",
                details={
                    "topic": census.topic,
                    "partition": census.partition,
                    "spark_rows": census.spark_rows,
                    "census_rows": census.readable_records,
                },
            )
