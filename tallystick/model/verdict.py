"""The verdict of a run. Three values, ordered; merging takes the greatest.

Decides nothing about evidence: the classes do. Nothing proven is INCONCLUSIVE, never MATCHED.
"""

from collections.abc import Iterable
from enum import IntEnum, StrEnum


class Verdict(StrEnum):
    """MATCHED < INCONCLUSIVE < BROKEN."""

    MATCHED = "MATCHED"
    INCONCLUSIVE = "INCONCLUSIVE"
    BROKEN = "BROKEN"


_ORDER = (Verdict.MATCHED, Verdict.INCONCLUSIVE, Verdict.BROKEN)


def merge_verdicts(verdicts: Iterable[Verdict]) -> Verdict:
    """Take the greatest. No verdicts at all prove nothing: INCONCLUSIVE."""
    return max(verdicts, key=_ORDER.index, default=Verdict.INCONCLUSIVE)


class ExitCode(IntEnum):
    """1 is BROKEN and nothing else, so a bug ends with 70 (EX_SOFTWARE) and not with Python's own 1."""

    MATCHED = 0
    BROKEN = 1
    REFUSED = 2
    """Wrong usage, refused input, or something that does not answer."""
    INCONCLUSIVE = 3
    BUG = 70
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def exit_code_of(verdict: Verdict) -> ExitCode:
    """0 for MATCHED, 1 for BROKEN, 3 for INCONCLUSIVE."""
    return ExitCode[verdict.value]


_GRAVITY = (ExitCode.MATCHED, ExitCode.INCONCLUSIVE, ExitCode.REFUSED, ExitCode.BUG, ExitCode.BROKEN)


def worst_of(codes: Iterable[ExitCode]) -> ExitCode:
    """Take the gravest of what one command came to: money that is known to be wrong, whatever failed beside it."""
    return max(codes, key=_GRAVITY.index)
