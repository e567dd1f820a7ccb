"""An event or a row that was one too many is no break any more once another takes it back; nor is that other one.

One file, since each way in which one copy names another is tried on the same few copies.
"""

from dataclasses import replace
from typing import Any

import pytest

from tallystick.judging.judge import judge
from tallystick.matching.match_case import Entry, LookupHit, MatchGroup, MatchResult, MatchStatus, RecordLocation
from tallystick.matching.pairing import pair_key
from tallystick.matching.reversals import (
    may_be_taken_back,
    names_a_row_that_is_gone,
    possible_reversals,
    with_reversals,
    with_row_reversals,
)
from tallystick.model.finding_names import BreakClass
from tallystick.model.item_reason import ReasonCode
from tallystick.model.open_item import ItemState
from tests.unit.builders import (
    IN_TOPIC,
    L2T,
    LEDGER,
    T2L,
    case_of,
    deadlines_of,
    event,
    evidence_of,
    item_of,
    record_of,
    row,
    seen,
)

ACTION = "130e5ce5-6658-50c6-8945-99b412ca8480"
COMPENSATED = BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED


def extra(*, state: ItemState = ItemState.BROKEN, reason: str = "duplicate_in_topic_zombie", offset: int = 9) -> Entry:
    copy = event(offset)
    return replace(copy, carried=item_of(copy, state, reason=reason, pairable=False))


def reversal(offset: int = 20, *, of: int = 9, amount_minor: int = -1_000, **about: Any) -> Entry:
    place = event(of).item_id
    return replace(event(offset, amount_minor=amount_minor, **about), reverses=place, action_id=ACTION)


def outcome_of(*copies: Entry) -> MatchResult:
    return pair_key(case_of(*copies), direction=L2T, deadlines=deadlines_of())


@pytest.mark.parametrize("amount_minor", [-1_000, 1_000])
@pytest.mark.parametrize(
    "reason", ["duplicate_in_topic_zombie", BreakClass.COMPENSATED_TWICE, BreakClass.COMPENSATION_NOT_EFFECTIVE]
)
def test_a_reversal_nets_the_copy_that_it_names(amount_minor: int, reason: str) -> None:
    outcome = outcome_of(extra(reason=reason), reversal(amount_minor=amount_minor))
    assert [(copy.item_id, by.item_id) for copy, by in outcome.netted] == [(event(9).item_id, event(20).item_id)]
    assert (outcome.matched, outcome.residues) == ((), ())


def test_the_copy_is_cleared_by_the_action_and_the_reversal_leaves_no_item() -> None:
    evidence = evidence_of(extra(), reversal())
    result = judge(evidence, matched_rows=8, matched_money={}, content_digests={}, look_ups={}, carried=())
    assert result.breaks == ()
    (item,) = result.items
    assert (item.item_id, item.state, item.pairable) == (event(9).item_id, ItemState.CLEARED, False)
    assert item.cleared_by == f"action:{ACTION}"


@pytest.mark.parametrize(
    "copies",
    [
        (extra(), reversal(of=4)),
        (extra(), reversal(amount_minor=-999)),
        (extra(), reversal(currency="USD")),
        (extra(), reversal(leg="fee")),
        (extra(), event(20)),
        (extra(reason="phantom_in_topic"), reversal()),
        (extra(reason="duplicate_in_topic_zombie, somebody said"), reversal()),
        (extra(state=ItemState.OPEN), replace(reversal(), action_id="")),
        (event(9), replace(reversal(), action_id="")),
    ],
    ids=[
        *("another copy", "money", "currency", "leg", "no reversal", "no copy too many", "only in words"),
        *("not judged, and not ours", "new, and not ours"),
    ],
)
def test_an_event_that_takes_nothing_back_that_may_be_is_like_every_other(copies: tuple[Entry, ...]) -> None:
    outcome = outcome_of(*copies)
    assert outcome.netted == ()
    assert event(20).item_id in {residue.copy.item_id for residue in outcome.residues}


