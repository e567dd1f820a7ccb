"""Which rows lie where no cut reads them, and which went: told from counts by place, once each."""

from dataclasses import replace

import pytest

from tallystick.ledger.earlier_rows import (
    AHEAD,
    BEFORE,
    WITHOUT_ID,
    EarlierRows,
    Place,
    ReadSlice,
    bounds_of,
    compare,
    compare_digests,
    places_by_number,
)

READ = (ReadSlice(start=100, end=200, rows=7), ReadSlice(start=200, end=300, rows=0))
AS_READ = {"[100, 200)": 7}
CLOSED = "[200, 300), closed unread"
QUIET = EarlierRows(counts={WITHOUT_ID: 0, BEFORE: 40, AHEAD: 0})


def changed(counted: dict[str, int], before: EarlierRows | None = QUIET) -> list[tuple[str, int, int]]:
    return [(one.name, one.expected, one.now) for one in compare({BEFORE: 40} | counted, READ, before)[1]]


def test_what_was_read_and_what_stood_there_before_is_nothing_new() -> None:
    assert changed(AS_READ) == []


@pytest.mark.parametrize(
    ("counted", "told"),
    [
        (AS_READ | {WITHOUT_ID: 2}, (WITHOUT_ID, 0, 2)),
        (AS_READ | {BEFORE: 41}, (BEFORE, 40, 41)),
        (AS_READ | {AHEAD: 1}, (AHEAD, 0, 1)),
        ({"[100, 200)": 8}, ("[100, 200)", 7, 8)),
        (AS_READ | {"[200, 300)": 1}, ("[200, 300)", 0, 1)),
        ({"[100, 200)": 6}, ("[100, 200)", 7, 6)),
        ({}, ("[100, 200)", 7, 0)),
    ],
)
def test_a_row_more_or_less_is_told_once_by_its_place(counted: dict[str, int], told: tuple[str, int, int]) -> None:
    assert changed(counted) == [told]
    kept, _ = compare({BEFORE: 40} | counted, READ, QUIET)
    assert changed(counted, EarlierRows(counts=kept)) == []


def test_a_row_that_went_and_one_that_came_elsewhere_do_not_cancel() -> None:
    assert changed({"[100, 200)": 6, "[200, 300)": 1}) == [("[100, 200)", 7, 6), ("[200, 300)", 0, 1)]


def test_a_row_that_went_and_one_that_came_into_the_same_slice_cancel_out_as_the_report_says() -> None:
    assert changed({"[100, 200)": 7 - 1 + 1}) == []


def test_a_slice_that_was_archived_and_grows_again_is_told_again() -> None:
    kept, _ = compare({BEFORE: 40, "[100, 200)": 2}, READ, QUIET)
    assert changed({"[100, 200)": 3}, EarlierRows(counts=kept)) == [("[100, 200)", 2, 3)]


def test_rows_of_a_slice_that_was_closed_unread_are_nothing_new_until_more_come() -> None:
    read = (READ[0], ReadSlice(start=200, end=300, rows=None))
    first, told = compare({BEFORE: 40, "[100, 200)": 7, CLOSED: 3}, read, QUIET)
    assert (first[CLOSED], told) == (3, ())
    before = EarlierRows(counts=first)
    assert compare({BEFORE: 40, "[100, 200)": 7, CLOSED: 3}, read, before)[1] == ()
    (more,) = compare({BEFORE: 40, "[100, 200)": 7, CLOSED: 4}, read, before)[1]
    assert (more.name, more.surplus, more.was_read) == (CLOSED, 1, False)
    (fewer,) = compare({BEFORE: 40, "[100, 200)": 7, CLOSED: 2}, read, before)[1]
    assert (fewer.gone, Place(name="[100, 200)", expected=3, now=2).gone) == (0, 1)


def test_no_row_of_a_slice_that_was_closed_unread_says_other_things_than_were_read() -> None:
    before = replace(QUIET, digests={"[100, 200)": "1", CLOSED: "2"})
    assert compare_digests({"[100, 200)": "1", CLOSED: "3"}, before, ()) == ()
    assert [one.name for one in compare_digests({"[100, 200)": "4", CLOSED: "2"}, before, ())] == ["[100, 200)"]


def test_books_that_did_not_count_begin_with_what_stands_there_without_an_id_and_know_their_slices() -> None:
    assert changed({WITHOUT_ID: 9, "[100, 200)": 6}, None) == [("[100, 200)", 7, 6)]


def test_a_place_is_told_by_how_many_bounds_an_id_has_reached() -> None:
    bounds = bounds_of(READ, xid_start=300, xid_end=400, next_xid=450)
    names = places_by_number(READ)
    reached = {xid: sum(bound <= xid for bound in bounds) for xid in (99, 100, 200, 299, 300, 400, 449, 450)}
    assert [names.get(reached[xid]) for xid in reached] == [
        BEFORE,
        "[100, 200)",
        "[200, 300)",
        "[200, 300)",
        None,
        None,
        None,
        AHEAD,
    ]
    assert names[None] == WITHOUT_ID


def test_what_is_kept_comes_back_as_it_was() -> None:
    kept = replace(QUIET, changed=(Place(name=AHEAD, expected=0, now=1, row_ids=("7",)),))
    assert EarlierRows.from_json(kept.to_json()) == kept


def test_a_row_without_an_id_that_gets_one_is_nothing_that_went() -> None:
    assert [Place(name=name, expected=2, now=1).gone for name in (WITHOUT_ID, BEFORE, AHEAD, "[1, 2)")] == [0, 0, 0, 1]


def test_a_slice_whose_rows_say_other_things_is_told_once_and_not_beside_its_count() -> None:
    before = replace(QUIET, digests={"[100, 200)": "1", "[200, 300)": "2"})
    now = {"[100, 200)": "1", "[200, 300)": "3", "[300, 400)": "4"}
    (place,) = compare_digests(now, before, ())
    assert (place.name, place.says_otherwise) == ("[200, 300)", True)
    counted = Place(name="[200, 300)", expected=1, now=2)
    assert compare_digests(now, before, (counted,)) == ()
    assert compare_digests(now, replace(QUIET, digests=now), ()) == compare_digests(now, None, ()) == ()
