"""O2: records whose timestamp the window they were written in cannot hold.

A record of the slice was appended after the previous cut's mark and by this cut's. Where the previous slice stopped
short of its mark nobody knows how old the next record may be, so only the later bound holds; nor for a partition that
no cut had read. One rule for both kinds of timestamp: the producer's clock (CreateTime), the broker's (LogAppendTime).
Kafka 4 itself refuses a CreateTime more than an hour ahead (message.timestamp.after.max.ms, KIP-937), so there the late
ones are found only by a smaller tolerance.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from math import ceil, floor

from tallystick.contract.contract import Contract
from tallystick.matching.evidence import EarlierRun, RecordTimes, ScanOddities
from tallystick.model.cut import Cut
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tallystick.model.offsets import TopicPartition
from tallystick.text.plain import format_time


def timestamp_skew(contract: Contract, earlier: EarlierRun, oddities: ScanOddities) -> Iterator[NoticeFound]:
    """Report counts and extremes per partition. No slice is cut by timestamps, so nothing else depends on them."""
    found = [(times, _early(times, earlier.cut)) for times in oddities.record_times]
    skewed = [(times, early) for times, early in found if early or times.late]
    if skewed:
        early, late = sum(early for _, early in skewed), sum(times.late for times, _ in skewed)
        earliest = _moment_text(min(times.earliest_ms for times, _ in skewed))
        latest = _moment_text(max(times.latest_ms for times, _ in skewed))
        tolerance = contract.timestamp_tolerance_seconds
        yield NoticeFound(
            notice=Notice.TIMESTAMP_SKEW,
            sentence=f"{early + late:,} records carry timestamps outside their window: {early:,} too early, {late:,} "
            f"too late, by more than {tolerance:,} s (from {earliest} to {latest}).",
            count=early + late,
            details={"partitions": [_details(times, early) for times, early in skewed]},
        )


def possible_ms(cut: Cut, previous: Cut, *, tolerance_seconds: int) -> tuple[int, int]:
    """Return the first and last timestamp that a record of the slice can have, with the tolerance. Unit: epoch
    milliseconds.
    """
    first = previous.marked_at_utc.timestamp() - tolerance_seconds
    last = cut.marked_at_utc.timestamp() + tolerance_seconds
    return floor(first * 1000), ceil(last * 1000)


def _early(times: RecordTimes, previous: Cut | None) -> int:
    part = TopicPartition(topic=times.topic, partition=times.partition)
    before = previous.slice_of(part) if previous else None
    return times.early if before is not None and not before.held else 0


def _details(times: RecordTimes, early: int) -> dict[str, object]:
    return {
        "topic": times.topic,
        "partition": times.partition,
        "early": early,
        "late": times.late,
        "earliest_utc": _isoformat(times.earliest_ms),
        "latest_utc": _isoformat(times.latest_ms),
    }


def _moment_text(milliseconds: int) -> str:
    moment = _moment(milliseconds)
    return format_time(moment) if moment else f"{milliseconds:,} ms since 1970"


def _isoformat(milliseconds: int) -> str | None:
    moment = _moment(milliseconds)
    return moment.isoformat() if moment else None


def _moment(milliseconds: int) -> datetime | None:
    """Return the moment; None where no calendar has it: a producer that counts in microseconds writes dates of the year
    58,000.
    """
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
