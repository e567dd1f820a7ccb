"""Q2: two rows with one row id."""

from tallystick.anomalies.doubts.row_ids_repeat import row_ids_repeat
from tallystick.anomalies.registry import findings_of
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


def test_rows_without_an_id_repeat_it_too_and_are_called_null() -> None:
    (found,) = findings_of(row_ids_repeat, with_facts(CLEAN, repeated_row_ids=("17", "")))
    assert "such as 17, NULL. Each" in found.sentence
    assert found.details == {"row_ids": ["17", ""]}
