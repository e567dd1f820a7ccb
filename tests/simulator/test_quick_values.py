"""A schedule's values are the product's, and outside of schedules they are guarded as ever."""

from dataclasses import FrozenInstanceError, replace
from datetime import UTC, datetime

import pytest

from tallystick.model import cut
from tallystick.model.cut import Sample
from tallystick.model.offsets import OffsetRange, OffsetsOutOfOrder, partition_of
from tests.simulator.standins.quick_values import quick_replace, quick_values

PART = partition_of("billing.payouts", 0)
SAMPLE = Sample(
    at_utc=datetime(2026, 3, 1, tzinfo=UTC), high_watermarks=((PART, 7),), ledger_low_mark=1, ledger_high_mark=2
)


def test_a_value_made_quickly_equals_one_made_under_guard_and_is_found_by_it() -> None:
    with quick_values():
        assert cut.replace is quick_replace
        quick = Sample(at_utc=SAMPLE.at_utc, high_watermarks=((PART, 7),), ledger_low_mark=1, ledger_high_mark=2)
        assert {SAMPLE: "known"}[quick] == "known"
        with pytest.raises(TypeError):
            Sample(at_utc=SAMPLE.at_utc, high_watermarks=())  # type: ignore[call-arg]
        with pytest.raises(OffsetsOutOfOrder):
            OffsetRange(topic="t", partition=0, kafka_offset_start=2, kafka_offset_end=1)


def test_a_copy_with_changes_keeps_nothing_that_was_worked_out_before() -> None:
    assert SAMPLE.high_watermark(PART) == 7
    for again in (replace, quick_replace):
        assert again(SAMPLE, high_watermarks=((PART, 9),)).high_watermark(PART) == 9
        assert again(SAMPLE) == SAMPLE
        with pytest.raises(TypeError):
            again(SAMPLE, unknown=1)
        with pytest.raises(OffsetsOutOfOrder):
            again(OffsetRange(topic="t", partition=0, kafka_offset_start=1, kafka_offset_end=2), kafka_offset_end=0)


def test_behind_the_block_nobody_assigns_to_a_value() -> None:
    with quick_values():
        pass
    assert cut.replace is replace
    with pytest.raises(FrozenInstanceError):
        SAMPLE.ledger_low_mark = 5  # type: ignore[misc]
