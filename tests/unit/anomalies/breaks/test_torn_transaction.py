"""A business transaction whose legs are not all committed: torn when that is proven, and only then.

One file, since each case is a reason not to call one torn, beside one that is.
"""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tallystick.anomalies.breaks.torn_transaction import absent_legs, judge_legs, posted_strays, seen_legs
from tallystick.judging.judge import judge
from tallystick.kafka_log.log_walk import Outcome
from tallystick.matching.evidence import Evidence, LegsCase
from tallystick.matching.grouping import group_by_transaction
from tallystick.matching.match_case import LookupHit, MatchStatus, RecordLocation
from tallystick.matching.unreadable_ranges import OutOfSight
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.open_item import ItemState
from tallystick.model.run_result import RunResult
from tallystick.model.verdict import Verdict
from tests.unit.anomalies.builders import LEGS, ORIGINAL
from tests.unit.anomalies.planted import Pair, PlantedCases
from tests.unit.builders import (
    IN_TOPIC,
    MINUTE,
    NOON,
    T2L,
    TOPIC,
    contract_of,
    deadlines_of,
    event,
    evidence_of,
    item_of,
    row,
    seen,
)
from tests.unit.in_memory_books import Books, classes_of, doubts_of


def torn(*late: LookupHit) -> Evidence:
    """A payment whose payout leg is committed; what the log holds of its fee leg."""
    case = LegsCase(
        transaction_key="pay-1", seen={"payout": (1_000, "EUR", ORIGINAL.item_id)}, lookup_hits={"fee": late}
    )
    return evidence_of(contract=contract_of(legs={"payout": TOPIC, "fee": "billing.fees"}), incomplete=(case,))


class TestPlanted(PlantedCases):
    pairs = (
        Pair(
            name=BreakClass.TORN_TRANSACTION,
            fires=torn(),
            twin=torn(seen(IN_TOPIC, RecordLocation.PENDING, 25)),  # the late leg
        ),
    )


def begun(*, index_windows: int | None = None, **legs: str) -> Books:
    books = Books(T2L, legs=legs or LEGS, index_windows=index_windows)
    books.begin()
    return books


def commit(books: Books, leg: str, payment: str = "pay-1", **changes: object) -> None:
    """A leg's event and its row, so that only the transaction can be wrong."""
    books.write(f"{payment}/{leg}", leg=leg, payment=payment, **changes)
    if changes.get("outcome") is not Outcome.ABORTED:
        books.post(f"{payment}/{leg}", leg=leg)


def whole(books: Books, payment: str) -> None:
    for leg in books.legs:
        commit(books, leg, payment)


def run(books: Books, **held: object) -> RunResult:
    """A run beside traffic that is whole."""
    whole(books, f"other-{len(books.cuts)}")
    return books.run(**held)


def alone(**lookup_hits: tuple[LookupHit, ...]) -> LegsCase:
    """A payment leg of this cut, and what a look-up saw of other legs."""
    seen_leg = {"payment": (1_000, "EUR", "topic:billing.payments:0:11")}
    return LegsCase(transaction_key="pay-1", seen=seen_leg, lookup_hits=lookup_hits)


def test_a_leg_is_absent_unless_this_cut_or_an_earlier_one_saw_it_committed() -> None:
    assert absent_legs(alone(), LEGS) == ["invoice"]
    assert absent_legs(alone(invoice=(seen(IN_TOPIC, RecordLocation.ABORTED, 3),)), LEGS) == ["invoice"]
    for place in (RecordLocation.EARLIER_SLICE, RecordLocation.SLICE):
        assert absent_legs(alone(invoice=(seen(IN_TOPIC, place, 3),)), LEGS) == []


@pytest.mark.parametrize(
    ("settled_until_utc", "fate"),
    [(None, MatchStatus.UNSETTLED), (NOON, MatchStatus.UNSETTLED), (NOON + MINUTE, MatchStatus.FOLLOWER_ABSENT)],
)
def test_a_leg_is_proven_absent_once_the_topic_has_settled_past_its_deadline(
    settled_until_utc: datetime | None, fate: MatchStatus
) -> None:
    assert judge_legs(alone(), deadlines_of(topic_settled_until_utc=settled_until_utc)) is fate


