"""The check that both sides have settled. Pure rules over samples and snapshots.

A sample marks what had been written by its moment: high watermarks and the ledger's high mark. A mark is reached once
LSO and horizon have come up to it: then every transaction that was open at that moment has ended. Timestamps in the log
or the ledger are never asked: an idle topic has none, and neither side writes in their order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tallystick.model.cut import PartitionSnapshot, Sample


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """waits_for: a sentence per thing that is not reached yet; empty when settled."""

    settled: bool
    waits_for: tuple[str, ...]


def assess_readiness(
    samples: Sequence[Sample],
    *,
    window_end_utc: datetime,
    partitions: Iterable[PartitionSnapshot],
    ledger_low_mark: int,
) -> Readiness:
    """Settled when the first sample at or after the window's end is reached on both sides."""
    marks = [sample for sample in samples if sample.at_utc >= window_end_utc]
    if not marks:
        return Readiness(settled=False, waits_for=(f"the window ends at {window_end_utc:%Y-%m-%d %H:%M:%S} UTC",))
    mark = min(marks, key=lambda sample: sample.at_utc)
    waits = [*_topic_waits(mark, partitions)]
    if ledger_low_mark < mark.ledger_high_mark:
        waits.append(f"ledger: the horizon stands at {ledger_low_mark}, the mark is {mark.ledger_high_mark}")
    return Readiness(settled=not waits, waits_for=tuple(waits))


def _topic_waits(mark: Sample, partitions: Iterable[PartitionSnapshot]) -> Iterable[str]:
    for part in partitions:
        wanted = mark.high_watermark(part.topic_partition)
        if wanted is not None and part.lso < wanted:
            yield f"{part.topic_partition}: the LSO stands at {part.lso}, the mark is {wanted}"


def topic_settled_until(samples: Iterable[Sample], partitions: Sequence[PartitionSnapshot]) -> datetime | None:
    """Moment of the newest sample whose high watermarks every LSO has reached: all written by then has ended."""
    lsos = {part.topic_partition: part.lso for part in partitions}
    reached = [
        sample.at_utc
        for sample in samples
        if all(lsos.get(part, -1) >= high_watermark for part, high_watermark in sample.high_watermarks)
    ]
    return max(reached, default=None)


def ledger_settled_until(samples: Iterable[Sample], *, ledger_low_mark: int) -> datetime | None:
    """Moment of the newest sample whose high mark the horizon has passed: all written by then has ended."""
    return max((sample.at_utc for sample in samples if sample.ledger_high_mark <= ledger_low_mark), default=None)
