"""The figures of a good run: it compared something, read everything that was due, and nothing is at stake."""

import great_expectations.expectations as gxe
from great_expectations.expectations.metadata_types import FailureSeverity

from tallystick.contract.contract import Contract
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick_expectations.frames import FIGURE_COLUMNS, figures_frame
from tallystick_expectations.suite import Suite

_ZERO = {
    "breaks": (FailureSeverity.CRITICAL, "No break is proven."),
    "money_at_stake_minor_max": (FailureSeverity.CRITICAL, "No money is at stake, in any currency."),
    "doubts": (FailureSeverity.WARNING, "Everything that was due could be read."),
    "unreadable_records": (FailureSeverity.WARNING, "Every committed record fits the contract."),
}


def figures_suite(run: StoredRun, contract: Contract) -> Suite:
    frame = figures_frame(run)
    return Suite(
        name="figures",
        frame=frame,
        planted=frame.assign(verdict=str(Verdict.BROKEN)),
        found_by="expect_column_values_to_be_in_set verdict",
        expectations=(
            gxe.ExpectTableRowCountToEqual(
                value=1, severity=FailureSeverity.CRITICAL, description="The run has one row of figures."
            ),
            gxe.ExpectTableColumnsToMatchSet(
                column_set=list(FIGURE_COLUMNS),
                exact_match=True,
                description="The table has the columns that these checks expect.",
            ),
            gxe.ExpectColumnValuesToBeInSet(
                column="verdict",
                value_set=[str(Verdict.MATCHED)],
                severity=FailureSeverity.CRITICAL,
                description="The books match.",
            ),
            gxe.ExpectColumnValuesToBeBetween(
                column="matched_rows",
                min_value=0 if contract.empty == "allowed" else 1,
                severity=FailureSeverity.WARNING,
                description="Something was compared, unless the contract allows an empty window.",
            ),
            *(
                gxe.ExpectColumnValuesToBeBetween(
                    column=column, min_value=0, max_value=0, severity=severity, description=description
                )
                for column, (severity, description) in _ZERO.items()
            ),
            *(
                gxe.ExpectColumnValuesToBeBetween(column=column, min_value=0, description=f"{column} is not negative.")
                for column in ("topic_rows", "ledger_rows", "in_flight_items", "undecidable_items")
            ),
        ),
    )
