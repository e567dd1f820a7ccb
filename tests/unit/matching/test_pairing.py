"""Copies of one key, paired: who goes with whom, in which order, and what is said of a copy without partner.

One file, since each place of what else stands under a key is tried on the same few copies.
"""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from tallystick.contract.compare import CompareRule, compared_columns
from tallystick.matching.match_case import (
    Deadlines,
    Entry,
    LookupHit,
    MatchGroup,
    MatchResult,
    MatchStatus,
    RecordLocation,
    UnmatchedItem,
)
from tallystick.matching.pairing import origin_side, other_side, pair_key
from tallystick.matching.unreadable_ranges import OutOfSight
from tallystick.model.direction import Direction
from tallystick.model.item_reason import ReasonCode, ReasonSide, reason_of
from tallystick.model.open_item import ItemState
from tests.unit.builders import (
    HOUR,
    IN_TOPIC,
    L2T,
    LEDGER,
    MINUTE,
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


def test_what_was_read_for_a_column_that_is_compared_no_more_changes_no_partner() -> None:
    text = compared_columns({"status": "exact"}).text_of(["paid"])
    copies = (carried(event(11)), carried(event(12)), row(1, amount_minor=2_000), row(2))
    waited = replace(copies[0], compared_text=text), replace(copies[1], compared_text=text, amount_minor=2_000)
    assert pairs(paired(*waited, *copies[2:], direction=T2L)) == pairs(
        paired(copies[0], replace(copies[1], amount_minor=2_000), *copies[2:], direction=T2L)
    )


STATUS = compared_columns({"status": "exact"})


def saying(copy: Entry, status: str, **about: Any) -> Entry:
    return replace(copy, compared_text=STATUS.text_of([status]), **about)


def by_status(*copies: Entry, **about: Any) -> dict[str, tuple[MatchStatus, str]]:
    """Pair them, events first, and give each residue's fate and its partner."""
    outcome = pair_key(case_of(*copies, **about), direction=T2L, deadlines=deadlines_of(), columns=STATUS)
    return {one.copy.item_id: (one.fate, one.partner.item_id if one.partner else "") for one in outcome.residues}


def test_a_copy_whose_money_agrees_is_partner_before_one_whose_money_does_not() -> None:
    one, small, whole = saying(event(11), "A"), saying(row(1), "B", amount_minor=5), saying(row(2), "B")
    assert by_status(one, small, whole) == {
        one.item_id: (MatchStatus.UNEQUAL, whole.item_id),
        small.item_id: (MatchStatus.EXTRA, ""),
    }


def test_of_a_resent_event_the_first_has_the_only_row_though_that_says_what_the_second_does() -> None:
    first, again, posted = saying(event(11), "A"), saying(event(12), "B"), saying(row(1), "B")
    assert by_status(first, again, posted) == {
        first.item_id: (MatchStatus.UNEQUAL, posted.item_id),
        again.item_id: (MatchStatus.EXTRA, ""),
    }
    each = by_status(first, again, posted, saying(row(2), "A"))
    assert each == {again.item_id: (MatchStatus.EXTRA, posted.item_id)}


def test_the_first_has_a_row_that_comes_later_too_though_the_second_was_judged_one_too_many() -> None:
    first, posted = saying(event(11), "A"), saying(row(1), "B")
    again = saying(event(12), "B")
    again = replace(again, carried=item_of(again, ItemState.BROKEN, reason="duplicate_in_topic_cause_unknown"))
    waits = replace(first, carried=item_of(first))
    assert by_status(waits, again, posted) == {first.item_id: (MatchStatus.UNEQUAL, posted.item_id)}
    new = saying(event(13), "C")
    assert by_status(
        again, new, saying(row(2), "C"), lookup_hits=[seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 9)]
    ) == {new.item_id: (MatchStatus.EXTRA, "ledger:2")}


def test_the_first_has_the_row_of_its_money_and_the_second_the_other_one() -> None:
    first, again = saying(event(11), "A"), saying(event(12), "B")
    right, wrong = saying(row(1), "B"), saying(row(2), "A", amount_minor=5)
    assert by_status(first, again, right, wrong) == {
        first.item_id: (MatchStatus.UNEQUAL, right.item_id),
        again.item_id: (MatchStatus.EXTRA, wrong.item_id),
    }


def test_the_only_row_stays_with_the_event_whose_money_it_has() -> None:
    first, again = saying(event(11), "A"), saying(event(12), "B", amount_minor=5)
    posted = saying(row(1), "B", amount_minor=5)
    assert by_status(first, again, posted) == {
        first.item_id: (MatchStatus.FOLLOWER_ABSENT, ""),
        again.item_id: (MatchStatus.EXTRA, posted.item_id),
    }


