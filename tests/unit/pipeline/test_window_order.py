"""Windows are cut in order, and once they are over."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tallystick.pipeline.window_order import WindowNotOver, WindowOutOfOrder, refuse_not_over, refuse_out_of_order
from tests.unit.builders import HOUR, MINUTE, NOON, cut_of

NEWEST = replace(cut_of(), window_start_utc=NOON - HOUR, window_end_utc=NOON, now_utc=NOON + MINUTE)
MICROSECOND = timedelta(microseconds=1)


@pytest.mark.parametrize("end", [NOON - 5 * HOUR, NOON - MICROSECOND, NOON])
def test_a_window_that_the_newest_cut_has_read_is_refused(end: object) -> None:
    with pytest.raises(
        WindowOutOfOrder, match=r"c: a window that ends at .*: cut [0-9]+, of the window 2026-03-01 11:00:00"
    ):
        refuse_out_of_order("c", window_end_utc=end, newest=NEWEST)  # type: ignore[arg-type]


def test_a_window_that_ends_later_is_not_nor_is_the_first() -> None:
    refuse_out_of_order("c", window_end_utc=NOON + MICROSECOND, newest=NEWEST)
    refuse_out_of_order("c", window_end_utc=NOON - 5 * HOUR, newest=None)


def test_books_with_a_cut_of_the_future_go_on_where_it_was_cut() -> None:
    """0.1.0 stored such cuts."""
    odd = replace(NEWEST, window_end_utc=NOON + 8_760 * HOUR)
    refuse_out_of_order("c", window_end_utc=NOON + HOUR, newest=odd)
    with pytest.raises(WindowOutOfOrder):
        refuse_out_of_order("c", window_end_utc=NOON + MINUTE, newest=odd)


def test_a_window_is_refused_until_it_is_over() -> None:
    refuse_not_over("c", window_end_utc=NOON, now_utc=NOON)
    with pytest.raises(WindowNotOver, match=r"ends at 2026-03-01 12:00:00 UTC: .*clock says 2026-03-01 11:59:59"):
        refuse_not_over("c", window_end_utc=NOON, now_utc=NOON - MICROSECOND)


def test_settling_may_begin_before_the_window_is_over_as_early_as_it_may_take() -> None:
    refuse_not_over("c", window_end_utc=NOON, now_utc=NOON - MINUTE, wait=MINUTE)
    with pytest.raises(WindowNotOver):
        refuse_not_over("c", window_end_utc=NOON, now_utc=NOON - MINUTE - MICROSECOND, wait=MINUTE)
