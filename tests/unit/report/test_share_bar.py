"""A bar's parts are to scale, fill it, and a single odd offset is seen."""

import re

from tallystick.report.share_bar import share_bar

FILLS = {"committed": "var(--committed)", "unexplained": "url(#unexplained)"}


def widths(svg: str) -> dict[str, float]:
    """Width per fill, in thousandths of the bar."""
    return {fill: float(width) for width, fill in re.findall(r'd="M[\d.]+,0h([\d.]+)v16h[-\d.]+Z" fill="([^"]+)"', svg)}


def test_parts_are_to_scale() -> None:
    bar = share_bar({"committed": 3, "unexplained": 1}, whole=4, fills=FILLS, label="p")
    assert widths(bar) == {"var(--committed)": 750, "url(#unexplained)": 250}


def test_one_in_a_million_is_still_seen_and_the_bar_is_not_overfull() -> None:
    bar = share_bar({"committed": 999_999, "unexplained": 1}, whole=1_000_000, fills=FILLS, label="p")
    assert widths(bar) == {"var(--committed)": 994, "url(#unexplained)": 6}


def test_an_absent_part_has_no_width() -> None:
    bar = share_bar({"committed": 4, "unexplained": 0}, whole=4, fills=FILLS, label="p")
    assert widths(bar) == {"var(--committed)": 1000}


def test_an_empty_slice_is_an_empty_bar() -> None:
    assert widths(share_bar({"committed": 0}, whole=0, fills=FILLS, label="p")) == {}


def test_the_label_is_escaped_and_no_text_stands_in_the_picture() -> None:
    bar = share_bar({"committed": 1}, whole=1, fills=FILLS, label='"><script>')
    assert 'aria-label="&#34;&gt;&lt;script&gt;"' in bar
    assert "<text" not in bar
