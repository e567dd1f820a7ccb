"""The slice of one partition that one cut reads."""

from dataclasses import dataclass
from functools import lru_cache


class OffsetsOutOfOrder(ValueError):
    """A range would be negative or end before it starts."""


@dataclass(frozen=True, kw_only=True, order=True)
class TopicPartition:
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


@lru_cache(maxsize=10_000)
def partition_of(topic: str, partition: int) -> TopicPartition:
    """The one value of a place: slices and snapshots are asked for theirs again and again."""
    return TopicPartition(topic=topic, partition=partition)


@dataclass(frozen=True, kw_only=True)
class OffsetRange:
    """Half-open range of one partition's offsets.

    Unit: log positions, markers included, so end - start is no row count. Source: KIP-98.
    Raises OffsetsOutOfOrder unless 0 <= start <= end.
    """

    topic: str
    partition: int
    kafka_offset_start: int
    kafka_offset_end: int

    def __post_init__(self) -> None:
        start, end = self.kafka_offset_start, self.kafka_offset_end
        if not 0 <= start <= end:
            raise OffsetsOutOfOrder(f"{self.topic}[{self.partition}]: expected 0 <= start <= end, got [{start}, {end})")

    @property
    def topic_partition(self) -> TopicPartition:
        return partition_of(self.topic, self.partition)

    def __len__(self) -> int:
        return self.kafka_offset_end - self.kafka_offset_start
