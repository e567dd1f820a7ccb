"""Schedules of the simulated world, as tests for mutants: `make simulate` plays many more."""

import pytest

from tests.simulator.known import known_as
from tests.simulator.schedule.draw import draw
from tests.simulator.schedule.play import Play
from tests.simulator.standins.seams import stand_ins

SCHEDULES = 12


@pytest.mark.parametrize("seed", range(1, SCHEDULES + 1))
def test_a_schedule_violates_nothing(seed: int) -> None:
    with stand_ins():
        violations = Play(draw(seed)).all()
    assert [one for one in violations if known_as(one) is None] == []
