"""Many to one: what becomes of the items of a group, and what a run counts of it."""

from dataclasses import replace

import pytest

from tallystick.matching.evidence import Evidence
from tallystick.matching.match_case import Entry
from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.model.open_item import ItemSide, ItemState, OpenItem
from tallystick.model.run_result import RunResult
from tests.unit.builders import (
    IN_TOPIC,
    LEDGER,
    NOON,
    T2L,
    contract_of,
    deadlines_of,
    event,
    evidence_of,
    item_of,
    row,
    with_facts,
)
from tests.unit.judging.results import judged

E6, E4 = event(11, amount_minor=600), event(12, amount_minor=400)
R6, R4 = row(1, amount_minor=600), row(2, amount_minor=400)


def grouped(
    *copies: Entry, many: ItemSide = IN_TOPIC, carried: tuple[OpenItem, ...] = (), in_grace: bool = False
) -> Evidence:
    contract = contract_of(T2L, match={"many_to_one": "events" if many is IN_TOPIC else "rows"})
    deadlines = deadlines_of(now_utc=NOON) if in_grace else None
    return evidence_of(*copies, direction=T2L, contract=contract, carried=carried, deadlines=deadlines)


def states(result: RunResult) -> dict[str, ItemState]:
    return {item.item_id: item.state for item in result.items}


def test_all_that_a_break_is_about_answers_for_it_and_stays_pairable() -> None:
    result = judged(grouped(E6, event(13, amount_minor=1), row(1)))
    (found,) = result.breaks
    assert {item.item_id for item in result.items} == {E6.item_id, "topic:billing.payouts:0:13", "ledger:1"}
    for item in result.items:
        assert (item.state, item.break_id, item.found_as) == (ItemState.BROKEN, found.break_id, found.break_class)
        assert (item.pairable, item.reason.stored) == (True, "group_sum_mismatch")


def test_what_waits_is_an_item_each() -> None:
    result = judged(grouped(E6, row(1), in_grace=True))
    assert states(result) == {E6.item_id: ItemState.OPEN, "ledger:1": ItemState.OPEN}
    assert result.figures.in_flight_items == 2


def test_a_late_part_answers_for_a_break_of_its_own_and_the_first_one_stays() -> None:
    (first,) = judged(grouped(E6, row(1))).breaks
    carried = judged(grouped(E6, row(1))).items
    result = judged(grouped(event(13, amount_minor=1), carried=carried), carried=carried)
    (late,) = result.breaks
    assert late.break_id != first.break_id
    assert [(item.item_id, item.break_id) for item in result.items] == [("topic:billing.payouts:0:13", late.break_id)]


def test_the_part_that_completes_the_sum_clears_all() -> None:
    carried = judged(grouped(E6, row(1))).items
    result = judged(grouped(E4, carried=carried), carried=carried)
    assert result.breaks == ()
    assert {item.item_id: (item.state, item.cleared_by) for item in result.items} == {
        E6.item_id: (ItemState.CLEARED, "ledger:1"),
        "ledger:1": (ItemState.CLEARED, E6.item_id),
    }
    told = {notice.notice: notice.count for notice in result.notices}
    assert told[Notice.LATE_PARTNER] == 2


def test_a_group_of_two_windows_is_told_as_a_pair_of_two_is() -> None:
    waiting = (item_of(E6),)
    result = judged(grouped(E4, row(1), carried=waiting), carried=waiting)
    told = {notice.notice: notice.count for notice in result.notices}
    assert told == {Notice.PAIRED_ACROSS_WINDOWS: 1}


@pytest.mark.parametrize(
    ("copies", "many", "rows"), [((E6, E4, row(1)), IN_TOPIC, 1), ((event(11), R6, R4), LEDGER, 2)]
)
def test_each_row_counts_once_with_its_money(copies: tuple[Entry, ...], many: ItemSide, rows: int) -> None:
    result = judged(grouped(*copies, many=many))
    assert (result.breaks, result.items) == ((), ())
    of_the_scan = judged(grouped()).figures
    assert result.figures.matched_rows == of_the_scan.matched_rows + rows
    assert result.figures.matched_money == {"EUR": of_the_scan.matched_money["EUR"] + 1_000}


def test_a_window_in_which_only_the_last_part_came_is_not_empty() -> None:
    waiting = (item_of(E6), item_of(row(1)))
    for part, doubts in ((E4, []), (event(12, amount_minor=1), [Doubt.VACUOUS_RUN])):
        evidence = with_facts(grouped(part, carried=waiting), ledger_rows=0)
        assert [one.doubt for one in judged(evidence, carried=waiting).doubts] == doubts


def test_two_groups_whose_errors_cancel_out_are_told() -> None:
    other = (event(13, "ev-2", 1_400), row(3, "ev-2"))
    result = judged(grouped(E6, row(1), *other))
    assert [one.break_class for one in result.breaks] == [BreakClass.GROUP_SUM_MISMATCH] * 2
    assert Notice.OFFSETTING_ERRORS in {notice.notice for notice in result.notices}
    one_alone = judged(grouped(E6, row(1), replace(other[0], amount_minor=1_401), other[1]))
    assert Notice.OFFSETTING_ERRORS not in {notice.notice for notice in one_alone.notices}
