"""A plan's page: what it would do and why not more, who is asked, and what became of each item."""

from dataclasses import replace

import pytest

from tallystick.compensation.abort_plan import abort_words
from tallystick.compensation.plan import RepairKind
from tallystick.pages.plan_page import plan_page, plan_state
from tallystick.report.break_story import describe_place
from tallystick.store.plans.plan_life_store import PLAN_EVENTS, ActionTold, PlanInShort
from tallystick.store.plans.plan_store import ActionState
from tallystick.text.plain import escape_untrusted
from tests.stored_books import payouts
from tests.unit.compensation.abort_plans import planned
from tests.unit.pages.plans_told import plan_sums, plan_told


def test_a_plan_says_what_it_would_do_how_much_and_why_not_more() -> None:
    page = plan_page(plan_told("planned"), payouts())
    assert page.intents == ("Publish 2 events again from the ledger, each once: 1,292.00 EUR.",)
    assert [(item.match_key, item.amount, item.state) for item in page.items] == [
        ("pay-1", "1,250.00 EUR", "not begun")
    ]
    assert page.items_left_out == 1
    assert [(one.count, one.reason, one.examples) for one in page.left_out] == [
        ("4 breaks", "over the cap on EUR", "a, b, c, ...")
    ]
    assert dict(page.rules)["asked for by"] == "Ada"
    assert dict(page.rules)["limit per plan"] == "50 events, 20,000.00 EUR, 20,000.00 USD"


def test_a_plan_that_ends_a_transaction_says_which_and_what_that_costs() -> None:
    (abort,) = planned().aborts
    told = plan_told("planned")
    page = plan_page(replace(told, in_short=PlanInShort(aborts=(abort,), items=(), sums=(), left_out=())), payouts())
    assert page.intents == (
        "End 1 hanging transaction by an ABORT marker, so that 1 record will count as aborted: 10.00 EUR.",
    )
    assert [(one.deed, one.state) for one in page.ends] == [(escape_untrusted(abort_words(abort)), "not begun")]
    assert page.items == ()
    assert plan_page(told, payouts()).ends == ()


def test_a_plan_says_of_every_kind_of_item_what_it_does() -> None:
    for kind in RepairKind:
        told = plan_told("planned")
        (item,) = told.in_short.items
        item = replace(item, kind=kind, reverses="topic:a:0:1", posts="topic:a:0:2", triggers="by_hand")
        page = plan_page(
            replace(told, in_short=PlanInShort(items=(item,), sums=plan_sums(1, 9, kind), left_out=())), payouts()
        )
        assert len(page.intents) == 1, kind
        deed = {
            RepairKind.REPUBLISH: "publish from row 1 to billing.payouts",
            RepairKind.REVERSE: f"take back {describe_place(item.reverses)}",
            RepairKind.POST: f"post {describe_place(item.posts)}",
            RepairKind.COUNTERPOST: f"take back {describe_place(item.reverses)}",
            RepairKind.TRIGGER: "start by_hand",
        }[kind]
        assert page.items[0].deed == deed


def test_only_a_plan_that_waits_leads_to_its_approval() -> None:
    waiting = plan_page(plan_told("planned"), payouts())
    assert (waiting.approve_run, waiting.standing) == ("run-1", "waits for an approval")
    for event in PLAN_EVENTS[1:]:
        assert plan_page(plan_told("planned", event), payouts()).approve_run == ""
    again = plan_page(plan_told("planned", "rejected", "planned"), payouts())
    assert (again.approve_run, again.standing) == ("run-1", "waits for an approval")
    assert plan_page(plan_told(), payouts()).standing == "stored, and no approval was asked for"


def test_a_plan_that_is_asked_for_again_waits_in_its_newest_run_and_only_who_asked_is_named_as_asking() -> None:
    told = plan_told("planned", "agreed", "planned")
    first, agreed, again = told.trail
    again = replace(again, actor="Linus", detail={"scheduler_run_id": "run-2"})
    page = plan_page(replace(told, trail=(first, replace(agreed, actor="Grace"), again)), payouts())
    assert page.approve_run == "run-2"
    assert dict(page.rules)["asked for by"] == "Ada, Linus"


