"""Figures of the newest windows of a contract, one per window: volume, lag, and what was found by class."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Engine, Row, Select, select

from tallystick.model.finding_names import NOTHING_READ, BreakClass
from tallystick.model.findings import Money, total_money
from tallystick.model.partner_lag import TopicLag, add_lags
from tallystick.model.verdict import Verdict
from tallystick.store.schema import big_integer, break_total
from tallystick.store.schema import cut as cut_table
from tallystick.store.schema import verdict as verdict_table

_TOPIC_LAGS = TypeAdapter(tuple[TopicLag, ...])


@dataclass(frozen=True, kw_only=True)
class WindowFigures:
    """One judged window. breaks: per class; money in integer minor units, of what it found and of what matched.

    read_nothing: nobody read it, so that its zeros say nothing of the books.
    """

    cut_n: int
    window_start_utc: datetime
    window_end_utc: datetime
    verdict: Verdict
    read_nothing: bool
    topic_rows: int
    ledger_rows: int
    matched_money: Money
    breaks: dict[BreakClass, int]
    money: Money
    lags: tuple[TopicLag, ...]


def read_trend(engine: Engine, contract_name: str, *, windows: int) -> tuple[WindowFigures, ...]:
    """The newest judged windows, oldest first."""
    with engine.connect() as connection:
        rows = connection.execute(_windows(contract_name, windows)).all()
        if not rows:
            return ()
        found = select(break_total).where(
            break_total.c.contract == contract_name, break_total.c.cut_n >= rows[-1].cut_n
        )
        totals: dict[int, list[Row[Any]]] = {}
        for total in connection.execute(found):
            totals.setdefault(total.cut_n, []).append(total)
    return tuple(_window(row, totals.get(row.cut_n, [])) for row in reversed(rows))


def lag_of(trend: tuple[WindowFigures, ...]) -> tuple[TopicLag, ...]:
    """All of them together, per topic."""
    return add_lags(lag for window in trend for lag in window.lags)


def _windows(contract_name: str, windows: int) -> Select[Any]:
    figures = verdict_table.c.figures
    return (
        select(
            verdict_table.c.cut_n,
            verdict_table.c.verdict,
            verdict_table.c.doubts,
            cut_table.c.window_start_utc,
            cut_table.c.window_end_utc,
            big_integer(figures["topic_rows"]).label("topic_rows"),
            big_integer(figures["ledger_rows"]).label("ledger_rows"),
            figures["matched_money"].label("matched_money"),
            verdict_table.c.lag["topics"].label("lags"),
        )
        .join(cut_table, (cut_table.c.contract == verdict_table.c.contract) & (cut_table.c.n == verdict_table.c.cut_n))
        .where(verdict_table.c.contract == contract_name)
        .order_by(verdict_table.c.cut_n.desc())
        .limit(windows)
    )


def _window(row: Row[Any], totals: list[Row[Any]]) -> WindowFigures:
    breaks: dict[BreakClass, int] = {}
    for total in totals:
        break_class = BreakClass(total.break_class)
        breaks[break_class] = breaks.get(break_class, 0) + total.breaks
    return WindowFigures(
        cut_n=row.cut_n,
        window_start_utc=row.window_start_utc,
        window_end_utc=row.window_end_utc,
        verdict=Verdict(row.verdict),
        read_nothing=any(doubt["doubt"] in NOTHING_READ for doubt in row.doubts),
        topic_rows=row.topic_rows,
        ledger_rows=row.ledger_rows,
        matched_money=row.matched_money,
        breaks=breaks,
        money=total_money((total.currency, int(total.amount_minor)) for total in totals if total.currency),
        lags=_TOPIC_LAGS.validate_python(row.lags or ()),
    )
