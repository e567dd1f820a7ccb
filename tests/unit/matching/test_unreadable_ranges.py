"""Which cuts saw copies first whose partner may stand where no run could read it."""

from dataclasses import replace
from typing import Any

import pytest

from tallystick.matching.unreadable_ranges import (
    LedgerStarts,
    Loss,
    OutOfSight,
    cleaned_before_the_books,
    first_to_see,
    loss_before_the_books,
    older_rows_below,
    out_of_sight,
)
from tallystick.model.cut import Cut
from tallystick.model.direction import Direction
from tests.unit.builders import L2T, NOON, T2L, T2T, cut_of, ledger_at, ledger_slice_of, partition_at, slice_of

STARTS = LedgerStarts(position_start={3: 100, 4: 200, 5: 300}, rows_may_be_older=frozenset({3}))


def beyond(direction: Direction, first_seen: set[int], *losses: Loss, **stated: Any) -> OutOfSight:
    plain = {"log_is_whole": False, "legs_lost_within": 1}
    return out_of_sight(direction, first_seen, losses, STARTS, **{**plain, **stated})


def lost(cut_n: int, xmax: int) -> Loss:
    return Loss(cut_n=cut_n, marked_at_utc=NOON, ledger_high_mark=xmax)


@pytest.mark.parametrize(
    ("direction", "loss", "expected"),
    [
        pytest.param(L2T, lost(3, 201), {3, 4}, id="a row was written behind the loss, or its id was given out before"),
        pytest.param(L2T, lost(3, 200), {3}, id="no id of the next slice had been given out"),
        pytest.param(L2T, lost(5, 400), {3, 4, 5}, id="a loss that came later"),
        pytest.param(L2T, lost(2, 90), set(), id="a loss before all of them"),
        pytest.param(T2L, lost(1, 1), {3, 4, 5}, id="a consumer may post an event however late"),
        pytest.param(T2T, lost(3, 0), {3, 4}, id="an output beside its input"),
    ],
)
def test_an_event_may_be_lost(direction: Direction, loss: Loss, expected: set[int]) -> None:
    assert beyond(direction, {3, 4, 5}, loss).events_lost == expected
    assert not beyond(direction, {3, 4, 5}).events_lost


@pytest.mark.parametrize(
    ("loss", "by_xmin", "by_written_xid"),
    [
        pytest.param(lost(3, 200), {3, 4}, {3}, id="while the next slice's rows were in this one"),
        pytest.param(lost(3, 100), {3}, {3}, id="no id of this slice had been given out"),
        pytest.param(lost(2, 100), set(), set(), id="a loss before all of them"),
    ],
)
def test_by_xmin_a_row_may_have_moved_out_of_the_slice_that_lost_its_event(
    loss: Loss, by_xmin: set[int], by_written_xid: set[int]
) -> None:
    """Found by the simulated world: it was updated between the cut and its scan, once retention had taken its event."""
    found = [
        out_of_sight(
            L2T, {3, 4, 5}, [loss], replace(STARTS, rows_move=moves), log_is_whole=False, legs_lost_within=1
        ).events_lost
        for moves in (True, False)
    ]
    assert found == [by_xmin, by_written_xid]


def test_nor_where_a_cut_whose_horizon_was_held_stands_between_the_two() -> None:
    """Found by the simulated world: it was read two cuts later, behind a transaction that stayed open meanwhile."""
    moved = replace(STARTS, rows_move=True, moved_from={4: 200, 5: 100})
    losses = [lost(3, 200)]
    found = out_of_sight(L2T, {3, 4, 5}, losses, moved, log_is_whole=False, legs_lost_within=1)
    stayed = out_of_sight(
        L2T, {3, 4, 5}, losses, replace(moved, rows_move=False), log_is_whole=False, legs_lost_within=1
    )
    assert (found.events_lost, stayed.events_lost) == ({3, 5}, {3})


@pytest.mark.parametrize(("left_from", "lost_of"), [({}, {3}), ({2: 50, 3: 100}, {3}), ({3: 99}, {3, 4})])
def test_a_row_of_a_file_that_earlier_cuts_left_may_have_been_written_before_the_first_of_them(
    left_from: dict[int, int], lost_of: set[int]
) -> None:
    starts = replace(STARTS, left_from=left_from)
    found = out_of_sight(L2T, {3, 4, 5}, [lost(3, 100)], starts, log_is_whole=False, legs_lost_within=1)
    assert found.events_lost == lost_of


