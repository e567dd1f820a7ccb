"""The log just around a break: a few batches before and after its record, each with what became of it.

Taken while the run still has the broker at hand and stored with the break, so that no report ever fetches. Of each
class only the breaks with the most money have one: its cost does not grow with the breaks. Judges nothing.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from typing import Any
from uuid import UUID

from tallystick.host.packed_json import unpacked_json
from tallystick.kafka_log.fetch import Fetch, OffsetNotInLog
from tallystick.kafka_log.log_walk import DecidedBatch, Outcome, walk_past_lso
from tallystick.model.findings import Break
from tallystick.model.offsets import OffsetRange, TopicPartition

EVIDENCE_KEY = "strip"
STRIPS_PER_CLASS_MAX = 10
BATCHES_EACH_SIDE = 5
FETCH_BYTES = 64 << 10
"""Enough for the neighbours; a batch that is larger comes whole all the same. Source: KIP-74."""
_REACHES = (16, 512, 8_192)
"""So many offsets before the record it is looked for batches, the next only where the last held too few."""


@dataclass(frozen=True, kw_only=True)
class StripBatch:
    """One batch. kind: an Outcome's name, or "commit marker" or "abort marker"."""

    kafka_offset_start: int
    kafka_offset_end: int
    kind: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, kw_only=True)
class LogStrip:
    """Batches in log order around one offset. Holes between them are there to be seen."""

    topic_partition: TopicPartition
    kafka_offset: int
    batches: tuple[StripBatch, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic_partition.topic,
            "partition": self.topic_partition.partition,
            "kafka_offset": self.kafka_offset,
            "batches": [
                [batch.kafka_offset_start, batch.kafka_offset_end, batch.kind, batch.producer_id, batch.producer_epoch]
                for batch in self.batches
            ],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "LogStrip":
        return cls(
            topic_partition=TopicPartition(topic=document["topic"], partition=document["partition"]),
            kafka_offset=document["kafka_offset"],
            batches=tuple(
                StripBatch(
                    kafka_offset_start=start,
                    kafka_offset_end=end,
                    kind=kind,
                    producer_id=producer_id,
                    producer_epoch=producer_epoch,
                )
                for start, end, kind, producer_id, producer_epoch in document["batches"]
            ),
        )


def with_strips(fetch: Fetch, breaks: Sequence[Break], *, not_on: Collection[str] = ()) -> tuple[Break, ...]:
    """The same breaks; those that are drawn have their strip among their evidence.

    not_on: topics that `fetch` does not reach. What has left the log has none. Raises kafka.errors.KafkaError.
    """
    strips: dict[UUID, LogStrip] = {}
    for item_break, position in _drawn(breaks, not_on):
        try:
            strips[item_break.break_id] = read_strip(fetch, *position)
        except OffsetNotInLog:
            continue
    return tuple(_with_strip(item_break, strips.get(item_break.break_id)) for item_break in breaks)


def strip_of(item_break: Break) -> LogStrip | None:
    """The strip that was stored with a break."""
    document = item_break.evidence.get(EVIDENCE_KEY)
    return None if document is None else LogStrip.from_json(document)


def position_of(item_break: Break) -> tuple[TopicPartition, int] | None:
    """Return the place of a break on a topic: its own record, or the first that its evidence names, by
    the keys' order.
    """
    evidence = unpacked_json(item_break.evidence)
    texts = chain([evidence.get("at", "")], _texts(evidence))
    return next((place for place in map(_topic_place, texts) if place is not None), None)


def read_strip(fetch: Fetch, topic_partition: TopicPartition, kafka_offset: int) -> LogStrip:
    """Up to BATCHES_EACH_SIDE batches on each side of the one that holds the offset. Raises OffsetNotInLog."""
    here = fetch(topic_partition, kafka_offset, True)
    before: deque[DecidedBatch] = deque(maxlen=BATCHES_EACH_SIDE)
    after: list[DecidedBatch] = []
    for reach in _REACHES:
        start = max(here.log_start, kafka_offset - reach)
        before.clear()
        after.clear()
        around = OffsetRange(
            topic=topic_partition.topic,
            partition=topic_partition.partition,
            kafka_offset_start=start,
            kafka_offset_end=max(start, here.high_watermark),
        )
        for batch in walk_past_lso(fetch, around, lso=here.lso):
            if batch.header.next_offset <= kafka_offset:
                before.append(batch)
            else:
                after.append(batch)
            if len(after) > BATCHES_EACH_SIDE:
                break
        if len(before) == BATCHES_EACH_SIDE or start == here.log_start:
            break
    batches = tuple(_strip_batch(batch) for batch in (*before, *after))
    return LogStrip(topic_partition=topic_partition, kafka_offset=kafka_offset, batches=batches)


def _strip_batch(batch: DecidedBatch) -> StripBatch:
    header = batch.header
    is_marker = batch.outcome is Outcome.MARKER and header.marker is not None
    return StripBatch(
        kafka_offset_start=header.base_offset,
        kafka_offset_end=header.next_offset,
        kind=f"{header.marker} marker" if is_marker else str(batch.outcome),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
    )


def _drawn(breaks: Iterable[Break], not_on: Collection[str]) -> Iterator[tuple[Break, tuple[TopicPartition, int]]]:
    """Of each class those with the most money that stand on a topic, with where."""
    ordered = sorted(
        breaks,
        key=lambda item_break: (
            item_break.break_class,
            -abs(item_break.amount_minor),
            item_break.match_key,
            item_break.break_id.int,
        ),
    )
    for _, members in groupby(ordered, key=lambda item_break: item_break.break_class):
        placed = (
            (item_break, place)
            for item_break in members
            if (place := position_of(item_break)) and place[0].topic not in not_on
        )
        yield from islice(placed, STRIPS_PER_CLASS_MAX)


def _with_strip(item_break: Break, strip: LogStrip | None) -> Break:
    if strip is None:
        return item_break
    return replace(item_break, evidence={**item_break.evidence, EVIDENCE_KEY: strip.to_json()})


def _topic_place(text: str) -> tuple[TopicPartition, int] | None:
    """ "topic:billing.payouts:0:17" as a place; None for any other text."""
    if not text.startswith("topic:"):
        return None
    name, _, rest = text.removeprefix("topic:").partition(":")
    partition, _, offset = rest.partition(":")
    if not (name and partition.isdecimal() and offset.isdecimal()):
        return None
    return TopicPartition(topic=name, partition=int(partition)), int(offset)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict() | Mapping():  # the first is told at once, and nearly all are one
            for key in sorted(value):
                yield from _texts(value[key])
        case list() | tuple():
            for member in value:
                yield from _texts(member)
