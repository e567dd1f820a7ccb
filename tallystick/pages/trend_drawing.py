"""Draws one figure per window as columns, oldest first, each drawing on a scale of its own. Pure, and by hand.

The line below them has a gap where nobody knows the figure: a 0 stands on it.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup, escape

_COLUMN, _GAP, _HEIGHT = 8, 2, 64
_COLUMNS_MIN = 24
"""Fewer are drawn as wide as a day of hourly windows, the newest on the right, and not as large blocks."""
_HEIGHT_MIN = 2
"""A single break among a million must still be seen."""


def draw_columns(values: Sequence[int | None], *, label: str, fill: str) -> Markup:
    """The picture. label: what it says, in words, for who does not see it."""
    cells = max(_COLUMNS_MIN, len(values))
    first, width = cells - len(values), cells * _COLUMN
    heights = column_heights(values)
    drawn = "".join(
        f"M{(first + n) * _COLUMN} {_HEIGHT}v-{height}h{_COLUMN - _GAP}v{height}z"
        for n, height in enumerate(heights)
        if height
    )
    return Markup(
        f'<svg class="columns" role="img" aria-label="{escape(label)}" preserveAspectRatio="none" width="{width}" '
        f'height="{_HEIGHT}" viewBox="0 0 {width} {_HEIGHT}"><path d="{"".join(_line(values, first))}" '
        f'stroke="var(--line)"/><path d="{drawn}" fill="{fill}"/></svg>'
    )


def _line(values: Sequence[int | None], first: int) -> Iterator[str]:
    """Yield each stretch of the line below the columns."""
    at = 0
    for known, cells in groupby([True] * first + [value is not None for value in values]):
        length = len(list(cells)) * _COLUMN
        if known:
            yield f"M{at} {_HEIGHT - 0.5}h{length}"
        at += length


def column_heights(values: Sequence[int | None]) -> tuple[int, ...]:
    """Return the heights in pixels, to scale with the largest; a value other than 0 is always visible."""
    largest = max((value or 0 for value in values), default=0)
    return tuple(max(_HEIGHT_MIN, value * _HEIGHT // largest) if value else 0 for value in values)
