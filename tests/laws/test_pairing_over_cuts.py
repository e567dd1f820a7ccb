"""What one cut leaves open, the next ones settle: the cases that a run which forgets would get wrong.

One file, since each case is a few lines over the same books in memory, and they are told apart by their neighbours.
"""

from dataclasses import replace
from typing import Any

import pytest

from tallystick.kafka_log.log_walk import Outcome
from tallystick.model.direction import Direction
from tallystick.model.finding_names import Doubt, Notice
from tallystick.model.open_item import ItemState
from tallystick.model.run_result import RunResult
from tallystick.model.verdict import Verdict
from tests.unit.builders import L2T, T2L
from tests.unit.in_memory_books import Books, classes_of, doubts_of

BOTH_WAYS = pytest.mark.parametrize("direction", [L2T, T2L], ids=str)


def begun(direction: Direction, *, unique_key: bool = False) -> Books:
    books = Books(direction, unique_key=unique_key)
    books.begin()
    return books


def add_a_pair(books: Books, key: str = "other") -> None:
    """Traffic that matches, so that no side is empty."""
    books.post(key)
    books.write(key)


# An UPDATE after the match.


@BOTH_WAYS
def test_a_row_updated_after_its_match_is_a_doubt_about_the_ledger_and_no_break(direction: Direction) -> None:
    books = begun(direction)
    row_id = books.post()
    books.write()
    assert books.run().verdict is Verdict.MATCHED
    add_a_pair(books)
    books.update(row_id)
    result = books.run()
    assert classes_of(result) == []
    assert doubts_of(result) == [Doubt.LEDGER_REWRITTEN]
    assert result.verdict is Verdict.INCONCLUSIVE


@BOTH_WAYS
def test_a_real_second_row_beside_it_is_still_a_duplicate(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books, "ev-1")
    books.run()
    add_a_pair(books)
    books.post()
    assert classes_of(books.run()) == ["duplicate_in_ledger"]


def test_an_event_sent_again_after_its_row_was_updated_is_still_a_duplicate() -> None:
    books = begun(L2T)
    row_id = books.post()
    books.write()
    books.run()
    books.update(row_id)
    books.run()
    add_a_pair(books)
    books.write()
    assert classes_of(books.run()) == ["duplicate_in_topic_new_session"]


# A row behind the horizon whose event is there already.


def test_an_event_whose_row_is_behind_the_horizon_waits_and_pairs_when_it_comes() -> None:
    books = begun(L2T)
    add_a_pair(books)
    books.post()
    books.write()
    first = books.run(held_xids=1)
    assert (first.verdict, classes_of(first)) == (Verdict.MATCHED, [])
    assert first.figures.in_flight_items == 1
    add_a_pair(books, "another")
    second = books.run()
    assert (second.verdict, classes_of(second)) == (Verdict.MATCHED, [])
    assert [item.state for item in books.items.values()] == [ItemState.CLEARED]
    assert second.figures.in_flight_items == 0


def test_an_event_whose_row_never_comes_is_a_phantom() -> None:
    books = begun(L2T)
    add_a_pair(books)
    books.write()
    assert classes_of(books.run()) == ["phantom_in_topic"]


def test_two_events_of_one_row_behind_the_horizon_wait_and_the_second_is_then_a_duplicate() -> None:
    books = begun(L2T)
    add_a_pair(books)
    books.post()
    books.write()
    books.write()
    assert classes_of(books.run(held_xids=1)) == []
    assert classes_of(books.run()) == ["duplicate_in_topic_new_session"]


# An original that comes after its deadline.


@BOTH_WAYS
def test_a_late_original_clears_the_break_and_is_no_duplicate(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books)
    (books.post if direction is L2T else books.write)()
    missing = "missing_in_topic_never_produced" if direction is L2T else "missing_in_ledger"
    assert classes_of(books.run()) == [missing]
    assert books.outstanding() == {(missing, "ev-1"): 1}
    (books.write if direction is L2T else books.post)()
    late = books.run()
    assert (late.verdict, classes_of(late)) == (Verdict.MATCHED, [])
    assert books.outstanding() == {}
    (cleared,) = late.items
    assert (cleared.state, cleared.pairable) == (ItemState.CLEARED, False)
    assert cleared.cleared_by


