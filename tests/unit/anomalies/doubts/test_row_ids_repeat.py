"""Q2: two rows with one row id."""

from dataclasses import replace

from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.ROW_IDS_REPEAT,
            fires=replace(CLEAN, repeated_row_ids=("17",)),
            twin=replace(CLEAN, repeated_row_ids=()),
        ),
    )
