"""K1: an event without its row, unless the row may stand behind the horizon."""

from tallystick.matching.match_case import RecordLocation
from tallystick.model.finding_names import BreakClass
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import LEDGER, T2L, event, evidence_of, seen


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.MISSING_IN_LEDGER,
            fires=evidence_of(event(11), direction=T2L),
            twin=evidence_of(
                event(11), direction=T2L, lookup_hits=[seen(LEDGER, RecordLocation.PENDING, 1)]
            ),  # behind the horizon
        ),
    )
