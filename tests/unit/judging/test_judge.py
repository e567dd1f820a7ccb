"""From evidence to a result: the verdict, what each open item becomes, and a digest that only facts change.

One file, since each item of a result is told by the same small evidence.
"""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from tallystick.kafka_cluster.state import ClusterState, ExecutedAction, TopicSettings, UnreadExpiry
from tallystick.ledger.protocol import HorizonHolder
from tallystick.matching.evidence import Evidence, LegsCase
from tallystick.matching.match_case import Entry, MatchResult, RecordLocation
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.item_reason import ReasonCode, break_reason, reason_of
from tallystick.model.open_item import ItemSide, ItemState, OpenItem
from tallystick.model.partner_lag import lags_of_pairs
from tallystick.model.run_result import RunResult
from tallystick.model.verdict import Verdict
from tests.unit.builders import (
    HOUR,
    IN_TOPIC,
    L2T,
    LEDGER,
    MINUTE,
    NOON,
    PART,
    T2L,
    T2T,
    TOPIC,
    case_of,
    census_of,
    contract_of,
    cut_of,
    deadlines_of,
    event,
    evidence_of,
    item_of,
    ledger_at,
    ledger_slice_of,
    partition_at,
    row,
    seen,
    slice_of,
    with_facts,
)
from tests.unit.cluster_settings import KEPT
from tests.unit.in_memory_books import Books
from tests.unit.judging.results import judged


def test_a_break_outweighs_a_doubt_and_both_are_told() -> None:
    result = judged(replace(evidence_of(row(1)), census=()))
    assert result.verdict is Verdict.BROKEN
    assert [found.doubt for found in result.doubts] == [Doubt.UNEXPLAINED_GAP]


def test_breaks_stand_in_order_of_class_and_key() -> None:
    result = judged(
        evidence_of(event(12, "b"), row(2, "z"), row(1, "y"), event(11, "a"), event(13, "x", 1), row(3, "x", 2))
    )
    assert [(str(found.break_class)[:7], found.match_key) for found in result.breaks] == [
        ("amount_", "x"),
        ("missing", "y"),
        ("missing", "z"),
        ("phantom", "a"),
        ("phantom", "b"),
    ]


def test_a_result_says_what_it_is_about_and_tells_all_that_was_found() -> None:
    evidence = with_facts(evidence_of(row(1)), differently_written=3, unreadable_count=4)
    result = judged(evidence, look_ups={"older_rows": 40})
    assert (result.contract, result.cut_n) == (evidence.contract.name, evidence.cut.n)
    assert [str(found.notice) for found in result.notices] == ["representation_differs"]
    assert (result.look_ups, result.figures.census) == ({"older_rows": 40}, evidence.census)
    assert result.figures.unreadable_records == 4
    assert (result.lag.grace, result.lag.topics) == (evidence.grace, ())


def test_without_a_class_nothing_is_known() -> None:
    assert judged(evidence_of(row(1)), classes=()).verdict is Verdict.INCONCLUSIVE


def written(entry: Entry, written_ms: int) -> Entry:
    return replace(entry, written_ms=written_ms)


@pytest.mark.parametrize(("direction", "ledger_ms", "topic_ms"), [(T2L, 6_000, 1_000), (L2T, 1_000, 6_000)])
def test_the_lag_is_how_much_later_the_follower_was_written(
    direction: Direction, ledger_ms: int, topic_ms: int
) -> None:
    late, early = written(row(1), ledger_ms), written(event(11), topic_ms)
    waiting = replace(item_of(early), written_ms=topic_ms)
    for evidence in (
        evidence_of(late, carried=[waiting], direction=direction),
        evidence_of(late, early, written(row(2), ledger_ms), direction=direction),
    ):
        assert judged(evidence).lag.topics == lags_of_pairs([("billing.payouts", 5_000)])


def test_a_pair_that_the_scan_has_counted_is_not_counted_again_and_one_without_times_has_no_lag() -> None:
    assert judged(evidence_of(written(row(1), 1), written(event(11), 9))).lag.topics == ()
    for topic_ms, ledger_ms in ((None, 9), (9, None)):
        waiting = replace(item_of(row(1)), written_ms=ledger_ms)
        evidence = evidence_of(replace(event(11), written_ms=topic_ms), carried=[waiting])
        assert judged(evidence, carried=[waiting]).lag.topics == ()