@BOTH_WAYS
def test_a_break_is_reported_once_and_does_not_redden_a_later_verdict(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books)
    (books.post if direction is L2T else books.write)()
    books.run()
    add_a_pair(books, "another")
    later = books.run()
    assert (later.verdict, classes_of(later), later.items) == (Verdict.MATCHED, [], ())
    assert sum(books.outstanding().values()) == 1


@BOTH_WAYS
def test_a_late_original_of_another_amount_is_a_mismatch_and_not_missing_any_more(direction: Direction) -> None:
    books = begun(direction)
    (books.post if direction is L2T else books.write)()
    books.run()
    (books.write if direction is L2T else books.post)(amount_minor=1_001)
    assert classes_of(books.run()) == ["amount_mismatch"]
    assert books.outstanding() == {("amount_mismatch", "ev-1"): 1}


def test_a_late_row_clears_the_phantom() -> None:
    books = begun(L2T)
    add_a_pair(books)
    books.write()
    books.run()
    books.post()
    assert books.run().verdict is Verdict.MATCHED
    assert books.outstanding() == {}


@BOTH_WAYS
def test_a_second_late_copy_is_a_duplicate(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books)
    (books.post if direction is L2T else books.write)()
    books.run()
    for _ in range(2):
        (books.write if direction is L2T else books.post)()
    extra = "duplicate_in_topic_new_session" if direction is L2T else "duplicate_in_ledger"
    assert classes_of(books.run()) == [extra]
    assert books.outstanding() == {(extra, "ev-1"): 1}


# What lies before the baseline.


@BOTH_WAYS
def test_a_partner_before_the_baseline_is_not_decidable_and_no_break(direction: Direction) -> None:
    books = Books(direction)
    (books.post if direction is L2T else books.write)()
    books.begin()
    add_a_pair(books)
    (books.write if direction is L2T else books.post)()
    result = books.run()
    assert (result.verdict, classes_of(result)) == (Verdict.MATCHED, [])
    assert result.figures.undecidable_items == 1


@BOTH_WAYS
def test_the_same_copy_without_a_partner_before_the_baseline_is_a_phantom(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books)
    (books.write if direction is L2T else books.post)()
    assert classes_of(books.run()) == ["phantom_in_topic" if direction is L2T else "phantom_in_ledger"]


def test_an_event_sent_again_after_the_baseline_does_not_pair_with_the_row_of_the_first() -> None:
    books = Books(T2L)
    books.write()
    books.begin()
    books.post()
    books.run()
    add_a_pair(books)
    books.write()
    assert classes_of(books.run()) == ["duplicate_in_topic_new_session"]


@pytest.mark.parametrize("in_one_cut", [True, False])
def test_of_two_events_for_a_row_before_the_baseline_the_second_is_a_duplicate(in_one_cut: bool) -> None:
    books = Books(L2T)
    books.post()
    books.begin()
    add_a_pair(books)
    books.write()
    if not in_one_cut:
        assert classes_of(books.run()) == []
        add_a_pair(books, "another")
    books.write()
    result = books.run()
    assert classes_of(result) == ["duplicate_in_topic_new_session"]
    assert result.breaks[0].evidence["original"] == "topic:billing.payouts:0:1"


# Two of one key are two, whoever has read the first.


@BOTH_WAYS
@pytest.mark.parametrize("again", ["row", "event", "both"])
def test_what_stands_before_the_baseline_and_comes_again_is_a_duplicate(direction: Direction, again: str) -> None:
    books = Books(direction)
    add_a_pair(books, "ev-1")
    books.begin()
    add_a_pair(books)
    if again != "event":
        books.post()
    if again != "row":
        books.write()
    in_ledger = again == "row" or (again == "both" and direction is L2T)
    result = books.run()
    assert classes_of(result) == ["duplicate_in_ledger" if in_ledger else "duplicate_in_topic_new_session"]
    assert books.run().breaks == ()


@BOTH_WAYS
def test_a_row_before_the_baseline_that_is_only_updated_is_one_row(direction: Direction) -> None:
    books = Books(direction)
    row_id = books.post()
    books.write()
    books.begin()
    add_a_pair(books)
    books.update(row_id)
    assert classes_of(books.run()) == []


def test_a_new_pair_beside_a_row_before_the_baseline_whose_event_has_expired_is_a_second_row() -> None:
    books = Books(T2L)
    add_a_pair(books, "ev-1")
    books.begin()
    books.expire()
    add_a_pair(books, "ev-1")
    add_a_pair(books)
    result = books.run()
    assert classes_of(result) == ["duplicate_in_ledger"]
    assert [item.state for item in result.items if item.side == "topic"] == [ItemState.UNDECIDABLE]


