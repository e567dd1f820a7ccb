"""C3: a repair that the store knows nothing of."""

from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import with_facts


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.FORGED_REPAIR,
            fires=with_facts(CLEAN, forged_repairs=("topic:billing.payouts:0:14",)),
            twin=with_facts(CLEAN, forged_repairs=()),
        ),
    )