@pytest.mark.parametrize(
    ("is_of_before", "lost", "fate"),
    [
        (True, True, MatchStatus.PARTNER_EXPIRED),
        (True, False, MatchStatus.FOLLOWER_ABSENT),
        (False, True, MatchStatus.FOLLOWER_ABSENT),
    ],
)
def test_of_a_transaction_from_before_the_books_no_leg_is_proven_absent_once_the_log_has_lost_anything(
    is_of_before: bool, lost: bool, fate: MatchStatus
) -> None:
    deadlines = deadlines_of(topic_settled_until_utc=NOON + MINUTE, out_of_sight=OutOfSight(legs_of_before_lost=lost))
    assert judge_legs(replace(alone(), is_of_before=is_of_before), deadlines) is fate


@pytest.mark.parametrize(
    ("awaited", "lost", "fate"),
    [
        (MatchStatus.UNSETTLED, True, MatchStatus.UNSETTLED),
        (MatchStatus.WAITING, True, MatchStatus.WAITING),
        (MatchStatus.UNSETTLED, False, MatchStatus.FOLLOWER_ABSENT),
        (None, True, MatchStatus.FOLLOWER_ABSENT),
    ],
)
def test_nor_is_one_while_a_row_may_still_tell_that_it_is_from_before(
    awaited: MatchStatus | None, lost: bool, fate: MatchStatus
) -> None:
    deadlines = deadlines_of(topic_settled_until_utc=NOON + MINUTE, out_of_sight=OutOfSight(legs_of_before_lost=lost))
    assert judge_legs(replace(alone(), partner_awaited=awaited), deadlines) is fate


def test_a_whole_transaction_is_no_break() -> None:
    assert run(begun()).verdict is Verdict.MATCHED


def test_a_transaction_without_one_of_its_legs_is_torn() -> None:
    books = begun()
    commit(books, "payment")
    result = run(books)
    assert classes_of(result) == ["torn_transaction"]
    (found,) = result.breaks
    assert (found.leg, found.amount_minor, found.currency) == ("invoice", 1_000, "EUR")
    assert found.evidence["seen_legs"] == {"payment": "topic:billing.payments:0:0"}


def test_a_leg_that_was_aborted_is_absent() -> None:
    books = begun()
    commit(books, "payment")
    commit(books, "invoice", outcome=Outcome.ABORTED)
    result = run(books)
    assert classes_of(result) == ["torn_transaction"]
    assert [one["place"] for one in result.breaks[0].evidence["found_elsewhere"]] == ["aborted"]


def test_a_transaction_that_lacks_two_legs_is_one_break() -> None:
    books = begun(**LEGS, receipt="billing.receipts")
    commit(books, "payment")
    result = run(books)
    assert [(found.leg, found.amount_minor) for found in result.breaks] == [("invoice+receipt", 1_000)]
    assert "but never its invoice+receipt leg." in result.breaks[0].story
    assert sum(books.outstanding().values()) == 1


def test_legs_that_the_cut_divides_are_no_break() -> None:
    books = begun()
    commit(books, "payment")
    first = run(books, in_grace=True)
    assert (first.verdict, classes_of(first), first.figures.in_flight_items) == (Verdict.MATCHED, [], 1)
    commit(books, "invoice")
    second = run(books)
    assert (second.verdict, second.figures.in_flight_items) == (Verdict.MATCHED, 0)
    assert books.items["legs:pay-1"].state is ItemState.CLEARED


def test_a_leg_that_never_follows_is_torn_when_its_deadline_comes_and_says_where_the_other_stands() -> None:
    books = begun()
    commit(books, "payment")
    run(books, in_grace=True)
    result = run(books)
    assert classes_of(result) == ["torn_transaction"]
    assert result.breaks[0].evidence["seen_legs"] == {"payment": "topic:billing.payments:0:0"}
    assert "payment at topic:billing.payments:0:0" in result.breaks[0].story


