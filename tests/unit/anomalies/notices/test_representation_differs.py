"""X2: pairs written differently are counted."""

from dataclasses import replace

from tallystick.anomalies.notices.representation_differs import representation_differs
from tallystick.model.finding_names import Notice
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import evidence_of


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Notice.REPRESENTATION_DIFFERS,
            fires=replace(CLEAN, differently_written=3),
            twin=replace(CLEAN, differently_written=0),
        ),
    )


def test_pairs_written_differently_are_counted() -> None:
    (found,) = representation_differs(evidence_of(differently_written=1_234))
    assert (found.count, found.details) == (1_234, {"pairs": 1_234, "rule": "currency_case: ignored"})
    assert list(representation_differs(evidence_of())) == []
