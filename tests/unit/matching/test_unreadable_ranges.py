"""Which cuts saw copies first whose partner may stand where no run could read it."""

import pytest

from tallystick.matching.unreadable_ranges import LedgerStarts, Loss, loss_before_the_books, out_of_sight
from tallystick.model.direction import Direction
from tests.unit.builders import L2T, NOON, T2L, T2T, cut_of, ledger_at, ledger_slice_of, partition_at, slice_of

STARTS = LedgerStarts(position_start={3: 100, 4: 200, 5: 300}, rows_may_be_older=frozenset({3}))


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
    found = out_of_sight(direction, {3, 4, 5}, [loss], STARTS, log_is_whole=False)
    assert found.events_lost == expected
    assert not out_of_sight(direction, {3, 4, 5}, [], STARTS, log_is_whole=False).events_lost


def test_a_row_may_be_older_only_while_the_log_does_not_hold_all() -> None:
    assert out_of_sight(L2T, {3, 4}, [], STARTS, log_is_whole=False).rows_may_be_older == {3}
    assert out_of_sight(L2T, {4, 5}, [], STARTS, log_is_whole=False).rows_may_be_older == set()
    assert out_of_sight(L2T, {3, 4}, [], STARTS, log_is_whole=True).rows_may_be_older == set()


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