@BOTH_WAYS
def test_what_was_matched_before_a_switch_over_and_is_posted_again_after_it_is_a_duplicate(
    direction: Direction,
) -> None:
    books = begun(direction)
    add_a_pair(books, "ev-1")
    books.run()
    books.switch_over()
    books.run()
    add_a_pair(books)
    books.post()
    assert classes_of(books.run()) == ["duplicate_in_ledger"]


# A second event of a row that the owner has archived.


def test_a_second_event_of_an_archived_row_is_a_duplicate_and_no_phantom() -> None:
    books = begun(L2T)
    row_id = books.post()
    books.write()
    books.run()
    del books.rows[row_id]
    add_a_pair(books)
    books.write()
    assert classes_of(books.run()) == ["duplicate_in_topic_new_session"]


@BOTH_WAYS
def test_a_row_posted_again_after_its_first_was_archived_is_told_and_one_that_an_update_moved_is_not(
    direction: Direction,
) -> None:
    """Its event was paired, and nothing of the first row is left: neither a second payment nor none is proven."""
    books = begun(direction)
    add_a_pair(books, "ev-2")
    row_id = books.post()
    books.write()
    books.run()
    archived = books.rows.pop(row_id)
    assert doubts_of(add_a_pair_and_run(books, "ev-3")) == [Doubt.LEDGER_REWRITTEN]
    assert doubts_of(add_a_pair_and_run(books, "ev-4")) == []
    books.rows["81"] = replace(archived, row_id="81", position=books.next_xid)
    books.next_xid += 1
    again = add_a_pair_and_run(books, "ev-5")
    assert (classes_of(again), doubts_of(again), again.figures.undecidable_items) == (
        [],
        [Doubt.PARTNER_NOT_SETTLED],
        1,
    )
    assert "no row has moved since: posted a second time, or in" in again.doubts[0].sentence
    books.write()
    assert classes_of(books.run()) == ["duplicate_in_topic_new_session"]

    books.update("81")
    assert Doubt.PARTNER_NOT_SETTLED not in doubts_of(add_a_pair_and_run(books, "ev-6"))


def add_a_pair_and_run(books: Books, key: str) -> RunResult:
    add_a_pair(books, key)
    return books.run()


# A key that is doubled on both sides, later.


@BOTH_WAYS
def test_a_key_doubled_on_both_sides_in_a_later_cut_is_a_duplicate(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books, "ev-1")
    books.run()
    add_a_pair(books, "ev-1")
    extra = "duplicate_in_ledger" if direction is L2T else "duplicate_in_topic_new_session"
    assert classes_of(books.run()) == [extra]
    assert books.outstanding() == {(extra, "ev-1"): 1}


@BOTH_WAYS
def test_another_key_in_a_later_cut_is_none(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books, "ev-1")
    books.run()
    add_a_pair(books, "ev-2")
    assert books.run().verdict is Verdict.MATCHED


@BOTH_WAYS
def test_a_duplicate_that_the_other_side_follows_later_stays_broken(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books, "ev-1")
    (books.post if direction is L2T else books.write)()
    (extra,) = classes_of(books.run())
    add_a_pair(books)
    (books.write if direction is L2T else books.post)()
    followed = books.run()
    assert (followed.verdict, classes_of(followed)) == (Verdict.MATCHED, [])
    assert books.outstanding() == {(extra, "ev-1"): 1}
    assert [item.pairable for item in followed.items] == [False]


# An event that stands twice, posted once.


@pytest.mark.parametrize("unique_key", [True, False])
def test_an_absorbed_duplicate_is_a_duplicate_in_the_topic_and_not_missing_in_the_ledger(unique_key: bool) -> None:
    books = begun(T2L, unique_key=unique_key)
    add_a_pair(books, "ev-1")
    books.run()
    add_a_pair(books)
    books.write()
    result = books.run()
    assert classes_of(result) == ["duplicate_in_topic_new_session"]
    assert result.breaks[0].story.endswith("and the ledger has no row of its own for it.")
    assert result.breaks[0].evidence["original"] == "topic:billing.payouts:0:0"
    assert classes_of(books.run()) == []


