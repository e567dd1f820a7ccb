"""Many to one: what adds up is done, what does not waits for a part that may come still, and is one break then."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.matching.group_sums import pair_group
from tallystick.matching.match_case import Entry, MatchResult, MatchStatus, RecordLocation
from tallystick.model.direction import Direction
from tallystick.model.item_reason import ReasonCode
from tallystick.model.open_item import ItemSide, ItemState
from tests.unit.builders import (
    HOUR,
    IN_TOPIC,
    L2T,
    LAW,
    LEDGER,
    NOON,
    T2L,
    case_of,
    deadlines_of,
    event,
    item_of,
    row,
    seen,
)

BOTH = pytest.mark.parametrize("direction", [L2T, T2L], ids=str)


NOTHING_KNOWN: Mapping[str, frozenset[str]] = MappingProxyType({})


def judged(
    *copies: Entry,
    parts: ItemSide = IN_TOPIC,
    direction: Direction = T2L,
    hits: tuple[object, ...] = (),
    known: Mapping[str, frozenset[str]] = NOTHING_KNOWN,
    **deadlines: object,
) -> MatchResult:
    """known: what the case knows of other copies of its key, by field."""
    case = replace(case_of(*copies, lookup_hits=hits), parts=parts, **known)
    return pair_group(case, direction=direction, deadlines=deadlines_of(**deadlines))


def fates(result: MatchResult) -> list[tuple[str, MatchStatus]]:
    return sorted((residue.copy.item_id, residue.fate) for residue in result.residues)


def waited(copy: Entry, **item: object) -> Entry:
    return replace(copy, carried=item_of(copy, **item))


def broken(copy: Entry) -> Entry:
    return waited(copy, state=ItemState.BROKEN, reason="group_sum_mismatch")


E6, E4 = event(11, amount_minor=600), event(12, amount_minor=400)
WHOLE = row(1)
AT6, AT4 = E6.item_id, E4.item_id


@BOTH
@pytest.mark.parametrize(
    ("copies", "parts"),
    [
        ((E6, E4, WHOLE), IN_TOPIC),
        ((event(11), WHOLE), IN_TOPIC),
        ((event(11, amount_minor=1_400), event(12, amount_minor=-400), WHOLE), IN_TOPIC),
        ((event(11), row(1, amount_minor=600), row(2, amount_minor=400)), LEDGER),
        ((waited(E6), E4, WHOLE), IN_TOPIC),
        ((broken(E6), E4, broken(WHOLE)), IN_TOPIC),
    ],
)
def test_what_adds_up_is_done(direction: Direction, copies: tuple[Entry, ...], parts: ItemSide) -> None:
    result = judged(*copies, parts=parts, direction=direction)
    assert result.residues == ()
    (group,) = result.added_up
    assert {group.whole, *group.parts} == set(copies)
    assert {copy for pair in result.agreeing for copy in pair} == set(copies)


@BOTH
def test_what_does_not_add_up_past_its_deadline_is_one_break_of_all_its_copies(direction: Direction) -> None:
    (residue,) = judged(E6, WHOLE, direction=direction).residues
    assert (residue.fate, residue.copy) == (MatchStatus.SUM_DIFFERS, WHOLE)
    assert residue.reason.code is ReasonCode.SUM_DIFFERS
    assert residue.group is not None
    assert (residue.group.whole, residue.group.parts) == (WHOLE, (E6,))


def test_a_late_part_that_leaves_another_sum_is_told_and_what_was_told_is_not_told_again() -> None:
    (residue,) = judged(broken(E6), event(13, amount_minor=300), broken(WHOLE)).residues
    assert (residue.copy.item_id, residue.fate) == ("topic:billing.payouts:0:13", MatchStatus.SUM_DIFFERS)
    assert judged(broken(E6), broken(WHOLE)).residues == ()


@BOTH
@pytest.mark.parametrize(
    ("deadlines", "hits", "fate"),
    [
        ({"now_utc": NOON}, (), MatchStatus.WAITING),
        ({}, (seen(IN_TOPIC, RecordLocation.PENDING, 30),), MatchStatus.WAITING),
        ({}, (seen(IN_TOPIC, RecordLocation.OPEN, 30),), MatchStatus.WAITING),
        ({"topic_settled_until_utc": None}, (), MatchStatus.UNSETTLED),
        ({}, (seen(IN_TOPIC, RecordLocation.BEFORE_BASELINE, 3),), MatchStatus.UNDECIDABLE),
        ({}, (seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 3),), MatchStatus.UNDECIDABLE),
        ({}, (seen(IN_TOPIC, RecordLocation.UNREAD, 3),), MatchStatus.UNDECIDABLE),
        ({}, (seen(LEDGER, RecordLocation.UNREAD, 2),), MatchStatus.UNDECIDABLE),
        ({}, (seen(LEDGER, RecordLocation.EARLIER_SLICE, 2),), MatchStatus.UNDECIDABLE),
        ({}, (seen(IN_TOPIC, RecordLocation.SLICE, 15),), MatchStatus.PARTNER_UNREAD),
        ({"topic_lost_offsets": True}, (), MatchStatus.PARTNER_EXPIRED),
    ],
)
def test_no_break_while_another_part_may_be_there(
    direction: Direction, deadlines: dict[str, object], hits: tuple[object, ...], fate: MatchStatus
) -> None:
    result = judged(E6, WHOLE, direction=direction, hits=hits, **deadlines)
    assert fates(result) == [(WHOLE.item_id, fate), (AT6, fate)]


@BOTH
@pytest.mark.parametrize("side", [IN_TOPIC, LEDGER])
@pytest.mark.parametrize("place", RecordLocation)
def test_a_sum_is_met_only_where_all_that_was_read_of_the_key_is_here(
    direction: Direction, side: ItemSide, place: RecordLocation
) -> None:
    result = judged(E6, E4, WHOLE, direction=direction, hits=(seen(side, place, 3),))
    elsewhere = {RecordLocation.BEFORE_BASELINE, RecordLocation.EARLIER_SLICE, RecordLocation.UNREAD}
    assert bool(result.added_up) is (place not in elsewhere)
    assert {fate for _, fate in fates(result)} == (set() if result.added_up else {MatchStatus.UNDECIDABLE})


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (RecordLocation.UNREAD, "could not be read"),
        (RecordLocation.EARLIER_SLICE, "was read before, and is not open any more"),
    ],
)
def test_why_a_group_is_undecidable_names_the_side_of_what_is_not_here(place: RecordLocation, said: str) -> None:
    for side in (IN_TOPIC, LEDGER):
        residues = judged(E6, WHOLE, hits=(seen(side, place, 3),)).residues
        assert {one.reason.stored for one in residues} == {f"its partner on the {side.value} {said}"}


@pytest.mark.parametrize(("undecided", "fate"), [([AT6], MatchStatus.UNDECIDABLE), ([], MatchStatus.EXTRA)])
def test_a_part_is_none_too_many_of_a_group_that_nobody_could_judge(undecided: list[str], fate: MatchStatus) -> None:
    """One part could not be read; its producer sent it again once the group had been called undecidable."""
    places = ((IN_TOPIC, 11), (LEDGER, 1))
    hits = tuple(seen(side, RecordLocation.EARLIER_SLICE, at) for side, at in places)
    alone = judged(E4, hits=hits, known={"undecided": frozenset(undecided)})
    assert (dict(fates(alone))[AT4] is MatchStatus.EXTRA) is (fate is MatchStatus.EXTRA)


@pytest.mark.parametrize("known", [["ledger:2"], []], ids=["one too many", "what it is, nobody knows"])
def test_a_late_part_closes_its_group_beside_a_whole_that_is_one_too_many(known: list[str]) -> None:
    second = seen(LEDGER, RecordLocation.EARLIER_SLICE, 2)
    late = judged(broken(E6), broken(WHOLE), E4, hits=(second,), known={"one_too_many": frozenset(known)})
    assert bool(late.added_up) is bool(known)


@BOTH
def test_which_of_two_wholes_is_the_right_one_is_not_said_before_a_part_is_here(direction: Direction) -> None:
    wholes = (row(1, amount_minor=999), row(2))
    early = judged(*wholes, direction=direction, now_utc=NOON)
    assert {fate for _, fate in fates(early)} == {MatchStatus.WAITING}
    met = judged(*map(waited, wholes), E6, E4, direction=direction, now_utc=NOON)
    assert [group.whole.item_id for group in met.added_up] == ["ledger:2"]
    assert fates(met) == [("ledger:1", MatchStatus.EXTRA)]


def test_of_two_wholes_that_say_the_same_one_repeats_the_other_at_once() -> None:
    assert ("ledger:2", MatchStatus.EXTRA) in fates(judged(row(1), row(2), direction=L2T, now_utc=NOON))


@pytest.mark.parametrize("place", [RecordLocation.ABORTED, RecordLocation.STRAY])
def test_a_part_that_no_reader_sees_is_none(place: RecordLocation) -> None:
    assert fates(judged(E6, WHOLE, hits=(seen(IN_TOPIC, place, 3),))) == [(WHOLE.item_id, MatchStatus.SUM_DIFFERS)]


@pytest.mark.parametrize(
    ("direction", "parts", "copies", "fate"),
    [
        (T2L, IN_TOPIC, (E6, E4), MatchStatus.FOLLOWER_ABSENT),
        (L2T, IN_TOPIC, (E6, E4), MatchStatus.ORIGIN_ABSENT),
        (T2L, LEDGER, (row(1), row(2)), MatchStatus.ORIGIN_ABSENT),
        (L2T, LEDGER, (row(1), row(2)), MatchStatus.FOLLOWER_ABSENT),
    ],
)
def test_parts_without_a_whole_are_each_judged_as_a_copy_alone(
    direction: Direction, parts: ItemSide, copies: tuple[Entry, ...], fate: MatchStatus
) -> None:
    result = judged(*copies, direction=direction, parts=parts)
    assert fates(result) == sorted((copy.item_id, fate) for copy in copies)
    waiting = judged(*copies, direction=direction, parts=parts, now_utc=NOON)
    assert fates(waiting) == sorted((copy.item_id, MatchStatus.WAITING) for copy in copies)


@pytest.mark.parametrize(("direction", "fate"), [(T2L, MatchStatus.ORIGIN_ABSENT), (L2T, MatchStatus.FOLLOWER_ABSENT)])
def test_a_whole_without_parts_is_judged_as_a_copy_alone(direction: Direction, fate: MatchStatus) -> None:
    assert fates(judged(WHOLE, direction=direction)) == [(WHOLE.item_id, fate)]


@BOTH
def test_a_part_of_a_closed_group_is_one_too_many(direction: Direction) -> None:
    closed = (seen(LEDGER, RecordLocation.EARLIER_SLICE, 1), seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 3))
    assert fates(judged(E6, direction=direction, hits=closed)) == [(AT6, MatchStatus.EXTRA)]
    assert fates(judged(E6, E4, waited(row(2)), direction=direction, hits=closed)) == [
        ("ledger:2", MatchStatus.EXTRA),
        (AT6, MatchStatus.EXTRA),
        (AT4, MatchStatus.EXTRA),
    ]
    straddling = (*closed, seen(IN_TOPIC, RecordLocation.BEFORE_BASELINE, 2))
    assert MatchStatus.EXTRA not in dict(fates(judged(E6, direction=direction, hits=straddling))).values()
    siblings = (seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 3),)
    alone = MatchStatus.FOLLOWER_ABSENT if direction is T2L else MatchStatus.ORIGIN_ABSENT
    assert fates(judged(E6, direction=direction, hits=siblings)) == [(AT6, alone)]


@BOTH
def test_a_row_of_a_closed_group_that_may_have_been_written_anew_is_not_called_one_too_many(
    direction: Direction,
) -> None:
    closed = (seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 3), seen(LEDGER, RecordLocation.EARLIER_SLICE, 2))
    (anew,) = judged(row(1), direction=direction, parts=LEDGER, hits=closed, rows_may_be_older=True).residues
    assert anew.fate is not MatchStatus.EXTRA
    (surplus,) = judged(row(1), direction=direction, parts=LEDGER, hits=closed).residues
    assert surplus.fate is MatchStatus.EXTRA


@BOTH
def test_a_second_whole_is_one_too_many_and_takes_no_parts(direction: Direction) -> None:
    result = judged(E6, E4, row(1), row(2), direction=direction)
    assert [group.whole.item_id for group in result.added_up] == ["ledger:1"]
    assert fates(result) == [("ledger:2", MatchStatus.EXTRA)]
    other_way_round = judged(E6, E4, row(1, amount_minor=999), row(2), direction=direction)
    assert [group.whole.item_id for group in other_way_round.added_up] == ["ledger:2"]
    assert fates(other_way_round) == [("ledger:1", MatchStatus.EXTRA)]


@BOTH
def test_which_of_two_wholes_is_the_right_one_is_not_said_while_a_part_may_come(direction: Direction) -> None:
    wholes = (row(1, amount_minor=999), row(2))
    early = judged(E6, *wholes, direction=direction, now_utc=NOON)
    assert {fate for _, fate in fates(early)} == {MatchStatus.WAITING}
    late = judged(E6, *wholes, direction=direction)
    assert fates(late) == [("ledger:1", MatchStatus.SUM_DIFFERS), ("ledger:2", MatchStatus.EXTRA)]


def test_a_second_whole_that_was_judged_is_not_told_again() -> None:
    result = judged(E6, E4, waited(row(1)), broken(row(2)))
    assert (len(result.added_up), result.residues) == (1, ())


def test_of_several_wholes_that_waited_the_one_that_the_parts_add_up_to_is_theirs() -> None:
    result = judged(E6, E4, waited(row(1, amount_minor=999)), waited(row(2)))
    assert [group.whole.item_id for group in result.added_up] == ["ledger:2"]


def test_a_row_of_a_closed_group_that_was_written_anew_is_undecidable_whatever_it_says() -> None:
    hits = tuple(
        seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, at, amount_minor=amount, currency="EUR")
        for at, amount in ((3, 600), (4, 400))
    )
    for amount in (1_000, 1_001):
        anew = row(1, amount_minor=amount)
        assert fates(judged(anew, direction=L2T, hits=hits)) == [(anew.item_id, MatchStatus.PAIRED_BEFORE)]


@BOTH
def test_a_row_that_says_something_else_by_now_is_waited_for(direction: Direction) -> None:
    changed = (seen(LEDGER, RecordLocation.PENDING, 1),)
    result = judged(E6, E4, waited(row(1, amount_minor=900)), direction=direction, hits=changed)
    assert {fate for _, fate in fates(result)} == {MatchStatus.WAITING}


def test_parts_that_wait_beside_one_before_the_baseline_repeat_nothing() -> None:
    before = (seen(IN_TOPIC, RecordLocation.BEFORE_BASELINE, 3),)
    waiting = [waited(copy, due_utc=NOON + 3 * HOUR) for copy in (E6, E4)]
    assert {fate for _, fate in fates(judged(*waiting, hits=before))} == {MatchStatus.WAITING}


def test_a_copy_that_may_not_be_paired_any_more_is_no_part() -> None:
    given_up = waited(E4, state=ItemState.UNDECIDABLE, pairable=False)
    assert fates(judged(E6, given_up, WHOLE))[0] == (WHOLE.item_id, MatchStatus.SUM_DIFFERS)


def test_a_case_of_pairs_is_refused() -> None:
    with pytest.raises(ValueError, match="expected one whose copies of one side are parts"):
        pair_group(case_of(E6, WHOLE), direction=T2L, deadlines=deadlines_of())


AMOUNTS = st.integers(-3, 3)
CURRENCIES = st.sampled_from(["EUR", "EUR", "EUR", "USD"])


@st.composite
def groups(draw: st.DrawFn) -> tuple[tuple[Entry, ...], ItemSide]:
    """Copies of one key on both sides: new, waiting and broken ones."""
    made = []
    for at in range(draw(st.integers(1, 5))):
        make = draw(st.sampled_from([event, row]))
        copy = make(11 + at, amount_minor=draw(AMOUNTS), currency=draw(CURRENCIES))
        waiting = waited(copy, due_utc=NOON + 3 * HOUR)
        made.append(draw(st.sampled_from([copy, copy, waited(copy), waiting, broken(copy)])))
    return tuple(made), draw(st.sampled_from([IN_TOPIC, LEDGER]))


@LAW
@given(groups(), st.sampled_from([L2T, T2L]), st.randoms(use_true_random=False))
def test_every_copy_has_one_fate_whatever_the_order(
    drawn: tuple[tuple[Entry, ...], ItemSide], direction: Direction, dice: Random
) -> None:
    copies, parts = drawn
    result = judged(*copies, parts=parts, direction=direction)
    shuffled = list(copies)
    dice.shuffle(shuffled)
    again = judged(*shuffled, parts=parts, direction=direction)
    assert (again.residues, again.added_up) == (result.residues, result.added_up)

    told = Counter(copy.item_id for group in result.added_up for copy in (group.whole, *group.parts))
    for residue in result.residues:
        told.update({residue.copy.item_id: 1})
        if residue.group is not None:
            shared = {copy.item_id for copy in (residue.group.whole, *residue.group.parts)} - {residue.copy.item_id}
            told.update(dict.fromkeys(shared, 1))
    assert all(count == 1 for count in told.values())
    for copy in copies:
        assert told[copy.item_id] == 1 or (copy.carried and copy.carried.state is ItemState.BROKEN)

    wholes, of_it = ([copy for copy in copies if (copy.side is parts) is which] for which in (False, True))
    if len(wholes) == 1 and of_it:
        is_sum = sum(part.amount_minor for part in of_it) == wholes[0].amount_minor
        assert bool(result.added_up) == (is_sum and len({copy.currency for copy in copies}) == 1)
