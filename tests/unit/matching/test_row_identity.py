"""Of rows that share a row id none is taken for another; one that was written anew is the item it was."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from tallystick.ledger.protocol import LedgerRow
from tallystick.matching.match_case import Entry, LookupHit, RecordLocation
from tallystick.matching.row_identity import RowNames, items_of_rows, standing_beside, with_ids_of_their_own
from tallystick.model.open_item import OpenItem
from tests.unit.builders import IN_TOPIC, LEDGER, case_of, event, item_of, row


def again(number: int, key: str, amount_minor: int = 1_000, *, told: str = "#3.1") -> Entry:
    """A row that shares its id with another one, as its item has it."""
    one = row(number, key, amount_minor)
    return replace(one, item_id=f"{one.item_id}{told}")


def ids_of(
    *copies: Entry,
    items: Sequence[OpenItem] = (),
    beside: Iterable[str] = (),
    ids_repeat: bool = True,
    rows_change: bool = True,
) -> list[tuple[str, str]]:
    of_rows = items_of_rows(items, copies, ids_repeat=ids_repeat)
    named = with_ids_of_their_own(copies, items, of_rows, frozenset(beside), rows_change=rows_change, cut_n=5)
    return [(copy.item_id, copy.match_key) for copy in named]


def test_each_row_of_one_row_id_is_an_item_of_its_own_whatever_their_order() -> None:
    one, other = row(1, "a"), row(1, "b")
    assert ids_of(one, other) == ids_of(other, one) == [("ledger:1", "a"), ("ledger:1#5.1", "b")]
    assert ids_of(row(1, "a"), row(2, "b")) == [("ledger:1", "a"), ("ledger:2", "b")]


def test_no_row_takes_an_id_that_looks_like_one_of_ours() -> None:
    real = again(1, "c", told="#5.1")
    assert ids_of(row(1, "a"), row(1, "b"), real) == [
        ("ledger:1", "a"),
        ("ledger:1#5.1", "b"),
        ("ledger:1#5.1#5.1", "c"),
    ]
    item = item_of(real)
    assert ids_of(row(1, "a"), row(1, "b"), items=[item], beside=[item.item_id]) == [
        ("ledger:1", "a"),
        ("ledger:1#5.2", "b"),
    ]


def test_a_row_whose_item_stands_beside_it_is_one_of_its_own_and_one_whose_does_not_is_that_item() -> None:
    item = item_of(row(1, "a"))
    assert ids_of(row(1, "a"), items=[item], beside=["ledger:1"]) == [("ledger:1#5.1", "a")]
    assert ids_of(row(1, "b"), items=[item], beside=["ledger:1"]) == [("ledger:1#5.1", "b")]
    assert ids_of(row(1, "a", 7), items=[item]) == [("ledger:1", "a")]
    assert ids_of(row(1, "b"), items=[item]) == [("ledger:1", "b")]


def test_an_item_that_shares_its_row_id_is_known_by_it_where_ids_repeat_and_by_its_own_id_elsewhere() -> None:
    item = item_of(again(1, "a"))
    assert ids_of(row(1, "a"), items=[item]) == [("ledger:1#3.1", "a")]
    assert ids_of(row(1, "a"), items=[item], ids_repeat=False) == [("ledger:1", "a")]
    assert ids_of(again(1, "a"), items=[item], ids_repeat=False) == [("ledger:1#3.1", "a")]


def test_rows_that_were_written_anew_are_the_items_that_they_are_most_like() -> None:
    first, second = item_of(row(1, "a", 10)), item_of(again(1, "b", 20))
    assert ids_of(row(1, "b", 21), row(1, "a", 11), items=[first, second]) == [("ledger:1", "a"), ("ledger:1#3.1", "b")]
    alike = item_of(row(1, "a", 10)), item_of(again(1, "a", 20))
    assert ids_of(row(1, "a", 20), row(1, "a", 11), items=alike) == [("ledger:1", "a"), ("ledger:1#3.1", "a")]
    assert ids_of(row(1, "a", 20), row(1, "b"), items=[first]) == [("ledger:1", "a"), ("ledger:1#5.1", "b")]
    assert ids_of(row(1, "c", 11), row(1, "d", 10), items=[first]) == [("ledger:1#5.1", "c"), ("ledger:1", "d")]


def test_a_files_row_is_the_one_of_a_file_that_went_only_under_its_key() -> None:
    item = item_of(row(1, "a", 10))
    assert ids_of(row(1, "a", 10), items=[item], rows_change=False) == [("ledger:1", "a")]
    assert ids_of(row(1, "a", 10), items=[item], beside=["ledger:1"], rows_change=False) == [("ledger:1#5.1", "a")]
    assert ids_of(row(1, "b", 10), items=[item], rows_change=False) == [("ledger:1#5.1", "b")]
    assert ids_of(row(1, "a", 11), items=[item], rows_change=False) == [
        ("ledger:1", "a")
    ]  # whoever wrote it, changed it
    assert ids_of(row(1, "a", 11), items=[item], beside=["ledger:1"], rows_change=False) == [("ledger:1#5.1", "a")]


def test_events_keep_their_ids() -> None:
    item = item_of(event(11, "a"))
    assert ids_of(event(11, "a"), items=[item]) == [(event(11).item_id, "a")]


def stands(number: int, key: str, amount_minor: int = 1_000) -> LedgerRow:
    one = row(number, key, amount_minor)
    return LedgerRow(
        row_id=str(number),
        match_key=key,
        transaction_key=one.transaction_key,
        leg=one.leg,
        amount_minor=amount_minor,
        currency=one.currency,
        position=1,
    )


def beside(items: Sequence[OpenItem], copies: Sequence[Entry], *rows: LedgerRow) -> set[str]:
    by_key: dict[str, list[LedgerRow]] = {}
    for one in rows:
        by_key.setdefault(one.match_key, []).append(one)
    return set(standing_beside(items_of_rows(items, copies, ids_repeat=True), copies, by_key))


def test_an_items_row_stands_where_the_ledger_shows_one_more_than_were_read() -> None:
    item, other = [item_of(row(1, "a"))], [row(1, "b")]
    assert beside(item, other, stands(1, "a")) == {"ledger:1"}
    assert beside(item, other) == beside(item, other, stands(2, "a")) == set()
    assert beside(item, [row(1, "a")], stands(1, "a")) == set()
    assert beside(item, [row(1, "a")], stands(1, "a"), stands(1, "a")) == {"ledger:1"}


def test_of_several_items_of_one_key_those_stand_whose_money_was_not_read() -> None:
    items = [item_of(row(1, "a", 10)), item_of(again(1, "a", 20))]
    assert beside(items, [row(1, "a", 11)], stands(1, "a", 11), stands(1, "a", 20)) == {"ledger:1#3.1"}
    assert beside(items, [row(1, "a", 21)], stands(1, "a", 10), stands(1, "a", 21)) == {"ledger:1"}


def test_a_row_without_a_key_cannot_be_looked_up_and_counts_as_standing() -> None:
    assert beside([item_of(row(1, ""))], [row(1, "")]) == {"ledger:1"}


def test_an_item_whose_row_id_looks_like_one_of_ours_stands_where_a_row_has_that_very_id() -> None:
    item = item_of(again(1, "a"))
    very = replace(stands(1, "a"), row_id="1#3.1")
    assert beside([item], [row(1, "b")], very) == {"ledger:1#3.1"}


def seen(number: int, place: RecordLocation, xid: int = 77) -> LookupHit:
    return LookupHit(side=LEDGER, place=place, item_id=f"ledger:{number}", detail={"transaction_id": xid})


def names(
    copies: Sequence[Entry], *rows: LookupHit, ids_repeat: bool = True, judged: Sequence[str] = ()
) -> list[tuple[str, RecordLocation]]:
    named = RowNames(ids_repeat=ids_repeat, judged={"a": judged}).named(case_of(*copies), rows)
    return [(one.item_id, one.place) for one in named]


def carried(copy: Entry) -> Entry:
    return replace(copy, carried=item_of(copy))


def test_a_waiting_row_is_known_by_its_item_though_another_one_has_its_row_id() -> None:
    waiting = carried(again(1, "a"))
    below = seen(1, RecordLocation.EARLIER_SLICE)
    assert names([waiting], below) == [("ledger:1#3.1", RecordLocation.EARLIER_SLICE)]
    assert names([waiting], below, ids_repeat=False) == [("ledger:1", RecordLocation.EARLIER_SLICE)]
    assert names([waiting], seen(2, RecordLocation.EARLIER_SLICE)) == [("ledger:2", RecordLocation.EARLIER_SLICE)]


def test_a_row_of_the_slice_is_no_item_whose_row_went() -> None:
    copies = [row(1, "a"), carried(again(1, "a"))]
    assert names(copies, seen(1, RecordLocation.SLICE)) == [("ledger:1", RecordLocation.SLICE)]
    assert names(copies, seen(1, RecordLocation.PENDING)) == [("ledger:1", RecordLocation.PENDING)]


def test_one_more_row_than_there_are_items_is_another_one() -> None:
    waiting = carried(again(1, "a"))
    assert names([waiting], *[seen(1, RecordLocation.EARLIER_SLICE)] * 2) == [
        ("ledger:1#3.1", RecordLocation.EARLIER_SLICE),
        ("ledger:1", RecordLocation.EARLIER_SLICE),
    ]
    assert names([carried(row(1, "a"))], *[seen(1, RecordLocation.EARLIER_SLICE)] * 2) == [
        ("ledger:1", RecordLocation.EARLIER_SLICE),
        ("ledger:1#77", RecordLocation.EARLIER_SLICE),
    ]


@pytest.mark.parametrize("place", [RecordLocation.BEFORE_BASELINE, RecordLocation.UNREAD])
def test_an_item_is_no_row_that_no_cut_has_read_beside_one_with_its_row_id_that_one_has(place: RecordLocation) -> None:
    unread, read = seen(1, place), seen(1, RecordLocation.EARLIER_SLICE, 78)
    assert names([carried(row(1, "a"))], unread, read) == [
        ("ledger:1#77", place),
        ("ledger:1", RecordLocation.EARLIER_SLICE),
    ]
    assert names([carried(row(1, "a"))], unread) == [("ledger:1", place)]


@pytest.mark.parametrize("place", [RecordLocation.EARLIER_SLICE, RecordLocation.UNREAD, RecordLocation.BEFORE_BASELINE])
def test_a_row_below_the_slice_is_no_row_of_the_slice(place: RecordLocation) -> None:
    assert names([row(1, "a")], seen(1, place)) == [("ledger:1#77", place)]
    assert names([row(1, "a")], seen(1, place), ids_repeat=False) == [("ledger:1#77", place)]
    both = names([row(1, "a"), carried(again(1, "a"))], seen(1, place), seen(1, RecordLocation.SLICE))
    assert both == [("ledger:1#3.1", place), ("ledger:1", RecordLocation.SLICE)]
    newer = replace(carried(row(1, "a")), is_new_version=True)
    assert names([newer], seen(1, place), seen(1, RecordLocation.SLICE)) == [
        ("ledger:1#77", place),
        ("ledger:1", RecordLocation.SLICE),
    ]


@pytest.mark.parametrize("copy", [row(1, "a"), carried(row(1, "a"))])
def test_a_row_that_was_touched_since_is_known_beyond_the_cut(copy: Entry) -> None:
    assert names([copy], seen(1, RecordLocation.PENDING)) == [("ledger:1", RecordLocation.PENDING)]


def test_what_earlier_runs_judged_is_known_below_the_slice() -> None:
    rows = seen(1, RecordLocation.EARLIER_SLICE), seen(1, RecordLocation.SLICE)
    assert names([row(1, "a")], *rows, judged=["ledger:1#3.1"]) == [
        ("ledger:1#3.1", RecordLocation.EARLIER_SLICE),
        ("ledger:1", RecordLocation.SLICE),
    ]


def test_events_have_no_part_in_it() -> None:
    assert names([event(11, "a")], seen(1, RecordLocation.SLICE)) == [("ledger:1", RecordLocation.SLICE)]
    assert event(11).side is IN_TOPIC


def test_row_ids_are_taken_to_be_unique_where_nobody_says_otherwise() -> None:
    plain = RowNames()
    assert plain == RowNames(ids_repeat=False, judged={})
    below = seen(1, RecordLocation.EARLIER_SLICE)
    assert plain.named(case_of(carried(again(1, "a"))), [below]) == [below]