@pytest.mark.parametrize(
    ("within", "expected"),
    [
        pytest.param(None, {4, 5}, id="a run of old: of the loss itself, and of the cut behind it"),
        pytest.param(2, {4, 5, 6}, id="one leg was held, or sent by hand, a cut longer"),
        pytest.param(9, {4, 5, 6}, id="and no longer than the memory of the books"),
    ],
)
def test_a_leg_may_be_lost_so_many_cuts_behind_a_loss(within: int | None, expected: set[int]) -> None:
    found = beyond(T2L, {4, 5, 6, 14}, lost(4, 300), legs_lost_within=within)
    assert found.legs_lost == expected


@pytest.mark.parametrize("within", [None, 9])
def test_a_leg_of_what_was_gone_before_the_books_may_be_lost_to_the_first_cut_alone(within: int | None) -> None:
    assert beyond(T2L, {1, 2, 5}, lost(0, 300), legs_lost_within=within).legs_lost == {1}


def test_a_row_may_be_older_only_while_the_log_does_not_hold_all() -> None:
    assert beyond(L2T, {3, 4}).rows_may_be_older == {3}
    assert beyond(L2T, {4, 5}).rows_may_be_older == set()
    assert beyond(L2T, {3, 4}, log_is_whole=True).rows_may_be_older == set()


@pytest.mark.parametrize(
    ("log_start", "cut_n", "is_lost"),
    [
        pytest.param(0, 1, False, id="all that stood before the baseline is there"),
        pytest.param(1, 1, True, id="some of it has gone"),
        pytest.param(1, 4, False, id="so many windows later"),
        pytest.param(15, 3, True, id="and what cuts have read"),
    ],
)
def test_what_stood_before_the_baseline_was_read_by_nobody(log_start: int, cut_n: int, is_lost: bool) -> None:
    baseline = cut_of(slice_of(10, 10), n=0, ledger_slice=ledger_slice_of(100, 100))
    found = loss_before_the_books(baseline, [partition_at(log_start=log_start)], cut_n=cut_n, windows=3)
    assert bool(found) is is_lost
    assert all(one.ledger_high_mark == ledger_at(100).high_mark for one in found)
    assert all((one.cut_n, one.marked_at_utc) == (0, baseline.marked_at_utc) for one in found)


@pytest.mark.parametrize(
    ("end", "compacting", "cut_n", "is_lost"),
    [
        pytest.param(10, {"billing.payouts"}, 3, True, id="something stood there, and its cleaner leaves no sign"),
        pytest.param(10, {"billing.payouts"}, 4, False, id="so many windows later"),
        pytest.param(0, {"billing.payouts"}, 1, False, id="nothing stood there"),
        pytest.param(10, {"billing.fees"}, 1, False, id="another topic compacts"),
    ],
)
def test_of_a_topic_that_compacts_nobody_knows_what_stood_before_the_baseline(
    end: int, compacting: set[str], cut_n: int, is_lost: bool
) -> None:
    baseline = cut_of(slice_of(end, end), n=0, ledger_slice=ledger_slice_of(100, 100))
    found = cleaned_before_the_books(baseline, compacting, cut_n=cut_n, windows=3)
    assert [(one.cut_n, one.ledger_high_mark) for one in found] == [(0, ledger_at(100).high_mark)] * is_lost


@pytest.mark.parametrize(
    ("start", "older_below", "is_lost"),
    [
        pytest.param(99, 100, True, id="the baseline's horizon was held below rows that stood by then"),
        pytest.param(100, 100, False, id="every row of the slice is younger than the books"),
        pytest.param(99, 0, False, id="the log was whole when the books began"),
    ],
)
def test_a_row_that_the_baseline_left_to_the_next_cut_may_have_had_its_event(
    start: int, older_below: int, is_lost: bool
) -> None:
    starts = LedgerStarts(position_start={3: start}, older_below=older_below)
    plain: dict[str, Any] = {"log_is_whole": False, "legs_lost_within": 1}
    for direction, expected in ((L2T, is_lost), (T2L, False)):
        found = out_of_sight(direction, {3, 4}, (), starts, **plain)
        assert (found.have_older_rows, found.older_below) == ({3} if expected else set(), 0)
    assert out_of_sight(L2T, {3}, (), replace(starts, rows_stay=True), **plain).older_below == older_below


