"""Draws windows as a strip: a sign per window, told apart by height and shape, so that nobody needs an eye for colour.

Matched is low and solid, inconclusive of middle height and hollow, broken is full and crossed, none is a small ring.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from markupsafe import Markup, escape

from tallystick.contract.verdict_deadline import firings_between
from tallystick.model.verdict import Verdict
from tallystick.store.views.overview_store import OverviewWindow
from tallystick.text.plain import format_window

NO_VERDICT = "no verdict"
_CELL, _HEIGHT = 12, 28
_SIGNS = {
    Verdict.MATCHED.value: '<path d="M1 18h10v9H1z" fill="var(--good)"/>',
    Verdict.INCONCLUSIVE.value: (
        '<path d="M2 11h8v15H2z" fill="var(--card)" stroke="var(--doubtful)" stroke-width="2"/>'
    ),
    Verdict.BROKEN.value: (
        '<path d="M1 1h10v26H1z" fill="var(--bad)"/>'
        '<path d="M3 10l6 8M9 10l-6 8" stroke="var(--card)" stroke-width="2" fill="none"/>'
    ),
    NO_VERDICT: '<circle cx="6" cy="23" r="2.5" fill="none" stroke="var(--muted)" stroke-width="1.5"/>',
}


@dataclass(frozen=True, kw_only=True)
class StripCell:
    """One window. kind: a verdict, or NO_VERDICT. cut_n: None where no cut was made."""

    kind: str
    window_start_utc: datetime
    window_end_utc: datetime
    cut_n: int | None


def strip_cells(
    windows: Sequence[OverviewWindow], *, schedule: str, now_utc: datetime, count: int
) -> tuple[StripCell, ...]:
    """The newest windows, oldest first; those that have ended since the newest cut have none, and are shown so."""
    last = windows[-1].window_end_utc if windows else now_utc
    missing = firings_between(schedule, last, now_utc, count=count + 1)
    starts = [last, *missing] if len(missing) <= count else missing
    silent = [
        StripCell(kind=NO_VERDICT, window_start_utc=start, window_end_utc=end, cut_n=None)
        for start, end in pairwise(starts)
    ]
    return (*window_cells(windows), *silent)[-count:]


def window_cells(windows: Sequence[OverviewWindow]) -> tuple[StripCell, ...]:
    """The windows that were cut."""
    return tuple(
        StripCell(
            kind=window.verdict.value if window.verdict else NO_VERDICT,
            window_start_utc=window.window_start_utc,
            window_end_utc=window.window_end_utc,
            cut_n=window.cut_n,
        )
        for window in windows
    )


def describe_windows(cells: Sequence[StripCell]) -> str:
    """The strip in words: "48 windows: 40 matched, 5 inconclusive, 2 broken, 1 no verdict; the newest: broken"."""
    if not cells:
        return "no window yet"
    counts = Counter(cell.kind for cell in cells)
    told = ", ".join(f"{counts[kind]} {kind.lower()}" for kind in _SIGNS if counts[kind])
    windows = "1 window" if len(cells) == 1 else f"{len(cells)} windows"
    return f"{windows}: {told}; the newest: {cells[-1].kind.lower()}"


def draw_windows(cells: Sequence[StripCell]) -> Markup:
    """The picture; each sign says its window when pointed at."""
    width = max(1, len(cells)) * _CELL
    drawn = "".join(
        f'<g transform="translate({n * _CELL} 0)"><title>{escape(_title(cell))}</title>{_SIGNS[cell.kind]}</g>'
        for n, cell in enumerate(cells)
    )
    return Markup(
        f'<svg class="windows" role="img" aria-label="{escape(describe_windows(cells))}" width="{width}" '
        f'height="{_HEIGHT}" viewBox="0 0 {width} {_HEIGHT}">{drawn}</svg>'
    )


def legend() -> tuple[tuple[str, Markup], ...]:
    """Every sign with its word."""
    return tuple((kind.lower(), draw_sign(kind)) for kind in _SIGNS)


def draw_sign(kind: str) -> Markup:
    """One sign, beside words that say the same."""
    return Markup(
        f'<svg class="sign" aria-hidden="true" width="{_CELL}" height="{_HEIGHT}" viewBox="0 0 {_CELL} {_HEIGHT}">'
        f"{_SIGNS[kind]}</svg>"
    )


def _title(cell: StripCell) -> str:
    cut = f"cut {cell.cut_n}, " if cell.cut_n is not None else ""
    return f"{cell.kind}: {cut}{format_window(cell.window_start_utc, cell.window_end_utc)}"