# What becomes of items.


def test_a_copy_that_waits_becomes_an_open_item_with_the_cuts_deadline() -> None:
    result = judged(evidence_of(row(1), deadlines=deadlines_of(now_utc=NOON)))
    (item,) = result.items
    assert (item.state, item.item_id, item.side, item.first_seen_cut) == (ItemState.OPEN, "ledger:1", LEDGER, 2)
    assert (item.first_seen_utc, item.due_utc) == (NOON, NOON + MINUTE)
    assert (item.pairable, item.break_id, item.reason.stored) == (True, None, "within the partner's grace")


def test_a_broken_item_names_its_break_and_class_and_stays_pairable() -> None:
    result = judged(evidence_of(row(1)))
    (item,), (found,) = result.items, result.breaks
    assert (item.state, item.pairable, item.break_id) == (ItemState.BROKEN, True, found.break_id)
    assert item.reason.stored == "missing_in_topic_never_produced"
    assert (item.found_as, item.cleared_by) == (found.break_class, "")


def test_an_item_says_what_its_copy_says() -> None:
    (item,) = judged(evidence_of(replace(row(1, "a", 7, "JPY"), written_ms=5))).items
    assert (item.match_key, item.transaction_key, item.leg) == ("a", "pay-of-a", "payout")
    assert (item.amount_minor, item.currency, item.written_ms) == (7, "JPY", 5)


def test_an_item_that_is_broken_later_names_its_class() -> None:
    waiting = item_of(row(1), due_utc=NOON - HOUR)
    result = judged(evidence_of(carried=[waiting]), carried=[waiting])
    (item,), (found,) = result.items, result.breaks
    assert (item.found_as, item.break_id) == (found.break_class, found.break_id)


@pytest.mark.parametrize("state", [ItemState.BROKEN, ItemState.WRITTEN_OFF])
def test_a_row_too_many_stays_one_where_an_event_follows_it_that_differs(state: ItemState) -> None:
    surplus = item_of(row(2), state, reason="duplicate_in_ledger", break_id=uuid4())
    result = judged(evidence_of(event(11, amount_minor=5), carried=[surplus]), carried=[surplus])
    items, (found,) = {item.item_id: item for item in result.items}, result.breaks
    kept, new = items[surplus.item_id], items["topic:billing.payouts:0:11"]
    assert (kept.state, kept.found_as, kept.break_id) == (state, surplus.found_as, surplus.break_id)
    assert (kept.pairable, kept.cleared_by) == (False, new.item_id)
    assert (new.state, new.break_id, new.pairable) == (ItemState.BROKEN, found.break_id, False)
    assert found.break_class == "amount_mismatch"


@pytest.mark.parametrize("state", [ItemState.BROKEN, ItemState.WRITTEN_OFF])
def test_a_row_too_many_stays_what_it_was_judged_where_an_event_follows_it(state: ItemState) -> None:
    surplus = item_of(row(2), state, reason="duplicate_in_ledger", break_id=uuid4())
    (item,) = judged(evidence_of(event(11), carried=[surplus]), carried=[surplus]).items
    assert (item.state, item.reason, item.cleared_by) == (state, surplus.reason, "topic:billing.payouts:0:11")
    missing = item_of(row(2), state, reason="missing_in_topic_never_produced", break_id=uuid4())
    (item,) = judged(evidence_of(event(11), carried=[missing]), carried=[missing]).items
    assert (item.state, item.reason.stored) == (ItemState.CLEARED, "its partner came")


def test_an_item_that_is_as_it_was_has_no_row() -> None:
    waiting = item_of(row(1), due_utc=NOON + 2 * HOUR)
    assert judged(evidence_of(carried=[waiting]), carried=[waiting]).items == ()


def test_an_item_keeps_when_it_was_first_seen_and_due() -> None:
    waiting = item_of(row(1), due_utc=NOON - HOUR)
    (item,) = judged(evidence_of(carried=[waiting]), carried=[waiting]).items
    assert (item.state, item.first_seen_cut, item.due_utc) == (ItemState.BROKEN, 1, NOON - HOUR)


