"""What the pages draw and say is what is stored: strips, columns, figures, both sides of a break, its life."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from tallystick.alerting.alert import AlertAction
from tallystick.compensation.abort_plan import abort_words
from tallystick.compensation.plan import RepairKind
from tallystick.contract.alerts import Severity
from tallystick.model.break_history import LifeStep, ToldBreak
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.metric_figures import StandingClass
from tallystick.model.open_item import ItemState, StandingItems, WriteOff
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.pages.break_page import BreakPage, break_page, side_by_side, standing_words
from tallystick.pages.contract_page import canary_sentence, contract_page
from tallystick.pages.overview_page import book_row, overview_page
from tallystick.pages.plan_page import plan_page, standing_of
from tallystick.pages.render import ASSETS, render_page
from tallystick.pages.trend_drawing import column_heights, draw_columns
from tallystick.pages.window_strip import NO_VERDICT, describe_windows, draw_windows, strip_cells
from tallystick.report.break_sample import stakes
from tallystick.report.break_story import describe_place
from tallystick.report.page import page_of, report_page
from tallystick.store.alerts.incident_store import Incident
from tallystick.store.breaks.break_life_store import AlertTold, RepairTold
from tallystick.store.breaks.item_query_store import ItemQuestion, StandingPage
from tallystick.store.plans.plan_life_store import PLAN_EVENTS, ActionTold, PlanHead, PlanInShort
from tallystick.store.plans.plan_store import ActionState
from tallystick.store.views.overview_store import Book, BookWindow, ContractVersion
from tallystick.store.views.trend_store import WindowFigures
from tallystick.text.plain import escape_untrusted
from tests.stored_books import cut_of, item_of, mismatch, missing, payouts, torn
from tests.unit.compensation.abort_plans import planned
from tests.unit.pages.plans_told import HOUR, NOON, plan_sums, plan_told

VERDICTS = (Verdict.INCONCLUSIVE, Verdict.MATCHED, Verdict.BROKEN, None)


def windows(*verdicts: Verdict | None, until: datetime = NOON) -> tuple[BookWindow, ...]:
    first = until - len(verdicts) * HOUR
    return tuple(
        BookWindow(cut_n=n, window_start_utc=first + n * HOUR, window_end_utc=first + (n + 1) * HOUR, verdict=verdict)
        for n, verdict in enumerate(verdicts)
    )


def standing(
    state: ItemState, amount_minor: int, currency: str = "EUR", *, count: int = 1, age: timedelta = HOUR
) -> StandingClass:
    items = StandingItems(
        state=state, first_seen_utc=NOON - age, currency=currency, count=count, amount_minor=amount_minor
    )
    broken = state is ItemState.BROKEN
    return StandingClass(break_class=BreakClass.AMOUNT_MISMATCH if broken else None, items=items)


def book(*stands: StandingClass, verdicts: tuple[Verdict | None, ...] = VERDICTS, held: bool = False) -> Book:
    doubt = DoubtFound(
        doubt=Doubt.HELD_BY_OPEN_TRANSACTION,
        sentence="held",
        details={"transactional_id": "relay-1", "since_utc": "2026-03-01 11:40:00 UTC"},
    )
    return Book(
        contract=payouts(),
        windows=windows(*verdicts),
        standing=stands,
        doubts=(doubt,) if held else (),
        cut=cut_of(payouts(), 20 if held else 3, NOON),
        expires_utc=NOON + 5 * HOUR,
    )


def test_the_strip_shows_each_window_by_its_own_sign() -> None:
    cells = strip_cells(windows(*VERDICTS), schedule="15 * * * *", now_utc=NOON, count=48)
    assert [cell.kind for cell in cells] == ["INCONCLUSIVE", "MATCHED", "BROKEN", NO_VERDICT]
    drawn = re.findall(r"<g [^>]*><title>([^<]*)</title>(.*?)</g>", draw_windows(cells))
    assert [title.split(":")[0] for title, _ in drawn] == [cell.kind for cell in cells]
    assert len({sign for _, sign in drawn}) == 4


def test_signs_differ_in_shape_and_not_in_colour_alone() -> None:
    cells = strip_cells(windows(*VERDICTS), schedule="15 * * * *", now_utc=NOON, count=48)
    shapes = re.sub(r'(fill|stroke)="[^"]*"', "", draw_windows(cells))
    assert len(set(re.findall(r"</title>(.*?)</g>", shapes))) == 4


def test_windows_that_ended_after_the_newest_cut_are_shown_as_without_a_verdict() -> None:
    cells = strip_cells(windows(Verdict.MATCHED), schedule="15 * * * *", now_utc=NOON + 2 * HOUR, count=48)
    assert [(cell.kind, cell.cut_n) for cell in cells] == [("MATCHED", 0), (NO_VERDICT, None), (NO_VERDICT, None)]
    assert cells[-1].window_end_utc == NOON + 2 * HOUR


def test_a_window_that_has_not_ended_is_not_shown() -> None:
    late = NOON + HOUR - timedelta(seconds=1)
    assert len(strip_cells(windows(Verdict.MATCHED), schedule="15 * * * *", now_utc=late, count=48)) == 1


def test_the_strip_ends_with_the_newest_however_long_the_outage() -> None:
    cells = strip_cells(windows(*VERDICTS), schedule="15 * * * *", now_utc=NOON + 900 * HOUR, count=8)
    assert [cell.kind for cell in cells] == [NO_VERDICT] * 8


def test_the_strip_says_in_words_what_it_shows() -> None:
    cells = strip_cells(windows(*VERDICTS), schedule="15 * * * *", now_utc=NOON, count=48)
    expected = "4 windows: 1 matched, 1 inconclusive, 1 broken, 1 no verdict; the newest: no verdict"
    assert describe_windows(cells) == expected
    assert f'aria-label="{expected}"' in draw_windows(cells)
    assert describe_windows(()) == "no window yet"


def test_columns_are_to_scale_and_what_is_not_nothing_is_seen() -> None:
    assert column_heights((0, 50, 100)) == (0, 32, 64)
    assert column_heights((1, 1_000_000)) == (2, 64)
    assert column_heights(()) == ()


def test_each_column_is_drawn_at_its_window() -> None:
    def columns(*values: int) -> list[tuple[str, ...]]:
        return re.findall(r"M(\d+) 64v-(\d+)h6v\d+z", draw_columns(values, label="l", fill="f"))

    assert columns(5, 0, 10, *[0] * 21) == [("0", "32"), ("16", "64")]
    assert columns(5, 0, 10) == [("168", "32"), ("184", "64")]  # the newest on the right
    assert columns(*[1] * 30)[-1] == ("232", "64")


def test_open_money_is_what_is_broken_per_currency_and_not_what_waits_or_was_given_up() -> None:
    row = book_row(
        book(
            standing(ItemState.BROKEN, 1_000),
            standing(ItemState.BROKEN, 5, "JPY"),
            standing(ItemState.BROKEN, 0, ""),
            standing(ItemState.OPEN, 70, count=3, age=9 * HOUR),
            standing(ItemState.WRITTEN_OFF, 900, age=99 * HOUR),
        ),
        now_utc=NOON,
    )
    assert row.open_money == ("10.00 EUR", "5 JPY")
    assert (row.broken, row.waiting, row.oldest_utc) == (3, 3, NOON - 9 * HOUR)


def test_who_holds_a_side_is_named_with_since_when_and_how_much() -> None:
    row = book_row(book(held=True), now_utc=NOON)
    assert [(held.holder, held.since) for held in row.held] == [("relay-1", "2026-03-01 11:40:00 UTC")]
    assert (row.held_back, row.unread) == (3, 6)
    assert book_row(book(), now_utc=NOON).held == ()


def test_headroom_and_next_run_are_counted_from_now() -> None:
    row = book_row(book(), now_utc=NOON + timedelta(minutes=50))
    assert (row.headroom, row.next_run_utc) == ("4 h 10 min", NOON + HOUR)
    assert book_row(book(), now_utc=NOON + 6 * HOUR).headroom == "0 s"


def test_the_overview_begins_with_what_is_broken_and_never_calls_the_unjudged_agreed() -> None:
    matched = replace(book(verdicts=(Verdict.MATCHED,)), contract=payouts().model_copy(update={"contract": "a"}))
    broken = book(standing(ItemState.BROKEN, 1), verdicts=(Verdict.BROKEN,))
    page = overview_page([matched, broken], now_utc=NOON)
    assert [row.contract for row in page.rows] == ["billing_payouts", "a"]
    assert page.sentence == "1 broken item in 1 contract of 2."
    assert overview_page([matched], now_utc=NOON).sentence == "The books agree."
    assert "agree" not in overview_page([book(verdicts=(None,))], now_utc=NOON).sentence
    assert "agree" not in overview_page([], now_utc=NOON).sentence
    assert "agree" not in overview_page([book(verdicts=(Verdict.INCONCLUSIVE,))], now_utc=NOON).sentence


def test_a_window_without_a_verdict_after_a_match_is_not_called_agreed() -> None:
    silent = book(verdicts=(Verdict.MATCHED,))
    assert "agree" not in overview_page([silent], now_utc=NOON + 3 * HOUR).sentence


def test_the_page_of_a_run_that_was_read_without_its_breaks_says_what_its_report_says(broken_run: StoredRun) -> None:
    whole = report_page(broken_run, payouts())
    head = replace(broken_run, result=replace(broken_run.result, breaks=(), items=()))
    counted = page_of(head, payouts(), stakes(broken_run.result.breaks))
    assert (counted.sentence, counted.figures, counted.stakes) == (whole.sentence, whole.figures, whole.stakes)
    assert (counted.census_bars, counted.guarantees) == (whole.census_bars, whole.guarantees)


def test_a_missed_canary_is_told_and_silence_is_told_too(matched_run: StoredRun, baseline_run: StoredRun) -> None:
    doubt = DoubtFound(doubt=Doubt.CANARY_MISSED, sentence="Planted faults were not caught: D1.")
    missed = replace(matched_run, result=replace(matched_run.result, doubts=(doubt,)))
    assert canary_sentence(missed) == "Planted faults were not caught: D1."
    assert "was found" in canary_sentence(matched_run)
    assert "plants nothing" in canary_sentence(baseline_run)


def fields_of(page_fields: object) -> dict[str, tuple[str, str, bool]]:
    return {row.field: (row.topic, row.ledger, row.differs) for row in page_fields}  # type: ignore[attr-defined]


def test_both_sides_stand_side_by_side_and_what_differs_is_marked() -> None:
    fields = fields_of(side_by_side(mismatch(payouts(), "pay-7")))
    assert fields["amount"] == ("10.00 EUR", "100.00 EUR", True)
    assert fields["currency"] == ("EUR", "EUR", False)
    assert fields["place"] == ("offset 266 of billing.payouts[0]", "row 7", False)


def test_a_side_where_nothing_stands_says_so_and_does_not_differ() -> None:
    fields = fields_of(side_by_side(missing(payouts(), "pay-1", 125_000)))
    assert fields["place"] == ("nothing", "row 1", False)
    assert fields["amount"] == ("nothing", "1,250.00 EUR", False)


def test_of_several_copies_no_amount_is_guessed() -> None:
    fields = fields_of(side_by_side(replace(missing(payouts(), "pay-1", 125_000), copies=3)))
    assert fields["amount"] == ("nothing", "not in the evidence", False)


def told(*states: ItemState, written_off: WriteOff | None = None) -> ToldBreak:
    """A break of cut 12 whose item has gone through these states, one a cut."""
    found = missing(payouts(), "pay-2", 99)
    life = tuple(
        LifeStep(
            cut_n=12 + n,
            judged_utc=NOON + n * HOUR,
            item=item_of(found, 12, NOON - HOUR, state),
            written_off=written_off if state is ItemState.WRITTEN_OFF else None,
        )
        for n, state in enumerate(states)
    )
    return ToldBreak(
        item_break=found,
        contract="billing_payouts",
        cut_n=12,
        window_start_utc=NOON - HOUR,
        window_end_utc=NOON,
        judged_utc=NOON,
        topic_settled_until_utc=None,
        ledger_settled_until_utc=None,
        life=life,
    )


ALERT = AlertTold(
    action=AlertAction.TRIGGER,
    recorded_at=NOON + timedelta(minutes=1),
    delivered_at={"webhook": NOON + timedelta(minutes=2)},
    sinks=("webhook",),
)
REPAIR = RepairTold(
    plan_id=UUID(int=1),
    planned_at=NOON + timedelta(minutes=3),
    requested_by="op",
    action_id=UUID(int=2),
    state=ActionState.DONE,
    begun_at=NOON + timedelta(minutes=4),
)


def page_of_break(
    one: ToldBreak, *, alerts: tuple[AlertTold, ...] = (), repairs: tuple[RepairTold, ...] = ()
) -> BreakPage:
    return break_page(one, payouts(), alerts=alerts, repairs=repairs)


def test_the_life_of_a_break_runs_from_seen_to_cleared_in_order() -> None:
    page = page_of_break(told(ItemState.BROKEN, ItemState.CLEARED), alerts=(ALERT,), repairs=(REPAIR,))
    assert [row.kind for row in page.life] == ["seen", "proven", "told", "told", "planned", "acted", "cleared"]
    assert page.standing == "cleared"


def test_who_took_the_incident_on_is_named() -> None:
    taken = replace(ALERT, action=AlertAction.ACKNOWLEDGE, acknowledged_by="Ada", delivered_at={})
    page = page_of_break(told(ItemState.BROKEN), alerts=(ALERT, taken))
    assert [row.words for row in page.life if row.kind == "taken on"] == ["Ada took the incident on."]


def test_a_break_that_stands_has_no_end_in_its_life() -> None:
    page = page_of_break(told(ItemState.BROKEN))
    assert [row.kind for row in page.life] == ["seen", "proven"]
    assert page.standing == "outstanding"


def test_who_gave_a_break_up_is_named_with_the_reason() -> None:
    given_up = WriteOff(by="finance", reason="refunded", at_utc=NOON + 2 * HOUR)
    page = page_of_break(told(ItemState.BROKEN, ItemState.WRITTEN_OFF, written_off=given_up))
    assert page.life[-1].kind == "given up"
    assert page.life[-1].words == "finance wrote row 2 off: refunded."
    assert page.standing == "written off"


def test_an_item_that_another_break_took_over_does_not_stand_for_this_one() -> None:
    one = told(ItemState.BROKEN, ItemState.BROKEN)
    other = replace(one.life[1], item=replace(one.life[1].item, break_id=UUID(int=9)))
    assert standing_words(replace(one, life=(one.life[0], other))) == "answered for by another break"


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
    assert dict(page.rules)["at most, a plan"] == "50 events, 20,000.00 EUR, 20,000.00 USD"


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
    assert plan_page(plan_told(), payouts()).standing == "stored, and nobody has asked for an approval"


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
    assert begun.standing == standing_of("agreed")[0]


def test_every_rule_that_holds_a_plan_is_told_and_no_other() -> None:
    compensation = payouts().compensation
    assert compensation is not None
    plain = dict(plan_page(plan_told("planned"), payouts()).rules)
    assert plain.keys() == {"asked for by", "at most, a plan", "two people"}
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
    assert rules["at most, a day"] == "7 events, 1.00 EUR"
    assert rules["two people"].startswith("above 50.00 EUR:")
    assert rules["may approve"] == "ada, bob"
    assert rules["may act"] == "in the minutes that * 9-17 * * 1-5 matches, in UTC"


@pytest.mark.parametrize(
    ("state", "outcome", "told_so"),
    [
        (ActionState.DONE, {"topic": "a", "partition": 0, "offset": 0}, ("done", "offset 0 of a[0]")),
        (ActionState.DONE, {"topic": "a", "partition": 0, "kafka_offset": 9}, ("done", "offset 9 of a[0]")),
        (ActionState.DONE, {}, ("done", "")),
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
    unknown = standing_of("")
    assert all(standing_of(event) != unknown for event in PLAN_EVENTS)


def test_what_became_of_a_plan_is_counted_over_all_its_items() -> None:
    counts = {ActionState.DONE: 1_200, ActionState.REFUSED: 3}
    assert plan_page(plan_told("planned", "finished", counts=counts), payouts()).done == "1,200 done, 3 refused"


def test_a_plan_of_a_contract_that_allows_no_repair_any_more_says_so() -> None:
    closed = payouts().model_copy(update={"compensation": None})
    assert "would be refused" in dict(plan_page(plan_told("planned"), closed).rules)["allowed"]


def figures(n: int, verdict: Verdict, breaks: dict[BreakClass, int]) -> WindowFigures:
    return WindowFigures(
        cut_n=n,
        window_start_utc=NOON + (n - 1) * HOUR,
        window_end_utc=NOON + n * HOUR,
        verdict=verdict,
        topic_rows=10 * n,
        ledger_rows=20 * n,
        matched_money={"EUR": 1},
        breaks=breaks,
        money={"EUR": 100 * sum(breaks.values())} if breaks else {},
        lags=(),
    )


def test_the_contracts_page_draws_and_lists_the_stored_figures() -> None:
    trend = (
        figures(1, Verdict.MATCHED, {}),
        figures(2, Verdict.BROKEN, {BreakClass.AMOUNT_MISMATCH: 3}),
    )
    contract = payouts()
    newer = contract.model_copy(update={"version": 2, "owner": "others"})
    versions = [
        ContractVersion(version=one.version, fingerprint=one.fingerprint, first_cut_n=n, since_utc=NOON, contract=one)
        for n, one in ((5, newer), (0, contract))
    ]
    page = contract_page(
        book(standing(ItemState.BROKEN, 300, count=3), standing(ItemState.OPEN, 5)),
        trend=trend,
        question=ItemQuestion(),
        items=StandingPage(rows=(), next_after=""),
        incidents=(
            Incident(
                topic="amount_mismatch", severity=Severity.ERROR, summary="s", told_at=NOON, taken_on_by="Ada\u202e"
            ),
        ),
        plans=(
            PlanHead(
                plan_id=UUID(int=1),
                cut_n=2,
                planned_at=NOON,
                requested_by="Ada",
                sums=plan_sums(4, 1_000),
                last="rejected",
            ),
        ),
        versions=versions,
        posture=(),
        now_utc=NOON,
    )
    assert [(one.name, one.total) for one in page.trends] == [
        ("Events in the topics", "30 events, at most 20 in one of 2 windows"),
        ("Rows of the ledger", "60 rows, at most 40 in one of 2 windows"),
        ("Amount mismatch", "3 breaks, at most 3 in one of 2 windows"),
    ]
    assert [(row.cut_n, row.breaks, row.money) for row in page.windows] == [(2, 3, "3.00 EUR"), (1, 0, "")]
    assert [(kind.value, kind.count) for kind in page.kinds] == [("open", 1), ("broken", 3), ("amount_mismatch", 3)]
    assert [[change.field for change in row.changes] for row in page.versions] == [["version", "owner"], []]
    assert (page.all_ages.broken, page.all_ages.waiting_money) == (3, "0.05 EUR")
    assert [(one.title, one.taken_on_by) for one in page.incidents] == [("Amount mismatch", "Ada\\u202e")]
    assert [(one.items, one.money, one.standing) for one in page.plans] == [
        (4, "10.00 EUR", "rejected: nothing was done")
    ]


def test_a_strangers_text_stays_text() -> None:
    wicked = '"><script>alert(1)</script>\u202e'
    one = told(ItemState.BROKEN)
    found = replace(one.item_break, match_key=wicked, leg=wicked, story=wicked, evidence={wicked: wicked})
    html = render_page(
        "break",
        base="/b",
        now_utc=NOON,
        page=page_of_break(replace(one, item_break=found)),
        runbook="docs/x.md",
        address="a",
        token="t",
    )
    assert "<script>alert" not in html and "\u202e" not in html


def test_a_torn_transaction_shows_each_leg() -> None:
    one = replace(told(ItemState.BROKEN), item_break=torn(payouts(), "pay-9"))
    assert [(mark.leg, mark.state) for mark in page_of_break(one).legs] == [("payout", "committed")]


def test_every_asset_is_there_and_names_no_other_host() -> None:
    for path, _ in ASSETS.values():
        text = path.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "http" not in text and "@import" not in text
