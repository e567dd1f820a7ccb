"""What is said of a copy without partner, by the place of what else stands under its key: one fate and one reason.

tests/unit/matching/test_pairing.py says who is whose partner.
"""

from dataclasses import replace
from typing import Any

import pytest

from tallystick.matching.match_case import Entry, LookupHit, RecordLocation, UnmatchedItem
from tallystick.matching.match_case import MatchStatus as Fate
from tallystick.matching.pairing import pair_key
from tallystick.matching.unreadable_ranges import OutOfSight
from tallystick.model.direction import Direction
from tallystick.model.item_reason import ReasonCode as Code
from tallystick.model.item_reason import ReasonSide, reason_of
from tallystick.model.open_item import ItemState
from tests.unit.builders import (
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

PLACE = RecordLocation
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
