"""M4: a log that lost its beginning expired, and was neither truncated nor made anew."""

from tallystick.model.finding_names import Doubt
from tests.unit.anomalies.builders import cut_with
from tests.unit.anomalies.log_doubts import log_doubts_of, seen_around
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import partition_at, slice_of


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=Doubt.LOG_EXPIRED,
            fires=cut_with(slice_of(10, 20, expired=1)),
            twin=cut_with(slice_of(10, 20, expired=0)),
        ),
    )


def test_a_log_that_lost_its_beginning_expired_and_was_neither_truncated_nor_made_anew() -> None:
    (found,) = log_doubts_of(seen_around(partition_at(log_start=13, lso=40, high_watermark=40)))
    assert (found.doubt, found.details["expired_offsets"]) == (Doubt.LOG_EXPIRED, 3)
