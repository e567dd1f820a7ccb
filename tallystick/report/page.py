"""The content of the report, section by section, before any HTML. Pure: a stored run and its contract in, words out.

The order is that of a night on call: is it broken, what does it cost, what could not be seen, which events; the proof.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tallystick.contract.contract import Contract
from tallystick.judging.allowed_oddities import LEGAL_ODDITIES_VERSION, Oddity, count_oddities
from tallystick.kafka_cluster.config_check import ConfigLine, config_check
from tallystick.kafka_cluster.state import CLUSTER_STATE
from tallystick.model.census_values import PartitionCensus
from tallystick.model.direction import Direction
from tallystick.model.findings import Stake, total_money
from tallystick.model.open_item import ItemState, OpenItem
from tallystick.model.stored_run import StoredRun
from tallystick.report.ageing import AgeTotals, age_buckets, all_ages
from tallystick.report.break_sample import BreakGroup, group_breaks, stakes
from tallystick.report.break_story import tell_breaks
from tallystick.report.census_bar import BARS_MAX, CensusBar, add_census, adds_up, census_bars, law
from tallystick.report.guarantees import guarantees
from tallystick.report.lag_rows import LagTable, lag_tables
from tallystick.report.masking import Mask
from tallystick.report.page_rows import (
    STATE_WORDS,
    AgeRow,
    BreakSection,
    DoubtRow,
    ItemRow,
    NoticeRow,
    StakeRow,
    age_row,
    break_row,
    doubt_row,
    item_row,
    money_of,
    notice_row,
    stake_row,
)
from tallystick.text.money import format_minor, format_money
from tallystick.text.plain import escape_untrusted, format_time, format_window, story_text
from tallystick.text.ruled_out import RULED_OUT
from tallystick.text.side_terms import for_direction
from tallystick.text.verdict_sentence import BreakSums, counted, verdict_sentence_of

ITEMS_SHOWN_MAX = 100


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One number of the head: what, how much, and what to make of it."""

    label: str
    value: str
    note: str
    tone: str = ""


@dataclass(frozen=True, kw_only=True)
class ReportPage:
    """Everything the template may say."""

    run: StoredRun
    contract: Contract
    sentence: str
    completes: str
    window: str
    figures: tuple[Figure, ...]
    stakes: tuple[tuple[str, tuple[StakeRow, ...]], ...]
    doubts: tuple[DoubtRow, ...]
    breaks: tuple[BreakSection, ...]
    notices: tuple[NoticeRow, ...]
    config_check: tuple[ConfigLine, ...]
    oddities_version: int
    oddities: tuple[Oddity, ...]
    census_bars: tuple[CensusBar, ...]
    census_bars_left_out: int
    census_total: PartitionCensus | None
    law: str
    law_holds: bool
    ledger_side: str
    ledger_unit: str
    matched_money: str
    in_flight_items: int
    in_flight_money: str
    item_states: tuple[tuple[str, str], ...]
    ages: tuple[AgeRow, ...]
    all_ages: AgeRow
    lags: tuple[LagTable, ...]
    items: tuple[ItemRow, ...]
    items_left_out: int
    guarantees: tuple[tuple[str, str], ...]
    identity: tuple[tuple[str, str], ...]


def report_page(run: StoredRun, contract: Contract) -> ReportPage:
    """Gather the page."""
    return page_of(run, contract, stakes(run.result.breaks))


