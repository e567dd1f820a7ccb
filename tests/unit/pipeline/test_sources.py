"""What a sample and a mark are taken from."""

import pytest

from tallystick.model.cut import next_topic_slice
from tallystick.pipeline.sources import sample_of
from tests.unit.builders import NOON, PART, ledger_at, partition_at


@pytest.mark.parametrize(("log_end", "mark"), [(23, 23), (None, 20)])
def test_a_mark_is_where_the_leaders_log_ends_and_of_an_older_cut_the_high_watermark(
    log_end: int | None, mark: int
) -> None:
    now = partition_at(lso=20, high_watermark=20, log_end=log_end)
    assert sample_of((now,), ledger_at(300), at_utc=NOON).high_watermark(PART) == mark
    assert next_topic_slice(now, previous=None, mark=None).mark == mark
