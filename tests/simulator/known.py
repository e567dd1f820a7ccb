"""Violations that are known and not mended yet: each with what is wrong, and how it is told from any other.

A run counts them by themselves and names them; it does not fail by them. A line is struck off with its mend.
"""

from collections.abc import Callable
from typing import NamedTuple

from tests.simulator.oracle.clauses import Violation


class Known(NamedTuple):
    """name: in a few words. why: what the product would have to know."""

    name: str
    why: str
    fits: Callable[[Violation], bool]


KNOWN: tuple[Known, ...] = (
    Known(
        "a leg that expired unread long before the other was read",
        "A partition that was held over several cuts brings legs whose siblings expired in a cut that is not the one "
        "before: unreadable_ranges._is_lost_beside looks one cut back.",
        lambda found: "torn_transaction" in found.sentence and "all legs stand" in found.sentence,
    ),
)


def known_as(violation: Violation) -> str | None:
    """The name of the known one that it is; None: it is new."""
    return next((one.name for one in KNOWN if one.fits(violation)), None)