def test_a_leg_beyond_the_cut_is_awaited() -> None:
    books = begun()
    commit(books, "payment")
    whole(books, "other")
    commit(books, "invoice")
    assert classes_of(books.run(held_offsets=1, held_xids=1)) == []
    assert run(books).verdict is Verdict.MATCHED
    assert books.items["legs:pay-1"].state is ItemState.CLEARED


def test_a_late_leg_clears_the_break() -> None:
    books = begun()
    commit(books, "payment")
    run(books)
    assert books.outstanding() == {("torn_transaction", "pay-1"): 1}
    commit(books, "invoice")
    late = run(books)
    assert (late.verdict, books.outstanding()) == (Verdict.MATCHED, {})


def test_one_late_leg_of_two_does_not_clear_it_and_both_do() -> None:
    books = begun(**LEGS, receipt="billing.receipts")
    commit(books, "payment")
    run(books)
    commit(books, "receipt")
    assert run(books).verdict is Verdict.MATCHED
    assert books.outstanding() == {("torn_transaction", "pay-1"): 1}
    commit(books, "invoice")
    assert run(books).verdict is Verdict.MATCHED
    assert books.outstanding() == {}


def test_a_torn_transaction_is_reported_once() -> None:
    books = begun()
    commit(books, "payment")
    run(books)
    again = run(books)
    assert (again.verdict, again.breaks, again.items) == (Verdict.MATCHED, (), ())


def test_a_leg_before_the_baseline_is_not_decidable() -> None:
    books = Books(T2L, legs=LEGS)
    books.write("pay-1/payment", leg="payment", payment="pay-1")
    books.begin()
    commit(books, "invoice")
    result = run(books)
    assert (result.verdict, result.figures.undecidable_items) == (Verdict.MATCHED, 1)


def test_a_leg_sent_again_after_its_transaction_was_whole_tears_nothing() -> None:
    books = begun()
    whole(books, "pay-1")
    run(books)
    commit(books, "invoice")
    assert classes_of(run(books)) == ["duplicate_in_topic_new_session"]
    assert "legs:pay-1" not in books.items


@pytest.mark.parametrize("torn_before", [False, True])
def test_a_leg_sent_again_after_the_others_have_expired_tears_nothing(torn_before: bool) -> None:
    books = begun()
    if torn_before:
        commit(books, "payment")
        assert classes_of(run(books)) == ["torn_transaction"]
        commit(books, "invoice")
    else:
        whole(books, "pay-1")
    run(books)
    for topic in LEGS.values():
        books.expire(topic)
    books.write("pay-1/invoice", leg="invoice", payment="pay-1")
    assert classes_of(run(books)) == ["duplicate_in_topic_cause_unknown"]
    assert books.outstanding() == {("duplicate_in_topic_cause_unknown", "pay-1/invoice"): 1}


def test_a_transaction_that_was_torn_and_healed_is_not_torn_by_a_further_event() -> None:
    books = begun()
    commit(books, "payment")
    assert classes_of(run(books)) == ["torn_transaction"]
    commit(books, "invoice")
    run(books)
    for topic in LEGS.values():
        books.expire(topic)
    books.write("pay-1/invoice, corrected", leg="invoice", payment="pay-1")
    books.post("pay-1/invoice, corrected", leg="invoice")
    assert run(books).verdict is Verdict.MATCHED


def test_a_new_leg_without_the_others_is_torn_after_that_too() -> None:
    books = begun()
    run(books)
    for topic in LEGS.values():
        books.expire(topic)
    run(books)
    commit(books, "payment")
    assert classes_of(run(books)) == ["torn_transaction"]


def test_a_topic_that_is_held_back_makes_a_doubt_and_no_break() -> None:
    books = begun()
    commit(books, "payment")
    result = run(books, topic_settled=False)
    assert (classes_of(result), doubts_of(result)) == ([], [Doubt.PARTNER_NOT_SETTLED])


def test_a_transaction_whose_legs_have_all_come_is_in_no_doubt_however_held_the_topic_is() -> None:
    books = begun()
    commit(books, "payment")
    run(books, in_grace=True)
    commit(books, "invoice")
    assert run(books, topic_settled=False).verdict is Verdict.MATCHED