def test_very_many_copies_of_a_key_take_no_time_and_each_agrees_if_it_can() -> None:
    columns = compared_columns({"fee": CompareRule(abs=Decimal(1))})
    one, other = (columns.text_of([fee]) for fee in ("1", "2"))
    copies = [replace(carried(event(n)), compared_text=one) for n in range(1, 102)]
    copies += [replace(carried(row(n)), compared_text=other) for n in range(1, 102)]
    outcome = pair_key(case_of(*copies), direction=T2L, deadlines=deadlines_of(), columns=columns)
    assert (len(outcome.matched), fates(outcome)) == (101, {})


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
READ, UNREAD, OLDER = RecordLocation.EARLIER_SLICE, RecordLocation.UNREAD, RecordLocation.BEFORE_BASELINE


@pytest.mark.parametrize("state", [ItemState.OPEN, ItemState.BROKEN], ids=str)
@pytest.mark.parametrize(("place", "surplus"), [(UNREAD, [ROW_2]), (OLDER, [ROW_2]), (READ, [])], ids=str)
def test_a_row_that_comes_for_an_event_is_one_too_many_beside_another_that_nobody_has_read(
    state: ItemState, place: RecordLocation, surplus: list[str]
) -> None:
    rows = [seen(LEDGER, place, 1), seen(LEDGER, RecordLocation.SLICE, 2)]
    outcome = paired(carried(event(11), state), row(2), direction=T2L, lookup_hits=rows)
    assert fates(outcome) == dict.fromkeys(surplus, MatchStatus.EXTRA)
    assert [residue.partner and residue.partner.item_id for residue in outcome.residues] == [EVENT_11 for _ in surplus]
    assert len(outcome.matched) == 1 - len(surplus)


@pytest.mark.parametrize("place", [UNREAD, OLDER], ids=str)
@pytest.mark.parametrize(("stands", "surplus"), [(True, [ROW_1]), (False, [])])
def test_a_row_that_waited_is_one_too_many_beside_another_unless_its_owner_has_replaced_it(
    stands: bool, surplus: list[str], place: RecordLocation
) -> None:
    rows = [seen(LEDGER, place, 2), *([seen(LEDGER, READ, 1)] if stands else [])]
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


@pytest.mark.parametrize(("too_many", "is_second"), [([], True), (["ledger:2"], False), (["ledger:9"], True)])
def test_an_event_is_no_second_one_whose_only_row_that_a_cut_has_read_is_one_too_many_itself(
    too_many: list[str], is_second: bool
) -> None:
    """Found by the simulated world: a row was called a duplicate beside one that a closed cut has, and then its event,
    which too few replicas had had until then, was one too.
    """
    read, unread = seen(LEDGER, RecordLocation.EARLIER_SLICE, 2), seen(LEDGER, RecordLocation.UNREAD, 3)
    case = replace(case_of(event(12), lookup_hits=[read, unread]), one_too_many=frozenset(too_many))
    found = pair_key(case, direction=T2L, deadlines=deadlines_of()).residues
    assert [residue.fate is MatchStatus.EXTRA for residue in found] == [is_second]
    paired_once = replace(case, lookup_hits=(read,))
    (residue,) = pair_key(paired_once, direction=T2L, deadlines=deadlines_of()).residues
    assert residue.fate is MatchStatus.EXTRA


@pytest.mark.parametrize("direction", [T2L, L2T])
def test_an_event_is_undecidable_whose_only_row_was_a_second_one_to_a_row_that_nobody_has_read(
    direction: Direction,
) -> None:
    """Found by the simulated world: the first row was archived before its event could be read. Of an event that comes
    with a row of its own, the key was paired: it is paid again.
    """

    def said(*copies: Entry, beside_unread: set[str]) -> set[MatchStatus]:
        read = seen(LEDGER, RecordLocation.EARLIER_SLICE, 2)
        case = replace(case_of(*copies, lookup_hits=[read]), beside_unread=frozenset(beside_unread))
        return set(fates(pair_key(case, direction=direction, deadlines=deadlines_of())).values())

    assert said(event(12), beside_unread={"ledger:2"}) == {MatchStatus.PAIRED_BEFORE}
    assert said(event(12), beside_unread={"ledger:9"}) == {MatchStatus.EXTRA}
    assert MatchStatus.EXTRA in said(event(12), row(3), beside_unread={"ledger:2"})
    two = said(event(12), event(13), beside_unread={"ledger:2"})
    assert two == ({MatchStatus.PAIRED_BEFORE, MatchStatus.EXTRA} if direction is T2L else {MatchStatus.PAIRED_BEFORE})


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


