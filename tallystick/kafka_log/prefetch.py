"""Ask for many small partitions with one request: a round trip costs more than the little data of one.

Answers that came along wait until they are asked for, and each is given once. Decides nothing, and never changes an
answer: where nothing came along, the partition is asked for itself.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from tallystick.kafka_log.batch_header import read_batches
from tallystick.kafka_log.fetch import Asked, Fetch, FetchedLog, FetchTogether
from tallystick.model.offsets import OffsetRange, TopicPartition

TOGETHER_OFFSETS = 10_000
"""Ranges of no more offsets are asked for together. A larger one fills an answer of its own."""
_FIRST_GROUP = 100
"""Later groups are twice what the answer before reached: logs that go on behind a range fill an answer early, and the
broker looks up each partition that it is asked for."""


def fetch_ahead(fetch: Fetch, together: FetchTogether, ranges: Sequence[OffsetRange]) -> Fetch:
    """Return a fetch for a walk of these ranges in order. Asked where one begins, it asks for the next ones too.

    One range of a partition.
    """
    places = {part.topic_partition: place for place, part in enumerate(ranges) if len(part)}
    waiting: dict[Asked, FetchedLog] = {}
    most = _FIRST_GROUP

    def ahead(topic_partition: TopicPartition, offset: int, read_committed: bool) -> FetchedLog:
        nonlocal most
        asked, place = Asked(topic_partition, offset, read_committed), places.get(topic_partition)
        if asked not in waiting and place is not None and ranges[place].kafka_offset_start == offset:
            group = list(islice(_next_ones(ranges, place, read_committed, waiting), most))
            if len(group) > 1:
                came = together(group)
                waiting.update({one: fetched for one, fetched in came.items() if _holds_a_batch(fetched)})
                most = 2 * max((number for number, one in enumerate(group, 1) if one in waiting), default=1)
        return waiting.pop(asked, None) or fetch(*asked)

    return ahead


def _holds_a_batch(fetched: FetchedLog) -> bool:
    """Return whether a whole batch came. At the end of its room the broker cuts one short; asked alone, it is whole."""
    return next(read_batches(fetched.records), None) is not None


def _next_ones(
    ranges: Sequence[OffsetRange], place: int, read_committed: bool, waiting: Collection[Asked]
) -> Iterator[Asked]:
    """Yield the starts of this range and the next ones, while they are small enough together and not there yet."""
    offsets = 0
    for number in range(place, len(ranges)):
        part = ranges[number]
        asked = Asked(part.topic_partition, part.kafka_offset_start, read_committed)
        if not len(part) or asked in waiting:
            continue
        offsets += len(part)
        if number > place and offsets > TOGETHER_OFFSETS:
            return
        yield asked
