"""A contract's page draws and lists the stored figures, and tells of its canaries."""

from dataclasses import replace
from uuid import UUID

from tallystick.contract.alerts import Severity
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.pages.contract_page import ContractPage, canary_sentence, contract_page
from tallystick.store.alerts.incident_store import Incident
from tallystick.store.breaks.item_query_store import ItemListing, ItemQuestion
from tallystick.store.plans.plan_life_store import PlanHead
from tallystick.store.views.overview_store import ContractVersion
from tallystick.store.views.trend_store import WindowFigures
from tests.stored_books import payouts
from tests.unit.pages.books_shown import book, standing
from tests.unit.pages.plans_told import HOUR, NOON, plan_sums


def test_a_missed_canary_is_told_and_silence_is_told_too(matched_run: StoredRun, baseline_run: StoredRun) -> None:
    doubt = DoubtFound(doubt=Doubt.CANARY_MISSED, sentence="Planted faults were not caught: D1.")
    missed = replace(matched_run, result=replace(matched_run.result, doubts=(doubt,)))
    assert canary_sentence(missed) == "Planted faults were not caught: D1."
    assert "was found" in canary_sentence(matched_run)
    closed = DoubtFound(doubt=Doubt.CUT_CLOSED, sentence="Closed unread by Ada.")
    for unread in (baseline_run, replace(matched_run, result=replace(matched_run.result, doubts=(closed,)))):
        assert canary_sentence(unread) == "This run read nothing, so it planted nothing."


def figures(n: int, verdict: Verdict, breaks: dict[BreakClass, int]) -> WindowFigures:
    return WindowFigures(
        cut_n=n,
        window_start_utc=NOON + (n - 1) * HOUR,
        window_end_utc=NOON + n * HOUR,
        verdict=verdict,
        read_nothing=False,
        topic_rows=10 * n,
        ledger_rows=20 * n,
        matched_money={"EUR": 1},
        breaks=breaks,
        money={"EUR": 100 * sum(breaks.values())} if breaks else {},
        lags=(),
    )


def closed(n: int) -> WindowFigures:
    return replace(figures(n, Verdict.INCONCLUSIVE, {}), read_nothing=True, topic_rows=0, ledger_rows=0)


def test_a_window_that_nobody_read_has_no_figures_and_one_of_nothing_has_0() -> None:
    empty = replace(figures(3, Verdict.MATCHED, {}), topic_rows=0, ledger_rows=0)
    page = shown((figures(1, Verdict.BROKEN, {BreakClass.AMOUNT_MISMATCH: 3}), closed(2), empty))
    assert [(row.topic_rows, row.ledger_rows, row.breaks) for row in page.windows] == [
        (0, 0, 0),
        (None, None, None),
        (10, 20, 3),
    ]
    assert [one.total for one in page.trends] == [
        "10 events, at most 10 in one of 2 windows, and 1 not read",
        "20 rows, at most 20 in one of 2 windows, and 1 not read",
        "3 breaks, at most 3 in one of 2 windows, and 1 not read",
    ]
    assert all('d="M0 63.5h176M184 63.5h8"' in one.drawing for one in page.trends)


def test_the_contracts_page_draws_and_lists_the_stored_figures() -> None:
    page = shown((figures(1, Verdict.MATCHED, {}), figures(2, Verdict.BROKEN, {BreakClass.AMOUNT_MISMATCH: 3})))
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


def shown(trend: tuple[WindowFigures, ...]) -> ContractPage:
    """The page of a contract with a bit of everything."""
    contract = payouts()
    newer = contract.model_copy(update={"version": 2, "owner": "others"})
    versions = [
        ContractVersion(version=one.version, fingerprint=one.fingerprint, first_cut_n=n, since_utc=NOON, contract=one)
        for n, one in ((5, newer), (0, contract))
    ]
    return contract_page(
        book(standing(ItemState.BROKEN, 300, count=3), standing(ItemState.OPEN, 5)),
        trend=trend,
        question=ItemQuestion(),
        items=ItemListing(rows=(), next_after=""),
        incidents=(
            Incident(
                name="amount_mismatch", severity=Severity.ERROR, summary="s", told_at=NOON, taken_on_by="Ada\u202e"
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
        config_check=(),
        now_utc=NOON,
    )