@pytest.mark.parametrize("place", [RecordLocation.EARLIER_SLICE, RecordLocation.BEFORE_BASELINE], ids=str)
def test_of_rows_written_anew_beside_the_one_that_repeats_them_in_one_run_the_first_is_no_second_duplicate(
    place: RecordLocation,
) -> None:
    repeats = row(2, carried=item_of(row(2), ItemState.BROKEN, pairable=False))
    case = case_of(row(1), row(3), repeats, lookup_hits=[seen(IN_TOPIC, place, 5)])
    moved = deadlines_of(rows_may_be_older=True)
    for surplus, first in ((["ledger:2"], MatchStatus.UNDECIDABLE), ([], MatchStatus.EXTRA)):
        outcome = pair_key(replace(case, surplus_rows=frozenset(surplus)), direction=T2L, deadlines=moved)
        assert fates(outcome) == {"ledger:1": first, "ledger:3": MatchStatus.EXTRA}


@pytest.mark.parametrize("state", [ItemState.BROKEN, ItemState.WRITTEN_OFF])
def test_of_two_rows_written_anew_the_one_that_no_run_called_one_too_many_is_the_event_s(state: ItemState) -> None:
    """Found by the simulated world: each of them was a duplicate then, and a repair took back one alone."""
    known = item_of(row(2), state, reason="duplicate_in_ledger", pairable=False)
    judged = replace(row(2), carried=known, is_new_version=True)
    of_then = [seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 5)]

    def surplus(*copies: Entry) -> list[str]:
        outcome = pair_key(
            case_of(*copies, lookup_hits=of_then), direction=T2L, deadlines=deadlines_of(rows_may_be_older=True)
        )
        return [item_id for item_id, fate in fates(outcome).items() if fate is MatchStatus.EXTRA]

    assert surplus(row(1), judged) == surplus(judged, row(1)) == []
    assert surplus(row(1), row(2)) == ["ledger:2"]
    assert surplus(row(1), judged, row(3)) == ["ledger:3"]


@pytest.mark.parametrize(
    ("place", "fate"),
    [(OLDER, MatchStatus.EXTRA), (READ, MatchStatus.FOLLOWER_ABSENT), (None, MatchStatus.FOLLOWER_ABSENT)],
)
def test_an_event_that_waited_while_nobody_asked_the_log_repeats_one_from_before_the_baseline(
    place: RecordLocation | None, fate: MatchStatus
) -> None:
    """Found by the simulated world: it waited for a row that had moved beyond the cut and was a surplus one, and was
    missing then. One of an earlier cut may have been called one too many itself.
    """
    waited = event(5, carried=item_of(event(5)))
    surplus = replace(row(2), carried=item_of(row(2), ItemState.BROKEN, pairable=False), is_new_version=True)
    first = [seen(IN_TOPIC, place, 1)] if place else []
    outcome = pair_key(case_of(waited, surplus, lookup_hits=first), direction=T2L, deadlines=deadlines_of())
    assert fates(outcome) == {waited.item_id: fate}
    written_off = replace(waited, carried=item_of(event(5), ItemState.WRITTEN_OFF, pairable=False))
    assert fates(pair_key(case_of(written_off, lookup_hits=first), direction=T2L, deadlines=deadlines_of())) == {}


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


@pytest.mark.parametrize("lost", [False, True], ids=["all events read", "some expired unread"])
@pytest.mark.parametrize(
    ("events", "second"),
    [pytest.param([5], MatchStatus.EXTRA, id="one event"), pytest.param([5, 6], MatchStatus.UNDECIDABLE, id="two")],
)
def test_of_two_new_rows_only_one_is_the_row_of_a_paired_event_written_anew(
    lost: bool, events: list[int], second: MatchStatus
) -> None:
    unread = OutOfSight(events_lost=frozenset([3] if lost else []))
    deadlines = deadlines_of(rows_may_be_older=True, cut_n=3, out_of_sight=unread)
    hits = [seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, at) for at in events]
    outcome = pair_key(case_of(row(8), row(9), lookup_hits=hits), direction=T2L, deadlines=deadlines)
    assert fates(outcome) == {"ledger:8": MatchStatus.UNDECIDABLE, "ledger:9": second}


@pytest.mark.parametrize(
    ("position", "below", "fate"),
    [
        pytest.param(99, 100, MatchStatus.PARTNER_EXPIRED, id="older than the books"),
        pytest.param(100, 100, MatchStatus.FOLLOWER_ABSENT, id="younger"),
        pytest.param(100, 0, MatchStatus.PARTNER_EXPIRED, id="an UPDATE may have moved it"),
        pytest.param(None, 100, MatchStatus.PARTNER_EXPIRED, id="nobody knows its position"),
    ],
)
def test_a_row_that_the_baseline_left_behind_is_missing_only_if_it_is_younger_than_the_books(
    position: int | None, below: int, fate: MatchStatus
) -> None:
    left = OutOfSight(have_older_rows=frozenset({1}), older_below=below)
    own = replace(seen(LEDGER, RecordLocation.SLICE, 8), item_id=row(8).item_id)
    hits = [] if position is None else [replace(own, detail={"transaction_id": position})]
    for first_seen, expected in ((1, fate), (2, MatchStatus.FOLLOWER_ABSENT)):
        deadlines = deadlines_of(cut_n=first_seen, out_of_sight=left)
        outcome = pair_key(case_of(row(8), lookup_hits=hits), direction=L2T, deadlines=deadlines)
        assert fates(outcome) == {"ledger:8": expected}


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


