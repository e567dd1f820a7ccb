"""Columns are to scale, each at its window, and what is not nothing is seen."""

import re

from tallystick.pages.trend_drawing import column_heights, draw_columns


def test_columns_are_to_scale_and_what_is_not_nothing_is_seen() -> None:
    assert column_heights((0, 50, 100)) == (0, 32, 64)
    assert column_heights((1, 1_000_000)) == (2, 64)
    assert column_heights(()) == ()


def test_each_column_is_drawn_at_its_window() -> None:
    def columns(*values: int) -> list[tuple[str, ...]]:
        return re.findall(r"M(\d+) 64v-(\d+)h6v\d+z", draw_columns(values, label="l", fill="f"))

    assert columns(5, 0, 10, *[0] * 21) == [("0", "32"), ("16", "64")]
    assert columns(5, 0, 10) == [("168", "32"), ("184", "64")]  # the newest on the right
    assert columns(*[1] * 30)[-1] == ("232", "64")


def test_the_line_has_a_gap_where_a_figure_is_not_known_and_none_where_it_is_0() -> None:
    def line(*values: int | None) -> list[tuple[str, ...]]:
        return re.findall(r"M(\d+) 63\.5h(\d+)", draw_columns(values, label="l", fill="f"))

    assert column_heights((None, 50, 100)) == (0, 32, 64)
    assert line(*[3] * 20, None, None, 0, 5) == [("0", "160"), ("176", "16")]
    assert line(5, None) == [("0", "184")]
    assert line(5, 0) == [("0", "192")]