@pytest.mark.parametrize("copy", [event(9), extra(state=ItemState.OPEN)], ids=["new", "open"])
def test_an_event_that_another_contract_has_taken_back_is_netted_before_this_one_has_judged_it(copy: Entry) -> None:
    """Found by the simulated world: both were called one too many, and what was taken back stood as a duplicate."""
    outcome = outcome_of(copy, reversal())
    assert (netted(outcome), outcome.residues) == ([(event(9).item_id, event(20).item_id)], ())


def test_a_second_reversal_of_a_copy_is_judged_like_every_other_event() -> None:
    outcome = outcome_of(extra(), reversal(20), reversal(21))
    assert [by.item_id for _, by in outcome.netted] == [event(20).item_id]
    assert [residue.copy.item_id for residue in outcome.residues] == [event(21).item_id]


def test_a_look_up_that_sees_both_makes_no_duplicate_of_an_event_that_has_no_row() -> None:
    places = [seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 9), seen(IN_TOPIC, RecordLocation.SLICE, 20)]
    case = case_of(extra(), reversal(20), event(22), lookup_hits=places)
    outcome = pair_key(case, direction=L2T, deadlines=deadlines_of())
    assert [residue.fate for residue in outcome.residues] == [MatchStatus.ORIGIN_ABSENT]


def test_the_order_of_the_copies_changes_nothing() -> None:
    copies = extra(), reversal(20), reversal(21)
    assert outcome_of(*copies).netted == outcome_of(*reversed(copies)).netted


def test_only_new_events_beside_a_copy_too_many_are_asked_in_the_log_what_they_take_back() -> None:
    item = extra().carried
    assert item is not None
    assert may_be_taken_back(item)
    beside = MatchGroup(match_key="ev-1", copies=(event(20), row(1)))
    alone = MatchGroup(match_key="ev-2", copies=(event(21, "ev-2"), event(22, "ev-2")))
    assert possible_reversals([beside, alone], [item]) == {event(20).item_id}
    either_sign = MatchGroup(match_key="ev-2", copies=(event(21, "ev-2"), event(22, "ev-2", amount_minor=-1_000)))
    assert possible_reversals([beside, either_sign], ()) == {event(21).item_id, event(22).item_id}
    for state, asked in ((ItemState.OPEN, {event(20).item_id}), (ItemState.WRITTEN_OFF, set())):
        waits = MatchGroup(match_key="ev-1", copies=(extra(state=state), event(20, amount_minor=-1_000)))
        assert possible_reversals([waits], ()) == asked
    assert possible_reversals([alone], (), beside_closed=True) == {event(21).item_id, event(22).item_id}
    said = replace(record_of(event(20)), reverses=item.item_id, headers={"tallystick-action-id": ACTION})
    named, left = with_reversals([beside, alone], {event(20).item_id: said}, {item.item_id: item})
    assert left == alone
    assert [(copy.item_id, copy.reverses, copy.action_id) for copy in named.copies] == [
        (event(20).item_id, item.item_id, ACTION),
        (row(1).item_id, "", ""),
        (item.item_id, "", ""),
    ]


def test_an_event_that_takes_back_a_copy_of_another_key_or_an_unknown_one_stays_alone() -> None:
    item = extra().carried
    assert item is not None
    for reverses, of in ((item.item_id, replace(item, match_key="ev-2")), (event(4).item_id, item)):
        beside = MatchGroup(match_key="ev-1", copies=(event(20),))
        said = replace(record_of(event(20)), reverses=reverses)
        (named,) = with_reversals([beside], {event(20).item_id: said}, {of.item_id: of})
        assert [copy.item_id for copy in named.copies] == [event(20).item_id]


# Rows.