# A copy without partner: one fate and one reason, by the place of what else stands under its key.

Fate, Code, PLACE = MatchStatus, ReasonCode, RecordLocation
DUE = NOON + MINUTE
"""Of new copies."""


def said(
    *copies: Entry, hits: tuple[LookupHit, ...] = (), direction: Direction = L2T, **deadlines: Any
) -> list[tuple[Fate, str]]:
    outcome = pair_key(case_of(*copies, lookup_hits=hits), direction=direction, deadlines=deadlines_of(**deadlines))
    assert all(residue.lookup_hits == hits for residue in outcome.residues)
    return [(residue.fate, residue.reason.stored) for residue in outcome.residues]


def fate_and(fate: Fate, code: Code, there: ReasonSide = ReasonSide.TOPIC) -> list[tuple[Fate, str]]:
    return [(fate, reason_of(code, there=there).stored)]


def waited(copy: Entry, **about: Any) -> Entry:
    """The copy as an earlier cut left it: due an hour ago."""
    return replace(copy, carried=item_of(copy, **about))


def on_topic(*places: RecordLocation, **detail: Any) -> tuple[LookupHit, ...]:
    return tuple(seen(IN_TOPIC, place, at, **detail) for at, place in enumerate(places))


OLDER = {"out_of_sight": OutOfSight(rows_may_be_older=frozenset({1}))}
EXPIRED_FOR_1 = {"out_of_sight": OutOfSight(events_lost=frozenset({1}))}
LONE_ROW = [
    pytest.param((), {}, Fate.FOLLOWER_ABSENT, Code.SETTLED_WITHOUT_IT, id="nothing, and settled"),
    pytest.param(
        (),
        {"topic_settled_until_utc": DUE - MINUTE},
        Fate.UNSETTLED,
        Code.SIDE_HELD_BACK,
        id="held back before the deadline",
    ),
    pytest.param(
        (),
        {"topic_settled_until_utc": None},
        Fate.UNSETTLED,
        Code.SIDE_HELD_BACK,
        id="nobody knows how far it has settled",
    ),
    pytest.param(
        (),
        {"topic_settled_until_utc": DUE},
        Fate.FOLLOWER_ABSENT,
        Code.SETTLED_WITHOUT_IT,
        id="to the day",
    ),
    pytest.param(
        (),
        {"ledger_settled_until_utc": None},
        Fate.FOLLOWER_ABSENT,
        Code.SETTLED_WITHOUT_IT,
        id="its own side is not asked",
    ),
    pytest.param((), {"now_utc": DUE - MINUTE}, Fate.WAITING, Code.WITHIN_GRACE, id="within the grace"),
    pytest.param((), {"now_utc": DUE}, Fate.FOLLOWER_ABSENT, Code.SETTLED_WITHOUT_IT, id="due at this moment"),
    pytest.param((PLACE.PENDING,), {}, Fate.WAITING, Code.BEYOND_CUT, id="beyond the cut"),
    pytest.param((PLACE.OPEN,), {}, Fate.WAITING, Code.BEYOND_CUT, id="in an open transaction"),
    pytest.param((PLACE.BEFORE_BASELINE,), {}, Fate.UNDECIDABLE, Code.BEFORE_BASELINE, id="before the books"),
    pytest.param((PLACE.SLICE,), {}, Fate.PARTNER_UNREAD, Code.PARTNER_UNREAD, id="unreadable in the slice"),
    pytest.param((PLACE.UNREAD,), {}, Fate.PARTNER_UNREAD, Code.PARTNER_UNREAD, id="where nobody has read"),
    pytest.param((PLACE.EARLIER_SLICE,), {}, Fate.PAIRED_BEFORE, Code.PAIRED_BEFORE, id="read by an earlier cut"),
    pytest.param(
        (PLACE.EARLIER_SLICE,),
        {"rows_may_be_older": True},
        Fate.UNDECIDABLE,
        Code.WRITTEN_ANEW,
        id="read by an earlier cut, and rows moved",
    ),
    pytest.param((PLACE.ABORTED,), {}, Fate.FOLLOWER_ABSENT, Code.SETTLED_WITHOUT_IT, id="aborted"),
    pytest.param((PLACE.STRAY,), {}, Fate.FOLLOWER_ABSENT, Code.SETTLED_WITHOUT_IT, id="on no leg's topic"),
    pytest.param((PLACE.LOST,), {}, Fate.FOLLOWER_ABSENT, Code.SETTLED_WITHOUT_IT, id="acknowledged, lost"),
    pytest.param(
        (PLACE.EXPIRED,),
        {},
        Fate.PARTNER_EXPIRED,
        Code.ACKNOWLEDGED_OFFSET_EXPIRED,
        id="acknowledged at an offset that expired",
    ),
    pytest.param(
        (PLACE.EXPIRED, PLACE.STRAY),
        {},
        Fate.FOLLOWER_ABSENT,
        Code.SETTLED_WITHOUT_IT,
        id="acknowledged at such an offset, and it strayed",
    ),
    pytest.param(
        (),
        {"topic_lost_offsets": True},
        Fate.PARTNER_EXPIRED,
        Code.OFFSETS_EXPIRED,
        id="offsets expired unread",
    ),
    pytest.param(
        (),
        {"topic_lost_offsets": True, "topic_settled_until_utc": DUE - MINUTE},
        Fate.UNSETTLED,
        Code.SIDE_HELD_BACK,
        id="offsets expired unread, but its event may lie where the topic is held back",
    ),
    pytest.param(
        (PLACE.ABORTED,),
        {"topic_lost_offsets": True, "topic_settled_until_utc": None},
        Fate.UNSETTLED,
        Code.SIDE_HELD_BACK,
        id="so too beside an aborted one",
    ),
    pytest.param(
        (PLACE.EXPIRED,),
        {"topic_lost_offsets": True, "topic_settled_until_utc": None},
        Fate.PARTNER_EXPIRED,
        Code.OFFSETS_EXPIRED,
        id="offsets expired unread, and an acknowledged one is among them",
    ),
    pytest.param(
        (PLACE.LOST,),
        {"topic_lost_offsets": True},
        Fate.FOLLOWER_ABSENT,
        Code.SETTLED_WITHOUT_IT,
        id="offsets expired unread, but its own is known to be lost",
    ),
]