def page_of(run: StoredRun, contract: Contract, found: Sequence[Stake]) -> ReportPage:
    """The same, with what was found counted elsewhere: the run may have been read without its breaks and items."""
    result, census, mask = run.result, run.result.figures.census, Mask(contract)
    sums = _sums(found)
    total = add_census(census)
    open_items = [item for item in result.items if item.state is ItemState.OPEN]
    ages, waiting = age_buckets(run.standing, now_utc=run.now_utc), _waiting(run)
    return ReportPage(
        run=run,
        contract=contract,
        sentence=story_text(verdict_sentence_of(result, sums)),
        completes=_completes(run),
        window=format_window(run.window_start_utc, run.window_end_utc),
        figures=tuple(_head_figures(run, sums, total)),
        stakes=tuple(_stake_groups(found, contract.direction)),
        doubts=tuple(doubt_row(doubt, contract.direction) for doubt in result.doubts),
        breaks=tuple(_break_section(run, group, contract) for group in group_breaks(result.breaks, contract.direction)),
        notices=tuple(
            notice_row(notice, contract.direction)
            for notice in sorted(result.notices, key=lambda notice: not notice.pages)
        ),
        config_check=config_check_of(run, contract),
        oddities_version=LEGAL_ODDITIES_VERSION,
        oddities=count_oddities(result),
        census_bars=census_bars(census),
        census_bars_left_out=max(0, len(census) - BARS_MAX),
        census_total=total,
        law=law(total) if total else "",
        law_holds=all(adds_up(part) for part in census),
        ledger_side=for_direction(contract.direction, "Ledger"),
        ledger_unit=_ledger_unit(contract),
        matched_money=escape_untrusted(format_money(result.figures.matched_money)),
        in_flight_items=waiting.count,
        in_flight_money=money_of(waiting) or format_money({}),
        item_states=tuple(_item_states(result.items)),
        ages=tuple(age_row(bucket) for bucket in ages),
        all_ages=age_row(all_ages(ages)),
        lags=lag_tables(result.lag),
        items=tuple(item_row(mask.item(item)) for item in sorted(open_items, key=_soonest_first)[:ITEMS_SHOWN_MAX]),
        items_left_out=max(0, len(open_items) - ITEMS_SHOWN_MAX),
        guarantees=tuple(guarantees(run, contract)),
        identity=tuple(_identity(run, contract)),
    )


def _ledger_unit(contract: Contract) -> str:
    """Name the unit of the ledger's positions, which each kind of ledger has its own of."""
    return {
        "postgres": "in database transaction ids",
        "jdbc": f"in values of {contract.ledger.order_by}; a timestamp as microseconds since 1970",
        "parquet": "in milliseconds since 1970",
        "iceberg": "in sequence numbers of snapshots",
        "topic": "input topics, whose slices are in the table above",
    }[contract.ledger.kind]


def _completes(run: StoredRun) -> str:
    """The held windows that this run was the first to read whole; empty where there is none."""
    if not run.completes:
        return ""
    if len(run.completes) == 1:
        return (
            f"It also read what cut {run.completes[0]} could not read because a side was held. That verdict stays, and "
            "this one covers the rest of its window."
        )
    return (
        f"It also read what cuts {', '.join(map(str, run.completes))} could not read because a side was held. Their "
        "verdicts stay, and this one covers the rest of their windows."
    )


def _sums(found: Sequence[Stake]) -> BreakSums:
    return BreakSums(
        count=sum(stake.count for stake in found),
        classes=frozenset(stake.break_class for stake in found),
        money=total_money((stake.currency, stake.amount_minor) for stake in found if stake.currency),
    )


def _head_figures(run: StoredRun, found: BreakSums, total: PartitionCensus | None) -> Iterator[Figure]:
    figures, doubts, money = run.result.figures, run.result.doubts, found.money
    none_found = "nobody looked" if run.result.read_nothing else "none found"
    yield Figure(
        label="Breaks",
        value=f"{found.count:,}",
        note=f"in {counted(len(found.classes), 'class')}" if found.count else none_found,
        tone="bad" if found.count else "",
    )
    yield Figure(
        label="At stake",
        value=next(iter(_each_amount(money)), "none"),
        note=" and ".join(list(_each_amount(money))[1:]) or ("in all" if money else _no_money(found)),
        tone="bad" if money else "",
    )
    yield Figure(
        label="Doubts",
        value=f"{len(doubts):,}",
        note="not everything could be read" if doubts else "everything due was read",
        tone="doubtful" if doubts else "",
    )
    yield Figure(
        label="Matched pairs",
        value=f"{figures.matched_rows:,}",
        note=escape_untrusted(format_money(figures.matched_money)),
    )
    waiting = _waiting(run)
    in_flight = f"{money_of(waiting)}, carried to the next run" if waiting.count else "nothing waits for its partner"
    yield Figure(label="Open items", value=f"{waiting.count:,}", note=in_flight)
    yield _offsets_figure(total)


