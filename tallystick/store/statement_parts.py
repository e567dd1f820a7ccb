"""Long lists of parameters, cut into what one statement takes."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

_Value = TypeVar("_Value")
_AT_ONCE = 1000
"""Rows or values of one statement, far below what PostgreSQL takes as parameters."""


def in_parts(values: Sequence[_Value]) -> Iterable[Sequence[_Value]]:
    """Return the values in their order, some at a time."""
    return (values[first : first + _AT_ONCE] for first in range(0, len(values), _AT_ONCE))