def test_a_plan_stands_as_its_newest_event_that_says_so_and_not_as_a_step_of_its_executor() -> None:
    page = plan_page(plan_told("planned", "approved", "finished", "verified"), payouts())
    assert page.standing == "carried out"
    begun = plan_page(plan_told("planned", "agreed", "publishing"), payouts())
    assert begun.standing == plan_state("agreed")[0]


def test_every_rule_that_holds_a_plan_is_told_and_no_other() -> None:
    compensation = payouts().compensation
    assert compensation is not None
    plain = dict(plan_page(plan_told("planned"), payouts()).rules)
    assert plain.keys() == {"asked for by", "limit per plan", "two people"}
    assert plain["two people"].startswith("above 10,000.00 EUR, 10,000.00 USD:")
    held = {
        "max_items_per_day": 7,
        "max_amount_minor_per_day": {"EUR": 100},
        "four_eyes_above_minor": {"EUR": 5_000},
        "approvers": ("ada", "bob"),
        "acting_minutes": "* 9-17 * * 1-5",
    }
    strict = payouts().model_copy(update={"compensation": compensation.model_copy(update=held)})
    rules = dict(plan_page(plan_told("planned"), strict).rules)
    assert rules["limit per day"] == "7 events, 1.00 EUR"
    assert rules["two people"].startswith("above 50.00 EUR:")
    assert rules["may approve"] == "ada, bob"
    assert rules["may act"] == "in the minutes that * 9-17 * * 1-5 matches, in UTC"


@pytest.mark.parametrize(
    ("state", "outcome", "told_so"),
    [
        (ActionState.DONE, {"topic": "a", "partition": 0, "offset": 0}, ("done", "offset 0 of a[0]")),
        (ActionState.DONE, {"topic": "a", "partition": 0, "kafka_offset": 9}, ("done", "offset 9 of a[0]")),
        (ActionState.DONE, {}, ("done", "")),
        (
            ActionState.DONE,
            {"dag_id": "refund", "dag_run_id": "1"},
            ("done", "a run of its DAG was started; whether that repaired the break, later runs say"),
        ),
        (ActionState.REFUSED, {"reason": "its event stands"}, ("refused", "its event stands")),
        (ActionState.EXECUTING, {}, ("begun, not ended", "")),
    ],
)
def test_what_became_of_an_item_is_told_with_its_place_or_why_it_was_refused(
    state: ActionState, outcome: dict[str, object], told_so: tuple[str, str]
) -> None:
    told = plan_told("planned", "finished")
    (item,) = told.in_short.items
    page = plan_page(replace(told, actions={item.action_id: ActionTold(state=state, outcome=outcome)}), payouts())
    assert (page.items[0].state, page.items[0].reason) == told_so


def test_a_message_in_the_trail_is_told_with_its_line() -> None:
    told = plan_told("planned", "stopped")
    planned, stopped = told.trail
    trail = (planned, replace(stopped, detail={"message": "over the cap"}))
    words = [row.words for row in plan_page(replace(told, trail=trail), payouts()).trail]
    assert words == ["asked for it", "stopped: over the cap"]


def test_every_event_that_says_how_a_plan_stands_has_its_words() -> None:
    unknown = plan_state("")
    assert all(plan_state(event) != unknown for event in PLAN_EVENTS)


def test_what_became_of_a_plan_is_counted_over_all_its_items() -> None:
    counts = {ActionState.DONE: 1_200, ActionState.REFUSED: 3}
    page = plan_page(plan_told("planned", "finished", counts=counts), payouts())
    assert (page.done, page.standing, page.tone) == (
        "1,200 done, 3 refused",
        "ended, and not all of it was done",
        "doubtful",
    )


def test_a_plan_of_a_contract_that_allows_no_repair_any_more_says_so() -> None:
    closed = payouts().model_copy(update={"compensation": None})
    assert "would be refused" in dict(plan_page(plan_told("planned"), closed).rules)["allowed"]
