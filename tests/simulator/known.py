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


KNOWN: tuple[Known, ...] = ()


def known_as(violation: Violation) -> str | None:
    """The name of the known one that it is; None: it is new."""
    return next((one.name for one in KNOWN if one.fits(violation)), None)