def test_an_absorbed_duplicate_of_the_same_cut_is_one_too() -> None:
    books = begun(T2L, unique_key=True)
    books.write()
    books.write()
    books.post()
    result = books.run()
    assert classes_of(result) == ["duplicate_in_topic_new_session"]
    assert result.breaks[0].evidence["at"] == "topic:billing.payouts:0:1"


# Which copy is the extra one.


def test_copies_carried_together_pair_in_the_order_they_were_written() -> None:
    """Row 10 repeats row 9, though "ledger:10" sorts before "ledger:9"."""
    books = begun(L2T)
    for number in range(1, 9):
        add_a_pair(books, f"other-{number}")
    books.post()
    books.post()
    assert classes_of(books.run(in_grace=True)) == ["duplicate_in_ledger"]
    books.write()
    books.run()
    assert books.outstanding() == {("duplicate_in_ledger", "ev-1"): 1}
    assert books.items["ledger:9"].state is ItemState.CLEARED
    assert books.items["ledger:10"].state is ItemState.BROKEN


def test_two_further_copies_are_each_told_from_the_first() -> None:
    """The first by another process; then one that repeats it, and a retry of that one."""
    books = begun(L2T)
    books.post()
    books.write(session="relay-1")
    books.run()
    add_a_pair(books)
    books.write(session="relay-2")
    books.write(session="relay-2")
    found = {one.evidence["at"][-1]: one.evidence["original"][-1] for one in books.run().breaks}
    assert found == {"2": "0", "3": "2"}


# What could not be read may be the partner.


@BOTH_WAYS
def test_a_row_whose_event_expired_unread_is_never_called_missing(direction: Direction) -> None:
    books = begun(direction)
    books.write()
    books.expire()
    books.post()
    add_a_pair(books)
    first = books.run(in_grace=True)
    assert (classes_of(first), first.verdict) == ([], Verdict.INCONCLUSIVE)
    assert Doubt.LOG_EXPIRED in doubts_of(first)
    add_a_pair(books, "another")
    second = books.run()
    assert (classes_of(second), second.verdict) == ([], Verdict.INCONCLUSIVE)
    add_a_pair(books, "yet another")
    assert books.run().verdict is Verdict.MATCHED


def test_a_late_row_may_always_stand_for_an_event_that_expired_unread() -> None:
    books = begun(T2L)
    books.write()
    books.expire()
    add_a_pair(books)
    books.run()
    for window in ("second", "third", "fourth"):
        add_a_pair(books, window)
        assert books.run().verdict is Verdict.MATCHED
    books.post()
    add_a_pair(books, "fifth")
    late = books.run()
    assert (late.verdict, classes_of(late), doubts_of(late)) == (
        Verdict.INCONCLUSIVE,
        [],
        [Doubt.PARTNER_NOT_SETTLED],
    )
    assert late.doubts[0].details["reasons"] == {"its partner may have been among the offsets that expired unread": 1}


def test_a_row_that_was_written_after_the_loss_has_its_event_after_it_too() -> None:
    books = begun(L2T)
    books.write("lost")
    books.expire()
    add_a_pair(books)
    books.run()
    add_a_pair(books, "second")
    books.run()
    books.post()
    add_a_pair(books, "third")
    assert classes_of(books.run()) == ["missing_in_topic_never_produced"]


@BOTH_WAYS
@pytest.mark.parametrize("in_grace", [True, False])
def test_a_row_touched_after_its_event_expired_is_undecidable_for_good(direction: Direction, in_grace: bool) -> None:
    books = begun(direction)
    row_id = books.post()
    books.write()
    assert books.run().verdict is Verdict.MATCHED
    books.expire()
    books.update(row_id)
    add_a_pair(books)
    touched = books.run(in_grace=in_grace)
    assert (classes_of(touched), touched.verdict) == ([], Verdict.INCONCLUSIVE)
    later = []
    for window in ("second", "third"):
        add_a_pair(books, window)
        later.append(books.run())
    assert [classes_of(run) for run in later] == [[], []]
    doubtful = later[0] if in_grace else touched
    assert doubtful.verdict is Verdict.INCONCLUSIVE
    (doubt,) = (one for one in doubtful.doubts if one.doubt is Doubt.PARTNER_NOT_SETTLED)
    assert "Of 1 row nobody can tell whether an UPDATE or a rewrite wrote it anew" in doubt.sentence
    assert books.items["ledger:1"].state is ItemState.UNDECIDABLE


