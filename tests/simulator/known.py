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
        "torn, where a leg expired unread further back than one cut",
        "unreadable_ranges._is_lost_beside looks one cut back: a leg that expired before, while the other came windows "
        "later or was held, is called never committed.",
        lambda found: "a leg of it is gone that nobody has read" in found.sentence,
    ),
    Known(
        "by jdbc, a late row and a deleted one in one slice cancel out",
        "jdbc._slices_still_whole counts: where as many went as came late, one that no cut has read passes for read.",
        lambda found: "by a column that grows, from which rows were deleted" in found.sentence,
    ),
    Known(
        "torn, where the whole transaction is older than the books and has expired",
        "What was whole before the baseline nobody has judged, so that one leg that comes again looks like a torn one "
        "once the log has forgotten the others.",
        lambda found: "some older than the books" in found.sentence,
    ),
)


def known_as(violation: Violation) -> str | None:
    """The name of the known one that it is; None: it is new."""
    return next((one.name for one in KNOWN if one.fits(violation)), None)
