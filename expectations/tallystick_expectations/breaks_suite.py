"""The breaks of a good run: there are none; and those there are make sense."""

from uuid import UUID

import great_expectations.expectations as gxe
from great_expectations.expectations.metadata_types import FailureSeverity

from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break
from tallystick.model.stored_run import StoredRun
from tallystick_expectations.frames import BREAK_COLUMNS, breaks_frame
from tallystick_expectations.suite import Suite

_PLANTED = Break(
    break_id=UUID(int=0),
    break_class=BreakClass.MISSING_IN_LEDGER,
    match_key="planted",
    transaction_key="planted",
    leg="planted",
    amount_minor=1,
    currency="XTS",  # ISO 4217's code for tests
    copies=1,
    story="Planted to see it found.",
    evidence={},
)


def breaks_suite(run: StoredRun) -> Suite:
    return Suite(
        name="breaks",
        frame=breaks_frame(run.result.breaks),
        planted=breaks_frame((*run.result.breaks, _PLANTED)),
        found_by="expect_table_row_count_to_equal",
        expectations=(
            gxe.ExpectTableRowCountToEqual(
                value=0, severity=FailureSeverity.CRITICAL, description="Topic and ledger agree: no break is proven."
            ),
            gxe.ExpectTableColumnsToMatchSet(
                column_set=list(BREAK_COLUMNS),
                exact_match=True,
                description="The table has the columns that these checks expect.",
            ),
            gxe.ExpectColumnValuesToBeUnique(column="break_id", description="Each break is reported once."),
            gxe.ExpectColumnValuesToBeInSet(
                column="break_class",
                value_set=[str(break_class) for break_class in BreakClass],
                description="Every break has a known class.",
            ),
            gxe.ExpectColumnValuesToBeBetween(
                column="amount_minor", min_value=0, description="Money at stake is never negative."
            ),
            gxe.ExpectColumnValuesToBeBetween(
                column="copies", min_value=1, description="A break has at least one copy."
            ),
            gxe.ExpectColumnValueLengthsToBeBetween(
                column="match_key",
                min_value=1,
                severity=FailureSeverity.WARNING,
                description="A break names its event.",
            ),
        ),
    )
