"""The benchmark reads off the command's own lines how far it came, so it must know their words."""

import pytest

from bench.start_up import ENDED, FIRST_READ, TOLD_BY, NotReached, in_order, start_up_table, told_in
from tallystick.cli.progress import step_line

LINES = [
    (1.5, step_line("settled", {"waits_for": []})),
    (2.0, step_line("cut", {"cut": 1})),
    (2.25, step_line("starting_spark", {})),
    (5.0, step_line("claimed", {"contract": "payments", "cut": 1, "attempt": 1})),
    (9.0, step_line("fetched", {"bytes": 1200})),
    (12.0, step_line("committed", {"verdict": "MATCHED"})),
    (13.0, step_line("report", {"path": "build/report.html"})),
]


def test_each_moment_is_told_by_a_line_that_the_command_says() -> None:
    assert list(told_in(LINES).values()) == [1.5, 2.25, 5.0, 9.0, 12.0, 13.0]


@pytest.mark.parametrize("missing", [0, 2, 3, 4, 5, 6])
def test_a_moment_that_no_line_tells_is_missed(missing: int) -> None:
    with pytest.raises(NotReached, match="expected a line with"):
        told_in([*LINES[:missing], *LINES[missing + 1 :]])


def test_what_took_how_long_is_told_in_the_order_in_which_it_came() -> None:
    told = in_order(told_in(LINES) | {ENDED: 13.5, FIRST_READ: 7.0})
    table = start_up_table({"reached": dict(told), "cpu_seconds": 20.0})
    assert [moment for moment, _ in told] == [*list(TOLD_BY)[:3], FIRST_READ, *list(TOLD_BY)[3:], ENDED]
    assert [*table.columns[2].cells] == ["1.50", "0.75", "2.75", "2.00", "2.00", "3.00", "1.00", "0.50"]
