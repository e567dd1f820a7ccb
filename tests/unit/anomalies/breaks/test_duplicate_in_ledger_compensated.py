"""D7: our row and the consumer's own; without our action it is a plain duplicate."""

from dataclasses import replace

from tallystick.model.finding_names import BreakClass
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import T2L, event, evidence_of, row


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED,
            fires=evidence_of(event(11), row(1), replace(row(2), action_id="a-1"), direction=T2L),
            twin=evidence_of(event(11), row(1), row(2), direction=T2L),
            twin_is=frozenset({BreakClass.DUPLICATE_IN_LEDGER}),
        ),
    )
