"""Q2: two rows with one row id."""

from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import with_facts


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.ROW_IDS_REPEAT,
            fires=with_facts(CLEAN, repeated_row_ids=("17",)),
            twin=with_facts(CLEAN, repeated_row_ids=()),
        ),
    )