def extra_row(*, state: ItemState = ItemState.BROKEN, reason: str = "duplicate_in_ledger", row_id: int = 9) -> Entry:
    copy = row(row_id)
    return replace(copy, carried=item_of(copy, state, reason=reason, pairable=False))


def row_reversal(row_id: int = 20, *, of: int = 9, amount_minor: int = -1_000, **about: Any) -> Entry:
    copy = row(row_id, amount_minor=amount_minor)
    return replace(copy, reverses=row(of).item_id, action_id=ACTION, **about)


def row_outcome_of(*copies: Entry, **named: Any) -> MatchResult:
    return pair_key(case_of(*copies, **named), direction=T2L, deadlines=deadlines_of())


def netted(outcome: MatchResult) -> list[tuple[str, str]]:
    return [(copy.item_id, by.item_id) for copy, by in outcome.netted]


def test_a_row_says_what_it_takes_back_and_stands_beside_the_row_of_its_key_that_was_one_too_many() -> None:
    item = extra_row().carried
    assert item is not None
    case = MatchGroup(match_key="ev-1", copies=(row(20), event(11)))
    says = {"ev-1": [seen(LEDGER, RecordLocation.SLICE, 20, reverses=item.item_id, action_id=ACTION)]}
    (named,) = with_row_reversals([case], says, [item, replace(item, item_id="ledger:8", match_key="ev-2")])
    assert [(copy.item_id, copy.reverses, copy.action_id) for copy in named.copies] == [
        (row(20).item_id, item.item_id, ACTION),
        (event(11).item_id, "", ""),
        (item.item_id, "", ""),
    ]


def test_a_row_that_takes_none_back_stays_alone() -> None:
    item = extra_row().carried
    assert item is not None
    case = MatchGroup(match_key="ev-1", copies=(row(20), event(11)))
    assert with_row_reversals([case], {"ev-1": [seen(LEDGER, RecordLocation.SLICE, 20)]}, [item]) == (case,)


@pytest.mark.parametrize("keeps_sign", [False, True])
@pytest.mark.parametrize("reason", ["duplicate_in_ledger", COMPENSATED, BreakClass.COMPENSATION_NOT_EFFECTIVE])
def test_a_reversal_nets_the_row_that_it_names_by_the_contracts_sign(keeps_sign: bool, reason: str) -> None:
    for amount_minor in (-1_000, 1_000):
        case = case_of(extra_row(reason=reason), row_reversal(amount_minor=amount_minor))
        outcome = pair_key(case, direction=T2L, deadlines=deadlines_of(), rows_keep_sign=keeps_sign)
        right = keeps_sign == (amount_minor > 0)
        assert netted(outcome) == ([("ledger:9", "ledger:20")] if right else [])
        assert (outcome.matched, [one.fate for one in outcome.residues]) == ((), [] if right else [MatchStatus.EXTRA])


def test_the_row_is_cleared_by_the_action_and_the_reversal_leaves_no_item() -> None:
    evidence = evidence_of(extra_row(), row_reversal(), direction=T2L)
    result = judge(evidence, matched_rows=8, matched_money={}, content_digests={}, look_ups={}, carried=())
    assert result.breaks == ()
    (item,) = result.items
    assert (item.item_id, item.state, item.pairable) == ("ledger:9", ItemState.CLEARED, False)
    assert item.cleared_by == f"action:{ACTION}"


@pytest.mark.parametrize(
    "copies",
    [
        (extra_row(), row_reversal(of=4)),
        (extra_row(), row_reversal(amount_minor=-999)),
        (extra_row(), row_reversal(currency="USD")),
        (extra_row(), row_reversal(leg="fee")),
        (extra_row(reason="phantom_in_ledger"), row_reversal()),
        (extra_row(state=ItemState.OPEN), replace(row_reversal(), action_id="")),
        (row(9), replace(row_reversal(), action_id="")),
        (row_reversal(amount_minor=1_000), event(11)),
    ],
    ids=["another row", "money", "currency", "leg", "no row too many", "not judged", "read now", "no row at all"],
)
def test_a_row_that_takes_nothing_back_that_may_be_is_one_too_many_itself_and_pairs_with_nothing(
    copies: tuple[Entry, ...],
) -> None:
    outcome = row_outcome_of(*copies)
    assert (outcome.netted, outcome.matched) == ((), ())
    assert [one.fate for one in outcome.residues if one.copy.item_id == "ledger:20"] == [MatchStatus.EXTRA]


