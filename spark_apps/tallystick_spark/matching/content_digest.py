"""What a side of a cut held, as one line of text: the same rows give the same line, read in whatever order."""

from collections.abc import Iterable, Mapping
from typing import Any

_ASKED = ("earliest_ms", "latest_ms", "early", "late")
"""What a run asks beside its rows; no two runs of one cut need to ask the same."""


def content_digest(totals: Iterable[Mapping[str, Any]]) -> str:
    """Return the totals of what was read, without those of what was asked about it."""
    return "|".join(",".join(str(value) for name, value in row.items() if name not in _ASKED) for row in totals)