@BOTH_WAYS
def test_the_same_row_untouched_beside_an_event_that_expired_is_judged(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books)
    books.run()
    books.expire()
    books.post()
    add_a_pair(books, "second")
    missing = "missing_in_topic_never_produced" if direction is L2T else "phantom_in_ledger"
    assert classes_of(books.run()) == [missing]


def test_a_row_touched_while_the_log_holds_all_is_told_from_a_new_one() -> None:
    books = begun(L2T)
    row_id = books.post()
    books.write()
    books.run()
    books.update(row_id)
    books.post("new")
    add_a_pair(books)
    assert classes_of(books.run()) == ["missing_in_topic_never_produced"]
    assert books.items.keys() >= {"ledger:2"}


def test_a_row_whose_event_comes_after_the_gap_is_matched() -> None:
    books = begun(L2T)
    books.write("lost")
    books.expire()
    books.post()
    add_a_pair(books)
    books.run(in_grace=True)
    books.write()
    assert classes_of(books.run()) == []
    assert books.items["ledger:1"].state is ItemState.CLEARED


@BOTH_WAYS
def test_a_row_whose_event_is_there_but_unreadable_is_no_break(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books)
    books.write(readable=False)
    books.post()
    result = books.run()
    assert (classes_of(result), result.verdict) == ([], Verdict.INCONCLUSIVE)
    assert Doubt.UNREADABLE_PAYLOAD in doubts_of(result)


def test_nor_is_it_one_when_its_deadline_comes_with_a_later_cut() -> None:
    books = begun(L2T)
    add_a_pair(books)
    books.write(readable=False)
    books.post()
    books.run(in_grace=True)
    add_a_pair(books, "another")
    result = books.run()
    assert (classes_of(result), result.verdict) == ([], Verdict.INCONCLUSIVE)
    add_a_pair(books, "yet another")
    assert books.run().verdict is Verdict.MATCHED


def test_a_readable_event_sent_after_the_unreadable_one_clears_the_row() -> None:
    books = begun(L2T)
    add_a_pair(books)
    books.write(readable=False)
    books.post()
    books.run()
    books.write()
    assert books.run().verdict is Verdict.MATCHED
    assert books.items["ledger:2"].state is ItemState.CLEARED


# Aborted, then written again.


def test_an_event_that_was_aborted_cuts_before_the_deadline_is_aborted_and_not_never_produced() -> None:
    books = begun(L2T)
    add_a_pair(books)
    books.post()
    books.write(outcome=Outcome.ABORTED)
    assert books.run(in_grace=True).breaks == ()
    assert classes_of(books.run()) == ["missing_in_topic_aborted_only"]


def test_an_aborted_event_that_is_written_again_late_clears_the_break() -> None:
    books = begun(L2T)
    add_a_pair(books)
    books.post()
    books.write(outcome=Outcome.ABORTED)
    assert classes_of(books.run()) == ["missing_in_topic_aborted_only"]
    books.write()
    assert books.run().verdict is Verdict.MATCHED
    assert books.outstanding() == {}


# From state to state.


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        pytest.param({"held_xids": 1}, "its partner lies beyond the cut of the ledger", id="beyond the cut"),
        pytest.param({"in_grace": True}, "within the partner's grace", id="in its grace"),
        pytest.param({"ledger_settled": False}, "the ledger is held back before the deadline", id="held"),
    ],
)
def test_an_item_is_open_while_its_partner_may_still_come(run: dict[str, Any], reason: str) -> None:
    books = begun(T2L)
    books.write()
    if "held_xids" in run:
        books.post()
    books.run(**run)
    (item,) = books.items.values()
    assert (item.state, item.reason.stored, item.pairable) == (ItemState.OPEN, reason, True)


def test_a_row_that_moves_on_before_every_reading_is_told_once_its_event_is_due_again() -> None:
    """As an UPDATE in each window does to its xmin: the run has read neither of both, so it proves nothing."""
    books = begun(T2L)
    books.write()
    books.post()
    runs = [books.run(held_xids=1) for _ in range(3)]
    assert [Doubt.PARTNER_NOT_SETTLED in doubts_of(run) for run in runs] == [False, True, True]
    assert not any(run.breaks for run in runs)
    assert Doubt.PARTNER_NOT_SETTLED not in doubts_of(books.run())
    assert [item.state for item in books.items.values()] == [ItemState.CLEARED]


