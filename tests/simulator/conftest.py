"""What the simulator's tests share."""

from collections.abc import Iterator

import pytest

from tests.simulator.standins.seams import stand_ins


@pytest.fixture
def in_the_world() -> Iterator[None]:
    """The product's edges are those of the simulated world, for as long as a test lasts."""
    with stand_ins():
        yield
