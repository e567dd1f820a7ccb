"""What is planned from a run's breaks, and what is left out by name and reason.

One file, since each reason to leave a break out is one line of the same list.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from tallystick.compensation.approval_rules import why_two_people
from tallystick.compensation.plan import (
    Candidate,
    CompensationOff,
    CurrentRow,
    DailyUsage,
    OffsetsUnread,
    Plan,
    RepairKind,
    action_id_of,
)
from tallystick.compensation.planning import make_plan
from tallystick.contract.contract import Contract
from tallystick.model.finding_names import COPIES_DIFFER, BreakClass, Doubt
from tallystick.model.findings import DoubtFound, break_id
from tests.unit.compensation.plans import (
    DOUBLED,
    HANDS_OVER,
    NEVER_PRODUCED,
    PHANTOM,
    TAKES_BACK,
    candidate,
    contract,
    describe_plan,
    plan,
    row,
    run,
)

COMPENSATED = BreakClass.DUPLICATE_IN_TOPIC_COMPENSATED


def reasons(planned: Plan) -> dict[str, str]:
    return {one.match_key: one.reason for one in planned.left_out}


def test_a_missing_event_is_planned_from_its_ledger_row() -> None:
    planned = plan(candidate("a"))
    (item,) = planned.items
    assert item.row == row("a").source
    assert (item.topic, item.break_class) == ("billing.payouts", NEVER_PRODUCED)
    assert item.action_id == action_id_of("payouts", item.break_id)
    assert planned.money_minor == {"EUR": 100}
    assert planned.left_out == ()
    assert planned.dry_run


def test_the_order_of_the_candidates_changes_nothing() -> None:
    three = candidate("c", cut_n=2), candidate("a"), candidate("b")
    assert plan(*three) == plan(*reversed(three))
    assert [item.match_key for item in plan(*three).items] == ["c", "a", "b"]


def test_what_is_over_the_number_of_events_is_left_out_by_name() -> None:
    planned = plan(*(candidate(key) for key in "abcde"))
    assert [item.match_key for item in planned.items] == ["a", "b", "c"]
    assert reasons(planned) == dict.fromkeys("de", "over the cap on the number of events")


def test_what_is_over_the_money_is_left_out_and_a_smaller_one_still_fits() -> None:
    amounts = {"a": 600, "b": 401, "c": 400}
    planned = plan(*(candidate(key, amount_minor=amount) for key, amount in amounts.items()))
    assert [item.match_key for item in planned.items] == ["a", "c"]
    assert reasons(planned) == {"b": "over the cap on EUR"}


def test_a_negative_amount_makes_no_room_under_the_cap() -> None:
    planned = plan(candidate("a", amount_minor=-600), candidate("b", amount_minor=500))
    assert reasons(planned) == {"b": "over the cap on EUR"}


def test_what_is_over_the_days_caps_is_left_out_beside_what_other_plans_have_spent() -> None:
    rules = contract(max_items_per_day=4, max_amount_minor_per_day={"EUR": 500})
    three = [candidate("a", amount_minor=200), candidate("b", amount_minor=201), candidate("c", amount_minor=100)]
    spent = DailyUsage(items=2, moved_minor={"EUR": 100, "USD": 9000})
    planned = make_plan(rules, run(), three, spent=spent)
    assert [item.match_key for item in planned.items] == ["a", "c"]
    assert reasons(planned) == {"b": "over the day's cap on EUR"}
    fewer = make_plan(rules, run(), three, spent=DailyUsage(items=3))
    assert reasons(fewer) == dict.fromkeys("bc", "over the day's cap on the number of events")


def test_on_another_day_or_without_a_days_cap_they_fit() -> None:
    three = [candidate(key, amount_minor=200) for key in "abc"]
    rules = contract(max_items_per_day=3, max_amount_minor_per_day={"EUR": 600})
    assert make_plan(rules, run(), three).left_out == ()
    assert make_plan(contract(), run(), three, spent=DailyUsage(items=10**6, moved_minor={"EUR": 10**9})).left_out == ()


def test_a_currency_without_a_cap_is_not_acted_on() -> None:
    assert reasons(plan(candidate("a", currency="USD"))) == {"a": "the contract sets no cap for USD"}


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (candidate("a", break_class=PHANTOM), "class phantom_in_topic is not compensated by the contract"),
        (candidate("a", leg="refund"), "the contract names no topic for its leg"),
        (candidate("a", rows=()), "the ledger has 0 rows of its key, expected 1"),
        (candidate("a", rows=(row("a"), row("a"))), "the ledger has 2 rows of its key, expected 1"),
        (candidate("a", rows=(row("a", amount_minor=99),)), "the ledger row has changed since the run"),
    ],
)
def test_what_is_not_repairable_is_left_out(refused: Candidate, reason: str) -> None:
    planned = plan(refused)
    assert (planned.items, reasons(planned)) == ((), {"a": reason})


UNCLEAN = (
    *("baseline", "cut_closed", "unexplained_gap", "readers_disagree", "log_expired", "log_compacted", "log_rewritten"),
    *("log_truncated", "topic_recreated", "torn_cut", "ledger_rewritten", "ledger_failed_over", "ledger_ids_reused"),
)


@pytest.mark.parametrize("doubt", UNCLEAN)
def test_nothing_is_planned_from_a_run_without_a_clean_census(doubt: str) -> None:
    assert reasons(plan(candidate("a"), doubts=(Doubt(doubt),))) == {"a": f"the run's evidence is not clean: {doubt}"}


def test_any_other_doubt_forbids_nothing() -> None:
    others = tuple(doubt for doubt in Doubt if doubt not in UNCLEAN)
    assert len(others) > 10
    assert len(plan(candidate("a"), doubts=others).items) == 1


@pytest.mark.parametrize("doubt", [Doubt.LOG_REWRITTEN, Doubt.TOPIC_RECREATED])
def test_nothing_is_planned_once_a_later_run_doubts_what_was_read(doubt: Doubt) -> None:
    found = (DoubtFound(doubt=doubt, sentence=""),)
    planned = make_plan(contract(), run(), [candidate("a")], newest_doubts=found)
    assert reasons(planned) == {"a": f"the newest run's evidence is not clean: {doubt}"}


def test_a_later_run_that_was_held_forbids_nothing() -> None:
    found = (DoubtFound(doubt=Doubt.HELD_BY_OPEN_TRANSACTION, sentence=""),)
    assert len(make_plan(contract(), run(), [candidate("a")], newest_doubts=found).items) == 1


LOST = BreakClass.LOST_ACKNOWLEDGED_WRITE
LOST_TO_DAG = {"classes": (), "trigger": {"connection": "airflow", "dags": {str(LOST): "by_hand"}}}


@pytest.mark.parametrize(("break_class", "rules"), [(NEVER_PRODUCED, {}), (LOST, LOST_TO_DAG)])
@pytest.mark.parametrize(("found_at", "planned"), [(3, 0), (4, 1), (5, 1)])
def test_a_missing_event_may_have_come_among_offsets_that_were_lost_unread_after_it_was_found(
    found_at: int, planned: int, break_class: BreakClass, rules: dict[str, Any]
) -> None:
    unread = OffsetsUnread(at=4, at_topic={"billing.payouts": -1})
    found = candidate("a", break_class=break_class, cut_n=found_at)
    drawn = make_plan(contract(**rules), run(), [found], offsets_unread=unread)
    assert len(drawn.items) == planned
    left = "offsets were lost before cut 4 could read them, or closed unread with it"
    told = f"its event may have come since: {left}"
    assert reasons(drawn) == ({} if planned else {"a": told})


def test_where_nothing_was_lost_what_the_first_cut_found_missing_is_planned() -> None:
    assert len(plan(candidate("a", cut_n=0)).items) == 1


def test_a_doubt_about_the_other_side_of_the_window_forbids_nothing() -> None:
    assert len(plan(candidate("a"), doubts=(Doubt.HELD_BY_LEDGER_HORIZON,)).items) == 1


def test_a_break_that_another_plan_holds_is_left_out() -> None:
    one = candidate("a")
    taken = [action_id_of("payouts", one.item_break.break_id)]
    assert reasons(plan(one, taken=taken)) == {"a": "another plan has it"}


def test_two_breaks_of_one_event_publish_it_once() -> None:
    classes = [NEVER_PRODUCED, BreakClass.MISSING_IN_TOPIC_ABORTED_ONLY]
    both = [candidate("a", break_class=break_class) for break_class in classes]
    planned = plan(*both, classes=classes)
    assert planned == plan(*reversed(both), classes=classes)
    assert len(planned.items) == 1
    assert reasons(planned) == {"a": "the plan has this event already"}


def test_without_a_compensation_section_nothing_is_planned() -> None:
    with pytest.raises(CompensationOff):
        make_plan(contract().model_copy(update={"compensation": None}), run(), [candidate("a")])


def test_a_copy_too_many_is_taken_back_by_its_place_and_the_words_say_so() -> None:
    planned = replace(
        plan(candidate("a"), candidate("b", break_class=DOUBLED, at="topic:billing.payouts:1:17"), **TAKES_BACK),
        dry_run=False,
    )
    missing, doubled = planned.items
    assert (missing.kind, missing.reverses, missing.posts) == (RepairKind.REPUBLISH, "", "")
    assert doubled.posts == ""
    assert (doubled.kind, doubled.reverses, doubled.row) == (
        RepairKind.REVERSE,
        "topic:billing.payouts:1:17",
        row("b").source,
    )
    body = describe_plan(planned)
    assert (
        "Will publish 1 event again from the ledger, each once, worth 1.00 EUR, and take back 1 copy, each by one "
        "event that names it, worth 1.00 EUR; no record is deleted." in body
    )
    assert "| b | billing.payouts | 1.00 EUR | take back billing.payouts:1:17 | duplicate_in_topic_zombie |" in body


@pytest.mark.parametrize("at", ["", "ledger:7", "topic:billing.others:1:17", "topic:billing.payouts2:1:17"])
def test_a_copy_that_does_not_stand_on_its_legs_topic_is_left_out(at: str) -> None:
    planned = plan(candidate("b", break_class=DOUBLED, at=at), **TAKES_BACK)
    assert reasons(planned) == {"b": "the copy does not stand on the topic of its leg"}


IN_PLACE = "topic:billing.payouts:1:17"


@pytest.mark.parametrize("differs_by", sorted(COPIES_DIFFER))
def test_a_copy_whose_key_has_a_wrong_one_may_be_the_correction_and_is_left_out(differs_by: BreakClass) -> None:
    event = candidate("b", break_class=DOUBLED, at=IN_PLACE, differs_by=differs_by)
    (why,) = reasons(plan(event, **TAKES_BACK)).values()
    assert why.startswith(f"its key has a break {differs_by} too, so that this copy may be the correction")
    assert "may be the correction" in str(
        reasons(plan_rows(replace(doubled_row(FIRST, SECOND), differs_by=differs_by)))
    )


def test_a_wrong_copy_of_a_key_keeps_nobody_from_publishing_what_is_missing() -> None:
    assert len(plan(candidate("b", differs_by=BreakClass.MISROUTED_IN_TOPIC), **TAKES_BACK).items) == 1


@pytest.mark.parametrize(("original", "left_out"), [("", 0), ("topic:billing.payouts:0:3", 0), ("topic:b.fees:0:3", 1)])
def test_a_copy_that_repeats_one_on_another_topic_than_its_legs_is_left_out(original: str, left_out: int) -> None:
    found = plan(candidate("b", break_class=DOUBLED, at=IN_PLACE, original=original), **TAKES_BACK)
    assert [("stands on another topic" in one) for one in reasons(found).values()] == left_out * [True]


def test_a_copy_whose_first_one_says_other_money_may_be_the_correction_and_is_left_out() -> None:
    amended = candidate("b", break_class=DOUBLED, at=IN_PLACE)
    evidence = {"at": IN_PLACE, "money_differs": True}
    item_break = replace(amended.item_break, evidence=evidence)
    found = replace(amended, outstanding=replace(amended.outstanding, item_break=item_break))
    assert "says other money" in str(reasons(plan(found, **TAKES_BACK)))


def test_what_is_missing_may_be_what_stands_alone_under_another_key_and_is_left_out() -> None:
    alike = replace(candidate("b"), alike=PHANTOM)
    assert str(reasons(plan(alike))["b"]).startswith(
        f"a break {PHANTOM} is about the same transaction, and was not cleared"
    )
    assert len(plan(replace(alike, alike=None)).items) == 1
    lost = replace(candidate("b", break_class=LOST), alike=PHANTOM)
    assert (len(plan(lost, **LOST_TO_DAG).items), len(plan(replace(lost, alike=None), **LOST_TO_DAG).items)) == (0, 1)


def test_of_two_copies_too_many_of_one_event_a_plan_takes_one_back() -> None:
    two = [candidate("b", break_class=one, at="topic:billing.payouts:1:17") for one in (DOUBLED, COMPENSATED)]
    planned = plan(*two, classes=[DOUBLED, COMPENSATED], reversal="header")
    assert (len(planned.items), reasons(planned)) == (1, {"b": "the plan has this event already"})


def posting(**changes: Any) -> Contract:
    document = contract().model_dump(mode="json")
    post = {
        "connection": "poster",
        "actions_table": "billing.posted_action",
        "columns": {"event_id": "event_id"},
        "rows": {"payout": [{"side": "credit"}]},
    }
    rules = {"classes": ["missing_in_ledger"], "max_amount_minor": {"EUR": 1000}, "post": post | changes}
    return Contract.model_validate(document | {"direction": "topic_to_ledger", "compensation": rules})


def unposted(**about: Any) -> Candidate:
    at = "topic:billing.payouts:1:17"
    return candidate("a", **({"break_class": BreakClass.MISSING_IN_LEDGER, "at": at, "rows": ()} | about))


@pytest.mark.parametrize(("unread_at", "planned"), [(-1, 1), (1, 1), (2, 0), (3, 0), (9, 0)])
def test_a_missing_row_may_have_come_where_no_run_has_read_it_since_the_cut_before_its_event(
    unread_at: int, planned: int
) -> None:
    drawn = make_plan(posting(), run(), [unposted(first_seen_cut=3)], rows_unread_at=unread_at)
    assert len(drawn.items) == planned
    told = f"its row may have come and been archived: nobody has read all rows up to cut {unread_at}; look for it, "
    assert reasons(drawn) == ({} if planned else {"a": told + "then post it by hand, or write the break off"})


CORRECTED = (
    "an event that amends, cancels or takes it back may have come: offsets were lost before cut {} could read them, or "
    "closed unread with it; look at the payment, then repair it by hand, or write the break off"
)


@pytest.mark.parametrize(("lost_at", "planned"), [(-1, 1), (1, 1), (2, 0), (3, 0), (9, 0)])
def test_a_correction_may_have_come_among_what_was_lost_unread_since_the_cut_before_the_event(
    lost_at: int, planned: int
) -> None:
    doubled = candidate("a", break_class=DOUBLED, at=IN_PLACE, first_seen_cut=3)
    to_dag = HANDS_OVER["trigger"] | {"dags": {str(DOUBLED): "by_hand"}}
    for rules, found in (
        (posting(), unposted(first_seen_cut=3)),
        (contract(**TAKES_BACK), doubled),
    ):
        drawn = make_plan(rules, run(), [found], offsets_unread=OffsetsUnread(at=lost_at))
        assert (len(drawn.items), reasons(drawn)) == (planned, {} if planned else {"a": CORRECTED.format(lost_at)})
    unread = OffsetsUnread(at=lost_at)
    assert len(make_plan(contract(trigger=to_dag), run(), [doubled], offsets_unread=unread).items) == 1


@pytest.mark.parametrize(("lost_at", "planned"), [(-1, 1), (1, 1), (2, 0), (9, 0)])
def test_what_was_lost_on_another_topic_than_its_own_is_no_correction(lost_at: int, planned: int) -> None:
    unread = OffsetsUnread(at=9, at_topic={"billing.fees": 9, "billing.payouts": lost_at})
    for rules, found in (
        (posting(), unposted(first_seen_cut=3)),
        (contract(**TAKES_BACK), candidate("a", break_class=DOUBLED, at=IN_PLACE, first_seen_cut=3)),
    ):
        assert len(make_plan(rules, run(), [found], offsets_unread=unread).items) == planned


@pytest.mark.parametrize(("came_after", "planned"), [(None, 1), (6, 1), (3, 1), (2, 0), (0, 0), (-1, 0)])
def test_a_cut_that_had_not_read_the_copys_partition_as_far_as_it_was_written_counts_as_one_after_it(
    came_after: int | None, planned: int
) -> None:
    held = unposted(first_seen_cut=7, came_after=came_after)
    doubled = candidate("a", break_class=DOUBLED, at=IN_PLACE, first_seen_cut=7, came_after=came_after)
    unread = OffsetsUnread(at=2)
    assert len(make_plan(posting(), run(), [held], rows_unread_at=2).items) == planned
    assert len(make_plan(posting(), run(), [held], offsets_unread=unread).items) == planned
    assert len(make_plan(contract(**TAKES_BACK), run(), [doubled], offsets_unread=unread).items) == planned
    assert len(make_plan(posting(), run(), [unposted(first_seen_cut=7, came_after=came_after)]).items) == 1


def test_what_the_ledger_lacks_is_posted_from_the_event_and_the_words_say_so() -> None:
    planned = make_plan(posting(), run(), [unposted()], dry_run=False)
    (item,) = planned.items
    assert (item.kind, item.posts, item.reverses) == (RepairKind.POST, "topic:billing.payouts:1:17", "")
    assert (item.match_key, item.amount_minor, item.currency, item.row_id) == ("a", 100, "EUR", "")
    assert (item.transaction_key, item.occurred_at) == ("transaction-a", "")
    body = describe_plan(planned)
    assert "Will write the rows of 1 event into the ledger, each once, worth 1.00 EUR." in body
    assert "| a | billing.payouts | 1.00 EUR | post billing.payouts:1:17 | missing_in_ledger |" in body


@pytest.mark.parametrize(
    ("rules", "found", "reason"),
    [
        ({}, unposted(rows=(row("a"),)), "the ledger has 1 rows of its key, expected none"),
        ({}, unposted(at="topic:billing.others:1:17"), "the copy does not stand on the topic of its leg"),
        ({"rows": {"fee": [{}]}}, unposted(), "the contract names no rows for its leg"),
    ],
)
def test_what_cannot_be_posted_is_left_out(rules: Any, found: Candidate, reason: str) -> None:
    assert reasons(make_plan(posting(**rules), run(), [found])) == {"a": reason}


def test_a_class_with_a_dag_is_handed_to_it_whatever_the_ledger_says_and_the_words_say_so() -> None:
    planned = replace(
        plan(candidate("a"), candidate("b", break_class=PHANTOM, leg="", rows=()), **HANDS_OVER), dry_run=False
    )
    missing, handed = planned.items
    assert (missing.kind, missing.triggers) == (RepairKind.REPUBLISH, "")
    assert (handed.kind, handed.triggers, handed.topic, handed.row_id) == (RepairKind.TRIGGER, "by_hand", "", "")
    assert handed.action_id == action_id_of("payouts", handed.break_id)
    body = describe_plan(planned)
    assert (
        "Will publish 1 event again from the ledger, each once, worth 1.00 EUR, and hand 1 break to DAGs, each in one "
        "run, worth 1.00 EUR; what those do is not seen from here, the next window says whether it helped." in body
    )
    assert "| b |  | 1.00 EUR | start by_hand | phantom_in_topic |" in body


def test_what_a_dag_is_handed_is_the_money_of_its_break_also_beside_a_break_of_its_key_that_has_rows() -> None:
    mismatch = BreakClass.AMOUNT_MISMATCH
    to_dag = HANDS_OVER["trigger"] | {"dags": {str(mismatch): "by_hand"}}
    rules = contract(trigger=to_dag, max_amount_minor={"EUR": 9_000}, four_eyes_above_minor={"EUR": 100})
    stands = (replace(row("a"), amount_minor=1), replace(row("a"), row_id="row-twice", amount_minor=1))
    alone = candidate("a", cut_n=4, break_class=mismatch, amount_minor=5_000, rows=())
    beside = candidate("a", break_class=NEVER_PRODUCED, amount_minor=1, rows=stands[:1])
    (handed,) = make_plan(rules, run(), [alone]).items
    assert (handed.kind, handed.row_id, handed.moved_minor) == (RepairKind.TRIGGER, "", {"EUR": 5_000})
    for rows in (stands, stands[:1]):
        drawn = make_plan(rules, run(), [replace(alone, rows=rows), beside])
        assert (drawn.items, why_two_people(rules, drawn) is None) == ((handed,), False)
    (own,) = make_plan(rules, run(), [beside]).items  # what we repair ourselves is made from the row, as before
    assert (own.kind, own.row_id) == (RepairKind.REPUBLISH, "row-a")
    dear = candidate("a", break_class=mismatch, amount_minor=9_001, rows=stands)
    assert reasons(make_plan(rules, run(), [dear])) == {"a": "over the cap on EUR"}


def test_a_class_without_a_dag_is_not_handed_over() -> None:
    planned = plan(candidate("b", break_class=BreakClass.FOREIGN_IN_TOPIC), **HANDS_OVER)
    assert (planned.items, reasons(planned)) == ((), {"b": "class foreign_in_topic is not compensated by the contract"})


def test_what_is_handed_over_stands_under_the_caps_and_the_days_evidence() -> None:
    dear = plan(candidate("b", break_class=PHANTOM, rows=(), amount_minor=1_001), **HANDS_OVER)
    assert reasons(dear) == {"b": "over the cap on EUR"}
    unclean = plan(candidate("b", break_class=PHANTOM, rows=()), doubts=(Doubt.LOG_TRUNCATED,), **HANDS_OVER)
    assert reasons(unclean) == {"b": "the run's evidence is not clean: log_truncated"}


TAKES_ROWS_BACK = {
    "classes": ["duplicate_in_ledger", "duplicate_in_ledger_compensated"],
    "reversal": "negated",
    "max_amount_minor": {"EUR": 1000},
    "post": {
        "connection": "poster",
        "actions_table": "billing.posted_action",
        "columns": {"event_id": "event_id", "amount_minor": "amount_minor"},
        "rows": {"payout": [{"side": "credit"}]},
    },
}
FIRST, SECOND, THIRD = (replace(row("a"), row_id=str(n)) for n in (1, 2, 3))


def taking_back(of: int, row_id: int = 9) -> CurrentRow:
    return replace(row("a", amount_minor=-100), row_id=str(row_id), takes_back=str(of))


def doubled_row(*rows: CurrentRow, at: int = 2, ours: int | None = None, cut_n: int = 5) -> Candidate:
    """A break about row `at`; ours: the row that a compensation posted."""
    plain = candidate("a", cut_n=cut_n, break_class=BreakClass.DUPLICATE_IN_LEDGER, at=f"ledger:{at}", rows=rows)
    found = plain.item_break
    if ours is not None:
        found = replace(found, break_class=BreakClass.DUPLICATE_IN_LEDGER_COMPENSATED)
        found = replace(found, evidence={"at": f"ledger:{at}", "ours": f"ledger:{ours}"})
    found = replace(
        found, break_id=break_id(contract="p", break_class=found.break_class, match_key="a", position=str(at))
    )
    return replace(plain, outstanding=replace(plain.outstanding, item_break=found))


def plan_rows(*candidates: Candidate, taken: Sequence[UUID] = ()) -> Plan:
    document = contract().model_dump(mode="json", exclude_defaults=True)
    document |= {"direction": "topic_to_ledger", "compensation": TAKES_ROWS_BACK}
    document["ledger"] |= {"columns": {"reverses": "reverses_entry"}}
    return make_plan(Contract.model_validate(document), run(), candidates, taken=taken, dry_run=False)


def test_a_row_too_many_is_taken_back_by_its_id_and_the_words_say_so() -> None:
    planned = plan_rows(doubled_row(FIRST, SECOND))
    (item,) = planned.items
    assert (item.kind, item.reverses, item.row) == (RepairKind.COUNTERPOST, "ledger:2", SECOND.source)
    body = describe_plan(planned)
    assert (
        "Will take back 1 row of the ledger, each by one compensating entry that names it, worth 1.00 EUR; no row is "
        "changed or deleted." in body
    )
    assert "| a | billing.payouts | 1.00 EUR | take back row 2 | duplicate_in_ledger |" in body


ANOTHERS = (
    "row 9 of its key takes row 5 back, which is none of the contract's: look whether that took back the same posting"
)
DIFFER = "rows of its key differ in money, transaction or leg: one may be a correction or a refund"


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ((FIRST,), "the row that is one too many is not in the ledger any more"),
        ((SECOND,), "no other row of its key is in force"),
        ((FIRST, SECOND, taking_back(1)), "no other row of its key is in force"),
        ((FIRST, SECOND, THIRD, taking_back(2)), "it was taken back already"),
        ((FIRST, SECOND, taking_back(5)), ANOTHERS),
        ((FIRST, replace(SECOND, amount_minor=99)), "the ledger row has changed since the run"),
        ((FIRST, THIRD, replace(SECOND, takes_back="7")), "the row takes row 7 back itself"),
        ((FIRST, SECOND, replace(THIRD, amount_minor=-100)), DIFFER),
        ((FIRST, SECOND, replace(THIRD, currency="USD")), DIFFER),
    ],
)
def test_a_row_that_may_not_be_taken_back_is_left_out(rows: tuple[CurrentRow, ...], reason: str) -> None:
    assert reasons(plan_rows(doubled_row(*rows))) == {"a": reason}


def test_a_row_is_taken_back_beside_another_one_of_the_contract_that_was() -> None:
    assert [item.reverses for item in plan_rows(doubled_row(FIRST, SECOND, THIRD, taking_back(3))).items] == [
        "ledger:2"
    ]


def test_a_row_whose_row_id_another_row_of_its_key_has_is_not_taken_back() -> None:
    reason = "another row of its key has its row id, so no row can name it as the one that is taken back"
    assert reasons(plan_rows(doubled_row(SECOND, replace(SECOND)))) == {"a": reason}
    told_apart = doubled_row(SECOND, replace(SECOND))
    at = {"at": "ledger:2#5.1"}
    found = replace(told_apart.outstanding, item_break=replace(told_apart.item_break, evidence=at))
    assert reasons(plan_rows(replace(told_apart, outstanding=found))) == {"a": reason}
    assert len(plan_rows(doubled_row(FIRST, SECOND)).items) == 1


def test_of_two_equal_rows_ours_is_taken_back_unless_it_was_or_an_older_break_is_about_it() -> None:
    def places(*candidates: Candidate, taken: Sequence[UUID] = ()) -> list[str]:
        return [item.reverses for item in plan_rows(*candidates, taken=taken).items]

    assert places(doubled_row(FIRST, SECOND, at=2, ours=1)) == ["ledger:1"]
    gone = (FIRST, SECOND, THIRD, taking_back(1))
    assert places(doubled_row(*gone, at=2, ours=1)) == ["ledger:2"]
    older = doubled_row(FIRST, SECOND, THIRD, at=2, ours=1, cut_n=4)
    younger = doubled_row(FIRST, SECOND, THIRD, at=3, ours=1, cut_n=5)
    assert places(younger, older) == ["ledger:1"]
    assert places(younger, older, taken=[action_id_of("payouts", older.item_break.break_id)]) == ["ledger:3"]


@pytest.mark.parametrize(("cut_n", "planned"), [(-1, 1), (1, 1), (2, 0), (3, 0), (9, 0)])
def test_what_no_run_could_read_since_the_cut_before_a_break_may_be_about_it_once_the_log_may_have_lost_it(
    cut_n: int, planned: int
) -> None:
    unread = OffsetsUnread(unreadable_at={"billing.payouts": cut_n})
    elsewhere = OffsetsUnread(unreadable_at={"billing.fees": 9, "billing.payouts": -1})
    to_dag = HANDS_OVER["trigger"] | {"dags": {str(one): "by_hand" for one in (NEVER_PRODUCED, LOST)}}
    for rules, found in (
        (posting(), unposted(first_seen_cut=3)),
        (contract(**TAKES_BACK), candidate("a", break_class=DOUBLED, at=IN_PLACE, first_seen_cut=3)),
        (contract(), candidate("a", first_seen_cut=3)),
        (contract(classes=(), trigger=to_dag), candidate("a", first_seen_cut=3)),
        (contract(classes=(), trigger=to_dag), candidate("a", break_class=LOST, first_seen_cut=3)),
    ):
        drawn = make_plan(rules, run(), [found], offsets_unread=unread)
        assert len(drawn.items) == planned
        assert planned or reasons(drawn)["a"].startswith(f"a record that cut {cut_n} could not read, or")
        assert len(make_plan(rules, run(), [found], offsets_unread=elsewhere).items) == 1
    held = candidate("a", first_seen_cut=7, came_after=2)
    drawn = make_plan(contract(), run(), [held], offsets_unread=OffsetsUnread(unreadable_at={"billing.payouts": 3}))
    assert not drawn.items
