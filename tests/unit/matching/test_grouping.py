"""Which copies and open items are judged together: by key, and by business transaction."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.matching.evidence import LegsCase
from tallystick.matching.grouping import (
    group_by_key,
    group_by_transaction,
    of_broken_transactions,
    with_legs_read_before,
    with_rows_of_before,
    with_undecided_rows,
    without_repeats,
)
from tallystick.matching.match_case import Entry, MatchResult, MatchStatus, RecordLocation, UnmatchedItem
from tallystick.model.item_reason import ReasonCode, reason_of
from tallystick.model.offsets import TopicPartition
from tallystick.model.open_item import ItemSide, ItemState, OpenItem
from tests.unit.builders import LAW, case_of, event, evidence_of, item_of, row, seen


def keys(*groups: object) -> list[tuple[str, list[str]]]:
    return [(case.match_key, [copy.item_id for copy in case.copies]) for case in groups]


def legs_item(payment: str, legs: str, state: ItemState = ItemState.OPEN) -> OpenItem:
    item = item_of(event(3), state)
    return replace(item, item_id=f"legs:{payment}", side=ItemSide.LEGS, transaction_key=payment, leg=legs)


def test_copies_of_one_key_are_one_case_and_cases_stand_in_order() -> None:
    cases = group_by_key([event(12, "b"), row(1, "b"), event(11, "a")], [])
    assert keys(*cases) == [("a", ["topic:billing.payouts:0:11"]), ("b", ["topic:billing.payouts:0:12", "ledger:1"])]


def test_an_open_item_is_judged_again_though_nothing_new_came() -> None:
    (case,) = group_by_key([], [item_of(row(1))])
    assert [(copy.item_id, copy.carried is not None) for copy in case.copies] == [("ledger:1", True)]


def test_a_broken_item_is_judged_with_its_key_only_when_something_new_came() -> None:
    broken = item_of(row(1), ItemState.BROKEN)
    assert group_by_key([], [broken]) == ()
    (case,) = group_by_key([event(11)], [broken])
    assert len(case.copies) == 2


def test_a_written_off_item_may_still_find_its_partner() -> None:
    (case,) = group_by_key([event(11)], [item_of(row(1), ItemState.WRITTEN_OFF)])
    assert len(case.copies) == 2


def test_a_broken_item_joins_an_open_one_of_its_key() -> None:
    (case,) = group_by_key([], [item_of(row(1), ItemState.BROKEN), item_of(row(2))])
    assert len(case.copies) == 2


def test_a_carried_copy_is_what_it_was() -> None:
    (case,) = group_by_key([], [item_of(row(815, "ev-1", 700, "JPY"))])
    (copy,) = case.copies
    assert replace(copy, carried=None) == row(815, "ev-1", 700, "JPY")


def test_an_item_from_before_currencies_ignored_case_pairs_with_events_of_after() -> None:
    item = item_of(row(815, "ev-1", 700, "eur"))
    (loose,), (exact,) = group_by_key([], [item], ignore_case=True), group_by_key([], [item])
    assert (loose.copies[0].currency, exact.copies[0].currency) == ("EUR", "eur")


def test_legs_never_mix_with_copies() -> None:
    assert group_by_key([], [legs_item("pay-1", "payout")]) == ()


def test_transactions_are_known_by_their_legs() -> None:
    (case,) = group_by_transaction([event(11)], [])
    assert (case.transaction_key, case.seen, case.carried) == (
        "pay-of-ev-1",
        {"payout": (1_000, "EUR", "topic:billing.payouts:0:11")},
        None,
    )


def test_a_carried_transactions_legs_join_the_new_ones_and_the_new_ones_place_is_kept() -> None:
    item = legs_item("pay-of-ev-1", "fee+payout")
    (case,) = group_by_transaction([event(11)], [item])
    assert sorted(case.seen) == ["fee", "payout"]
    assert case.seen["payout"][2] == "topic:billing.payouts:0:11"
    assert case.carried == item


def test_a_leg_that_waits_for_its_row_was_read_and_one_that_is_broken_says_nothing() -> None:
    """Found by the simulated world: its fee was published again, and the log had forgotten its payout."""
    waits = replace(item_of(event(11)), leg="fee")
    (case,) = group_by_transaction([event(12)], [waits])
    assert sorted(case.seen) == ["fee", "payout"]
    (case,) = group_by_transaction([event(12)], [replace(waits, state=ItemState.BROKEN)])
    assert sorted(case.seen) == ["payout"]
    assert group_by_transaction([], [waits]) == ()


FEE = "topic:billing.fees:0:3"


@pytest.mark.parametrize(
    ("surplus", "legs"),
    [
        pytest.param({"cleared_by": FEE}, ["fee", "payout"], id="its row came twice, and the event was read with it"),
        pytest.param({"side": ItemSide.TOPIC, "item_id": FEE}, ["fee", "payout"], id="the event itself"),
        pytest.param({}, ["payout"], id="a row alone"),
        pytest.param({"side": ItemSide.LEGS, "cleared_by": FEE}, ["payout"], id="a transaction's own item"),
        pytest.param({"cleared_by": FEE, "transaction_key": "pay-7"}, ["payout"], id="of another transaction"),
    ],
)
def test_a_leg_that_was_read_as_one_too_many_has_come(surplus: dict[str, object], legs: list[str]) -> None:
    """Found by the simulated world: its transaction was not judged then, and the log forgot the leg."""
    cases = group_by_transaction([event(11)], [])
    item = item_of(row(1), ItemState.BROKEN, reason="duplicate_in_ledger", leg="fee", **surplus)
    (case,) = with_legs_read_before(cases, [item])
    assert sorted(case.seen) == legs
    assert case.seen["payout"] == cases[0].seen["payout"]


def test_an_open_transaction_is_judged_again_and_a_broken_one_only_with_news() -> None:
    (case,) = group_by_transaction([], [legs_item("pay-1", "payout")])
    assert sorted(case.seen) == ["payout"]
    assert group_by_transaction([], [legs_item("pay-1", "payout", ItemState.BROKEN)]) == ()
    (with_news,) = group_by_transaction([event(11)], [legs_item("pay-of-ev-1", "fee", ItemState.BROKEN)])
    assert sorted(with_news.seen) == ["fee", "payout"]


@LAW
@given(st.permutations([event(11, "a"), event(12, "b"), row(1, "a"), row(2, "c")]))
def test_the_order_of_copies_changes_no_case_but_the_order_inside_it(copies: list[object]) -> None:
    assert {case.match_key: set(case.copies) for case in group_by_key(copies, [])} == {
        "a": {event(11, "a"), row(1, "a")},
        "b": {event(12, "b")},
        "c": {row(2, "c")},
    }


def test_a_carried_row_that_is_read_again_is_one_copy_with_its_new_values() -> None:
    item = item_of(row(1, "a", 700))
    (case,) = group_by_key([row(1, "a", 900)], [item])
    assert case.copies == (replace(row(1, "a", 900), carried=item, is_new_version=True),)


def test_a_carried_row_that_is_read_again_under_another_key_stands_under_that_one_alone() -> None:
    item = item_of(row(1, "a"))
    assert keys(*group_by_key([row(1, "b")], [item])) == [("b", ["ledger:1"])]


def test_another_row_of_the_key_is_no_new_version_of_the_carried_one() -> None:
    (case,) = group_by_key([row(2, "a")], [item_of(row(1, "a"))])
    assert [(copy.item_id, copy.is_new_version) for copy in case.copies] == [("ledger:2", False), ("ledger:1", False)]


def test_an_event_at_a_carried_ones_place_is_no_new_version_of_it() -> None:
    (case,) = group_by_key([event(11, "a")], [item_of(event(11, "a"))])
    assert [copy.is_new_version for copy in case.copies] == [False, False]


def test_a_legs_side_never_reaches_the_pairing() -> None:
    item = replace(item_of(row(1)), side=ItemSide.LEGS, item_id="legs:pay-1")
    assert evidence_of(carried=[item]).outcomes == ()


def legs_of(copy: Entry) -> LegsCase:
    """A business transaction of which this cut shows one leg."""
    return LegsCase(transaction_key=copy.transaction_key, seen={copy.leg: (1_000, "EUR", copy.item_id)})


def paired_with(found_as: str) -> MatchResult:
    """An event of this cut, and a row that an earlier one judged so."""
    item = item_of(row(5), ItemState.BROKEN, reason=found_as)
    copies = event(11), row(5, carried=item)
    return MatchResult(case=case_of(*copies), matched=(copies,), residues=())


def test_an_event_that_follows_a_row_one_too_many_begins_no_torn_transaction() -> None:
    """Found by the simulated world: both legs were whole and expired; one was paid again, on both sides."""
    legs = legs_of(event(11))
    assert without_repeats([legs], [paired_with("duplicate_in_ledger")]) == ()
    assert without_repeats([legs], [paired_with("missing_in_topic_never_produced")]) == (legs,)


def test_nor_does_one_whose_row_is_called_one_too_many_in_the_same_cut() -> None:
    extra = UnmatchedItem(
        copy=row(5),
        fate=MatchStatus.EXTRA,
        reason=reason_of(ReasonCode.EXTRA_WAS_FOLLOWED),
        partner=event(11),
    )
    legs = legs_of(event(11))
    outcome = MatchResult(case=case_of(event(11), row(5)), matched=(), residues=(extra,))
    first = replace(outcome, residues=(replace(extra, original=row(4)),))
    assert without_repeats([legs], [outcome]) == ()
    assert without_repeats([legs], [first]) == (legs,)


@pytest.mark.parametrize(("state", "begins_one"), [(ItemState.OPEN, True), (ItemState.BROKEN, False)])
def test_the_first_event_of_a_row_that_was_replaced_begins_one(state: ItemState, begins_one: bool) -> None:
    """Found by the simulated world: the other leg was held back, and by then the log had forgotten this one."""
    extra = UnmatchedItem(
        copy=row(5),
        fate=MatchStatus.EXTRA,
        reason=reason_of(ReasonCode.EXTRA_WAS_FOLLOWED),
        partner=event(11),
        original=replace(row(4), carried=item_of(row(4), state)),
    )
    legs = legs_of(event(11))
    outcome = MatchResult(case=case_of(event(11), row(5)), matched=(), residues=(extra,))
    assert without_repeats([legs], [outcome]) == ((legs,) if begins_one else ())


def test_nor_does_what_repeats_an_event_that_followed_a_row_one_too_many() -> None:
    extra = UnmatchedItem(copy=event(12), fate=MatchStatus.EXTRA, reason=reason_of(ReasonCode.EXTRA_ALONE))
    repeats, stands = replace(extra, original=event(11)), replace(extra, original=event(13))
    legs, outcome = legs_of(event(12)), paired_with("duplicate_in_ledger")
    assert without_repeats([legs], [replace(outcome, residues=(repeats,))]) == ()
    assert without_repeats([legs], [replace(outcome, residues=(stands,))]) == (legs,)


@pytest.mark.parametrize(("of_earlier_cut", "begins_one"), [(True, False), (False, True)])
def test_nor_does_what_takes_back_an_event_of_an_earlier_cut(of_earlier_cut: bool, begins_one: bool) -> None:
    """Found by the simulated world: the log had forgotten all legs when it was due."""
    copy, reversal = event(11), event(12)
    known = replace(copy, carried=item_of(copy)) if of_earlier_cut else copy
    outcome = MatchResult(case=case_of(known, reversal), matched=(), residues=(), netted=((known, reversal),))
    legs = legs_of(reversal)
    assert without_repeats([legs], [outcome]) == ((legs,) if begins_one else ())


def test_nor_does_what_repeats_an_event_of_an_earlier_cut_while_its_row_lies_beyond_the_cut() -> None:
    """Found by the simulated world: by its key it waits, and the log had forgotten the whole transaction."""
    legs, waits = legs_of(event(11)), reason_of(ReasonCode.BEYOND_CUT)
    for place, left in ((RecordLocation.EARLIER_SLICE, ()), (RecordLocation.ABORTED, (legs,))):
        case = replace(case_of(event(11)), lookup_hits=(seen(ItemSide.TOPIC, place, 3),))
        waiting = UnmatchedItem(copy=event(11), fate=MatchStatus.WAITING, reason=waits)
        assert without_repeats([legs], [MatchResult(case=case, matched=(), residues=(waiting,))]) == left


def test_an_event_of_a_torn_transaction_tells_of_it_though_its_cut_holds_all_legs() -> None:
    """Found by the simulated world: the absent leg came beside a repeat of the other, and the break stood for ever."""
    torn, whole = legs_item("pay-of-ev-1", "fee", ItemState.BROKEN), event(12, "ev-2")
    assert list(of_broken_transactions([event(11), whole, row(5)], [torn])) == [event(11)]
    assert list(of_broken_transactions([event(11), whole, row(5)], [legs_item("pay-of-ev-1", "fee")])) == []


def of_before(*cases: LegsCase, outcomes: Sequence[MatchResult] = ()) -> tuple[LegsCase, ...]:
    """The books began below position 100."""
    ends = {TopicPartition(topic="billing.requests", partition=0): 100}
    return with_rows_of_before(
        cases, outcomes, may_be_older=lambda position: 0 <= position < 100, inputs_of_before=ends
    )


@pytest.mark.parametrize(
    ("side", "place", "position", "is_of_before"),
    [
        (ItemSide.LEDGER, RecordLocation.BEFORE_BASELINE, 100, True),
        (ItemSide.LEDGER, RecordLocation.EARLIER_SLICE, 99, True),  # a held horizon left it to the first cut
        (ItemSide.LEDGER, RecordLocation.EARLIER_SLICE, 100, False),
        (ItemSide.LEDGER, RecordLocation.PENDING, 99, False),
        (ItemSide.TOPIC, RecordLocation.BEFORE_BASELINE, 99, False),
    ],
)
def test_a_transaction_is_of_before_where_a_row_of_it_may_be_older_than_the_books(
    side: ItemSide, place: RecordLocation, position: int, is_of_before: bool
) -> None:
    legs, other = legs_of(event(11)), legs_of(event(12, "ev-2"))
    hit = seen(side, place, 1, transaction_id=position)
    outcome = MatchResult(case=case_of(event(11), lookup_hits=[hit]), matched=(), residues=())
    assert of_before(legs, other, outcomes=[outcome]) == (replace(legs, is_of_before=is_of_before), other)


@pytest.mark.parametrize(("partition", "offset", "is_of_before"), [(0, 99, True), (0, 100, False), (1, 99, False)])
def test_so_it_is_where_an_input_of_it_stood_on_the_log_when_the_books_began(
    partition: int, offset: int, is_of_before: bool
) -> None:
    """Found by the simulated world: an open transaction held the input back, and its output repeated an older one."""
    legs, other = legs_of(event(11)), legs_of(event(12, "ev-2"))
    an_input = replace(row(1), item_id=f"ledger:billing.requests:{partition}:{offset}")
    outcome = MatchResult(case=case_of(event(11), an_input), matched=(), residues=())
    assert of_before(legs, other, outcomes=[outcome]) == (replace(legs, is_of_before=is_of_before), other)


def test_it_stays_so_in_the_cuts_that_wait_for_its_other_legs() -> None:
    awaited = replace(
        legs_item("pay-1", "payment"), reason=reason_of(ReasonCode.LEGS_OF_BEFORE_AWAITED, about="invoice")
    )
    (waits,) = group_by_transaction([], [awaited])
    assert of_before(waits) == (replace(waits, is_of_before=True),)
    (plain,) = group_by_transaction([], [legs_item("pay-1", "payment")])
    assert of_before(plain) == (plain,)


def test_it_is_so_by_what_a_later_cut_finds_of_the_row_of_a_leg_that_it_carries() -> None:
    """Found by the simulated world: the look-up found the input only when the leg was due."""
    carried = replace(event(11), carried=item_of(event(11)))
    (waits,) = group_by_transaction([], [legs_item(event(11).transaction_key, event(11).leg)])
    for place, is_of_before in ((RecordLocation.BEFORE_BASELINE, True), (RecordLocation.EARLIER_SLICE, False)):
        hit = seen(ItemSide.LEDGER, place, 1, transaction_id=100)
        outcome = MatchResult(case=case_of(carried, lookup_hits=[hit]), matched=(), residues=())
        assert [one.is_of_before for one in of_before(waits, outcomes=[outcome])] == [is_of_before]


@pytest.mark.parametrize("copy", [event(11), row(1)])
@pytest.mark.parametrize(
    ("fate", "code", "awaited"),
    [
        (MatchStatus.WAITING, ReasonCode.WITHIN_GRACE, MatchStatus.WAITING),
        (MatchStatus.UNSETTLED, ReasonCode.SIDE_HELD_BACK, MatchStatus.UNSETTLED),
        (MatchStatus.UNSETTLED, ReasonCode.BEYOND_EVERY_CUT, None),
        (MatchStatus.UNDECIDABLE, ReasonCode.BEFORE_BASELINE, None),
        (MatchStatus.FOLLOWER_ABSENT, ReasonCode.SETTLED_WITHOUT_IT, None),
    ],
)
def test_a_transaction_has_what_still_waits_for_its_partner(
    copy: Entry, fate: MatchStatus, code: ReasonCode, awaited: MatchStatus | None
) -> None:
    legs, other = legs_of(event(11)), legs_of(event(12, "ev-2"))
    residue = UnmatchedItem(copy=copy, fate=fate, reason=reason_of(code))
    outcome = MatchResult(case=case_of(copy), matched=(), residues=(residue,))
    assert of_before(legs, other, outcomes=[outcome]) == (replace(legs, partner_awaited=awaited), other)
    unsettled = replace(residue, fate=MatchStatus.UNSETTLED, reason=reason_of(ReasonCode.SIDE_HELD_BACK))
    (both, _) = of_before(legs, other, outcomes=[outcome, replace(outcome, residues=(unsettled,))])
    assert both.partner_awaited is MatchStatus.UNSETTLED


@pytest.mark.parametrize(("position", "awaited"), [(99, MatchStatus.UNSETTLED), (100, None)])
def test_nor_does_a_row_beyond_every_cut_tell_unless_it_may_be_older(
    position: int, awaited: MatchStatus | None
) -> None:
    hit = seen(ItemSide.LEDGER, RecordLocation.PENDING, 1, transaction_id=position)
    never = reason_of(ReasonCode.BEYOND_EVERY_CUT)
    residue = UnmatchedItem(copy=event(11), fate=MatchStatus.UNSETTLED, reason=never)
    outcome = MatchResult(case=case_of(event(11), lookup_hits=[hit]), matched=(), residues=(residue,))
    (found,) = of_before(legs_of(event(11)), outcomes=[outcome])
    assert (found.partner_awaited, found.is_of_before) == (awaited, False)


@pytest.mark.parametrize(
    ("fate", "undecided"),
    [
        (MatchStatus.PARTNER_EXPIRED, {"payout"}),
        (MatchStatus.UNDECIDABLE, {"payout"}),
        (MatchStatus.FOLLOWER_ABSENT, set()),
        (MatchStatus.WAITING, set()),
    ],
)
def test_a_row_that_cannot_be_decided_leaves_its_leg_undecided(fate: MatchStatus, undecided: set[str]) -> None:
    legs, other = legs_of(event(11)), legs_of(event(12, "ev-2"))
    residue = UnmatchedItem(copy=row(1), fate=fate, reason=reason_of(ReasonCode.OFFSETS_EXPIRED))
    of_event = UnmatchedItem(copy=event(12, "ev-2"), fate=fate, reason=residue.reason)
    outcome = MatchResult(case=case_of(row(1)), matched=(), residues=(residue, of_event))
    found = with_undecided_rows([legs, other], [outcome], [])
    assert [one.undecided for one in found] == [undecided, set()]
    assert found[0].unread == (undecided if fate is MatchStatus.PARTNER_UNREAD else set())


@pytest.mark.parametrize(("state", "undecided"), [(ItemState.UNDECIDABLE, {"payout"}), (ItemState.OPEN, set())])
def test_so_does_one_that_an_earlier_run_could_not_decide(state: ItemState, undecided: set[str]) -> None:
    (found,) = with_undecided_rows([legs_of(event(11))], [], [item_of(row(1), state), item_of(event(9), state)])
    assert found.undecided == undecided


@pytest.mark.parametrize(
    ("code", "is_of_before"), [(ReasonCode.INPUT_OUT_OF_SIGHT, True), (ReasonCode.WITHIN_GRACE, False)]
)
def test_a_transaction_is_of_before_where_the_input_of_a_leg_may_be(code: ReasonCode, is_of_before: bool) -> None:
    legs, other = legs_of(event(11)), legs_of(event(12, "ev-2"))
    residue = UnmatchedItem(copy=event(11), fate=MatchStatus.PARTNER_EXPIRED, reason=reason_of(code))
    outcome = MatchResult(case=case_of(event(11)), matched=(), residues=(residue,))
    assert of_before(legs, other, outcomes=[outcome]) == (replace(legs, is_of_before=is_of_before), other)
