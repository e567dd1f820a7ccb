"""Draws one bar of shares as SVG. Pure, and by hand: a page of the UI shows dozens, and each must cost microseconds.

No text inside, so the fonts of the machine cannot change a byte. Colours are names of CSS variables and patterns: the
page gives them a value, by day and by night.
"""

from collections.abc import Iterator, Mapping

from markupsafe import Markup, escape

_WIDTH, _HEIGHT = 1_000, 16
_SHARE_MIN = 6
"""Thousandths of the bar: a single unexplained offset in a million must still be seen."""


def share_bar(parts: Mapping[str, int], *, whole: int, fills: Mapping[str, str], label: str) -> Markup:
    """Draw parts of a whole side by side, in the order of `fills`; what is left of the whole stays empty.

    label: what the bar says, in words, for who does not see it.
    """
    drawn = "".join(
        f'<path d="M{start},0h{width}v{_HEIGHT}h-{width}Z" fill="{fills[part]}"/>'
        for part, start, width in _segments(parts, whole=whole, order=list(fills))
    )
    return Markup(
        f'<svg class="bar" role="img" aria-label="{escape(label)}" preserveAspectRatio="none" '
        f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}">{drawn}</svg>'
    )


def _segments(parts: Mapping[str, int], *, whole: int, order: list[str]) -> Iterator[tuple[str, int, int]]:
    """Start and width in thousandths per part that is not 0. The widest part pays for those widened to be seen."""
    present = [part for part in order if parts.get(part)]
    widths = {part: max(_SHARE_MIN, parts[part] * _WIDTH // whole) for part in present}
    excess = sum(widths.values()) - _WIDTH
    if excess > 0:
        widths[max(widths, key=lambda part: widths[part])] -= excess
    start = 0
    for part, width in widths.items():
        yield part, start, width
        start += width
