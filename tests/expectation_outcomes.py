"""Outcomes of a contract's own expectations, and the figures that they look at, for tests of any part."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tallystick.model.run_result import PartitionSummary, SideSummary, WindowSummary
from tallystick.model.stored_run import ExpectationNotMet

MODULE = "my_package.suites"


def not_met(**changes: Any) -> ExpectationNotMet:
    """Return an expectation about the number of events that was not met, but for what is given."""
    unremarkable = ExpectationNotMet(
        table="window",
        columns=("topic_rows",),
        severity="warning",
        description="A window has at least a hundred events.",
        expected="topic_rows values must be greater than or equal to 100",
        observed="3",
        counted="1 of 1 row",
    )
    return replace(unremarkable, **changes)


def window_summary(*, rows: int = 3, topic: str = "billing.payouts") -> WindowSummary:
    """Return both sides of a window in which they agree: so many payouts of 10.00 EUR."""
    written_ms = int(datetime(2026, 3, 1, 11, 50, tzinfo=UTC).timestamp() * 1000)
    side = SideSummary(rows=rows, keys=rows, money={"EUR": 1000 * rows})
    return WindowSummary(
        topic=side,
        ledger=side,
        partitions=(
            PartitionSummary(topic=topic, partition=0, rows=rows, earliest_ms=written_ms, latest_ms=written_ms),
        ),
    )
