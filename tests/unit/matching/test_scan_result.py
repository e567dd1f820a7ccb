"""An item's id says its order, however it is told apart."""

from tallystick.matching.row_identity import row_item_id
from tallystick.matching.scan_result import place_in_order


def test_an_item_ids_order_is_its_last_number() -> None:
    assert [place_in_order(one) for one in ("topic:a:0:17", "ledger:9", "ledger:abc-7", "ledger:")] == [17, 9, 0, 0]


def test_an_items_id_says_its_rows_order_however_it_is_told_apart() -> None:
    assert [place_in_order(one) for one in ("ledger:12#3.1", "ledger:12", "ledger:a#3.1")] == [12, 12, 0]
    assert [row_item_id(one) for one in ("ledger:12#3.1", "ledger:a#b", "ledger:12")] == [
        "ledger:12",
        "ledger:a#b",
        "ledger:12",
    ]