def _waiting(run: StoredRun) -> AgeTotals:
    """Sum what waits after this run: as it judged it, or as the books have it where it read nothing."""
    if run.result.read_nothing:
        return all_ages(age_buckets(run.standing, now_utc=run.now_utc)).waiting
    figures = run.result.figures
    return AgeTotals(count=figures.in_flight_items, money=figures.in_flight_money)


def _no_money(found: BreakSums) -> str:
    return "no break has an amount" if found.count else "no break, no money"


def _offsets_figure(total: PartitionCensus | None) -> Figure:
    if total is None:
        return Figure(label="Offsets explained", value="0", note="no partition was counted")
    length = total.kafka_offset_end - total.kafka_offset_start
    return Figure(
        label="Offsets explained",
        value=f"{length - total.unexplained:,}",
        note=f"of {length:,}" if total.unexplained else f"all of {length:,}",
        tone="doubtful" if total.unexplained else "",
    )


def _each_amount(money: Mapping[str, int]) -> Iterator[str]:
    for currency in sorted(money):
        yield escape_untrusted(format_minor(money[currency], currency))


def _stake_groups(found: Sequence[Stake], direction: Direction) -> Iterator[tuple[str, tuple[StakeRow, ...]]]:
    """A heading and its rows per currency."""
    for currency in dict.fromkeys(stake.currency for stake in found):
        mine = [stake for stake in found if stake.currency == currency]
        largest = max(stake.amount_minor for stake in mine)
        total = format_minor(sum(stake.amount_minor for stake in mine), currency)
        heading = escape_untrusted(total) if currency else "Amount not known"
        yield heading, tuple(stake_row(stake, largest, direction) for stake in mine)


def config_check_of(run: StoredRun, contract: Contract) -> tuple[ConfigLine, ...]:
    """Return the config check by the settings that were stored with the verdict; nothing where the run read none."""
    if run.result.read_nothing:
        return ()
    around = CLUSTER_STATE.validate_python(run.result.look_ups.get("surroundings", {}))
    return config_check(
        contract,
        topics=around.topic_settings,
        broker=around.broker_settings,
        census=run.result.figures.census,
        server_proofs=around.server_proofs,
    )


def _break_section(run: StoredRun, group: BreakGroup, contract: Contract) -> BreakSection:
    summary = f"{counted(group.count, 'break')}, {escape_untrusted(format_money(group.money))}"
    hidden = f"{counted(group.not_shown, 'more break')} in the verdict store" if group.not_shown else ""
    told, mask = tell_breaks(run, group.shown), Mask(contract)
    return BreakSection(
        group=group,
        ruled_out=tuple(for_direction(contract.direction, explanation) for explanation in RULED_OUT[group.break_class]),
        summary=summary,
        hidden=hidden,
        rows=tuple(break_row(mask.told(told[item_break.break_id]), contract) for item_break in group.shown),
    )


def _item_states(items: tuple[OpenItem, ...]) -> Iterator[tuple[str, str]]:
    counts = Counter(item.state for item in items)
    for state, words in STATE_WORDS.items():
        if counts[state]:
            yield f"{counts[state]:,}", words


def _soonest_first(item: OpenItem) -> tuple[str, str]:
    return item.due_utc.isoformat(), item.item_id


def _identity(run: StoredRun, contract: Contract) -> Iterator[tuple[str, str]]:
    yield "contract", f"{contract.name}, version {contract.version}"
    yield "contract fingerprint", contract.fingerprint
    yield "cut", f"{run.result.cut_n}"
    yield "digest of the run", run.result.digest
    yield "run id", escape_untrusted(run.scheduler_run_id)
    yield "attempt", f"{run.attempt}"
    yield "judged as of", format_time(run.now_utc)
    yield "verdict stored at", format_time(run.recorded_at)
