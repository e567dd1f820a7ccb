"""An item's id says its order, however it is told apart; and a scan that says nothing more has found nothing more."""

from tallystick.matching.row_identity import row_item_id
from tallystick.matching.scan_result import place_in_order, topic_item_id, topic_place
from tallystick.model.offsets import TopicPartition
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
