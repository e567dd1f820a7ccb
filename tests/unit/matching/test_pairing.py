"""Copies of one key, paired: who goes with whom, and in which order."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tallystick.matching.match_case import Entry, MatchResult, MatchStatus, RecordLocation, UnmatchedItem
from tallystick.matching.pairing import origin_side, other_side, pair_key
from tallystick.matching.unreadable_ranges import OutOfSight
from tallystick.model.direction import Direction
from tallystick.model.item_reason import ReasonCode, reason_of
from tallystick.model.open_item import ItemState
from tests.unit.builders import (
    HOUR,
    IN_TOPIC,
    L2T,
    LEDGER,
    NOON,
    T2L,
    T2T,
    case_of,
    deadlines_of,
    event,
    item_of,
    row,
    seen,
)


def paired(*copies: Entry, direction: object = L2T, **about: object) -> MatchResult:
    return pair_key(case_of(*copies, **about), direction=direction, deadlines=deadlines_of())


def pairs(outcome: MatchResult) -> list[tuple[str, str]]:
    return [(topic.item_id, ledger.item_id) for topic, ledger in outcome.matched]


def fates(outcome: MatchResult) -> dict[str, MatchStatus]:
    return {residue.copy.item_id: residue.fate for residue in outcome.residues}


def carried(copy: Entry, state: ItemState = ItemState.OPEN, *, cut_n: int = 1, pairable: bool = True) -> Entry:
    """The copy as an earlier cut left it."""
    item = item_of(copy, state, cut_n=cut_n, pairable=pairable)
    return (event if copy.side is IN_TOPIC else row)(copy.order, carried=item)


def test_each_direction_has_the_side_that_is_written_first() -> None:
    assert (origin_side(L2T), origin_side(T2L)) == (LEDGER, IN_TOPIC)
    assert (other_side(LEDGER), other_side(IN_TOPIC)) == (IN_TOPIC, LEDGER)


def test_a_pair_is_named_topic_first_in_either_direction() -> None:
    for direction in (L2T, T2L):
        assert pairs(paired(row(1), event(11), direction=direction)) == [("topic:billing.payouts:0:11", "ledger:1")]


def test_a_copy_has_at_most_one_partner() -> None:
    outcome = paired(row(1), event(11), event(12))
    assert len(outcome.matched) == 1
    assert fates(outcome) == {"topic:billing.payouts:0:12": MatchStatus.EXTRA}


def test_a_carried_copy_pairs_before_a_new_one() -> None:
    outcome = paired(carried(event(90)), event(12), row(1), direction=T2L)
    assert pairs(outcome) == [("topic:billing.payouts:0:90", "ledger:1")]
    assert fates(outcome) == {"topic:billing.payouts:0:12": MatchStatus.EXTRA}


def test_of_two_carried_copies_the_one_an_older_cut_saw_pairs_first() -> None:
    """They lie in two partitions, so their offsets say nothing; the younger one is broken, a duplicate."""
    young = carried(event(5), ItemState.BROKEN, cut_n=2)
    outcome = paired(young, carried(event(90), cut_n=1), row(1), direction=T2L)
    assert pairs(outcome) == [("topic:billing.payouts:0:90", "ledger:1")]
    assert fates(outcome) == {}


def test_a_copy_that_has_had_its_partner_gets_no_second_one() -> None:
    used = carried(row(1), ItemState.BROKEN, pairable=False)
    outcome = paired(used, event(12), lookup_hits=[seen(LEDGER, RecordLocation.EARLIER_SLICE, 1)])
    assert pairs(outcome) == []
    other_way = paired(carried(event(11), ItemState.BROKEN, pairable=False), row(2))
    assert pairs(other_way) == []


def test_a_follower_that_was_called_a_phantom_pairs_when_its_row_comes_late() -> None:
    outcome = paired(carried(event(11), ItemState.BROKEN), row(1))
    assert (pairs(outcome), fates(outcome)) == ([("topic:billing.payouts:0:11", "ledger:1")], {})


def test_a_followed_duplicate_is_no_match() -> None:
    outcome = paired(row(1), row(2), event(11), event(12))
    assert pairs(outcome) == [("topic:billing.payouts:0:11", "ledger:1")]
    (residue,) = outcome.residues
    assert (residue.copy.item_id, residue.partner and residue.partner.item_id) == (
        "ledger:2",
        "topic:billing.payouts:0:12",
    )
    assert residue.original is not None and residue.original.item_id == "ledger:1"


def test_a_further_follower_repeats_the_one_that_was_paired_and_not_one_that_was_not() -> None:
    """Event 12 has the row's amount, so 11 and 13 are the extra ones."""
    outcome = paired(row(1), event(11, amount_minor=9), event(12), event(13, amount_minor=9))
    originals = {residue.copy.item_id: residue.original and residue.original.order for residue in outcome.residues}
    assert originals == {"topic:billing.payouts:0:11": 12, "topic:billing.payouts:0:13": 12}