def test_an_item_whose_partner_came_is_cleared_by_it() -> None:
    waiting = item_of(row(1))
    result = judged(evidence_of(event(11), carried=[waiting]), carried=[waiting])
    (item,) = result.items
    assert (item.state, item.cleared_by, item.pairable) == (ItemState.CLEARED, "topic:billing.payouts:0:11", False)
    assert result.figures.matched_rows == 8


def test_a_written_off_item_whose_partner_came_is_cleared() -> None:
    given_up = item_of(row(1), ItemState.WRITTEN_OFF)
    (item,) = judged(evidence_of(event(11), carried=[given_up]), carried=[given_up]).items
    assert item.state is ItemState.CLEARED


def test_a_carried_follower_whose_row_is_one_too_many_is_cleared_and_the_row_is_broken() -> None:
    waiting = item_of(event(11))
    result = judged(evidence_of(row(1), row(2), event(12), carried=[waiting]), carried=[waiting])
    assert {item.item_id: item.state for item in result.items} == {
        "ledger:2": ItemState.BROKEN,
        "topic:billing.payouts:0:11": ItemState.CLEARED,
    }


def test_a_carried_follower_whose_row_comes_with_another_amount_is_cleared_and_the_row_is_broken() -> None:
    waiting = item_of(event(11, amount_minor=9))
    result = judged(evidence_of(row(1), carried=[waiting]), carried=[waiting])
    assert {item.item_id: (item.state, item.reason.stored) for item in result.items} == {
        "ledger:1": (ItemState.BROKEN, "amount_mismatch"),
        "topic:billing.payouts:0:11": (ItemState.CLEARED, "its partner came"),
    }


@pytest.mark.parametrize(
    ("evidence", "pairable"),
    [
        pytest.param(evidence_of(row(1)), True, id="missing"),
        pytest.param(evidence_of(event(11)), True, id="phantom"),
        pytest.param(evidence_of(row(1), event(11), event(12)), False, id="a follower too many"),
        pytest.param(evidence_of(row(1), row(2), event(11)), True, id="an origin too many, not followed"),
        pytest.param(evidence_of(row(1), row(2), event(11), event(12)), False, id="an origin too many, followed"),
        pytest.param(evidence_of(row(1, amount_minor=1), event(11)), False, id="a mismatch"),
        pytest.param(
            evidence_of(row(1), lookup_hits=[seen(IN_TOPIC, RecordLocation.BEFORE_BASELINE, 1)]),
            False,
            id="before the baseline",
        ),
        pytest.param(evidence_of(row(1), deadlines=deadlines_of(topic_lost_offsets=True)), True, id="expired, maybe"),
        pytest.param(
            evidence_of(row(1), lookup_hits=[seen(IN_TOPIC, RecordLocation.SLICE, 14)]), True, id="unreadable"
        ),
    ],
)
def test_a_later_arrival_may_be_the_partner_of_what_has_none(evidence: Evidence, pairable: bool) -> None:
    (item,) = judged(evidence).items
    assert item.pairable is pairable


@pytest.mark.parametrize("direction", [L2T, T2L], ids=str)
def test_every_broken_item_answers_for_a_break(direction: object) -> None:
    evidence = evidence_of(
        event(11, "a"), row(1, "b"), event(12, "c", 1), row(2, "c", 2), event(13, "d"), event(14, "d"), row(3, "d"),
        event(15, "e"), row(4, "e"), row(5, "e"), direction=direction,
    )  # fmt: skip
    result = judged(evidence)
    assert {item.break_id for item in result.items} == {found.break_id for found in result.breaks}
    assert len(result.breaks) == 5


def test_a_copy_too_many_that_was_taken_back_is_cleared_by_the_action_and_a_new_one_leaves_no_item() -> None:
    surplus = item_of(event(12), ItemState.BROKEN, reason="duplicate_in_topic_zombie", break_id=uuid4())
    for carried in (surplus, None):
        copy, reversal = event(12, carried=carried), replace(event(13), action_id="an-id")
        netted = MatchResult(case=case_of(copy, reversal), matched=(), residues=(), netted=((copy, reversal),))
        cleared = {"state": ItemState.CLEARED, "pairable": False, "cleared_by": "action:an-id"}
        expected = replace(surplus, reason=reason_of(ReasonCode.TAKEN_BACK), **cleared)
        assert judged(with_facts(evidence_of(), outcomes=(netted,))).items == ((expected,) if carried else ())


