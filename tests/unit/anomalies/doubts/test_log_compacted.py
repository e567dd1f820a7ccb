"""R3: a hole in a log that compacts, and not in one that does not."""

from dataclasses import replace

from tallystick.kafka_log.offset_census import with_compaction
from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import CLEAN, SLICE
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import census_of

HOLE = replace(census_of(SLICE, unexplained=1), holes=1)


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.LOG_COMPACTED,
            fires=replace(CLEAN, census=(with_compaction(HOLE, compacts=True),)),
            twin=replace(CLEAN, census=(with_compaction(HOLE, compacts=False),)),
            twin_is=frozenset({Doubt.UNEXPLAINED_GAP}),
        ),
    )