@pytest.mark.parametrize("in_grace", [True, False])
def test_a_leg_that_may_have_expired_unread_is_a_doubt_and_no_break(in_grace: bool) -> None:
    books = begun()
    books.write("pay-1/invoice", leg="invoice", payment="pay-1")
    books.expire("billing.invoices")
    books.write("pay-1/payment", leg="payment", payment="pay-1")
    books.post("pay-1/payment", leg="payment")
    first = run(books, in_grace=in_grace)
    second = run(books)
    assert classes_of(first) + classes_of(second) == []
    assert Doubt.LOG_EXPIRED in doubts_of(first)
    assert Doubt.PARTNER_NOT_SETTLED in doubts_of(second if in_grace else first)
    assert run(books).verdict is Verdict.MATCHED


@pytest.mark.parametrize("windows", [3, 2])
def test_a_leg_that_may_have_expired_unread_some_windows_ago_is_a_doubt_as_long_as_the_books_remember(
    windows: int,
) -> None:
    """Found by the simulated world: the payment was held, or sent by hand, some windows after its invoice was lost."""
    books = begun(index_windows=windows)
    books.write("pay-1/invoice", leg="invoice", payment="pay-1")
    books.expire("billing.invoices")
    assert Doubt.LOG_EXPIRED in doubts_of(run(books))
    run(books)
    run(books)
    commit(books, "payment")
    result = run(books)
    if windows == 3:
        assert (classes_of(result), doubts_of(result)) == ([], [Doubt.PARTNER_NOT_SETTLED])
        assert "Of 1 business transaction nobody can tell" in result.doubts[0].sentence
        assert books.items["legs:pay-1"].state is ItemState.UNDECIDABLE
    else:
        assert classes_of(result) == ["torn_transaction"]


def test_a_transaction_of_young_books_is_torn_though_the_log_began_late_and_retention_goes_on() -> None:
    books = Books(T2L, legs=LEGS)
    whole(books, "pay-1")
    books.expire("billing.invoices")
    books.begin()
    run(books)
    books.expire("billing.payments")
    run(books)
    commit(books, "payment", "pay-2")
    assert classes_of(run(books)) == ["torn_transaction"]


def test_an_event_that_calls_its_leg_by_two_names_stands_for_neither_later() -> None:
    """An item names its legs joined by +; what no contract can call a leg is not among them."""
    seen_leg = {"payment+invoice": (1_000, "EUR", "topic:billing.payments:0:11")}
    case = LegsCase(
        transaction_key="pay-1", seen=seen_leg, lookup_hits={"payment": (seen(IN_TOPIC, RecordLocation.SLICE, 11),)}
    )
    contract, waiting = contract_of(T2L, legs=LEGS), deadlines_of(now_utc=NOON)
    evidence = evidence_of(contract=contract, direction=T2L, incomplete=(case,), deadlines=waiting)
    nothing = {"matched_rows": 0, "matched_money": {}, "content_digests": {}, "look_ups": {}, "carried": ()}
    (item,) = judge(evidence, **nothing).items
    assert (item.state, item.leg) == (ItemState.OPEN, "")
    (later,) = group_by_transaction((), [item])
    assert absent_legs(later, LEGS) == ["invoice", "payment"]


def test_a_leg_is_overdue_from_the_moment_that_it_is_due_and_one_that_waited_has_its_own() -> None:
    case = LegsCase(transaction_key="pay-1", seen={"payout": (1_000, "EUR", f"topic:{TOPIC}:0:11")})
    due = NOON + MINUTE
    assert judge_legs(case, deadlines_of(now_utc=due)) is MatchStatus.FOLLOWER_ABSENT
    assert judge_legs(case, deadlines_of(now_utc=due - timedelta(microseconds=1))) is MatchStatus.WAITING
    waited = replace(case, carried=item_of(event(11), due_utc=due + MINUTE))
    assert judge_legs(waited, deadlines_of(now_utc=due)) is MatchStatus.WAITING
    assert judge_legs(waited, deadlines_of(now_utc=due + MINUTE)) is MatchStatus.FOLLOWER_ABSENT