@pytest.mark.parametrize(("places", "deadlines", "fate", "code"), LONE_ROW)
def test_a_rows_absence_is_judged_by_what_stands_on_the_topic(
    places: tuple[RecordLocation, ...], deadlines: dict[str, Any], fate: Fate, code: Code
) -> None:
    assert said(row(1), hits=on_topic(*places), **deadlines) == fate_and(fate, code)


@pytest.mark.parametrize(
    ("cut_n", "known", "places", "fate", "code"),
    [
        (1, EXPIRED_FOR_1, (), Fate.PARTNER_EXPIRED, Code.OFFSETS_EXPIRED),
        (2, EXPIRED_FOR_1, (), Fate.FOLLOWER_ABSENT, Code.SETTLED_WITHOUT_IT),
        (1, EXPIRED_FOR_1, (PLACE.LOST,), Fate.FOLLOWER_ABSENT, Code.SETTLED_WITHOUT_IT),
        (1, OLDER, (), Fate.PARTNER_EXPIRED, Code.MAY_BE_OLDER),
        (2, OLDER, (), Fate.FOLLOWER_ABSENT, Code.SETTLED_WITHOUT_IT),
        (1, OLDER, (PLACE.LOST,), Fate.FOLLOWER_ABSENT, Code.SETTLED_WITHOUT_IT),
        (1, {}, (PLACE.EARLIER_SLICE,), Fate.PARTNER_UNREAD, Code.PARTNER_UNREAD),
    ],
)
def test_of_a_row_that_waited_it_is_asked_what_the_cut_of_then_could_not_see(
    cut_n: int, known: dict[str, Any], places: tuple[RecordLocation, ...], fate: Fate, code: Code
) -> None:
    assert said(waited(row(1), cut_n=cut_n), hits=on_topic(*places), **known) == fate_and(fate, code)


def test_an_events_absence_is_judged_by_the_ledger_and_by_no_loss_of_the_topic() -> None:
    absent = fate_and(Fate.ORIGIN_ABSENT, Code.SETTLED_WITHOUT_IT, ReasonSide.LEDGER)
    assert said(event(11)) == said(event(11), topic_lost_offsets=True, **OLDER) == absent
    held = fate_and(Fate.UNSETTLED, Code.SIDE_HELD_BACK, ReasonSide.LEDGER)
    assert said(event(11), ledger_settled_until_utc=DUE - MINUTE) == held
    assert said(event(11), topic_settled_until_utc=None) == absent


def test_an_output_whose_input_may_be_out_of_sight_is_not_called_a_phantom() -> None:
    unseen = fate_and(Fate.PARTNER_EXPIRED, Code.INPUT_OUT_OF_SIGHT)
    assert said(event(11), direction=T2T, inputs_out_of_sight=True) == unseen
    absent = reason_of(Code.SETTLED_WITHOUT_IT, there=ReasonSide.INPUTS).stored
    assert said(event(11), direction=T2T) == [(Fate.ORIGIN_ABSENT, absent)]
    assert said(row(1), direction=T2T, inputs_out_of_sight=True) == fate_and(
        Fate.FOLLOWER_ABSENT, Code.SETTLED_WITHOUT_IT
    )