def test_a_copy_that_the_look_up_saw_too_is_no_second_one() -> None:
    outcome = paired(
        carried(row(1)),
        event(11),
        lookup_hits=[seen(LEDGER, RecordLocation.EARLIER_SLICE, 1), seen(IN_TOPIC, RecordLocation.SLICE, 11)],
    )
    assert (len(outcome.matched), fates(outcome)) == (1, {})


def test_an_expiry_in_the_topic_hides_no_row_that_the_ledger_lacks() -> None:
    """The ledger shows all its rows; only what may have stood in the topic is unknown."""
    lost = deadlines_of(topic_lost_offsets=True)
    outcome = pair_key(case_of(event(11)), direction=L2T, deadlines=lost)
    assert fates(outcome) == {"topic:billing.payouts:0:11": MatchStatus.ORIGIN_ABSENT}
    outcome = pair_key(case_of(row(1)), direction=L2T, deadlines=lost)
    assert fates(outcome) == {"ledger:1": MatchStatus.PARTNER_EXPIRED}


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_an_event_whose_row_may_have_come_late_is_no_duplicate_and_one_whose_row_was_read_is(
    direction: Direction,
) -> None:
    late = paired(event(12), direction=direction, lookup_hits=[seen(LEDGER, RecordLocation.UNREAD, 1)])
    assert fates(late) == {"topic:billing.payouts:0:12": MatchStatus.PARTNER_UNREAD}
    read = paired(event(12), direction=direction, lookup_hits=[seen(LEDGER, RecordLocation.EARLIER_SLICE, 1)])
    assert fates(read) == {"topic:billing.payouts:0:12": MatchStatus.EXTRA}


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_an_event_is_not_held_for_the_second_of_a_row_that_was_read_beside_one_from_before_the_books(
    direction: Direction,
) -> None:
    """The row that was read is itself the second one: the key's first event may come only now."""
    second = [seen(LEDGER, RecordLocation.BEFORE_BASELINE, 1), seen(LEDGER, RecordLocation.EARLIER_SLICE, 2)]
    outcome = paired(event(12), direction=direction, lookup_hits=second)
    assert fates(outcome) == {"topic:billing.payouts:0:12": MatchStatus.UNDECIDABLE}
    another = [*second, seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 11)]
    outcome = paired(event(12), direction=direction, lookup_hits=another)
    assert fates(outcome) == {"topic:billing.payouts:0:12": MatchStatus.EXTRA}


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_a_key_that_stands_twice_in_the_ledger_is_doubled_whoever_has_read_the_first(direction: Direction) -> None:
    doubled = paired(row(2), direction=direction, lookup_hits=[seen(LEDGER, RecordLocation.UNREAD, 1)])
    assert fates(doubled) == {"ledger:2": MatchStatus.EXTRA}
    same = paired(row(1), event(11), direction=direction, lookup_hits=[seen(LEDGER, RecordLocation.UNREAD, 1)])
    assert fates(same) == {}


ROW_1, ROW_2, EVENT_11 = "ledger:1", "ledger:2", "topic:billing.payouts:0:11"
READ, UNREAD = RecordLocation.EARLIER_SLICE, RecordLocation.UNREAD


@pytest.mark.parametrize("state", [ItemState.OPEN, ItemState.BROKEN], ids=str)
@pytest.mark.parametrize(("place", "surplus"), [(UNREAD, [ROW_2]), (READ, [])], ids=str)
def test_a_row_that_comes_for_an_event_is_one_too_many_beside_another_that_nobody_has_read(
    state: ItemState, place: RecordLocation, surplus: list[str]
) -> None:
    rows = [seen(LEDGER, place, 1), seen(LEDGER, RecordLocation.SLICE, 2)]
    outcome = paired(carried(event(11), state), row(2), direction=T2L, lookup_hits=rows)
    assert fates(outcome) == dict.fromkeys(surplus, MatchStatus.EXTRA)
    assert [residue.partner and residue.partner.item_id for residue in outcome.residues] == [EVENT_11 for _ in surplus]
    assert len(outcome.matched) == 1 - len(surplus)


