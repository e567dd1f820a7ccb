"""Q1: a planted fault that was not caught."""

from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import with_facts


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.CANARY_MISSED,
            fires=with_facts(CLEAN, missed_canaries=("amount (scan)",)),
            twin=with_facts(CLEAN, missed_canaries=()),
        ),
    )
