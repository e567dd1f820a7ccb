"""Q2: an index of keys that is gone."""

from dataclasses import replace

from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.KEY_INDEX_LOST,
            fires=replace(CLEAN, lost_indexes=(1,)),
            twin=replace(CLEAN, lost_indexes=()),
        ),
    )
