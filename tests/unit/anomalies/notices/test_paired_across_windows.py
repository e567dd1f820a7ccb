"""L3: pairs whose halves were read by different cuts."""

import pytest

from tallystick.matching.evidence import Evidence
from tallystick.model.finding_names import Notice
from tests.unit.anomalies.findings import notices
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import event, evidence_of, item_of, row


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Notice.PAIRED_ACROSS_WINDOWS,
            fires=evidence_of(event(11), carried=[item_of(row(1), cut_n=1)]),
            twin=evidence_of(carried=[item_of(event(11), cut_n=1), item_of(row(1), cut_n=1)]),
        ),
    )


@pytest.mark.parametrize(
    ("evidence", "count"),
    [
        (evidence_of(event(11), carried=[item_of(row(1), cut_n=1)]), 1),
        (evidence_of(carried=[item_of(event(11), cut_n=0), item_of(row(1), cut_n=1)]), 1),
        (evidence_of(carried=[item_of(event(11), cut_n=1), item_of(row(1), cut_n=1)]), None),
        (
            evidence_of(event(11), event(12, "ev-2"), carried=[item_of(row(n, f"ev-{n}"), cut_n=1) for n in (1, 2)]),
            2,
        ),
        (evidence_of(event(11), row(1)), None),
        (evidence_of(event(11, amount_minor=1), carried=[item_of(row(1), cut_n=1)]), None),
    ],
)
def test_pairs_across_windows_are_counted(evidence: Evidence, count: int | None) -> None:
    assert notices(evidence).get(Notice.PAIRED_ACROSS_WINDOWS) == count
