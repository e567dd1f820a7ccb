"""The page of one contract: its line of the overview, trends, open items and their age, its versions. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from uuid import UUID

from markupsafe import Markup

from tallystick.alerting.alert_content import ALERT_TEXTS
from tallystick.contract.change import ContractChange, contract_changes
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.config_check import ConfigLine
from tallystick.model.direction import Direction
from tallystick.model.finding_names import BreakClass, Doubt
from tallystick.model.open_item import ItemState
from tallystick.model.partner_lag import Grace, RunLag, quantile_ms
from tallystick.model.stored_run import StoredRun
from tallystick.pages.overview_page import OverviewRow, overview_row
from tallystick.pages.plan_page import money_of, plan_state
from tallystick.pages.trend_drawing import draw_columns
from tallystick.report.ageing import age_buckets, all_ages
from tallystick.report.lag_rows import LagTable, duration_text, lag_tables
from tallystick.report.masking import Mask
from tallystick.report.page_rows import AgeRow, age_row
from tallystick.store.alerts.incident_store import Incident
from tallystick.store.breaks.item_query_store import ItemListing, ItemOrder, ItemQuestion
from tallystick.store.plans.plan_life_store import PlanHead
from tallystick.store.views.overview_store import ContractOverview, ContractVersion
from tallystick.store.views.trend_store import WindowFigures, lag_of
from tallystick.text.finding_guide import BREAK_TEXTS
from tallystick.text.money import format_money
from tallystick.text.plain import escape_untrusted
from tallystick.text.side_terms import for_direction
from tallystick.text.verdict_sentence import counted

TREND_WINDOWS = 168
"""A week of hourly windows."""
WINDOWS_LISTED = 24
VERSIONS_LISTED = 20
PLANS_LISTED = 20


@dataclass(frozen=True, kw_only=True)
class Trend:
    """One figure per window, drawn. total: of all windows, in words."""

    name: str
    total: str
    drawing: Markup


@dataclass(frozen=True, kw_only=True)
class WindowRow:
    """One judged window in figures; None where nobody read it."""

    cut_n: int
    until_utc: datetime
    verdict: str
    topic_rows: int | None
    ledger_rows: int | None
    breaks: int | None
    money: str
    lag: str


@dataclass(frozen=True, kw_only=True)
class KindChoice:
    """Something that can be asked for, with how many there are."""

    value: str
    words: str
    count: int


@dataclass(frozen=True, kw_only=True)
class VersionRow:
    """One version of the contract, and what it changed."""

    version: ContractVersion
    changes: tuple[ContractChange, ...]


@dataclass(frozen=True, kw_only=True)
class IncidentRow:
    """An incident that fires. taken_on_by: "" while nobody is at it."""

    name: str
    title: str
    severity: str
    told_at: datetime
    taken_on_by: str


@dataclass(frozen=True, kw_only=True)
class PlanRow:
    """One plan. standing, tone: as its own page says it."""

    plan_id: UUID
    cut_n: int
    planned_at: datetime
    requested_by: str
    items: int
    money: str
    standing: str
    tone: str


@dataclass(frozen=True, kw_only=True)
class ContractPage:
    """Everything the template may say. keys_shown: may an item be searched for by its key?"""

    contract: Contract
    row: OverviewRow
    trends: tuple[Trend, ...]
    windows: tuple[WindowRow, ...]
    lags: tuple[LagTable, ...]
    ages: tuple[AgeRow, ...]
    all_ages: AgeRow
    kinds: tuple[KindChoice, ...]
    orders: tuple[tuple[str, str], ...]
    question: ItemQuestion
    items: ItemListing
    keys_shown: bool
    incidents: tuple[IncidentRow, ...]
    plans: tuple[PlanRow, ...]
    versions: tuple[VersionRow, ...]
    config_check: tuple[ConfigLine, ...]


_ORDER_WORDS = {
    ItemOrder.OLDEST: "oldest first",
    ItemOrder.NEWEST: "newest first",
    ItemOrder.LARGEST: "largest amount first",
}
_STATE_WORDS = {
    ItemState.OPEN: "waiting for a partner",
    ItemState.BROKEN: "broken, of every class",
    ItemState.UNDECIDABLE: "undecidable",
    ItemState.WRITTEN_OFF: "written off",
}


def contract_page(
    book: ContractOverview,
    *,
    trend: tuple[WindowFigures, ...],
    question: ItemQuestion,
    items: ItemListing,
    incidents: Sequence[Incident],
    plans: Sequence[PlanHead],
    versions: Sequence[ContractVersion],
    config_check: tuple[ConfigLine, ...],
    now_utc: datetime,
) -> ContractPage:
    """Gather the page. config_check: by the settings that the newest judged run read."""
    mask = Mask(book.contract)
    ages = age_buckets((group.items for group in book.standing), now_utc=now_utc)
    return ContractPage(
        contract=book.contract,
        row=overview_row(book, now_utc=now_utc),
        trends=_trends(trend, book.contract.direction),
        windows=tuple(_window_row(window) for window in reversed(trend[-WINDOWS_LISTED:])),
        lags=lag_tables(RunLag(topics=lag_of(trend), grace=Grace(seconds=book.contract.partner_grace_seconds))),
        ages=tuple(age_row(bucket) for bucket in ages),
        all_ages=age_row(all_ages(ages)),
        kinds=_kinds(book),
        orders=tuple((order.value, words) for order, words in _ORDER_WORDS.items()),
        question=question,
        items=replace(items, rows=tuple(map(mask.listed_item, items.rows))),
        keys_shown=not mask.hides_events,
        incidents=tuple(_incident_row(incident, book.contract.direction) for incident in incidents),
        plans=tuple(_plan_row(plan) for plan in plans),
        versions=_versions(versions),
        config_check=config_check,
    )


def _incident_row(incident: Incident, direction: Direction) -> IncidentRow:
    return IncidentRow(
        name=incident.name,
        title=ALERT_TEXTS[incident.name].for_direction(direction).title,
        severity=incident.severity.value,
        told_at=incident.told_at,
        taken_on_by=escape_untrusted(incident.taken_on_by),
    )


def _plan_row(plan: PlanHead) -> PlanRow:
    standing, tone = plan_state(plan.last)
    return PlanRow(
        plan_id=plan.plan_id,
        cut_n=plan.cut_n,
        planned_at=plan.planned_at,
        requested_by=escape_untrusted(plan.requested_by),
        items=sum(total.items for total in plan.sums),
        money=money_of(plan.sums),
        standing=standing,
        tone=tone,
    )


def _trends(trend: tuple[WindowFigures, ...], direction: Direction) -> tuple[Trend, ...]:
    volumes = (
        (
            "Events in the topics",
            [_if_read(window, window.topic_rows) for window in trend],
            "event",
            "var(--committed)",
        ),
        (
            for_direction(direction, "Rows of the ledger"),
            [_if_read(window, window.ledger_rows) for window in trend],
            for_direction(direction, "row"),
            "var(--plain)",
        ),
    )
    classes = sorted({break_class for window in trend for break_class in window.breaks})
    found = (
        (
            BREAK_TEXTS[name].for_direction(direction).title,
            [_if_read(window, window.breaks.get(name, 0)) for window in trend],
            "break",
            "var(--bad)",
        )
        for name in classes
    )
    return (
        *(_trend(*volume) for volume in volumes),
        *_lag_trends(trend),
        *(_trend(*figure) for figure in found),
    )


def _if_read(window: WindowFigures, figure: int) -> int | None:
    return None if window.read_nothing else figure


def _trend(name: str, values: list[int | None], noun: str, fill: str) -> Trend:
    known = [value for value in values if value is not None]
    total = counted(sum(known), noun)
    largest = f"at most {max(known, default=0):,} in one of {counted(len(known), 'window')}"
    if unread := len(values) - len(known):
        largest += f", and {unread:,} not read"
    return Trend(
        name=name,
        total=f"{total}, {largest}",
        drawing=draw_columns(values, label=f"{name}: {total}, {largest}", fill=fill),
    )


def _lag_trends(trend: tuple[WindowFigures, ...]) -> tuple[Trend, ...]:
    """How late 99 of 100 partners came, the slowest topic of each window."""
    values = [_slowest_ms(window) for window in trend]
    if not any(values):
        return ()
    words = f"at most {duration_text(max(value or 0 for value in values))}"
    name = "Lag of 99 in 100 partners"
    return (
        Trend(name=name, total=words, drawing=draw_columns(values, label=f"{name}: {words}", fill="var(--aborted)")),
    )


def _slowest_ms(window: WindowFigures) -> int | None:
    return max((quantile_ms(lag.pairs, per_mille=990) or 0 for lag in window.lags), default=None)


def _window_row(window: WindowFigures) -> WindowRow:
    slowest = _slowest_ms(window)
    return WindowRow(
        cut_n=window.cut_n,
        until_utc=window.window_end_utc,
        verdict=window.verdict.value,
        topic_rows=_if_read(window, window.topic_rows),
        ledger_rows=_if_read(window, window.ledger_rows),
        breaks=_if_read(window, sum(window.breaks.values())),
        money=escape_untrusted(format_money(window.money)) if window.money else "",
        lag=duration_text(slowest) if slowest is not None else "not measured",
    )


def _kinds(book: ContractOverview) -> tuple[KindChoice, ...]:
    """Everything that stands, by state; what is broken by class too. What nobody has is not offered."""
    states: dict[ItemState, int] = {}
    classes: dict[BreakClass, int] = {}
    for one in book.standing:
        states[one.items.state] = states.get(one.items.state, 0) + one.items.count
        if one.items.state is ItemState.BROKEN and one.break_class:
            classes[one.break_class] = classes.get(one.break_class, 0) + one.items.count
    return (
        *(
            KindChoice(value=state.value, words=words, count=states[state])
            for state, words in _STATE_WORDS.items()
            if state in states
        ),
        *(
            KindChoice(
                value=name.value, words=BREAK_TEXTS[name].for_direction(book.contract.direction).title, count=count
            )
            for name, count in sorted(classes.items())
        ),
    )


def _versions(versions: Sequence[ContractVersion]) -> tuple[VersionRow, ...]:
    """Newest first, each held against the one before it."""
    rows = [
        VersionRow(version=newer, changes=contract_changes(older.contract, newer.contract))
        for newer, older in pairwise(versions)
    ]
    return (*rows, *(VersionRow(version=oldest, changes=()) for oldest in versions[-1:]))


def canary_sentence(run: StoredRun) -> str:
    """Say whether the planted faults were found. They stand beside the slices in memory, never in them."""
    if run.result.read_nothing:
        return "This run read nothing, so it planted nothing."
    missed = [found.sentence for found in run.result.doubts if found.doubt is Doubt.CANARY_MISSED]
    if missed:
        return " ".join(missed)
    return "Every fault that was planted for this run was found under its own class, so the checks work."
