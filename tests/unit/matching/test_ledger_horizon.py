"""A row's place is told by its position; from the slice's end on it lies behind the horizon."""

from dataclasses import replace

import pytest

from tallystick.ledger.protocol import LedgerRow
from tallystick.matching.ledger_horizon import is_behind_horizon, locate_row, unread_where_reused
from tallystick.matching.match_case import RecordLocation
from tallystick.model.open_item import ItemSide
from tests.unit.builders import LEDGER
from tests.unit.pipeline.lookup_cases import CUT


def ledger_row(xid: int) -> LedgerRow:
    return LedgerRow(
        row_id="815",
        match_key="ev-1",
        transaction_key="pay-1",
        leg="payout",
        amount_minor=1,
        currency="EUR",
        position=xid,
    )


@pytest.mark.parametrize(
    ("xid", "place"),
    [
        (0, RecordLocation.BEFORE_BASELINE),
        (99, RecordLocation.BEFORE_BASELINE),
        (100, RecordLocation.EARLIER_SLICE),
        (199, RecordLocation.EARLIER_SLICE),
        (200, RecordLocation.SLICE),
        (299, RecordLocation.SLICE),
        (300, RecordLocation.PENDING),
    ],
)
def test_a_rows_place_is_told_by_the_transaction_that_wrote_it(xid: int, place: RecordLocation) -> None:
    hit = locate_row(ledger_row(xid), CUT.ledger_slice)
    assert (hit.side, hit.place, hit.item_id) == (LEDGER, place, "ledger:815")


def test_only_in_an_earlier_slice_does_it_matter_that_nobody_knows_whether_a_cut_read_a_row() -> None:
    places = [locate_row(replace(ledger_row(xid), was_read=False), CUT.ledger_slice).place for xid in (99, 199, 200)]
    assert places == [RecordLocation.BEFORE_BASELINE, RecordLocation.UNREAD, RecordLocation.SLICE]


@pytest.mark.parametrize(
    ("reused", "unread"), [((0, 0), []), ((0, 200), [100, 199]), ((150, 200), [199]), ((101, 199), [])]
)
def test_a_row_is_unread_where_its_position_may_have_come_again_since_the_slice_was_fixed(
    reused: tuple[int, int], unread: list[int]
) -> None:
    now = replace(CUT.ledger_slice, reused_from=reused[0], reused_below=reused[1])
    hits = {"key": tuple(locate_row(ledger_row(xid), CUT.ledger_slice) for xid in (99, 100, 199, 200))}
    before = [hit.place for hit in hits["key"]]
    after = unread_where_reused(hits, now)["key"]
    assert [hit.detail["transaction_id"] for hit in after if hit.place is RecordLocation.UNREAD] == unread
    assert [hit.place for hit in after if hit.detail["transaction_id"] not in unread] == [
        place for place, hit in zip(before, after, strict=True) if hit.detail["transaction_id"] not in unread
    ]
    event = replace(hits["key"][1], side=ItemSide.TOPIC)
    assert unread_where_reused({"key": (event,)}, replace(now, reused_from=0, reused_below=200))["key"] == (event,)


def test_the_slices_end_is_the_first_position_behind_the_horizon() -> None:
    assert [is_behind_horizon(ledger_row(xid), CUT.ledger_slice) for xid in (299, 300)] == [False, True]


def test_a_row_says_which_one_it_takes_back_and_what_a_repair_of_ours_posted() -> None:
    plain = {"transaction_id": 150}
    assert locate_row(ledger_row(150), CUT.ledger_slice).detail == plain
    back = replace(ledger_row(150), reverses="814")
    assert locate_row(back, CUT.ledger_slice).detail == plain | {"reverses": "ledger:814"}
    ours = replace(ledger_row(150), action_id="a-1")
    said = {"action_id": "a-1", "amount_minor": 1, "currency": "EUR"}
    assert locate_row(ours, CUT.ledger_slice).detail == plain | said
