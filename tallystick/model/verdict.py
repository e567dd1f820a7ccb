"""The verdict of a run. Three values, ordered; merging takes the greatest.

Decides nothing about evidence: the classes do. Nothing proven is INCONCLUSIVE, never MATCHED.
"""

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """MATCHED < INCONCLUSIVE < BROKEN."""

    MATCHED = "MATCHED"
    INCONCLUSIVE = "INCONCLUSIVE"
    BROKEN = "BROKEN"


_ORDER = (Verdict.MATCHED, Verdict.INCONCLUSIVE, Verdict.BROKEN)


def merge_verdicts(verdicts: Iterable[Verdict]) -> Verdict:
    """Take the greatest. No verdicts at all prove nothing: INCONCLUSIVE."""
    return max(verdicts, key=_ORDER.index, default=Verdict.INCONCLUSIVE)
