"""M6: a value that is not what the contract says."""

from tallystick.matching.evidence import UnreadableRecord
from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import CLEAN
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import TOPIC, with_facts


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.UNREADABLE_PAYLOAD,
            fires=with_facts(
                CLEAN,
                unreadable_count=1,
                unreadable_sample=(UnreadableRecord(topic=TOPIC, partition=0, kafka_offset=14),),
            ),
            twin=CLEAN,
        ),
    )