def test_a_second_reversal_of_a_row_is_one_too_many_and_one_of_other_money_leaves_room_for_the_right_one() -> None:
    for other in (row_reversal(21), row_reversal(19, amount_minor=-999)):
        outcome = row_outcome_of(extra_row(), row_reversal(20), other)
        assert netted(outcome) == [("ledger:9", "ledger:20")]
        assert [one.copy.item_id for one in outcome.residues] == [other.item_id]
        assert "takes back ledger:9" in outcome.residues[0].reason.stored


@pytest.mark.parametrize("place", [RecordLocation.EARLIER_SLICE, RecordLocation.SLICE])
def test_a_row_that_takes_back_one_that_is_gone_says_that_there_was_one(place: RecordLocation) -> None:
    """Found by the simulated world: to post the event again would pay twice where what is archived still counts."""
    due = event(11)
    carried = replace(due, carried=item_of(due))

    def judged(*rows: LookupHit) -> tuple[MatchStatus, ReasonCode]:
        (residue,) = row_outcome_of(carried, lookup_hits=rows).residues
        return residue.fate, residue.reason.code

    reversal = seen(LEDGER, place, 20, reverses="ledger:9")
    assert judged(reversal) == (MatchStatus.PARTNER_EXPIRED, ReasonCode.TAKEN_BACK_ROW_GONE)
    assert judged() == (MatchStatus.FOLLOWER_ABSENT, ReasonCode.SETTLED_WITHOUT_IT)
    assert judged(reversal, seen(LEDGER, place, 9, reverses="ledger:20"))[0] is MatchStatus.FOLLOWER_ABSENT
    assert judged(seen(LEDGER, place, 20))[0] is MatchStatus.PARTNER_UNREAD


@pytest.mark.parametrize(("item_id", "is_gone"), [("ledger:9", False), ("ledger:9#77", False), ("ledger:90", True)])
def test_a_row_stands_also_under_a_name_that_a_repeated_row_id_got(item_id: str, is_gone: bool) -> None:
    reversal = seen(LEDGER, RecordLocation.SLICE, 20, reverses="ledger:9")
    other = replace(seen(LEDGER, RecordLocation.SLICE, 1), item_id=item_id)
    assert names_a_row_that_is_gone([reversal, other]) is is_gone