def test_a_break_of_two_topics_is_told_of_inputs_and_one_of_a_ledger_of_rows() -> None:
    gap = {"census": (census_of(slice_of(10, 20), unexplained=1),)}
    told = [judged(evidence_of(row(1), direction=direction, **gap)) for direction in (T2T, L2T)]
    assert ["input topic" in result.breaks[0].story for result in told] == [True, False]
    assert [result.breaks[0].story.startswith("The input topic committed") for result in told] == [True, False]
    moved = [
        judged(with_facts(evidence_of(direction=direction), census=(), ledger_rows=0)).doubts
        for direction in (T2T, L2T)
    ]
    assert [any("input" in found.sentence for found in doubts) for doubts in moved] == [True, False]
    assert {found.sentence for found in moved[1]} & {found.sentence for found in moved[0]}


# The legs of one business transaction.

TWO_LEGS = contract_of(legs={"payout": TOPIC, "fee": "billing.fees"})
PAYOUT, FEE = (1_000, "EUR", f"topic:{TOPIC}:0:11"), (70, "EUR", "topic:billing.fees:0:5")


def with_legs(case: LegsCase, **about: Any) -> RunResult:
    carried = [case.carried] if case.carried else []
    return judged(evidence_of(contract=TWO_LEGS, incomplete=(case,), **about), carried=carried)


def test_a_torn_transaction_is_one_item_that_names_the_legs_that_were_seen() -> None:
    result = with_legs(LegsCase(transaction_key="pay-1", seen={"payout": PAYOUT}))
    (item,), (found,) = result.items, result.breaks
    assert item == OpenItem(
        item_id="legs:pay-1",
        side=ItemSide.LEGS,
        match_key="pay-1",
        transaction_key="pay-1",
        leg="payout",
        amount_minor=1_000,
        currency="EUR",
        first_seen_cut=2,
        first_seen_utc=NOON,
        due_utc=deadlines_of().new_copies_due_utc,
        state=ItemState.BROKEN,
        reason=break_reason(found.break_class),
        pairable=True,
        break_id=found.break_id,
        found_as=found.break_class,
    )


def test_a_transaction_whose_leg_may_come_waits_and_says_for_which() -> None:
    result = with_legs(LegsCase(transaction_key="pay-1", seen={"payout": PAYOUT}), deadlines=deadlines_of(now_utc=NOON))
    (item,) = result.items
    assert (result.breaks, item.state, item.break_id, item.found_as) == ((), ItemState.OPEN, None, None)
    assert item.reason == reason_of(ReasonCode.LEGS_AWAITED, about="fee")


@pytest.mark.parametrize("is_of_before", [False, True])
def test_one_that_waits_says_so_anew_only_once_it_is_known_to_be_older_than_the_books(is_of_before: bool) -> None:
    case, waiting = LegsCase(transaction_key="pay-1", seen={"payout": PAYOUT}), deadlines_of(now_utc=NOON)
    (carried,) = with_legs(case, deadlines=waiting).items
    later = replace(case, carried=carried, is_of_before=is_of_before)
    said = with_legs(later, deadlines=waiting).items
    assert [one.reason for one in said] == (
        [reason_of(ReasonCode.LEGS_OF_BEFORE_AWAITED, about="fee")] if is_of_before else []
    )
    for known in said:
        assert with_legs(replace(later, carried=known, is_of_before=False), deadlines=waiting).items == ()


@pytest.mark.parametrize("state", [ItemState.OPEN, ItemState.BROKEN])
def test_a_transaction_keeps_when_it_was_first_seen_and_its_break_when_its_legs_come(state: ItemState) -> None:
    (open_item,) = with_legs(LegsCase(transaction_key="pay-1", seen={"payout": PAYOUT})).items
    answers = {} if state is ItemState.BROKEN else {"break_id": None, "found_as": None}
    times = {"first_seen_utc": NOON - HOUR, "due_utc": NOON - HOUR + MINUTE}
    carried = replace(open_item, state=state, first_seen_cut=1, **times, **answers)
    (item,) = with_legs(LegsCase(transaction_key="pay-1", seen={"payout": PAYOUT, "fee": FEE}, carried=carried)).items
    assert (item.state, item.reason, item.pairable) == (ItemState.CLEARED, reason_of(ReasonCode.LEGS_CAME), False)
    assert (item.first_seen_cut, item.first_seen_utc, item.due_utc) == (1, NOON - HOUR, NOON - HOUR + MINUTE)
    assert (item.break_id, item.found_as) == (carried.break_id, carried.found_as)
    assert (item.leg, item.cleared_by) == ("fee+payout", f"{PAYOUT[2]},{FEE[2]}")


