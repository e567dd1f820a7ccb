"""An item's id says its order, however it is told apart; and a scan that says nothing more has found nothing more."""

from tallystick.matching.evidence import RecordTimes
from tallystick.matching.row_identity import row_item_id
from tallystick.matching.scan_result import place_in_order, summary_of, topic_item_id, topic_place
from tallystick.model.offsets import TopicPartition
from tallystick.model.run_result import PartitionSummary, SideSummary, WindowSummary
from tests.unit.builders import INPUT, TOPIC, event, row
from tests.unit.matching.scans import scan_of


def test_a_scan_that_says_nothing_more_has_found_nothing_more() -> None:
    scan = scan_of()
    assert (scan.topic_money, scan.ledger_money, scan.input_rows_by_partition) == ({}, {}, {})
    assert (scan.log_records, scan.heads) == ({}, {})
    counts = (scan.differently_written, scan.out_of_order_count, scan.input_unreadable_count)
    assert counts == (0, 0, 0)
    several = (scan.out_of_order, scan.record_times, scan.lags, scan.second_readings, scan.repeated_row_ids)
    assert several == ((), (), (), (), ())
    assert scan.row_ids_repeat is False


def test_the_rows_of_a_topic_are_the_readable_ones() -> None:
    assert scan_of(rows_by_partition={("t", 0): 5, ("t", 1): 3}, unreadable_count=2).topic_rows == 6


def test_both_sides_are_summed_up_with_each_key_counted_once_and_the_empty_one_not_at_all() -> None:
    copies = (event(0, "a"), event(1, "a"), row(7, "a"), row(8, "b"), row(9, ""))
    scan = scan_of(
        rows_by_partition={(TOPIC, 1): 2, (TOPIC, 0): 6},
        ledger_rows=8,
        matched_rows=5,
        unreadable_count=1,
        copies=copies,
        topic_money={"EUR": 7_000},
        ledger_money={"EUR": 7_500, "USD": 5},
        record_times=(RecordTimes(topic=TOPIC, partition=0, early=0, late=0, earliest_ms=3, latest_ms=9),),
    )
    assert summary_of(scan) == WindowSummary(
        topic=SideSummary(rows=7, keys=6, money={"EUR": 7_000}),
        ledger=SideSummary(rows=8, keys=7, money={"EUR": 7_500, "USD": 5}),
        partitions=(
            PartitionSummary(topic=TOPIC, partition=0, rows=6, earliest_ms=3, latest_ms=9),
            PartitionSummary(topic=TOPIC, partition=1, rows=2),
        ),
    )


def test_input_topics_are_among_the_partitions() -> None:
    scan = scan_of(rows_by_partition={(TOPIC, 0): 1}, input_rows_by_partition={(INPUT, 0): 2})
    assert [(one.topic, one.rows) for one in summary_of(scan).partitions] == [(TOPIC, 1), (INPUT, 2)]


def test_an_item_id_of_an_event_names_its_place_whatever_its_topic() -> None:
    for topic in ("billing.payouts", "a:b"):
        place = TopicPartition(topic=topic, partition=3), 17
        assert topic_place(topic_item_id(topic, 3, 17)) == place


def test_an_item_ids_order_is_its_last_number() -> None:
    assert [place_in_order(one) for one in ("topic:a:0:17", "ledger:9", "ledger:abc-7", "ledger:")] == [17, 9, 0, 0]


def test_an_items_id_says_its_rows_order_however_it_is_told_apart() -> None:
    assert [place_in_order(one) for one in ("ledger:12#3.1", "ledger:12", "ledger:a#3.1")] == [12, 12, 0]
    assert [row_item_id(one) for one in ("ledger:12#3.1", "ledger:a#b", "ledger:12")] == [
        "ledger:12",
        "ledger:a#b",
        "ledger:12",
    ]