@pytest.mark.parametrize(
    ("ours", "found"),
    [
        ({}, [("ledger:9", "ledger:20")]),
        ({"action_id": ""}, []),
        ({"amount_minor": 999}, []),
        ({"reverses": "ledger:2"}, []),
    ],
    ids=["ours", "not ours", "other money", "takes one back"],
)
def test_of_two_equal_rows_that_of_ours_may_be_taken_back_for_the_other(
    ours: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    detail = {"action_id": ACTION, "amount_minor": 1_000, "currency": "EUR"} | ours
    posted = seen(LEDGER, RecordLocation.EARLIER_SLICE, 4, **detail)
    assert netted(row_outcome_of(extra_row(reason=COMPENSATED), row_reversal(of=4), lookup_hits=[posted])) == found


@pytest.mark.parametrize("of", [9, 4], ids=["it", "the row of ours that it repeats"])
@pytest.mark.parametrize(
    "first",
    [
        row(9),
        replace(row(9), carried=item_of(row(9))),
        replace(row(9), carried=item_of(row(9), ItemState.UNDECIDABLE)),
    ],
    ids=["new", "open", "undecidable"],
)
def test_a_row_that_another_contract_has_taken_back_is_netted_before_this_one_has_judged_it(
    first: Entry, of: int
) -> None:
    """Found by the simulated world: both rows were one too many, and a plan could take the same money back again."""
    posted = seen(LEDGER, RecordLocation.EARLIER_SLICE, 4, action_id=ACTION, amount_minor=1_000, currency="EUR")
    outcome = row_outcome_of(first, row_reversal(of=of), lookup_hits=[posted])
    assert (netted(outcome), outcome.residues) == ([("ledger:9", "ledger:20")], ())


@pytest.mark.parametrize(
    ("there", "fate"),
    [
        pytest.param({"action_id": ACTION, "reverses": "ledger:9"}, MatchStatus.WAITING, id="its reversal"),
        pytest.param({"action_id": ACTION, "reverses": "ledger:4"}, MatchStatus.WAITING, id="that of one of ours"),
        pytest.param({"action_id": ACTION, "reverses": "ledger:5"}, MatchStatus.WAITING, id="that of one of its money"),
        pytest.param({"action_id": ACTION, "reverses": "ledger:6"}, MatchStatus.EXTRA, id="that of one of other money"),
        pytest.param({"action_id": ACTION, "reverses": "ledger:2"}, MatchStatus.EXTRA, id="another row's"),
        pytest.param({"reverses": "ledger:9"}, MatchStatus.EXTRA, id="not ours"),
        pytest.param({"action_id": ACTION}, MatchStatus.EXTRA, id="no reversal"),
    ],
)
def test_a_row_too_many_waits_for_its_reversal_beyond_the_cut(there: dict[str, str], fate: MatchStatus) -> None:
    ours = seen(LEDGER, RecordLocation.EARLIER_SLICE, 4, action_id=ACTION, amount_minor=1_000, currency="EUR")
    theirs = seen(LEDGER, RecordLocation.EARLIER_SLICE, 5, amount_minor=1_000, currency="EUR")
    other = seen(LEDGER, RecordLocation.EARLIER_SLICE, 6, amount_minor=999, currency="EUR")
    beyond = seen(LEDGER, RecordLocation.PENDING, 20, amount_minor=-1_000, currency="EUR", **there)
    (residue,) = row_outcome_of(row(9), lookup_hits=[ours, theirs, other, beyond]).residues
    assert residue.fate is fate


def test_what_was_taken_back_before_is_not_taken_back_for_another_row() -> None:
    posted = seen(LEDGER, RecordLocation.EARLIER_SLICE, 4, action_id=ACTION, amount_minor=1_000, currency="EUR")
    before = seen(LEDGER, RecordLocation.EARLIER_SLICE, 6, reverses="ledger:4")
    assert row_outcome_of(extra_row(), row_reversal(of=4), lookup_hits=[posted, before]).netted == ()


def test_the_order_of_the_rows_changes_nothing() -> None:
    copies = extra_row(), row_reversal(20), row_reversal(21)
    assert row_outcome_of(*copies).netted == row_outcome_of(*reversed(copies)).netted


@pytest.mark.parametrize(
    ("ours", "class_of_other", "others", "also"),
    [
        ({}, COMPENSATED, [], [("ledger:9", "ledger:20")]),
        ({"action_id": ""}, COMPENSATED, [], []),
        ({"amount_minor": 999}, COMPENSATED, [], []),
        ({}, "duplicate_in_ledger", [], []),
        ({}, COMPENSATED, [5], []),
    ],
    ids=["ours", "not ours", "other money", "a duplicate of none of ours", "another one of ours stands"],
)
def test_a_row_of_ours_that_is_touched_and_taken_back_takes_with_it_the_duplicate_that_it_was(
    ours: dict[str, Any], class_of_other: str, others: list[int], also: list[tuple[str, str]]
) -> None:
    """Found by the simulated world: by xmin a touched row comes again, and its duplicate stood for ever."""
    said = {"action_id": ACTION, "amount_minor": 1_000, "currency": "EUR"}
    touched = replace(row(4), **({"action_id": ACTION} | ours))
    taking = row_reversal(of=4, amount_minor=-touched.amount_minor)
    hits = [
        seen(LEDGER, RecordLocation.SLICE, 4, **said),
        *(seen(LEDGER, RecordLocation.EARLIER_SLICE, n, **said) for n in others),
    ]
    outcome = row_outcome_of(extra_row(reason=class_of_other), touched, taking, lookup_hits=hits)
    assert netted(outcome) == [("ledger:4", "ledger:20"), *also]


def test_one_reversal_takes_one_row_back_and_not_two_that_repeat_the_same_one_of_ours() -> None:
    posted = seen(LEDGER, RecordLocation.EARLIER_SLICE, 4, action_id=ACTION, amount_minor=1_000, currency="EUR")
    twice = extra_row(reason=COMPENSATED), extra_row(reason=COMPENSATED, row_id=10)
    outcome = row_outcome_of(*twice, row_reversal(of=4), lookup_hits=[posted])
    assert netted(outcome) == [("ledger:9", "ledger:20")]
    both = row_outcome_of(*twice, row_reversal(of=4), row_reversal(21, of=4), lookup_hits=[posted])
    assert netted(both) == [("ledger:9", "ledger:20"), ("ledger:10", "ledger:21")]


def test_a_row_that_takes_back_what_is_no_surplus_says_so_with_all_that_was_seen_and_the_first_row() -> None:
    hits = (seen(IN_TOPIC, RecordLocation.ABORTED, 5),)
    (found,) = row_outcome_of(row(1), row_reversal(of=4), event(11), lookup_hits=hits).residues
    assert (found.copy.item_id, found.fate, found.lookup_hits) == ("ledger:20", MatchStatus.EXTRA, hits)
    assert found.original == row(1)
    (alone,) = row_outcome_of(row_reversal(of=4)).residues
    assert alone.original is None


def test_a_row_that_an_action_wrote_and_that_takes_none_back_names_the_action_alone() -> None:
    case = MatchGroup(match_key="ev-1", copies=(row(20),))
    says = {"ev-1": [seen(LEDGER, RecordLocation.SLICE, 20, action_id=ACTION)]}
    (named,) = with_row_reversals([case], says, [])
    assert [(copy.reverses, copy.action_id) for copy in named.copies] == [("", ACTION)]
    says = {"ev-1": [seen(LEDGER, RecordLocation.SLICE, 20, reverses="ledger:4")]}
    (named,) = with_row_reversals([case], says, [])
    assert [(copy.reverses, copy.action_id) for copy in named.copies] == [("ledger:4", "")]


def test_what_the_log_says_of_an_event_is_not_taken_from_what_is_known_of_rows() -> None:
    case = MatchGroup(match_key="ev-1", copies=(event(20), row(1)))
    of_event = seen(IN_TOPIC, RecordLocation.SLICE, 20, reverses=event(9).item_id, action_id=ACTION)
    assert with_row_reversals([case], {"ev-1": [of_event, seen(LEDGER, RecordLocation.SLICE, 1)]}, []) == (case,)


OURS = {"reverses": "ledger:9", "action_id": ACTION}
ITS_MONEY = {"amount_minor": 1_000, "currency": "EUR"}


def older(row_id: int, place: RecordLocation = RecordLocation.EARLIER_SLICE, **said: Any) -> LookupHit:
    return seen(LEDGER, place, row_id, **said)


def fates(outcome: MatchResult) -> dict[str, MatchStatus]:
    return {one.copy.item_id: one.fate for one in outcome.residues}


@pytest.mark.parametrize("place", [RecordLocation.BEFORE_BASELINE, RecordLocation.EARLIER_SLICE, RecordLocation.UNREAD])
def test_a_compensation_s_row_is_no_duplicate_that_takes_back_one_of_several_which_this_contract_has_not_judged(
    place: RecordLocation,
) -> None:
    """Found by the simulated world: to another contract, whose books began before, that row was one too many."""
    others = older(1, place), older(9, place, **ITS_MONEY)
    assert fates(row_outcome_of(row_reversal(), lookup_hits=others)) == {}
    assert fates(row_outcome_of(row_reversal(), lookup_hits=others[1:])) == {"ledger:20": MatchStatus.EXTRA}


@pytest.mark.parametrize(
    ("reversal", "named"),
    [
        pytest.param(row_reversal(), older(9), id="its money is not known"),
        pytest.param(row_reversal(amount_minor=-999), older(9, **ITS_MONEY), id="other money"),
        pytest.param(row_reversal(currency="USD"), older(9, **ITS_MONEY), id="another currency"),
        pytest.param(replace(row_reversal(), action_id=""), older(9, **ITS_MONEY), id="no compensation"),
        pytest.param(row_reversal(), older(9, reverses="ledger:2", **ITS_MONEY), id="a reversal itself"),
        pytest.param(row_reversal(of=8), older(9, **ITS_MONEY), id="it is gone"),
    ],
)
def test_a_row_that_says_so_of_anything_else_is_one_too_many(reversal: Entry, named: LookupHit) -> None:
    assert fates(row_outcome_of(reversal, lookup_hits=[older(1), named])) == {"ledger:20": MatchStatus.EXTRA}


@pytest.mark.parametrize(
    ("reversal", "others", "fate"),
    [
        (row_reversal(), [older(1)], {}),
        (row_reversal(), [], {"ledger:20": MatchStatus.EXTRA}),
        (replace(row_reversal(), action_id=""), [older(1)], {"ledger:20": MatchStatus.EXTRA}),
    ],
    ids=["another stands", "none stands", "no compensation"],
)
def test_a_compensation_s_row_is_no_duplicate_whose_row_was_written_anew_beyond_the_cut(
    reversal: Entry, others: list[LookupHit], fate: dict[str, MatchStatus]
) -> None:
    """Found by the simulated world: by xmin the table was rewritten, and an open transaction held that row back."""
    named = older(9, RecordLocation.PENDING)
    assert fates(row_outcome_of(reversal, lookup_hits=[*others, named])) == fate


@pytest.mark.parametrize(
    ("said", "fate"),
    [({}, {}), ({"reverses": "ledger:2"}, {"ledger:20": MatchStatus.EXTRA})],
    ids=["a row", "a reversal"],
)
def test_the_other_row_of_the_key_may_stand_beyond_the_cut(said: dict[str, str], fate: dict[str, MatchStatus]) -> None:
    """Found by the simulated world: by xmin both the reversal and that row were updated, one behind the other."""
    beyond, named = older(1, RecordLocation.PENDING, **said), older(9, **ITS_MONEY)
    assert fates(row_outcome_of(row_reversal(), lookup_hits=[beyond, named])) == fate


def test_of_rows_beyond_the_cut_too_each_is_taken_back_once_and_the_last_one_that_stands_never_is() -> None:
    first, second = row_reversal(20), replace(row_reversal(21), reverses="ledger:1")
    left = {"ledger:21": MatchStatus.EXTRA}
    pending = older(9, RecordLocation.PENDING)
    assert fates(row_outcome_of(first, second, lookup_hits=[pending, older(1, **ITS_MONEY)])) == left
    both = [pending, older(1, RecordLocation.PENDING)]
    assert fates(row_outcome_of(first, second, lookup_hits=both)) == left
    assert fates(row_outcome_of(first, row_reversal(21), lookup_hits=both)) == left
    before = older(19, **{**OURS, "reverses": "ledger:1"})
    assert fates(row_outcome_of(first, lookup_hits=[*both, before])) == {"ledger:20": MatchStatus.EXTRA}
    reversed_beyond = older(22, RecordLocation.PENDING, **{**OURS, "reverses": "ledger:1"})
    assert fates(row_outcome_of(first, lookup_hits=[pending, older(1), reversed_beyond])) == {
        "ledger:20": MatchStatus.EXTRA
    }


def test_a_row_is_taken_back_once_and_the_last_one_that_stands_never_is() -> None:
    hits = older(1), older(9, **ITS_MONEY)
    twice = row_outcome_of(row_reversal(20), row_reversal(21), lookup_hits=hits)
    assert fates(twice) == {"ledger:21": MatchStatus.EXTRA}
    both = replace(row_reversal(21), reverses="ledger:1")
    of_both = row_outcome_of(row_reversal(20), both, lookup_hits=[older(1, **ITS_MONEY), hits[1]])
    assert fates(of_both) == {"ledger:21": MatchStatus.EXTRA}


@pytest.mark.parametrize("of", ["ledger:9", "ledger:8"], ids=["it", "another"])
def test_a_row_that_was_taken_back_in_an_earlier_cut_is_no_duplicate_once_it_is_written_anew(of: str) -> None:
    said = {**OURS, "reverses": of, "amount_minor": -1_000, "currency": "EUR"}
    there = older(1), older(20, **said)
    assert fates(row_outcome_of(row(9), lookup_hits=there)) == (
        {} if of == "ledger:9" else {"ledger:9": MatchStatus.EXTRA}
    )
    assert fates(row_outcome_of(row(9), lookup_hits=there[1:])) == {"ledger:9": MatchStatus.ORIGIN_ABSENT}


def older_event(offset: int, place: RecordLocation = RecordLocation.UNREAD, **said: Any) -> LookupHit:
    return seen(IN_TOPIC, place, offset, **said)


def event_fates(*copies: Entry, named: LookupHit) -> dict[str, MatchStatus]:
    case = case_of(*copies, lookup_hits=[older_event(1), named, seen(LEDGER, RecordLocation.UNREAD, 1)])
    return fates(pair_key(case, direction=L2T, deadlines=deadlines_of()))


@pytest.mark.parametrize("amount_minor", [-1_000, 1_000])
def test_a_compensation_s_event_is_no_duplicate_that_takes_back_one_of_a_cut_closed_unread(amount_minor: int) -> None:
    """Found by the simulated world: another contract has read that cut, and called the event one too many."""
    named, later = older_event(9, **ITS_MONEY), event(21)
    assert event_fates(reversal(amount_minor=amount_minor), named=named) == {}
    assert event_fates(reversal(), reversal(22), named=named) == {event(22).item_id: MatchStatus.EXTRA}
    assert event_fates(reversal(), later, named=named) == {later.item_id: MatchStatus.EXTRA}


@pytest.mark.parametrize(
    ("reversal", "named"),
    [
        pytest.param(reversal(), older_event(9, RecordLocation.EARLIER_SLICE, **ITS_MONEY), id="a cut has read it"),
        pytest.param(reversal(), older_event(9), id="its money is not known"),
        pytest.param(reversal(amount_minor=-999), older_event(9, **ITS_MONEY), id="other money"),
        pytest.param(reversal(currency="USD"), older_event(9, **ITS_MONEY), id="another currency"),
        pytest.param(replace(reversal(), action_id=""), older_event(9, **ITS_MONEY), id="no compensation"),
        pytest.param(reversal(of=8), older_event(9, **ITS_MONEY), id="it is gone"),
        pytest.param(reversal(), older(9, RecordLocation.UNREAD, **ITS_MONEY), id="a row"),
    ],
)
def test_an_event_that_says_so_of_anything_else_is_one_too_many(reversal: Entry, named: LookupHit) -> None:
    assert event_fates(reversal, named=named) == {reversal.item_id: MatchStatus.EXTRA}