@pytest.mark.parametrize(
    ("stated", "older"),
    [
        pytest.param({}, {3}, id="a row stays in its slice"),
        pytest.param({"rows_move": True}, {3, 4}, id="an UPDATE takes it to the next one"),
        pytest.param({"left_from": {3: 100}}, {3, 4}, id="a file was left to the next cut"),
        pytest.param({"rows_move": True, "older_below": 100}, set(), id="every row of the slices is younger"),
    ],
)
def test_a_row_that_the_baseline_left_behind_may_have_moved_on_by_one_more_cut(
    stated: dict[str, Any], older: set[int]
) -> None:
    """Found by the simulated world: it was updated between the first cut and its scan, and was paid again."""
    starts = LedgerStarts(**{"position_start": {3: 100, 4: 200, 5: 300}, "older_below": 101, **stated})
    found = out_of_sight(L2T, {3, 4, 5}, (), starts, log_is_whole=False, legs_lost_within=1)
    assert found.have_older_rows == older


@pytest.mark.parametrize(("log_start", "below"), [(0, 0), (1, ledger_at(100).high_mark)])
def test_what_the_books_do_not_know_of_ends_where_the_baselines_ledger_had_come_to(log_start: int, below: int) -> None:
    part = slice_of(10, 10)
    part = replace(part, snapshot=replace(part.snapshot, log_start=log_start))
    baseline = cut_of(part, n=0, ledger_slice=ledger_slice_of(100, 100))
    assert older_rows_below(baseline) == below


INPUTS = "billing.requests"


def inputs_of(n: int, start: int, end: int, *, seen: int, topic: str = INPUTS, topic_id: str = "a") -> Cut:
    """A cut of one partition. seen: how far its log had been written by then."""
    part = slice_of(start, end)
    offsets = replace(part.offsets, topic=topic)
    snapshot = replace(part.snapshot, topic=topic, topic_id=topic_id, high_watermark=seen)
    return cut_of(replace(part, offsets=offsets, snapshot=snapshot), n=n)


@pytest.mark.parametrize(
    ("earlier", "first"),
    [
        pytest.param([inputs_of(2, 0, 4, seen=5), inputs_of(1, 0, 0, seen=5)], 1, id="held for two cuts"),
        pytest.param([inputs_of(2, 0, 4, seen=5), inputs_of(1, 0, 0, seen=4)], 2, id="written since the older one"),
        pytest.param([inputs_of(2, 0, 4, seen=4), inputs_of(1, 0, 0, seen=4)], 3, id="written since both"),
        pytest.param([inputs_of(2, 0, 4, seen=5, topic="billing.fees")], 3, id="another topic"),
        pytest.param([inputs_of(2, 0, 4, seen=5, topic_id="b")], 3, id="a topic that was created again"),
        pytest.param([], 3, id="no earlier cut lost anything"),
    ],
)
def test_an_input_was_seen_first_by_the_oldest_cut_whose_log_held_it(earlier: list[Cut], first: int) -> None:
    assert first_to_see(inputs_of(3, 4, 8, seen=8), earlier, [INPUTS]) == first
    assert first_to_see(inputs_of(3, 4, 4, seen=8), earlier, [INPUTS]) == 3
    assert first_to_see(inputs_of(3, 4, 8, seen=8), earlier, ["billing.payouts"]) == 3


@pytest.mark.parametrize(("loss", "expected"), [(2, {5}), (1, {5}), (0, set())])
def test_an_output_may_be_lost_beside_the_cut_that_had_seen_its_input_first(loss: int, expected: set[int]) -> None:
    starts = LedgerStarts(seen_first={5: 2})
    found = out_of_sight(T2T, {4, 5}, [lost(loss, 0)], starts, log_is_whole=False, legs_lost_within=1)
    assert found.events_lost == expected
