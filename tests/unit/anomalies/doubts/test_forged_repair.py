"""C3: a repair that the store knows nothing of."""

from dataclasses import replace

from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.FORGED_REPAIR,
            fires=replace(CLEAN, forged_repairs=("topic:billing.payouts:0:14",)),
            twin=replace(CLEAN, forged_repairs=()),
        ),
    )