STRAYED_FEE = LegsCase(
    transaction_key="pay-1",
    seen={"payout": PAYOUT},
    lookup_hits={"fee": (seen(IN_TOPIC, RecordLocation.STRAY, 4, topic="billing.refunds"),)},
)


def strayed(fee_row: Entry, case: LegsCase = STRAYED_FEE, **about: Any) -> tuple[RunResult, OpenItem]:
    """A transaction whose fee leg is on another topic, and was posted from there; with the transaction's own item."""
    contract = contract_of(T2L, legs={"payout": TOPIC, "fee": "billing.fees"})
    evidence = evidence_of(
        replace(fee_row, transaction_key="pay-1", leg="fee"),
        direction=T2L,
        contract=contract,
        incomplete=(case,),
        lookup_hits=case.lookup_hits["fee"],
        **about,
    )
    result = judged(evidence, carried=[fee_row.carried] if fee_row.carried else [])
    (item,) = [one for one in result.items if one.item_id == "legs:pay-1"]
    return result, item


def test_a_transaction_whose_leg_strayed_and_was_posted_from_there_answers_for_the_rows_break() -> None:
    result, item = strayed(row(5, "ev-fee"))
    (found,) = result.breaks
    assert (found.evidence["at"], item.state) == ("ledger:5", ItemState.BROKEN)
    assert (item.break_id, item.found_as) == (found.break_id, found.break_class)
    assert item.reason == reason_of(ReasonCode.LEGS_STRAYED, about="fee")


@pytest.mark.parametrize("answers", [{}, {"break_id": uuid4(), "found_as": BreakClass.MISROUTED_IN_TOPIC}])
def test_it_waits_with_its_row_unless_an_earlier_run_called_that_broken(answers: dict[str, Any]) -> None:
    waiting = item_of(row(5, "ev-fee"), due_utc=NOON + 2 * HOUR)
    carried = replace(waiting, **answers)
    result, item = strayed(row(5, "ev-fee", carried=carried))
    state = ItemState.BROKEN if answers else ItemState.OPEN
    assert (result.breaks, item.state) == ((), state)
    assert (item.break_id, item.found_as) == (answers.get("break_id"), answers.get("found_as"))
    assert item.reason == reason_of(ReasonCode.LEGS_STRAYED, about="fee")


# Figures.


def test_figures_count_what_is_in_flight_after_the_run() -> None:
    waiting, due = item_of(row(1, "a", 5, "JPY"), due_utc=NOON + 2 * HOUR), item_of(row(2, "b", 7, "JPY"))
    broken = item_of(row(4, "d", 9), ItemState.BROKEN)
    result = judged(
        evidence_of(
            event(11, "c", 3), carried=[waiting, due, broken], lookup_hits=[seen(LEDGER, RecordLocation.PENDING, 3)]
        ),
        carried=[waiting, due, broken],
    )
    figures = result.figures
    assert (figures.carried_items, figures.in_flight_items) == (2, 2)
    assert figures.in_flight_money == {"EUR": 3, "JPY": 5}


def test_matched_money_joins_what_the_scan_paired_and_what_the_items_did() -> None:
    waiting = item_of(row(1, "ev-1", 11))
    figures = judged(evidence_of(event(11, "ev-1", 11), carried=[waiting]), carried=[waiting]).figures
    assert figures.matched_money == {"EUR": 111}


# The digest.


def digest(evidence: Evidence, **changes: Any) -> str:
    return judged(evidence, **changes).digest


def test_the_digest_of_a_stored_cut_does_not_change_from_one_version_to_the_next() -> None:
    assert digest(BEFORE) == "fe3bdbcb18dcaa9484c7cac38a87ba7af57bb0359218bffe13daebdee10d8dcf"
    assert (
        digest(evidence_of(event(11), event(12), row(1, "ev-2"), cut=cut_of(slice_of(10, 20, mark=27))))
        == "ac769de045e80b7e2cdcad3e68f4f5989c1b9bdd9ec81070a55cfb5b3d587daa"
    )