@pytest.mark.parametrize(
    ("places", "fate"),
    [
        ((PLACE.OPEN,), Fate.ORIGIN_OPEN),
        ((PLACE.OPEN, PLACE.ABORTED), Fate.ORIGIN_OPEN),
        ((PLACE.OPEN, PLACE.PENDING), Fate.WAITING),
        ((PLACE.OPEN, PLACE.STRAY), Fate.WAITING),
        ((PLACE.PENDING,), Fate.WAITING),
        ((PLACE.ABORTED,), Fate.ORIGIN_ABSENT),
    ],
)
def test_a_row_whose_only_event_is_in_an_open_transaction_cannot_have_been_written_by_a_right_reader(
    places: tuple[RecordLocation, ...], fate: Fate
) -> None:
    ((found, reason),) = said(row(1), hits=on_topic(*places), direction=T2L)
    assert found is fate
    assert (reason == Code.ORIGIN_STILL_OPEN.value) is (fate is Fate.ORIGIN_OPEN)


# Pairs.


def residues(*copies: Entry, hits: tuple[LookupHit, ...] = (), **about: Any) -> tuple[UnmatchedItem, ...]:
    case = case_of(*copies, lookup_hits=hits)
    return pair_key(case, **{"direction": L2T, "deadlines": deadlines_of()} | about).residues


def test_a_pair_of_different_money_is_told_once_with_its_partner() -> None:
    (found,) = residues(row(1), event(11, amount_minor=7))
    assert found == UnmatchedItem(
        copy=row(1),
        fate=Fate.UNEQUAL,
        reason=reason_of(Code.FIELDS_DIFFER),
        partner=event(11, amount_minor=7),
    )


def test_a_copy_beside_one_that_nobody_has_read_says_so_and_has_its_partner() -> None:
    hits = (seen(LEDGER, PLACE.EARLIER_SLICE, 1), seen(IN_TOPIC, PLACE.UNREAD, 5))
    (found,) = residues(waited(row(1)), event(11), hits=hits)
    assert found == UnmatchedItem(
        copy=event(11),
        fate=Fate.EXTRA,
        reason=reason_of(Code.BESIDE_UNREAD),
        partner=waited(row(1)),
        lookup_hits=hits,
    )


def test_two_copies_that_both_waited_are_told_beside_one_that_nobody_has_read_too() -> None:
    hits = (seen(LEDGER, PLACE.EARLIER_SLICE, 1), seen(IN_TOPIC, PLACE.UNREAD, 5))
    (found,) = residues(waited(row(1), cut_n=1), waited(event(11), cut_n=2), hits=hits)
    assert (found.copy.item_id, found.reason) == (event(11).item_id, reason_of(Code.BESIDE_UNREAD))
    assert residues(row(1), event(11), hits=(seen(LEDGER, PLACE.SLICE, 1), seen(IN_TOPIC, PLACE.ABORTED, 5))) == ()


@pytest.mark.parametrize(("follows", "code"), [(True, Code.EXTRA_WAS_FOLLOWED), (False, Code.EXTRA_ALONE)])
def test_a_second_origin_names_the_first_and_whether_the_other_side_followed_it(follows: bool, code: Code) -> None:
    copies = (row(1), row(2), event(11), *((event(12),) if follows else ()))
    (found,) = residues(*copies)
    assert found == UnmatchedItem(
        copy=row(2),
        fate=Fate.EXTRA,
        reason=reason_of(code),
        partner=event(12) if follows else None,
        original=row(1),
    )


def test_a_copy_whose_first_one_an_earlier_cut_has_read_names_none() -> None:
    (found,) = residues(row(2), hits=(seen(LEDGER, PLACE.EARLIER_SLICE, 1),))
    assert (found.fate, found.original, found.reason) == (Fate.EXTRA, None, reason_of(Code.EXTRA_ALONE))


def test_a_second_follower_names_the_one_that_was_paired() -> None:
    (found,) = residues(row(1), event(11), event(12))
    assert found == UnmatchedItem(
        copy=event(12), fate=Fate.EXTRA, reason=reason_of(Code.KEY_WAS_PAIRED), original=event(11)
    )


