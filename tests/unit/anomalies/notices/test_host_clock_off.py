"""A host's clock is told beyond a tenth of the grace and a second, and not within."""

from dataclasses import replace

import pytest

from tallystick.anomalies.notices.host_clock_off import host_clock_off
from tallystick.anomalies.registry import findings_of
from tallystick.model.finding_names import Notice
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import contract_of, cut_of, evidence_of


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Notice.HOST_CLOCK_OFF,
            fires=replace(CLEAN, cut=replace(CLEAN.cut, host_ahead_ms=6_001)),
            twin=replace(CLEAN, cut=replace(CLEAN.cut, host_ahead_ms=6_000)),  # a tenth of the grace
        ),
    )


@pytest.mark.parametrize(
    ("ahead_ms", "grace", "told"),
    [
        (6_001, 60, "The clock of the host that made this cut is 6.0 s ahead of the verdict store's, by which"),
        (-120_000, 60, "is 120.0 s behind the verdict store's"),
        (-6_000, 60, ""),
        (1_001, 0, "is 1.0 s ahead of"),
        (1_000, 0, ""),
        (None, 0, ""),
    ],
)
def test_a_tenth_of_the_grace_and_a_second_are_allowed(ahead_ms: int | None, grace: int, told: str) -> None:
    evidence = evidence_of(contract=contract_of(partner_grace_seconds=grace), cut=cut_of(host_ahead_ms=ahead_ms))
    assert told in "".join(one.sentence for one in findings_of(host_clock_off, evidence))
    assert bool(told) is bool(list(findings_of(host_clock_off, evidence)))
