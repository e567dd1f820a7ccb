"""M6: a row whose key is empty, and not one with a key that nobody else has."""

from tallystick.model.finding_names import BreakClass
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import event, evidence_of, row


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.ROW_WITHOUT_KEY,
            fires=evidence_of(row(1, key=""), row(2), event(11)),
            twin=evidence_of(row(1, key="row 1"), event(12, key="row 1"), row(2), event(11)),
        ),
    )
