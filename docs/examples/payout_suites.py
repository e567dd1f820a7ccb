"""Expectations about each window of the payouts: enough events, known currencies, no partition that falls silent."""

from collections.abc import Mapping

import great_expectations as gx
import great_expectations.expectations as gxe


def suites() -> Mapping[str, gx.ExpectationSuite]:
    """Give the suite of each table that is looked at."""
    window = gx.ExpectationSuite(
        name="window",
        expectations=[
            gxe.ExpectColumnValuesToBeBetween(
                column="topic_rows",
                min_value=2,
                max_value=500_000,
                severity="warning",
                description="A window has between two and half a million payouts.",
            ),
            gxe.ExpectColumnPairValuesToBeEqual(
                column_A="topic_keys",
                column_B="topic_rows",
                severity="info",
                description="No payout is sent twice in one window.",
            ),
        ],
    )
    currencies = gx.ExpectationSuite(
        name="currencies",
        expectations=[
            gxe.ExpectColumnValuesToBeInSet(
                column="currency",
                value_set=["EUR", "USD"],
                severity="critical",
                description="We pay in euros and dollars only.",
            ),
            gxe.ExpectColumnValuesToBeBetween(
                column="ledger_amount_minor",
                max_value=50_000_000,
                severity="critical",
                description="No currency pays out more than 500,000.00 in one window.",
            ),
        ],
    )
    partitions = gx.ExpectationSuite(
        name="partitions",
        expectations=[
            gxe.ExpectColumnValuesToBeBetween(
                column="silent_seconds",
                max_value=1_800,
                severity="warning",
                description="Every partition was written in the last half hour.",
            ),
        ],
    )
    return {"window": window, "currencies": currencies, "partitions": partitions}
