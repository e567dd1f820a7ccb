"""T7: a producer transaction without a record."""

from dataclasses import replace

from tallystick.model.finding_names import Notice
from tests.unit.anomalies.builders import CLEAN, SLICE
from tests.unit.anomalies.findings import notices
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import census_of


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Notice.EMPTY_TRANSACTION,
            fires=replace(CLEAN, census=(replace(census_of(SLICE), empty_transactions=1),)),
            twin=replace(CLEAN, census=(replace(census_of(SLICE), empty_transactions=0),)),
        ),
    )


def test_the_empty_transactions_of_all_partitions_add_up() -> None:
    here, there = replace(census_of(SLICE), empty_transactions=1), replace(census_of(SLICE), partition=1)
    both = replace(CLEAN, census=(here, replace(there, empty_transactions=2)))
    assert notices(both)[Notice.EMPTY_TRANSACTION] == 3
