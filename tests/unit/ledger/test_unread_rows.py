"""Rows that were found moved and that no cut has read: touched once more, they have moved on."""

from dataclasses import replace

import pytest

from tallystick.ledger.unread_rows import UnreadCount, UnreadRows, moved_on

THEN = UnreadRows(snapshot="90:100:92", rows=3)
NOW = UnreadCount(snapshot="110:120:", snapshot_end=120, still=3, behind=5, behind_below=2)
RAISED = (120, UnreadRows(snapshot="110:120:", rows=5))


def moved(count: UnreadCount = NOW, before: UnreadRows | None = THEN, **changes: object) -> object:
    asked: dict[str, object] = {"slice_end": 95, "moved_below": 100, "moved_now": False}
    return moved_on(count, before, **asked | changes)  # type: ignore[arg-type]


def test_rows_that_stand_as_they_were_counted_are_looked_for_where_they_were() -> None:
    assert moved() == (100, UnreadRows(snapshot="110:120:", rows=2))


@pytest.mark.parametrize("still", [2, 4], ids=["one was touched", "a savepoint's row, or one that hides another"])
def test_where_others_stand_than_were_counted_each_row_of_now_may_be_one_of_them(still: int) -> None:
    assert moved(replace(NOW, still=still)) == RAISED


def test_so_it_is_where_nobody_counted_and_where_older_rows_have_moved_now() -> None:
    assert moved(before=None) == moved(moved_now=True) == RAISED


def test_nothing_is_counted_any_more_once_a_slice_ends_behind_them_all() -> None:
    assert moved(slice_end=100) == (100, None)
    assert moved(slice_end=99) != (100, None)


def test_the_mark_never_goes_back() -> None:
    assert moved(moved_below=130, moved_now=True) == (130, UnreadRows(snapshot="110:120:", rows=5))
