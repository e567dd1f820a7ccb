"""`tallystick watch`: show the state of each contract, and each run as its verdict is stored."""

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text
from sqlalchemy import Engine

from tallystick.cli.output import VERDICT_STYLES, runs_table
from tallystick.cli.table import Rows, console
from tallystick.documents.run import summary_document
from tallystick.model.findings import total_money
from tallystick.model.metric_figures import ContractFigures
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import RunSummary
from tallystick.store.runs.run_store import list_runs, runs_after
from tallystick.store.views.metric_store import read_figures
from tallystick.text.duration import span_text
from tallystick.text.money import format_money
from tallystick.text.plain import escape_untrusted, format_time

_LOOK_AGAIN_SECONDS = 1.0
_RUNS_SHOWN = 10


def watch(
    engine: Engine,
    contract_name: str | None,
    *,
    as_json: bool,
    now: Callable[[], datetime],
    sleep: Callable[[float], None],
) -> None:
    """Show runs as they are stored, until somebody interrupts it. now: the clock. sleep: how to wait."""
    out = console()
    looks = _looks(engine, contract_name, sleep)
    if as_json or not out.is_terminal:
        _print_lines(out, looks, as_json=as_json)
    else:
        _show_live(out, looks, now)


Look = tuple[Sequence[ContractFigures], Sequence[RunSummary]]
"""The state of each contract, and the runs that were stored since the look before."""


def _looks(engine: Engine, contract_name: str | None, sleep: Callable[[float], None]) -> Iterator[Look]:
    """Yield one look after the other; the first has the newest run of each contract."""
    newest: dict[str, int] = {}
    while True:
        books = [one for one in read_figures(engine) if contract_name in (None, one.contract)]
        fresh: list[RunSummary] = []
        for one in books:
            if one.contract in newest:
                found = runs_after(engine, one.contract, newest[one.contract])
            else:
                found = list_runs(engine, one.contract, limit=1)
            newest |= {run.contract: run.cut_n for run in found}
            fresh += found
        yield books, sorted(fresh, key=lambda run: (run.recorded_at, run.contract, run.cut_n))
        sleep(_LOOK_AGAIN_SECONDS)


def _print_lines(out: Console, looks: Iterator[Look], *, as_json: bool) -> None:
    """Print one line per run, and flush it."""
    for _, runs in looks:
        for run in runs:
            if as_json:
                typer.echo(json.dumps(summary_document(run)))
            else:
                out.print(run_line(run), soft_wrap=True)
            out.file.flush()


def run_line(run: RunSummary) -> str:
    """Return one run as fields with two spaces between them."""
    doubts = ", ".join(dict.fromkeys(found.doubt for found in run.doubts)) or "none"
    money = escape_untrusted(format_money(run.money_minor))
    name = f"{run.contract}/{run.cut_n}"
    return "  ".join((format_time(run.recorded_at), name, run.verdict, f"{run.breaks:,}", money, doubts))


def _show_live(out: Console, looks: Iterator[Look], now: Callable[[], datetime]) -> None:
    """Draw the contracts and the newest runs over the earlier ones; the last picture stays on the screen."""
    runs: deque[RunSummary] = deque(maxlen=_RUNS_SHOWN)
    with Live(console=out, auto_refresh=False) as live:
        for books, fresh in looks:
            runs.extendleft(fresh)
            live.update(standing_view(books, tuple(runs), now_utc=now(), width=out.width), refresh=True)


def standing_view(
    books: Sequence[ContractFigures], runs: Sequence[RunSummary], *, now_utc: datetime, width: int
) -> RenderableType:
    """Return the state of each contract, and below it the newest runs, newest first."""
    standing = Rows(
        "contract", "verdict", ">behind", ">broken", ">at risk", ">waiting", spared=("waiting", "broken", "behind")
    )
    for one in books:
        standing.add_row(one.contract, *_standing_cells(one, now_utc))
    title = Text(f"{format_time(now_utc)}; Ctrl-C exits", style="dim")
    if not books:
        return Group(title, Text("no contract has a cut yet"))
    return Group(title, standing.fitting(width), Text(), runs_table(runs).fitting(width))


def _standing_cells(figures: ContractFigures, now_utc: datetime) -> Iterator[str | Text]:
    judged = figures.judged
    verdict = Text(judged.verdict, style=VERDICT_STYLES[judged.verdict]) if judged else Text("none yet")
    if figures.due_utc < now_utc:
        verdict.append(f", the next is overdue by {span_text(now_utc - figures.due_utc)}", style="bold red")
    yield verdict
    yield span_text(max(timedelta(), now_utc - judged.window_end_utc)) if judged else ""
    broken = [one.items for one in figures.standing if one.items.state is ItemState.BROKEN]
    waiting = [one.items for one in figures.standing if one.items.state is ItemState.OPEN]
    yield f"{sum(items.count for items in broken):,}"
    money = total_money((items.currency, items.amount_minor) for items in broken if items.currency)
    yield escape_untrusted(format_money(money))
    yield f"{sum(items.count for items in waiting):,}"
