"""Draws one bar of shares as SVG, through Altair. No text inside, so the fonts of the machine cannot change a byte.

Colours are names of CSS variables and patterns: the page gives them a value, by day and by night.
"""

from collections.abc import Mapping

import altair
import vl_convert
from markupsafe import Markup, escape

_WIDTH, _HEIGHT = 1_000, 16
_SHARE_MIN = 6
"""Thousandths of the bar: a single unexplained offset in a million must still be seen."""


def share_bar(parts: Mapping[str, int], *, whole: int, fills: Mapping[str, str], label: str) -> Markup:
    """Draw parts of a whole side by side, in the order of `fills`; what is left of the whole stays empty.

    label: what the bar says, in words, for who does not see it.
    """
    segments = _segments(parts, whole=whole, order=list(fills))
    rows = [{"part": part, "start": start, "end": end} for part, start, end in segments]
    chart = (
        altair.Chart(altair.InlineData(values=rows))
        .mark_bar(height=_HEIGHT)
        .encode(
            x=altair.X("start:Q", axis=None, scale=altair.Scale(domain=[0, _WIDTH], nice=False)),
            x2="end:Q",
            color=altair.Color(
                "part:N", legend=None, scale=altair.Scale(domain=list(fills), range=list(fills.values()))
            ),
        )
        .properties(
            width=_WIDTH,
            height=_HEIGHT,
            padding=0,
            autosize=altair.AutoSizeParams(type="none"),
            background="transparent",
        )
        .configure_view(stroke=None)
        .configure(aria=False)
    )
    svg = vl_convert.vegalite_to_svg(chart.to_dict(validate=False))
    opening = f'<svg class="bar" role="img" aria-label="{escape(label)}" preserveAspectRatio="none" '
    return Markup(svg.replace("<svg ", opening, 1))  # no text of ours stands inside: nothing to escape


def _segments(parts: Mapping[str, int], *, whole: int, order: list[str]) -> list[tuple[str, int, int]]:
    """Half-open thousandths of the bar per part that is not 0. The widest part pays for those widened to be seen."""
    present = [part for part in order if parts.get(part)]
    widths = {part: max(_SHARE_MIN, parts[part] * _WIDTH // whole) for part in present}
    excess = sum(widths.values()) - _WIDTH
    if excess > 0:
        widths[max(widths, key=lambda part: widths[part])] -= excess
    segments, start = [], 0
    for part, width in widths.items():
        segments.append((part, start, start + width))
        start += width
    return segments