def test_an_item_that_waits_on_has_no_new_row() -> None:
    books = begun(T2L)
    books.write()
    (item,) = books.run(ledger_settled=False).items
    again = books.run(ledger_settled=False)
    assert (again.items, again.figures.in_flight_items) == ((), 1)
    assert books.items == {item.item_id: item}


@BOTH_WAYS
def test_an_open_item_is_broken_when_its_deadline_comes(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books)
    (books.post if direction is L2T else books.write)()
    books.run(in_grace=True)
    (item,) = books.items.values()
    assert (item.state, item.break_id) == (ItemState.OPEN, None)
    (found,) = books.run().breaks
    after = books.items[item.item_id]
    assert (after.state, after.pairable, after.break_id) == (ItemState.BROKEN, True, found.break_id)


def test_an_open_item_whose_partner_lies_before_the_baseline_is_undecidable_when_its_deadline_comes() -> None:
    books = Books(L2T)
    books.write()
    books.begin()
    add_a_pair(books)
    row_id = books.post()
    books.run(in_grace=True)
    assert books.items[f"ledger:{row_id}"].state is ItemState.OPEN
    books.run()
    item = books.items[f"ledger:{row_id}"]
    assert (item.state, item.pairable) == (ItemState.UNDECIDABLE, False)


def test_a_row_that_was_paired_and_written_anew_is_undecidable() -> None:
    books = begun(L2T)
    row_id = books.post()
    books.write()
    books.run()
    books.update(row_id)
    books.run()
    item = books.items[f"ledger:{row_id}"]
    assert (item.state, item.pairable) == (ItemState.UNDECIDABLE, False)


def test_an_open_item_whose_partner_may_have_expired_is_undecidable_and_clears_when_it_comes_after_all() -> None:
    books = begun(L2T)
    books.write("lost")
    books.expire()
    row_id = books.post()
    add_a_pair(books)
    books.run(in_grace=True)
    assert books.items[f"ledger:{row_id}"].state is ItemState.OPEN
    books.run()
    item = books.items[f"ledger:{row_id}"]
    assert (item.state, item.pairable) == (ItemState.UNDECIDABLE, True)
    books.write()
    books.run()
    assert books.items[f"ledger:{row_id}"].state is ItemState.CLEARED


# What a person gave up.


@BOTH_WAYS
def test_what_was_written_off_is_not_outstanding_and_not_broken_again(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books)
    (books.post if direction is L2T else books.write)()
    books.run()
    books.write_off("ev-1")
    assert books.outstanding() == {}
    add_a_pair(books, "another")
    later = books.run()
    assert (later.verdict, classes_of(later), later.items) == (Verdict.MATCHED, [], ())


@BOTH_WAYS
def test_a_late_partner_clears_what_was_written_off_and_is_told(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books)
    (books.post if direction is L2T else books.write)()
    books.run()
    books.write_off("ev-1")
    (books.write if direction is L2T else books.post)()
    late = books.run()
    assert (late.verdict, classes_of(late)) == (Verdict.MATCHED, [])
    assert [item.state for item in late.items] == [ItemState.CLEARED]
    assert Notice.LATE_PARTNER in {found.notice for found in late.notices}


@BOTH_WAYS
def test_a_late_partner_of_another_amount_is_a_break_though_the_item_was_written_off(direction: Direction) -> None:
    books = begun(direction)
    (books.post if direction is L2T else books.write)()
    books.run()
    books.write_off("ev-1")
    (books.write if direction is L2T else books.post)(amount_minor=1_001)
    assert classes_of(books.run()) == ["amount_mismatch"]
    assert books.outstanding() == {("amount_mismatch", "ev-1"): 1}


@BOTH_WAYS
def test_a_written_off_duplicate_that_the_other_side_follows_stays_written_off(direction: Direction) -> None:
    books = begun(direction)
    add_a_pair(books, "ev-1")
    (books.post if direction is L2T else books.write)()
    books.run()
    books.write_off("ev-1")
    add_a_pair(books)
    (books.write if direction is L2T else books.post)()
    followed = books.run()
    assert (followed.verdict, classes_of(followed), books.outstanding()) == (Verdict.MATCHED, [], {})
    assert [(item.state, item.pairable) for item in followed.items] == [(ItemState.WRITTEN_OFF, False)]