def test_what_is_netted_is_told_beside_a_pair_of_the_same_key() -> None:
    surplus = replace(event(9), carried=item_of(event(9), ItemState.BROKEN, reason="duplicate_in_topic_zombie"))
    takes_back = replace(event(20, amount_minor=-1_000), reverses=event(9).item_id)
    outcome = pair_key(case_of(surplus, takes_back, event(11), row(1)), direction=L2T, deadlines=deadlines_of())
    assert [(copy.item_id, by.item_id) for copy, by in outcome.netted] == [(event(9).item_id, event(20).item_id)]
    assert (outcome.matched, outcome.residues) == (((event(11), row(1)),), ())


def test_a_row_of_other_money_than_its_event_of_then_names_that_event() -> None:
    hits = on_topic(PLACE.EARLIER_SLICE, amount_minor=7, currency="EUR")
    (found,) = residues(row(9), hits=hits)
    assert (found.fate, found.reason) == (Fate.UNEQUAL, reason_of(Code.OTHER_MONEY_THAN_PAIRED))
    partner = found.partner
    assert partner is not None
    assert (partner.side, partner.item_id, partner.amount_minor, partner.currency) == (
        IN_TOPIC,
        "topic:billing.payouts:0:0",
        7,
        "EUR",
    )


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_a_row_that_waited_is_held_against_the_only_event_of_its_key_wherever_that_was_written(
    direction: Direction,
) -> None:
    """As at an offset that an earlier cut had read as another record, before the log was cut back."""
    for lost in (False, True):
        about = {"direction": direction, "deadlines": deadlines_of(topic_lost_offsets=lost)}
        other = on_topic(PLACE.EARLIER_SLICE, amount_minor=7, currency="EUR")
        (found,) = residues(waited(row(9)), hits=other, **about)
        assert (found.fate, found.reason) == (Fate.UNEQUAL, reason_of(Code.FIELDS_DIFFER))
        assert found.partner is not None
        assert (found.partner.item_id, found.partner.amount_minor) == ("topic:billing.payouts:0:0", 7)
        assert found.partner.carried is None
        equal = on_topic(PLACE.EARLIER_SLICE, amount_minor=row(9).amount_minor, currency="EUR")
        for alike in (equal, (*other, *equal)):
            assert {one.fate for one in residues(waited(row(9)), hits=alike, **about)} != {Fate.UNEQUAL}
        early = waited(row(9), due_utc=NOON + 2 * HOUR)
        assert [one.fate for one in residues(early, hits=other, **about)] == [Fate.WAITING]
        corrected = (*other, seen(LEDGER, PLACE.PENDING, 9))  # it says something else by now
        assert {one.fate for one in residues(waited(row(9)), hits=corrected, **about)} != {Fate.UNEQUAL}
        read_anew = replace(waited(row(9)), is_new_version=True)
        assert [one.fate for one in residues(read_anew, hits=corrected, **about)] == [Fate.UNEQUAL]


def test_an_event_that_takes_another_one_back_is_not_the_one_that_a_row_is_of() -> None:
    reversal = on_topic(PLACE.EARLIER_SLICE, amount_minor=-1000, currency="EUR", takes_back="topic:billing.payouts:0:7")
    for one in (row(9), waited(row(9))):
        assert {found.fate for found in residues(one, hits=reversal)} != {Fate.UNEQUAL}
        both = (*reversal, seen(IN_TOPIC, PLACE.EARLIER_SLICE, 7, amount_minor=7, currency="EUR"))
        (found,) = residues(one, hits=both)
        assert found.partner is not None
        assert (found.fate, found.partner.item_id) == (Fate.UNEQUAL, "topic:billing.payouts:0:7")


def test_an_event_that_pairs_with_a_row_that_was_written_anew_beyond_the_cut_waits_for_what_it_says_by_then() -> None:
    old = waited(row(1, amount_minor=7))
    hits = (seen(LEDGER, PLACE.PENDING, 1),)
    for about in ({"direction": T2L}, {"direction": L2T}):
        (found,) = residues(old, event(11), hits=hits, **about)
        assert (found.copy, found.fate) == (event(11), Fate.WAITING)
        assert found.reason == reason_of(Code.BEYOND_CUT, there=ReasonSide.LEDGER)
    anew = replace(old, is_new_version=True)
    assert [one.fate for one in residues(anew, event(11), hits=hits)] == [Fate.UNEQUAL]
    read = (seen(LEDGER, PLACE.EARLIER_SLICE, 1),)
    assert [one.fate for one in residues(old, event(11), hits=read)] == [Fate.UNEQUAL]
    judged = replace(event(11), carried=item_of(event(11), ItemState.BROKEN))
    assert residues(old, judged, hits=hits) == ()


# Routes.

FEE = replace(row(1), leg="fee")
LEGS = {"payout": "billing.payouts", "fee": "billing.fees"}


