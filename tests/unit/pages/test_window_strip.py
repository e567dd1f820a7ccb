"""The strip of windows: a sign for each, apart by shape, with those that have no verdict, and in words."""

import re
from datetime import timedelta

from tallystick.model.verdict import Verdict
from tallystick.pages.window_strip import NO_VERDICT, describe_windows, draw_windows, strip_cells
from tests.unit.pages.books_shown import VERDICTS, windows
from tests.unit.pages.plans_told import HOUR, NOON


def test_the_strip_shows_each_window_by_its_own_sign() -> None:
    cells = strip_cells(windows(*VERDICTS), schedule="15 * * * *", now_utc=NOON, count=48)
    assert [cell.kind for cell in cells] == ["INCONCLUSIVE", "MATCHED", "BROKEN", NO_VERDICT]
    drawn = re.findall(r"<g [^>]*><title>([^<]*)</title>(.*?)</g>", draw_windows(cells))
    assert [title.split(":")[0] for title, _ in drawn] == [cell.kind for cell in cells]
    assert len({sign for _, sign in drawn}) == 4


def test_signs_differ_in_shape_and_not_in_colour_alone() -> None:
    cells = strip_cells(windows(*VERDICTS), schedule="15 * * * *", now_utc=NOON, count=48)
    shapes = re.sub(r'(fill|stroke)="[^"]*"', "", draw_windows(cells))
    assert len(set(re.findall(r"</title>(.*?)</g>", shapes))) == 4


def test_windows_that_ended_after_the_newest_cut_are_shown_as_without_a_verdict() -> None:
    cells = strip_cells(windows(Verdict.MATCHED), schedule="15 * * * *", now_utc=NOON + 2 * HOUR, count=48)
    assert [(cell.kind, cell.cut_n) for cell in cells] == [("MATCHED", 0), (NO_VERDICT, None), (NO_VERDICT, None)]
    assert cells[-1].window_end_utc == NOON + 2 * HOUR


def test_a_window_that_has_not_ended_is_not_shown() -> None:
    late = NOON + HOUR - timedelta(seconds=1)
    assert len(strip_cells(windows(Verdict.MATCHED), schedule="15 * * * *", now_utc=late, count=48)) == 1


def test_the_strip_ends_with_the_newest_however_long_the_outage() -> None:
    cells = strip_cells(windows(*VERDICTS), schedule="15 * * * *", now_utc=NOON + 900 * HOUR, count=8)
    assert [cell.kind for cell in cells] == [NO_VERDICT] * 8


def test_the_strip_says_in_words_what_it_shows() -> None:
    cells = strip_cells(windows(*VERDICTS), schedule="15 * * * *", now_utc=NOON, count=48)
    expected = "4 windows: 1 matched, 1 inconclusive, 1 broken, 1 no verdict; the newest: no verdict"
    assert describe_windows(cells) == expected
    assert f'aria-label="{expected}"' in draw_windows(cells)
    assert describe_windows(()) == "no window yet"
