"""When a person may close a cut, and that what stands in it proves nothing afterwards."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tallystick.matching.closed_cut import (
    CloseRefused,
    cleaned_of_closed,
    closed_result,
    closing_of,
    items_beside_closed,
    losses_of_closed,
    pairs_beside_closed,
    places_behind,
    refuse_to_close,
    unread_where_closed,
)
from tallystick.matching.match_case import Entry, RecordLocation
from tallystick.matching.scan_result import topic_place
from tallystick.model.cut import Cut
from tallystick.model.finding_names import Doubt
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide
from tallystick.model.verdict import Verdict
from tests.unit.builders import (
    IN_TOPIC,
    LEDGER,
    PART,
    case_of,
    cut_of,
    event,
    item_of,
    ledger_slice_of,
    partition_at,
    row,
    seen,
    slice_of,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
CUT = cut_of(slice_of(10, 20), ledger_slice=ledger_slice_of(100, 200), n=2)
CLOSING = closing_of(by="Ada Byron", reason="the batch at 12 is corrupt", at_utc=NOW)


@pytest.mark.parametrize(
    ("cut", "is_open", "attempts", "says"),
    [
        (None, False, 0, "no such cut"),
        (CUT, False, 3, "it has its verdict"),
        (cut_of(slice_of(5, 5), n=0), True, 1, "it is the baseline"),
        (CUT, True, 0, "nobody has tried to judge it"),
    ],
)
def test_only_an_open_cut_that_somebody_tried_to_judge_is_closed(
    cut: Cut | None, is_open: bool, attempts: int, says: str
) -> None:
    with pytest.raises(CloseRefused, match=says):
        refuse_to_close("payouts/2", cut, is_open=is_open, attempts=attempts)


def test_an_open_cut_is_closed_after_one_attempt() -> None:
    refuse_to_close("payouts/2", CUT, is_open=True, attempts=1)


@pytest.mark.parametrize(
    ("by", "reason", "says"),
    [
        ("", "why", "--by: got ''; expected the name of who decided it"),
        ("Ada", " \n", "--reason: got .*; expected why nobody can judge it, for an audit"),
    ],
)
def test_nobody_closes_without_a_name_and_a_reason(by: str, reason: str, says: str) -> None:
    with pytest.raises(CloseRefused, match=f"^{says}$"):
        closing_of(by=by, reason=reason, at_utc=NOW)


def test_a_closed_cut_is_inconclusive_and_names_what_nobody_has_read() -> None:
    result = closed_result(CUT, CLOSING, attempts=4, known_before={"rows_moved_below": 7})
    (doubt,) = result.doubts
    assert (result.verdict, doubt.doubt) == (Verdict.INCONCLUSIVE, Doubt.CUT_CLOSED)
    assert re.search(r"by Ada Byron at .*, after 4 attempts: the batch at 12 is corrupt", doubt.sentence)
    assert "billing.payouts[0] offsets 10 to 20; ledger positions 100 to 200" in doubt.sentence
    assert (result.breaks, result.items, result.figures.matched_rows) == ((), (), 0)
    assert result.look_ups == {"rows_moved_below": 7}


def test_after_one_attempt_it_says_one_and_of_an_empty_cut_that_nothing_stands_in_it() -> None:
    empty = cut_of(slice_of(10, 10), ledger_slice=ledger_slice_of(200, 200), n=2)
    (doubt,) = closed_result(empty, CLOSING, attempts=1, known_before={}).doubts
    assert doubt.sentence == (
        "Closed unread by Ada Byron at 2026-03-01 12:00:00 UTC, after 1 attempt: the batch at 12 is corrupt. Nobody "
        "has judged what stands in it: nothing. No partner is called absent that may stand there."
    )


def test_a_closed_cut_says_for_machines_who_closed_it_why_and_what_stands_in_it() -> None:
    idle = slice_of(5, 5, topic="billing.fees")
    (doubt,) = closed_result(cut_of(slice_of(10, 20), idle, n=2), CLOSING, attempts=1, known_before={}).doubts
    assert doubt.details == {
        "by": "Ada Byron",
        "reason": "the batch at 12 is corrupt",
        "closed_at_utc": "2026-03-01T12:00:00+00:00",
        "offsets": [{"topic": "billing.payouts", "partition": 0, "start": 10, "end": 20}],
        "ledger_positions": [200, 300],
    }


@pytest.mark.parametrize(("log_start", "is_lost"), [(10, False), (11, True), (20, True)])
def test_what_expired_of_a_closed_cut_is_lost_unread(log_start: int, is_lost: bool) -> None:
    found = losses_of_closed([CUT], [partition_at(log_start=log_start)])
    assert [loss.cut_n for loss in found] == [2] * is_lost


@pytest.mark.parametrize(
    ("compacting", "end", "cut_n", "is_lost"),
    [
        pytest.param(["billing.payouts"], 20, 5, True, id="within its windows"),
        pytest.param(["billing.payouts"], 20, 6, False, id="so many windows later"),
        pytest.param(["billing.fees"], 20, 5, False, id="another topic compacts"),
        pytest.param([], 20, 5, False, id="none compacts"),
        pytest.param(["billing.payouts"], 10, 5, False, id="it held nothing"),
    ],
)
def test_what_a_closed_cut_holds_of_a_topic_that_compacts_may_be_lost_unread(
    compacting: list[str], end: int, cut_n: int, is_lost: bool
) -> None:
    found = cleaned_of_closed([cut_of(slice_of(10, end), n=2)], compacting, cut_n=cut_n, windows=3)
    assert [loss.cut_n for loss in found] == [2] * is_lost


@pytest.mark.parametrize(
    ("side", "at", "place", "becomes"),
    [
        (IN_TOPIC, 10, RecordLocation.EARLIER_SLICE, RecordLocation.UNREAD),
        (IN_TOPIC, 19, RecordLocation.EARLIER_SLICE, RecordLocation.UNREAD),
        (IN_TOPIC, 9, RecordLocation.EARLIER_SLICE, RecordLocation.EARLIER_SLICE),
        (IN_TOPIC, 20, RecordLocation.EARLIER_SLICE, RecordLocation.EARLIER_SLICE),
        (IN_TOPIC, 12, RecordLocation.ABORTED, RecordLocation.ABORTED),
        (LEDGER, 100, RecordLocation.EARLIER_SLICE, RecordLocation.UNREAD),
        (LEDGER, 200, RecordLocation.EARLIER_SLICE, RecordLocation.EARLIER_SLICE),
        (LEDGER, 150, RecordLocation.BEFORE_BASELINE, RecordLocation.BEFORE_BASELINE),
    ],
)
def test_what_stands_in_a_closed_cut_is_unread(
    side: ItemSide, at: int, place: RecordLocation, becomes: RecordLocation
) -> None:
    hit = seen(side, place, at, transaction_id=at) if side is LEDGER else seen(side, place, at)
    (found,) = unread_where_closed({"ev-1": (hit,)}, [CUT])["ev-1"]
    assert found.place is becomes
    assert unread_where_closed({"ev-1": (hit,)}, []) == {"ev-1": (hit,)}


def test_an_input_that_stands_in_a_closed_cut_is_unread_where_the_log_shows_it() -> None:
    as_input = {"side": LEDGER, "item_id": "ledger:billing.payouts:0:12"}
    of_log = replace(seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 12), **as_input)
    of_index = replace(seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 12, read_by_cut=1), **as_input)
    inputs = (of_log, of_index)
    found = unread_where_closed({"ev-1": inputs}, [CUT])["ev-1"]
    assert [one.place for one in found] == [RecordLocation.UNREAD, RecordLocation.EARLIER_SLICE]


def test_the_log_is_asked_for_a_pair_that_waited_beside_a_closed_cut() -> None:
    item = item_of(row(1))
    waited = row(1, carried=item)
    assert pairs_beside_closed(case_of(waited, event(11)), {item.item_id})
    assert not pairs_beside_closed(case_of(waited, event(11)), set())
    assert not pairs_beside_closed(case_of(waited), {item.item_id})
    assert not pairs_beside_closed(case_of(row(1), event(11)), {item.item_id})


@pytest.mark.parametrize(
    ("first_seen", "read_whole_at", "is_beside"),
    [
        pytest.param(1, 3, True, id="it waited"),
        pytest.param(3, 3, True, id="read by the cut behind it"),
        pytest.param(4, 3, False, id="read later"),
        pytest.param(4, 4, True, id="held in the cut behind it"),
        pytest.param(5, 4, False, id="read behind what was held"),
        pytest.param(5, None, True, id="held ever since"),
    ],
)
@pytest.mark.parametrize("copy", [row(1), event(11), event(11, partition=1)], ids=["row", "event", "partition"])
def test_a_copy_is_beside_a_closed_cut_up_to_the_first_behind_it_that_read_its_side(
    first_seen: int, read_whole_at: int | None, is_beside: bool, copy: Entry
) -> None:
    item, place = item_of(copy, cut_n=first_seen), topic_place(copy.item_id)[0] if copy.side is IN_TOPIC else None
    places = places_behind([item], CUT, of_inputs=False)
    assert places == ({item.item_id: place} if first_seen > 3 else {})
    others = {one: 9 for one in (None, PART, replace(PART, partition=1)) if one != place}
    read_behind = others if read_whole_at is None else {**others, place: read_whole_at}
    assert items_beside_closed([item], CUT, places, read_behind) == ({item.item_id} if is_beside else set())


def test_an_input_stands_in_its_partition_and_a_transaction_nowhere() -> None:
    of_input = replace(item_of(row(1), cut_n=9), item_id="ledger:billing.requests:2:30")
    legs = replace(item_of(row(1), cut_n=9), item_id="legs:a:1:2", side=ItemSide.LEGS)
    found = places_behind([of_input, legs], CUT, of_inputs=True)
    assert found == {of_input.item_id: TopicPartition(topic="billing.requests", partition=2)}