def test_an_event_on_the_topic_of_another_leg_is_misrouted_whether_it_pairs_or_not() -> None:
    astray, partner = event(11, leg="fee"), FEE
    reason = reason_of(Code.MISROUTED, about="billing.fees")
    outcome = pair_key(case_of(astray, partner), direction=T2L, deadlines=deadlines_of(), legs=LEGS)
    told = UnmatchedItem(copy=astray, fate=Fate.MISROUTED, reason=reason, partner=partner)
    assert (outcome.matched, outcome.residues) == ((), (told,))
    hits = (seen(IN_TOPIC, PLACE.SLICE, 11),)
    assert residues(astray, hits=hits, direction=T2L, legs=LEGS) == (
        UnmatchedItem(copy=astray, fate=Fate.MISROUTED, reason=reason, lookup_hits=hits),
    )


def test_an_event_that_names_no_leg_of_the_contract_or_is_without_origin_is_not_called_misrouted() -> None:
    assert [one.fate for one in residues(event(11, leg="tip"), direction=T2L, legs=LEGS)] == [Fate.FOLLOWER_ABSENT]
    assert [one.fate for one in residues(event(11, leg="fee"), direction=L2T, legs=LEGS)] == [Fate.ORIGIN_ABSENT]
    assert residues(event(11, leg="fee"), FEE, direction=T2L) == ()


def test_a_row_that_comes_late_clears_an_event_that_was_called_misrouted() -> None:
    copy = event(11, leg="fee")
    called = replace(copy, carried=item_of(copy, ItemState.BROKEN, reason="misrouted_in_topic"))
    outcome = pair_key(case_of(called, FEE), direction=T2L, deadlines=deadlines_of(), legs=LEGS)
    assert (outcome.matched, outcome.residues) == (((called, FEE),), ())


def test_the_words_of_the_places_are_those_that_stored_runs_have() -> None:
    """A run's look-ups and a break's evidence are stored with them, and read again by later releases."""
    assert [str(place) for place in PLACE] == [
        *("before_baseline", "earlier_slice", "unread", "slice", "pending", "open"),
        *("aborted", "stray", "lost", "expired"),
    ]


def test_what_nobody_says_of_a_copy_a_key_or_the_deadlines_is_taken_for_nothing() -> None:
    copy = Entry(
        side=LEDGER,
        item_id="ledger:1",
        match_key="ev-1",
        transaction_key="t",
        leg="payout",
        amount_minor=1,
        currency="EUR",
        order=1,
    )
    assert (copy.carried, copy.written_ms, copy.is_new_version) == (None, None, False)
    assert (copy.reverses, copy.action_id) == ("", "")
    case = MatchGroup(match_key="ev-1", copies=(copy,))
    assert (case.lookup_hits, case.surplus_rows, case.one_too_many) == ((), frozenset(), frozenset())
    assert LookupHit(side=LEDGER, place=PLACE.SLICE, item_id="ledger:1").detail == {}
    alone = UnmatchedItem(copy=copy, fate=Fate.WAITING, reason=reason_of(Code.WITHIN_GRACE))
    assert (alone.partner, alone.original, alone.lookup_hits) == (None, None, ())
    assert MatchResult(case=case, matched=(), residues=()).netted == ()
    known = Deadlines(
        now_utc=NOON, new_copies_due_utc=NOON, topic_settled_until_utc=None, ledger_settled_until_utc=None
    )
    assert (known.topic_lost_offsets, known.inputs_out_of_sight, known.rows_may_be_older) == (False, False, False)
    assert (known.cut_n, known.out_of_sight) == (0, OutOfSight())


def test_copies_of_one_side_come_as_the_cuts_saw_them() -> None:
    """Carried ones first, the oldest cut's first; of one cut in log or row order, and then by their ids."""
    older, younger = waited(row(9), cut_n=1), waited(row(3), cut_n=2)
    other = replace(row(4), item_id="ledger:a")
    first = replace(row(4), item_id="ledger:A")
    case = case_of(row(5), other, younger, event(11), older, first)
    assert case.side(LEDGER) == (older, younger, first, other, row(5))
    assert case.side(IN_TOPIC) == (event(11),)


def test_places_leave_out_what_takes_part_what_takes_back_and_what_is_asked_to_be() -> None:
    hits = (
        seen(LEDGER, PLACE.SLICE, 1),
        seen(LEDGER, PLACE.EARLIER_SLICE, 2),
        seen(LEDGER, PLACE.PENDING, 3, reverses="ledger:2"),
        seen(LEDGER, PLACE.UNREAD, 4, reverses=""),
        seen(IN_TOPIC, PLACE.ABORTED, 5),
    )
    case = case_of(row(1), lookup_hits=hits)
    assert case.places(LEDGER) == {PLACE.EARLIER_SLICE, PLACE.UNREAD}
    assert case.places(LEDGER, without={"ledger:2"}) == {PLACE.UNREAD}
    assert case.places(IN_TOPIC) == {PLACE.ABORTED}
    assert case_of(row(1)).places(IN_TOPIC) == frozenset()
