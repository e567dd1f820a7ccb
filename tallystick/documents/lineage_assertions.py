"""A run's findings as assertions about its two sides, for OpenLineage's facet of data quality. Pure; counts only.

An assertion succeeds only where the run proved it: with a doubt nothing that was not found is said to be absent.
"""

from collections import Counter
from dataclasses import dataclass

from tallystick.model.finding_names import BreakClass
from tallystick.model.run_result import RunResult
from tallystick.model.verdict import Verdict
from tallystick.text.finding_guide import BREAK_TEXTS, DOUBT_TEXTS


@dataclass(frozen=True, kw_only=True)
class LineageAssertion:
    """One test of a side. actual: how many were found, or the verdict."""

    name: str
    success: bool
    expected: str
    actual: str
    description: str


def assertions_of(result: RunResult) -> tuple[LineageAssertion, ...]:
    """Return the verdict, each doubt, each class with breaks, and, without a doubt, each class without any."""
    breaks = Counter(found.break_class for found in result.breaks)
    classes = BreakClass if not result.doubts else sorted(breaks)
    return (
        LineageAssertion(
            name="tallystick.verdict",
            success=result.verdict is Verdict.MATCHED,
            expected=Verdict.MATCHED,
            actual=result.verdict,
            description="Log and ledger agree exactly once",
        ),
        *(
            LineageAssertion(
                name=f"tallystick.doubt.{doubt}",
                success=False,
                expected="0",
                actual="1",
                description=DOUBT_TEXTS[doubt].title,
            )
            for doubt in sorted({found.doubt for found in result.doubts})
        ),
        *(
            LineageAssertion(
                name=f"tallystick.break.{one}",
                success=not breaks[one],
                expected="0",
                actual=str(breaks[one]),
                description=BREAK_TEXTS[one].title,
            )
            for one in classes
        ),
    )
