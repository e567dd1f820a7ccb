"""Q2: a key index that is gone."""

from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import with_facts


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.KEY_INDEX_LOST,
            fires=with_facts(CLEAN, lost_indexes=(1,)),
            twin=with_facts(CLEAN, lost_indexes=()),
        ),
    )