@pytest.mark.parametrize(("stands", "surplus"), [(True, [ROW_1]), (False, [])])
def test_a_row_that_waited_is_one_too_many_beside_another_unless_its_owner_has_replaced_it(
    stands: bool, surplus: list[str]
) -> None:
    rows = [seen(LEDGER, UNREAD, 2), *([seen(LEDGER, READ, 1)] if stands else [])]
    outcome = paired(carried(row(1)), event(11), lookup_hits=rows)
    assert fates(outcome) == dict.fromkeys(surplus, MatchStatus.EXTRA)


def test_an_event_that_comes_for_a_row_is_one_too_many_beside_another_that_nobody_has_read() -> None:
    known = seen(LEDGER, READ, 1)
    assert fates(paired(carried(row(1)), event(11), lookup_hits=[known, seen(IN_TOPIC, UNREAD, 5)])) == {
        EVENT_11: MatchStatus.EXTRA
    }
    aborted = seen(IN_TOPIC, RecordLocation.ABORTED, 5)
    assert fates(paired(carried(row(1)), event(11), lookup_hits=[known, aborted])) == {}


def test_a_surplus_copy_that_is_followed_is_not_told_again_beside_one_that_nobody_has_read() -> None:
    surplus = event(11, carried=item_of(event(11), ItemState.BROKEN, reason="duplicate_in_topic_new_session"))
    rows = [seen(LEDGER, UNREAD, 1), seen(LEDGER, RecordLocation.SLICE, 2)]
    outcome = paired(surplus, row(2), direction=T2L, lookup_hits=rows)
    assert fates(outcome) == {}


@pytest.mark.parametrize(("rows", "second"), [([1], MatchStatus.EXTRA), ([1, 2], MatchStatus.PARTNER_UNREAD)])
def test_one_row_that_nobody_has_read_has_one_event_and_not_two(rows: list[int], second: MatchStatus) -> None:
    outcome = paired(event(11), event(12), lookup_hits=[seen(LEDGER, UNREAD, at) for at in rows])
    assert fates(outcome) == {EVENT_11: MatchStatus.PARTNER_UNREAD, "topic:billing.payouts:0:12": second}


def test_two_events_of_a_row_that_nobody_has_read_wait_together() -> None:
    case = case_of(event(11), event(12), lookup_hits=[seen(LEDGER, UNREAD, 1)])
    within_grace = pair_key(case, direction=L2T, deadlines=deadlines_of(now_utc=NOON))
    assert set(fates(within_grace).values()) == {MatchStatus.WAITING}


MOVED = {"rows_may_be_older": True}
STOOD = {"out_of_sight": OutOfSight(rows_may_be_older=frozenset({1}))}


@pytest.mark.parametrize(
    ("copies", "about"),
    [((row(1), carried(event(12))), MOVED), ((carried(row(1)), event(12)), STOOD)],
    ids=["the event waited", "the row waited"],
)
def test_an_event_repeats_where_its_row_may_be_the_one_of_an_earlier_event_written_anew(
    copies: tuple[Entry, ...], about: dict[str, Any]
) -> None:
    def surplus(*earlier: RecordLocation, **known: Any) -> list[str]:
        hits = [seen(IN_TOPIC, place, at) for at, place in enumerate(earlier)]
        outcome = pair_key(case_of(*copies, lookup_hits=hits), direction=L2T, deadlines=deadlines_of(**known))
        return [item_id for item_id, fate in fates(outcome).items() if fate is MatchStatus.EXTRA]

    repeats = ["topic:billing.payouts:0:12"]
    assert surplus(READ, **about) == surplus(RecordLocation.BEFORE_BASELINE, **about) == repeats
    assert surplus(READ) == surplus(**about) == surplus(RecordLocation.ABORTED, **about) == []


def test_an_event_of_a_row_that_was_judged_pairs_though_the_row_may_have_been_written_anew() -> None:
    missing = carried(row(1), ItemState.BROKEN)
    case = case_of(missing, event(12), lookup_hits=[seen(IN_TOPIC, READ, 5)])
    assert len(pair_key(case, direction=L2T, deadlines=deadlines_of(**MOVED, **STOOD)).matched) == 1


def test_a_row_written_anew_beside_the_one_that_repeats_it_is_no_second_duplicate() -> None:
    beside = [seen(LEDGER, RecordLocation.EARLIER_SLICE, 2), seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 5)]
    case = replace(case_of(row(1), lookup_hits=beside), surplus_rows=frozenset({"ledger:2"}))
    for direction in (L2T, T2L):
        (residue,) = pair_key(case, direction=direction, deadlines=deadlines_of(rows_may_be_older=True)).residues
        assert residue.fate is MatchStatus.UNDECIDABLE
        (residue,) = pair_key(
            replace(case, surplus_rows=frozenset()), direction=direction, deadlines=deadlines_of()
        ).residues
        assert residue.fate is MatchStatus.EXTRA


