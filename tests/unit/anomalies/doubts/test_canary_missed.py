"""Q1: a planted fault that was not caught."""

from dataclasses import replace

from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.CANARY_MISSED,
            fires=replace(CLEAN, missed_canaries=("amount (scan)",)),
            twin=replace(CLEAN, missed_canaries=()),
        ),
    )
