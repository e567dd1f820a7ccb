"""M6: committed records whose value is not what the contract says. They may be anything, so nothing is proven."""

from collections.abc import Iterator

from tallystick.break_class import Doubt
from tallystick.evidence import Evidence
from tallystick.run_result import DoubtFound


def unreadable_payload(evidence: Evidence) -> Iterator[DoubtFound]:
    """Counts, and where the first few lie; never what they hold."""
    if evidence.unreadable_count:
        places = [f"{one.topic}[{one.partition}] at {one.kafka_offset}" for one in evidence.unreadable_sample]
        yield DoubtFound(
            doubt=Doubt.UNREADABLE_PAYLOAD,
            sentence=f"{evidence.unreadable_count} committed records are not the JSON object the contract describes "
            f"(first: {', '.join(places)}).",
            details={"records": evidence.unreadable_count, "places": places},
        )
