"""A range knows its partition and its length, and is refused where it ends before it starts."""

import pytest

from tallystick.model.offsets import OffsetRange, OffsetsOutOfOrder
from tests.unit.builders import PART, TOPIC, ledger_slice_of


def test_a_range_knows_its_partition() -> None:
    assert OffsetRange(topic=PART.topic, partition=0, kafka_offset_start=3, kafka_offset_end=3).topic_partition == PART


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (4, 3)])
def test_a_range_that_ends_before_it_starts_is_refused(start: int, end: int) -> None:
    with pytest.raises(OffsetsOutOfOrder, match=r"billing.payouts\[0\]: expected 0 <= start <= end, got"):
        OffsetRange(topic=TOPIC, partition=0, kafka_offset_start=start, kafka_offset_end=end)
    with pytest.raises(ValueError, match="ledger: expected 0 <= start <= end"):
        ledger_slice_of(start, end)


def test_a_range_is_as_long_as_its_offsets() -> None:
    assert len(OffsetRange(topic=TOPIC, partition=0, kafka_offset_start=3, kafka_offset_end=7)) == 4
