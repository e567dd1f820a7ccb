"""The census of a good run: every offset has a name, and two readers counted the same. Source: KIP-98."""

import great_expectations.expectations as gxe
from great_expectations.expectations.metadata_types import FailureSeverity

from tallystick.model.census_values import PartitionCensus
from tallystick.model.stored_run import StoredRun
from tallystick_expectations.frames import CENSUS_COLUMNS, census_frame
from tallystick_expectations.suite import Suite

_COUNTS = ("committed", "aborted", "plain", "markers", "compacted", "spark_rows", "kafka_offset_start")


_PLANTED = PartitionCensus(
    topic="planted",
    partition=0,
    kafka_offset_start=0,
    kafka_offset_end=2,
    committed=1,
    aborted=0,
    plain=0,
    commit_markers=0,
    abort_markers=0,
    unexplained=1,
    without_producer_id=0,
    log_start=0,
    lso=2,
    high_watermark=2,
    spark_rows=1,
)


def census_suite(run: StoredRun) -> Suite:
    """A row per partition of the cut; a baseline reads none."""
    census = run.result.figures.census
    partitions = 0 if run.cut.is_baseline else len(run.cut.topic_slices)
    return Suite(
        name="census",
        frame=census_frame(census),
        planted=census_frame((*census, _PLANTED)),
        found_by="expect_column_values_to_be_between unexplained",
        expectations=(
            gxe.ExpectTableRowCountToEqual(
                value=partitions,
                severity=FailureSeverity.CRITICAL,
                description="Every partition of the cut was counted.",
            ),
            gxe.ExpectTableColumnsToMatchSet(
                column_set=list(CENSUS_COLUMNS),
                exact_match=True,
                description="The table has the columns that these checks expect.",
            ),
            gxe.ExpectCompoundColumnsToBeUnique(
                column_list=["topic", "partition"], description="Each partition was counted once."
            ),
            gxe.ExpectColumnValuesToBeBetween(
                column="unexplained",
                min_value=0,
                max_value=0,
                severity=FailureSeverity.CRITICAL,
                description="No offset is unexplained.",
            ),
            gxe.ExpectColumnPairValuesToBeEqual(
                column_A="offsets",
                column_B="named_offsets",
                severity=FailureSeverity.CRITICAL,
                description="end - start = committed + aborted + plain + markers + compacted.",
            ),
            gxe.ExpectColumnPairValuesToBeEqual(
                column_A="spark_rows",
                column_B="readable_records",
                severity=FailureSeverity.CRITICAL,
                description="Spark read what the census says a read_committed reader may see: committed + plain.",
            ),
            gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A="kafka_offset_end",
                column_B="kafka_offset_start",
                or_equal=True,
                description="A slice does not end before it starts.",
            ),
            gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A="lso",
                column_B="kafka_offset_end",
                or_equal=True,
                severity=FailureSeverity.CRITICAL,
                description="Nothing was read above the last stable offset.",
            ),
            gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A="high_watermark",
                column_B="lso",
                or_equal=True,
                description="The last stable offset is not above the high watermark.",
            ),
            *(
                gxe.ExpectColumnValuesToBeBetween(
                    column=column, min_value=0, description=f"{column} was counted, and is not negative."
                )
                for column in _COUNTS
            ),
        ),
    )
