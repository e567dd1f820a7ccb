"""Q1: two readers of the same offsets that do not see the same."""

from dataclasses import replace

import pytest

from tallystick.matching.evidence import SecondReading
from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import CLEAN, SLICE
from tests.unit.anomalies.planted import Pair, PlantedCases, found_in
from tests.unit.anomalies.told_evidence import told_of
from tests.unit.builders import TOPIC, census_of, with_facts


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.READERS_DISAGREE,
            fires=replace(CLEAN, census=(census_of(SLICE, spark_rows=10),)),
            twin=replace(CLEAN, census=(census_of(SLICE, spark_rows=9),)),
        ),
    )


def test_a_reader_that_counted_nothing_disagrees() -> None:
    assert found_in(replace(CLEAN, census=(replace(census_of(SLICE), spark_rows=None),))) == {Doubt.READERS_DISAGREE}


@pytest.mark.parametrize("is_same", [True, False])
def test_a_second_reading_that_is_not_the_same_is_a_doubt(is_same: bool) -> None:
    """With as many records: what counts is their bytes."""
    reading = SecondReading(offsets=SLICE.readable, rows=9, client_rows=9, is_same=is_same)
    assert found_in(with_facts(CLEAN, second_readings=(reading,))) == (set() if is_same else {Doubt.READERS_DISAGREE})
    details = {"topic": TOPIC, "partition": 0, "kafka_offset_start": 10, "kafka_offset_end": 20}
    sentence = (
        "billing.payouts[0]: at offsets 10 to 19 Kafka's own client reads 9 records and Tallystick 9; they are not the "
        "same, byte by byte."
    )
    about = {"name": "readers_disagree", "sentence": sentence}
    told = [{**about, "details": {**details, "spark_rows": 9, "client_rows": 9}}]
    assert told_of(with_facts(CLEAN, second_readings=(reading,))) == ([] if is_same else told)
