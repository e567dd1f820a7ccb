"""A second way to say what became of each offset, for tests: forward, from the markers. Shares no code with the census.

A transactional record is what the first control batch of its producer id at a greater offset says, read on past the
slice's end, at most to the high watermark. Batches are parsed by kafka-python, without the broker's aborted list.
"""

from kafka.record import MemoryRecords

from tallystick.kafka_log.fetch import Fetch
from tallystick.model.offsets import OffsetRange

COMMITTED, ABORTED, PLAIN, OPEN = "committed", "aborted", "plain", "open"
COMMIT_MARKER, ABORT_MARKER = "commit_markers", "abort_markers"
_CONTROL_TYPES = {b"\x00\x00": ABORT_MARKER, b"\x00\x01": COMMIT_MARKER}


def outcomes_forward(fetch: Fetch, offsets: OffsetRange) -> dict[int, str]:
    """Offset to what it is, for all offsets of the range that hold something."""
    outcomes: dict[int, str] = {}
    undecided: dict[int, list[int]] = {}
    position = offsets.kafka_offset_start
    while position < offsets.kafka_offset_end or undecided:
        records = MemoryRecords(fetch(offsets.topic_partition, position, False).records)
        before = position
        while (batch := records.next_batch()) is not None:
            found = list(batch)
            numbers = [record.offset for record in found]
            position = max(position, batch.base_offset + batch.last_offset_delta + 1)
            inside = [one for one in numbers if offsets.kafka_offset_start <= one < offsets.kafka_offset_end]
            if batch.is_control_batch:
                marker = _CONTROL_TYPES[found[0].key[2:4]]
                outcomes |= dict.fromkeys(inside, marker)
                decided = undecided.pop(batch.producer_id, [])
                outcomes |= dict.fromkeys(decided, COMMITTED if marker == COMMIT_MARKER else ABORTED)
            elif batch.is_transactional and inside:
                undecided.setdefault(batch.producer_id, []).extend(inside)
            else:
                outcomes |= dict.fromkeys(inside, PLAIN)
        if position == before:
            break
    for numbers in undecided.values():
        outcomes |= dict.fromkeys(numbers, OPEN)
    return outcomes
