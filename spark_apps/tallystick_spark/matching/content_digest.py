"""A digest of a side of a cut, as one line of text: the same rows give the same line, in any order of reading."""

from collections.abc import Iterable, Mapping
from typing import Any

_ASKED = ("earliest_ms", "latest_ms", "early", "late")
"""Figures that a run asks for beside its rows; no two runs of one cut need to ask for the same."""


def content_digest(totals: Iterable[Mapping[str, Any]]) -> str:
    """Return the totals of what was read, without those of what was asked about it."""
    return "|".join(",".join(str(value) for name, value in row.items() if name not in _ASKED) for row in totals)
