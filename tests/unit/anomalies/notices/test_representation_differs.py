"""X2: pairs written differently are counted."""

from tallystick.anomalies.notices.representation_differs import representation_differs
from tallystick.anomalies.registry import findings_of
from tallystick.model.finding_names import Notice
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import evidence_of, with_facts


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Notice.REPRESENTATION_DIFFERS,
            fires=with_facts(CLEAN, differently_written=3),
            twin=with_facts(CLEAN, differently_written=0),
        ),
    )


def test_pairs_written_differently_are_counted() -> None:
    (found,) = findings_of(representation_differs, evidence_of(differently_written=1_234))
    assert (found.count, found.details) == (1_234, {"pairs": 1_234, "rule": "currency_case: ignored"})
    assert list(findings_of(representation_differs, evidence_of())) == []


def test_one_pair_is_told_in_the_singular() -> None:
    (one,) = findings_of(representation_differs, evidence_of(differently_written=1))
    assert one.sentence.startswith("1 matched pair writes its currency in another case on each side, ")
    (two,) = findings_of(representation_differs, evidence_of(differently_written=2))
    assert two.sentence.startswith("2 matched pairs write their currency in another case on each side, ")
