"""A row that was one too many is taken back in any later window, once; any other row that takes one back is a break."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.model.finding_names import BreakClass
from tallystick.model.open_item import ItemState
from tallystick.model.run_result import RunResult
from tallystick.model.verdict import Verdict
from tests.unit.builders import LAW, T2L
from tests.unit.in_memory_books import Books, classes_of

ACTION = "130e5ce5-6658-50c6-8945-99b412ca8480"
COMPENSATED = BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED


def begun() -> Books:
    books = Books(T2L)
    books.begin()
    return books


def run(books: Books, **how: Any) -> RunResult:
    """A window with traffic that matches."""
    name = f"other-{len(books.results)}"
    books.write(name)
    books.post(name)
    return books.run(**how)


def doubled() -> tuple[Books, str, str]:
    """Books whose last run found a second row; both row ids."""
    books = begun()
    books.write()
    first, second = books.post(), books.post()
    assert classes_of(run(books)) == ["duplicate_in_ledger"]
    return books, first, second


@pytest.mark.parametrize("windows_between", [0, 3])
def test_a_row_is_taken_back_in_whatever_later_window(windows_between: int) -> None:
    books, _, second = doubled()
    for _ in range(windows_between):
        assert run(books).verdict is Verdict.MATCHED
    books.post(amount_minor=-1_000, reverses=second)
    assert run(books).verdict is Verdict.MATCHED
    assert not books.outstanding()
    books.post()
    assert classes_of(run(books)) == ["duplicate_in_ledger"]


@pytest.mark.parametrize(
    ("amount_minor", "of"), [(-1_000, "77"), (1_000, "77"), (-999, "2"), (1_000, "2"), (-1_000, "1")], ids=str
)
def test_a_reversal_of_another_row_or_amount_is_found_and_the_copy_stays(amount_minor: int, of: str) -> None:
    books, _, second = doubled()
    assert second == "2"
    books.post(amount_minor=amount_minor, reverses=of)
    assert classes_of(run(books)) == ["duplicate_in_ledger"]
    assert sum(books.outstanding().values()) == 2


def test_a_row_taken_back_twice_is_found_also_windows_later() -> None:
    for between in (False, True):
        books, _, second = doubled()
        books.post(amount_minor=-1_000, reverses=second)
        if between:
            assert run(books).verdict is Verdict.MATCHED
        books.post(amount_minor=-1_000, reverses=second)
        assert classes_of(run(books)) == ["duplicate_in_ledger"]
        assert sum(books.outstanding().values()) == 1


def test_a_reversal_that_names_no_row_hides_no_missing_one_though_its_money_is_the_events() -> None:
    books = begun()
    books.write()
    books.post(reverses="77")
    assert sorted(classes_of(run(books))) == ["duplicate_in_ledger", "missing_in_ledger"]


def posted_by_us() -> tuple[Books, str]:
    """Books whose missing row we have posted; its row id."""
    books = begun()
    books.write()
    assert classes_of(run(books)) == ["missing_in_ledger"]
    ours = books.post(action_id=ACTION)
    return books, ours


@pytest.mark.parametrize("together", [False, True])
def test_a_late_row_behind_ours_is_told_apart_and_ours_is_taken_back(together: bool) -> None:
    books, ours = posted_by_us()
    if not together:
        assert run(books).verdict is Verdict.MATCHED
    late = books.post()
    result = run(books)
    assert classes_of(result) == [COMPENSATED]
    assert (result.breaks[0].evidence["ours"], result.breaks[0].evidence["at"]) == (f"ledger:{ours}", f"ledger:{late}")
    books.post(amount_minor=-1_000, reverses=ours, action_id="the second")
    assert run(books).verdict is Verdict.MATCHED
    assert not books.outstanding()
    books.post()
    assert classes_of(run(books)) == ["duplicate_in_ledger"]


def test_of_two_late_rows_behind_ours_one_has_ours_taken_back_and_one_is_taken_back_itself() -> None:
    books, ours = posted_by_us()
    assert run(books).verdict is Verdict.MATCHED
    late = [books.post(), books.post()]
    assert sorted(classes_of(run(books))) == ["duplicate_in_ledger", COMPENSATED]
    for of in (ours, late[1]):
        books.post(amount_minor=-1_000, reverses=of)
    assert run(books).verdict is Verdict.MATCHED
    assert not books.outstanding()


def test_a_late_row_of_other_money_says_something_else_than_ours() -> None:
    books, _ = posted_by_us()
    assert run(books).verdict is Verdict.MATCHED
    books.post(amount_minor=999)
    assert classes_of(run(books)) == ["duplicate_in_ledger"]


def test_a_late_row_before_ours_makes_ours_the_one_too_many() -> None:
    books = begun()
    books.write()
    assert classes_of(run(books)) == ["missing_in_ledger"]
    books.post()
    ours = books.post(action_id=ACTION)
    result = run(books)
    assert classes_of(result) == [COMPENSATED]
    assert result.breaks[0].evidence["ours"] == result.breaks[0].evidence["at"] == f"ledger:{ours}"
    books.post(amount_minor=-1_000, reverses=ours)
    assert run(books).verdict is Verdict.MATCHED
    assert not books.outstanding()


# Any history.


@LAW
@given(seed=st.integers(0, 10**9))
def test_whatever_the_order_and_the_windows_one_row_counts_in_the_end_and_the_money_is_right(seed: int) -> None:
    """Original and copies come when they like, from the event's window on; each that a run calls one too many is taken
    back, once, whenever.

    In the end the rows of the event sum up to its money, the pairs to one, and nothing is outstanding.
    """
    dice, books = Random(seed), begun()
    steps = ["event", *["row"] * dice.randint(1, 4)]
    dice.shuffle(steps)
    ours = dice.random() < 0.5
    taken: set[object] = set()
    written = False
    for step in steps:
        if step == "event":
            books.write()
            written = True
        else:
            books.post(action_id=ACTION if ours else "")
            ours = False
        if written and dice.random() < 0.6:  # a row before its event's window is a phantom, and nothing takes it back
            run(books, in_grace=dice.random() < 0.5, held_xids=dice.choice([0, 0, 1]))
            _take_back(books, taken, some=dice)
    for _ in range(3):
        run(books)
        _take_back(books, taken)
    result = run(books)
    assert (result.verdict, result.breaks) == (Verdict.MATCHED, ())
    assert not books.outstanding()
    rows = [one for one in books.rows.values() if one.match_key == "ev-1"]
    assert sum(one.amount_minor for one in rows) == 1_000
    assert len(rows) - 2 * len(taken) == 1


def _take_back(books: Books, taken: set[object], *, some: Random | None = None) -> None:
    """As a plan does: one row of the key, ours where the oldest break is about it and it is still there."""
    named = {f"ledger:{one.reverses}" for one in books.rows.values() if one.reverses}
    for item in sorted(books.items.values(), key=lambda item: item.first_seen_cut):
        if item.state is not ItemState.BROKEN or not item.reason.stored.startswith("duplicate_in_ledger"):
            continue
        found = books.breaks[item.break_id]
        ours = str(found.evidence.get("ours", ""))
        place = item.item_id if not ours or ours in named else ours
        named.add(ours)
        if item.break_id in taken or (some is not None and some.random() < 0.5):
            continue
        books.post(amount_minor=-1_000, reverses=place.removeprefix("ledger:"), action_id=str(found.break_id))
        taken.add(item.break_id)
        return
