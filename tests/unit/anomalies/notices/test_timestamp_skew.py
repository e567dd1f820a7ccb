"""O2: times that a record's window cannot hold."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tallystick.anomalies.notices.timestamp_skew import possible_ms, timestamp_skew
from tallystick.anomalies.registry import findings_of
from tallystick.matching.evidence import Evidence, RecordTimes
from tallystick.model.cut import Cut
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import HOUR, NOON, TOPIC, cut_of, evidence_of, slice_of


def skewed(*, early: int = 0, late: int = 0, previous: Cut | None = None) -> Evidence:
    """How many records the slice's times cannot hold; the previous cut's slice was whole unless told otherwise."""
    times = RecordTimes(
        topic=TOPIC, partition=0, early=early, late=late, earliest_ms=1_772_300_000_000, latest_ms=1_772_400_000_000
    )
    return evidence_of(record_times=(times,), previous_cut=previous or cut_of(slice_of(0, 10), n=1))


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Notice.TIMESTAMP_SKEW,
            fires=skewed(early=1),
            twin=skewed(early=1, previous=cut_of(slice_of(0, 10, mark=11), n=1)),  # written while that cut was held
        ),
    )


WHOLE_BEFORE = cut_of(slice_of(0, 10), n=1)


def timed(*times: RecordTimes, previous: object = WHOLE_BEFORE) -> list[NoticeFound]:
    return list(findings_of(timestamp_skew, evidence_of(record_times=times, previous_cut=previous)))


def times_of(early: int, late: int, *, partition: int = 0) -> RecordTimes:
    return RecordTimes(
        topic=TOPIC, partition=partition, early=early, late=late, earliest_ms=0, latest_ms=1_772_366_400_123
    )


def test_times_that_the_window_cannot_hold_are_told_per_partition_and_page_nobody() -> None:
    (found,) = timed(times_of(2, 3))
    assert (found.count, found.pages) == (5, False)
    assert found.details["partitions"] == [
        {
            "topic": TOPIC,
            "partition": 0,
            "early": 2,
            "late": 3,
            "earliest_utc": "1970-01-01T00:00:00+00:00",
            "latest_utc": "2026-03-01T12:00:00.123000+00:00",
        }
    ]
    assert "2 too early, 3 too late, by more than 3,600 s" in found.sentence


def test_a_time_that_no_calendar_has_is_told_as_the_number_it_is() -> None:
    (found,) = timed(replace(times_of(0, 1), latest_ms=1_772_366_400_123_000))
    (part,) = found.details["partitions"]
    assert (part["earliest_utc"], part["latest_utc"]) == ("1970-01-01T00:00:00+00:00", None)
    assert "1,772,366,400,123,000 ms since 1970" in found.sentence


def test_times_within_the_window_are_not_told() -> None:
    assert timed(times_of(0, 0)) == []
    assert timed() == []


@pytest.mark.parametrize(
    "previous",
    [
        pytest.param(cut_of(slice_of(0, 10, mark=11), n=1), id="its slice was held back"),
        pytest.param(cut_of(slice_of(0, 10, topic="billing.fees"), n=1), id="it did not know the partition"),
        pytest.param(None, id="it is not known"),
    ],
)
def test_how_old_a_record_may_be_is_known_only_after_a_whole_slice(previous: object) -> None:
    assert timed(times_of(2, 0), previous=previous) == []
    assert [found.count for found in timed(times_of(2, 3), previous=previous)] == [3]


def test_a_partition_is_judged_by_its_own_slice() -> None:
    (found,) = timed(times_of(2, 0), times_of(7, 0, partition=1))
    assert [part["partition"] for part in found.details["partitions"]] == [0]
    assert found.count == 2


def test_a_record_may_be_as_old_as_the_mark_before_and_as_young_as_the_mark_after_it() -> None:
    previous, cut = cut_of(n=1, marked_at_utc=NOON - HOUR), cut_of(marked_at_utc=NOON)
    first, last = possible_ms(cut, previous, tolerance_seconds=90)
    assert first == int((NOON - HOUR - timedelta(seconds=90)).timestamp() * 1000)
    assert last == int((NOON + timedelta(seconds=90)).timestamp() * 1000)