def test_an_event_that_waited_does_not_repeat_itself_because_its_row_lies_where_no_run_read_it() -> None:
    waited = event(5, carried=item_of(event(5)))
    at_home = [seen(LEDGER, RecordLocation.EARLIER_SLICE, 1), seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 5)]
    another = seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 4)
    fates = [
        pair_key(case_of(waited, lookup_hits=lookup_hits), direction=L2T, deadlines=deadlines_of()).residues[0].fate
        for lookup_hits in (at_home, [*at_home, another])
    ]
    assert fates == [MatchStatus.PARTNER_UNREAD, MatchStatus.EXTRA]


def test_a_row_of_a_paired_event_is_the_row_of_then_only_where_rows_have_moved() -> None:
    case = case_of(row(9), lookup_hits=[seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 5)])
    fates = [
        pair_key(case, direction=direction, deadlines=deadlines_of(rows_may_be_older=moved)).residues[0].fate
        for direction in (L2T, T2L)
        for moved in (False, True)
    ]
    assert fates == [MatchStatus.PAIRED_BEFORE, MatchStatus.UNDECIDABLE] * 2


def test_a_row_in_the_place_of_a_paired_one_is_compared_with_the_event_that_was_paired() -> None:
    def fate(amount_minor: int, *places: dict[str, object]) -> MatchStatus:
        events = [seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, at, **said) for at, said in enumerate(places)]
        case = case_of(row(9, amount_minor=amount_minor), lookup_hits=events)
        fates = {pair_key(case, direction=one, deadlines=deadlines_of()).residues[0].fate for one in (L2T, T2L)}
        return fates.pop()

    paid, other = {"amount_minor": 1_000, "currency": "eur"}, {"amount_minor": 7, "currency": "EUR"}
    assert fate(1_000, paid) is fate(1_000, other, paid) is fate(5, paid, {}) is MatchStatus.PAIRED_BEFORE
    assert fate(50_000, paid) is MatchStatus.UNEQUAL


@pytest.mark.parametrize(
    ("due_utc", "reason", "fate"),
    [
        (NOON - HOUR, "its partner lies beyond the cut of the ledger", MatchStatus.UNSETTLED),
        (NOON + 2 * HOUR, "its partner lies beyond the cut of the ledger", MatchStatus.WAITING),
        (NOON - HOUR, "its partner lies beyond the cut of the ledger in one run after another", MatchStatus.UNSETTLED),
        (NOON - HOUR, "within the partner's grace", MatchStatus.WAITING),
        (NOON - HOUR, "what an older release said of it", MatchStatus.WAITING),
    ],
)
def test_a_row_that_is_beyond_the_cut_again_is_no_more_waited_for_once_its_event_is_due(
    due_utc: datetime, reason: str, fate: MatchStatus
) -> None:
    """An UPDATE after every cut moves its xmin on, so that none reads it."""
    waits = event(11, carried=item_of(event(11), due_utc=due_utc, reason=reason))
    outcome = paired(waits, direction=T2L, lookup_hits=[seen(LEDGER, RecordLocation.PENDING, 1)])
    assert fates(outcome) == {"topic:billing.payouts:0:11": fate}


def test_an_input_beyond_the_cut_again_is_waited_for_still() -> None:
    """An input topic writes nothing anew: it comes once its log may be read so far."""
    reason = "its partner lies beyond the cut of the input topic"
    waits = event(11, carried=item_of(event(11), due_utc=NOON - HOUR, reason=reason))
    outcome = paired(waits, direction=T2T, lookup_hits=[seen(LEDGER, RecordLocation.PENDING, 1)])
    assert fates(outcome) == {"topic:billing.payouts:0:11": MatchStatus.WAITING}


def test_a_row_without_a_key_is_paired_with_nothing_not_even_with_an_event_without_one() -> None:
    case = case_of(row(1, key=""))
    result = pair_key(case, direction=L2T, deadlines=deadlines_of())
    reason = reason_of(ReasonCode.WITHOUT_KEY)
    alone = UnmatchedItem(copy=row(1, key=""), fate=MatchStatus.WITHOUT_KEY, reason=reason)
    assert (result.case, result.matched, result.residues) == (case, (), (alone,))
    judged = row(1, key="", carried=item_of(row(1, key=""), ItemState.BROKEN))
    assert pair_key(case_of(judged), direction=L2T, deadlines=deadlines_of()).residues == ()