def test_the_digest_does_not_depend_on_the_order_of_rows() -> None:
    copies = [row(1, "a"), row(2, "b"), event(11, "b"), event(12, "b")]
    assert digest(evidence_of(*copies)) == digest(evidence_of(*reversed(copies)))


def test_the_digest_does_not_depend_on_who_held_a_side_or_on_what_the_look_ups_answered_besides() -> None:
    held = evidence_of(cut=cut_of(slice_of(10, 20, mark=27), ledger_slice=ledger_slice_of(200, 300, mark=301)))
    assert digest(held) == digest(held, look_ups={"older_rows": 3})
    assert digest(held) == digest(
        with_facts(held, horizon_holder=HorizonHolder(position=300, holder="session 7", since=NOON))
    )
    moved = replace(held.cut.ledger_slice, snapshot=ledger_at(999))
    assert digest(held) == digest(with_facts(held, cut=replace(held.cut, ledger_slice=moved), previous_ledger=None))


BEFORE = evidence_of(row(1))


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(evidence_of(row(1), cut=cut_of(n=3)), id="another cut"),
        pytest.param(evidence_of(row(1), cut=cut_of(slice_of(10, 21))), id="other offsets"),
        pytest.param(evidence_of(row(1), cut=cut_of(ledger_slice=ledger_slice_of(200, 301))), id="other ids"),
        pytest.param(evidence_of(row(1, "ev-2")), id="another break"),
        pytest.param(evidence_of(row(1), deadlines=deadlines_of(now_utc=NOON)), id="another verdict"),
        pytest.param(with_facts(BEFORE, topic_rows=8), id="another count"),
        pytest.param(replace(BEFORE, census=()), id="another census"),
        pytest.param(replace(BEFORE, contract=contract_of(version=2)), id="another contract"),
    ],
)
def test_the_digest_changes_with_what_was_read_or_concluded(after: Evidence) -> None:
    assert digest(BEFORE) != digest(after)


def test_the_digest_changes_with_why_an_item_waits() -> None:
    in_grace = evidence_of(row(1), deadlines=deadlines_of(now_utc=NOON))
    beyond = evidence_of(row(1), lookup_hits=[seen(IN_TOPIC, RecordLocation.PENDING, 25)])
    assert judged(in_grace).figures == judged(beyond).figures
    assert digest(in_grace) != digest(beyond)


def test_the_digest_changes_with_the_bytes_that_were_read() -> None:
    assert digest(BEFORE) != digest(BEFORE, content_digests={"topic": "1", "ledger": "3"})
    assert digest(BEFORE) != digest(BEFORE, matched_rows=6)


def test_a_doubt_is_part_of_the_digest() -> None:
    gap = with_facts(BEFORE, previous_ledger=ledger_at(200, timeline=2))
    assert isinstance(judged(gap).doubts[0], DoubtFound)
    assert digest(BEFORE) != digest(gap)


# Rows that were written anew.


@pytest.mark.parametrize("state", [ItemState.BROKEN, ItemState.WRITTEN_OFF])
def test_a_judged_row_that_was_written_anew_is_not_judged_again_and_keeps_its_break(state: ItemState) -> None:
    item = item_of(row(1), state, break_id=uuid4(), pairable=False, reason="duplicate_in_ledger")
    result = judged(evidence_of(row(1, amount_minor=900), carried=[item]), carried=[item])
    assert result.breaks == ()
    assert result.items == (replace(item, amount_minor=900),)


def test_a_judged_row_that_was_written_anew_as_it_was_has_no_new_row() -> None:
    item = item_of(row(1), ItemState.BROKEN, break_id=uuid4())
    assert judged(evidence_of(row(1), carried=[item]), carried=[item]).items == ()


