"""M6: committed records whose value is not what the contract says. They may be anything, so nothing is proven."""

from collections.abc import Iterator

from tallystick.matching.evidence import ScanOddities, UnreadableRecord
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound


def unreadable_payload(oddities: ScanOddities) -> Iterator[DoubtFound]:
    """Counts, where the first few lie and why they are none; never what they hold."""
    if oddities.unreadable_count:
        places = list(map(_place, oddities.unreadable_sample))
        yield DoubtFound(
            doubt=Doubt.UNREADABLE_PAYLOAD,
            sentence=f"{oddities.unreadable_count} committed records are not the JSON object the contract describes "
            f"(first: {'; '.join(places)}).",
            details={"records": oddities.unreadable_count, "places": places},
        )


def _place(record: UnreadableRecord) -> str:
    place = f"{record.topic}[{record.partition}] at {record.kafka_offset}"
    return f"{place}, where {record.problem}" if record.problem else place
