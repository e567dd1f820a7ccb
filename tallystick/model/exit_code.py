"""The codes that a command ends with: one for each verdict, and those of a command that came to none."""

from collections.abc import Iterable
from enum import IntEnum

from tallystick.model.verdict import Verdict


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