def test_an_open_row_that_was_written_anew_keeps_its_deadline_and_waits_with_its_new_amount() -> None:
    item = item_of(row(1), due_utc=NOON + 4 * HOUR)
    (change,) = judged(evidence_of(row(1, amount_minor=900), carried=[item]), carried=[item]).items
    assert change == replace(item, amount_minor=900)
    anew = replace(row(1, "b", 9, "JPY"), transaction_key="pay-b", leg="fee", written_ms=5)
    (change,) = (one for one in judged(evidence_of(anew, carried=[item]), carried=[item]).items if one.match_key == "b")
    assert (change.transaction_key, change.leg, change.amount_minor) == ("pay-b", "fee", 9)
    assert (change.currency, change.written_ms) == ("JPY", 5)


def test_an_open_row_that_was_written_anew_pairs_with_an_event_of_what_it_says_now() -> None:
    item = item_of(row(1))
    result = judged(evidence_of(row(1, amount_minor=900), event(11, amount_minor=900), carried=[item]), carried=[item])
    assert (result.breaks, [one.state for one in result.items]) == ((), [ItemState.CLEARED])


def test_a_broken_row_that_was_written_anew_beside_an_event_of_other_money_is_a_mismatch() -> None:
    item = item_of(row(1), ItemState.BROKEN, break_id=uuid4(), reason="missing_in_topic_never_produced")
    result = judged(evidence_of(row(1, amount_minor=900), event(11), carried=[item]), carried=[item])
    assert [str(one.break_class) for one in result.breaks] == ["amount_mismatch"]


@pytest.mark.parametrize(
    ("read", "found"),
    [
        ((row(1, amount_minor=900), event(11)), "amount_mismatch"),
        ((row(1, amount_minor=900),), "compensation_not_effective"),
        ((), "compensation_not_effective"),
    ],
)
def test_a_broken_row_that_was_repaired_has_one_row_whatever_is_found_of_it(
    read: tuple[Entry, ...], found: str
) -> None:
    item = item_of(row(1), ItemState.BROKEN, break_id=uuid4(), reason="missing_in_topic_never_produced")
    action = ExecutedAction(action_id=uuid4(), executed_utc=NOON - HOUR, item=item)
    evidence = evidence_of(*read, carried=[item], cluster=ClusterState(actions=(action,)))
    result = judged(evidence, carried=[item])
    assert found in {str(one.break_class) for one in result.breaks}
    assert [one.item_id for one in result.items] == [item.item_id]


def test_a_repair_that_was_without_effect_clears_its_item_by_nothing() -> None:
    item = item_of(row(1), ItemState.BROKEN, break_id=uuid4(), reason="missing_in_topic_never_produced")
    action = ExecutedAction(action_id=uuid4(), executed_utc=NOON - HOUR, item=item)
    (told,) = judged(evidence_of(carried=[item], cluster=ClusterState(actions=(action,))), carried=[item]).items
    assert (told.state, told.cleared_by) == (ItemState.BROKEN, "")


def test_matched_money_is_counted_per_currency() -> None:
    books = Books(L2T)
    books.begin()
    for key, amount_minor, currency in (("a", 2**53 + 1, "EUR"), ("b", 2**53, "EUR"), ("c", -7, "JPY")):
        books.post(key, amount_minor, currency)
    books.run(in_grace=True)
    for key, amount_minor, currency in (("a", 2**53 + 1, "EUR"), ("b", 2**53, "EUR"), ("c", -7, "JPY")):
        books.write(key, amount_minor, currency)
    figures = books.run().figures
    assert figures.matched_money == {"EUR": 2**54 + 1, "JPY": -7}
    assert (figures.in_flight_items, figures.in_flight_money) == (0, {})
    assert books.results[0].figures.in_flight_money == {"EUR": 2**54 + 1, "JPY": -7}


@pytest.mark.parametrize("settings", [(KEPT,), ()], ids=["read", "not read"])
def test_a_result_names_by_class_the_places_that_its_run_could_not_look_at(settings: tuple[TopicSettings, ...]) -> None:
    foreseen = UnreadExpiry(topic_partition=PART, kafka_offset=20, expires_utc=NOON + 9 * HOUR)
    around = ClusterState(
        topic_settings=settings,
        partitions_after=(partition_at(high_watermark=21),),
        expiries=(foreseen,) * len(settings),
    )
    unseen = {"promise_at_risk": {TOPIC}, "retention_overtakes": {str(PART)}}
    assert judged(evidence_of(cluster=around)).unseen == ({} if settings else unseen)
