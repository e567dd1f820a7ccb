"""The simulated world's match pair by pair, which is plain Python, says of the same copies what Spark's says."""

from pyspark.sql import SparkSession

from tallystick_spark.matching.frame_match import ledger_copy, scan_slices, topic_copy
from tests.simulator.standins.pair_scan import exceptions, lacking_a_leg
from tests.spark.match_frames import _LEDGER, _TOPIC, EVENTS, INVOICES, LEGS, ROWS, event, frames, row


def test_the_simulated_match_pair_by_pair_is_that_of_spark(spark: SparkSession) -> None:
    on_another_topic = (INVOICES, *event(30, "misrouted")[1:])
    events, rows = (*EVENTS, on_another_topic), (*ROWS, row(30, "misrouted"))
    scan = scan_slices(*frames(spark, events, rows), legs=LEGS, keys_to_include={"known"})
    of_topic = [dict(zip(_names(_TOPIC), one, strict=True)) for one in events]
    readable = [one for one in of_topic if one["readable"]]
    of_ledger = [dict(zip(_names(_LEDGER), one, strict=True)) for one in rows]
    home, rows_home = exceptions(readable, of_ledger, LEGS, {"known"})
    copies = {*map(topic_copy, home), *map(ledger_copy, rows_home)}
    assert copies == set(scan.copies) and len(copies) == len(scan.copies)
    assert {topic_copy(one) for one in lacking_a_leg(readable, LEGS)} == set(scan.incomplete)
    assert len(rows) - len(rows_home) == scan.matched_rows
    assert {"misrouted", "known"} < {one.match_key for one in copies} and scan.incomplete


def _names(shape: str) -> list[str]:
    return [column.split()[0] for column in shape.split(", ")]