@pytest.mark.parametrize(
    ("undecided", "committed", "fate"),
    [
        ({"invoice"}, False, MatchStatus.PARTNER_EXPIRED),
        ({"payment"}, False, MatchStatus.FOLLOWER_ABSENT),  # which is seen, whatever its row
        ({"invoice"}, True, MatchStatus.FOLLOWER_ABSENT),
        (set(), False, MatchStatus.FOLLOWER_ABSENT),
    ],
)
def test_nobody_knows_of_an_absent_leg_whose_row_is_undecidable(
    undecided: set[str], committed: bool, fate: MatchStatus
) -> None:
    case = alone(invoice=(seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 3),)) if committed else alone()
    case = replace(case, undecided=frozenset(undecided))
    assert judge_legs(case, deadlines_of(out_of_sight=OutOfSight(legs_of_before_lost=True))) is fate
    assert judge_legs(case, deadlines_of()) is MatchStatus.FOLLOWER_ABSENT


@pytest.mark.parametrize(
    ("leg", "fate"), [("invoice", MatchStatus.PARTNER_EXPIRED), ("payment", MatchStatus.FOLLOWER_ABSENT)]
)
def test_nor_of_one_whose_event_stands_and_cannot_be_read_as_one(leg: str, fate: MatchStatus) -> None:
    """Whatever the topics have lost. The leg that is seen was read."""
    case = replace(alone(), undecided=frozenset({leg}), unread=frozenset({leg}))
    assert judge_legs(case, deadlines_of()) is fate


@pytest.mark.parametrize(
    ("lost", "new", "waited"),
    [
        (3, MatchStatus.FOLLOWER_ABSENT, MatchStatus.PARTNER_EXPIRED),
        (5, MatchStatus.PARTNER_EXPIRED, MatchStatus.FOLLOWER_ABSENT),
    ],
)
def test_whether_a_leg_may_be_lost_is_asked_of_the_cut_that_saw_the_others_first(
    lost: int, new: MatchStatus, waited: MatchStatus
) -> None:
    deadlines = deadlines_of(cut_n=5, out_of_sight=OutOfSight(legs_lost=frozenset({lost})))
    carried = replace(alone(), carried=item_of(event(11), cut_n=3))
    assert (judge_legs(alone(), deadlines), judge_legs(carried, deadlines)) == (new, waited)


@pytest.mark.parametrize(
    ("place", "posted", "answers"),
    [
        (RecordLocation.STRAY, ("fee", "tip"), ["ledger:1", "ledger:2"]),
        (RecordLocation.STRAY, ("fee",), []),
        (RecordLocation.STRAY, (), []),
        (RecordLocation.ABORTED, ("fee", "tip"), []),
    ],
    ids=["each strayed leg was posted", "one of two was", "none was", "no leg strays"],
)
def test_rows_answer_for_strayed_legs_only_where_each_leg_has_one(
    place: RecordLocation, posted: tuple[str, ...], answers: list[str]
) -> None:
    strays = {leg: (seen(IN_TOPIC, place, 4, topic="billing.refunds"),) for leg in ("fee", "tip")}
    case = LegsCase(transaction_key="pay-1", seen={"payout": (1_000, "EUR", ORIGINAL.item_id)}, lookup_hits=strays)
    rows = [replace(row(n, f"ev-{n}"), transaction_key="pay-1", leg=leg) for n, leg in enumerate(posted, start=1)]
    contract = contract_of(T2L, legs={"payout": TOPIC, "fee": "billing.fees", "tip": "billing.tips"})
    evidence = evidence_of(*rows, direction=T2L, contract=contract)
    assert [one.item_id for one in posted_strays(contract, evidence.unmatched, case)] == answers


def test_a_leg_of_an_earlier_cut_that_no_look_up_found_stood_at_an_earlier_offset() -> None:
    item = item_of(event(11))
    waited = LegsCase(transaction_key="pay-1", seen={"payout": (1_000, "EUR", item.item_id)}, carried=item)
    assert seen_legs(waited) == "payout at an earlier offset"
    found = replace(waited, lookup_hits={"payout": (seen(IN_TOPIC, RecordLocation.EARLIER_SLICE, 3),)})
    assert seen_legs(found) == "payout at topic:billing.payouts:0:3"
