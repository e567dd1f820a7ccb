"""M6: a value that is not what the contract says."""

from tallystick.anomalies.doubts.unreadable_payload import unreadable_payload
from tallystick.anomalies.registry import findings_of
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


def test_a_place_says_why_its_record_is_unreadable_as_long_as_the_log_has_it() -> None:
    places = (
        UnreadableRecord(topic=TOPIC, partition=0, kafka_offset=14, problem="amount_minor is no whole number"),
        UnreadableRecord(topic=TOPIC, partition=0, kafka_offset=15),
    )
    (found,) = findings_of(unreadable_payload, with_facts(CLEAN, unreadable_count=2, unreadable_sample=places))
    assert found.details["places"] == [
        "billing.payouts[0] at 14, where amount_minor is no whole number",
        "billing.payouts[0] at 15",
    ]
