"""R4: an offset of no class, and a partition that nobody counted."""

from dataclasses import replace

from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import CLEAN, SLICE
from tests.unit.anomalies.planted import Pair, PlantedCases, found_in
from tests.unit.builders import census_of


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.UNEXPLAINED_GAP,
            fires=replace(CLEAN, census=(census_of(SLICE, unexplained=1),)),
            twin=replace(CLEAN, census=(census_of(SLICE, unexplained=0),)),
        ),
    )


def test_a_partition_without_a_census_is_a_gap() -> None:
    assert found_in(replace(CLEAN, census=())) == {Doubt.UNEXPLAINED_GAP}
