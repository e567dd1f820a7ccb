"""The lag of the partners of one run, per topic, ready to read: a row per bucket, with its bar. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from tallystick.model.partner_lag import EDGES_MS, PAIRS_FOR_P999, Pairs, RunLag, TopicLag, quantile_ms
from tallystick.report.share_bar import share_bar
from tallystick.text.verdict_sentence import counted


@dataclass(frozen=True, kw_only=True)
class LagRow:
    """Pairs of one bucket."""

    words: str
    count: int
    bar: Markup


@dataclass(frozen=True, kw_only=True)
class LagTable:
    """One topic. Rows run from the fastest bucket with a pair to the slowest, empty ones between them too."""

    topic: str
    summary: str
    rows: tuple[LagRow, ...]


def lag_tables(lag: RunLag | None) -> tuple[LagTable, ...]:
    """One per topic that had a pair."""
    return tuple(_table(topic_lag) for topic_lag in lag.topics) if lag else ()


def grace_sentence(lag: RunLag | None, *, contract_seconds: int, cap_seconds: int) -> str:
    """Say how late a partner may be in this run, and why."""
    measured_ms = lag.grace.measured_ms if lag else None
    if lag is None or measured_ms is None:
        return (
            f"A partner may be {counted(contract_seconds, 'second')} late before its absence is a break, as the "
            "contract says; no clean run has measured how late partners come."
        )
    grace = lag.grace
    if measured_ms <= contract_seconds * 1000:
        why = "which the contract's own grace covers"
    elif grace.seconds == cap_seconds:
        why = "so the grace is its cap"
    else:
        why = f"more than the {counted(contract_seconds, 'second')} that the contract grants"
    return (
        f"A partner may be {counted(grace.seconds, 'second')} late before its absence is a break: in "
        f"{counted(grace.clean_runs, 'clean run')}, {_of_pairs(grace.pairs)} came within {duration_text(measured_ms)}, "
        f"{why}."
    )


def _of_pairs(pairs: int | None) -> str:
    if pairs is None or pairs >= PAIRS_FOR_P999:
        return "999 of 1,000"
    return f"all but the longest of {counted(pairs, 'pair')}, too few for 999 of 1,000,"


def duration_text(milliseconds: int) -> str:
    """Format in the unit that people would use, rounded up to a tenth of it."""
    for unit, size in (("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if milliseconds >= size:
            tenths = -(-milliseconds * 10 // size)
            return f"{tenths // 10}.{tenths % 10} {unit}" if tenths % 10 else f"{tenths // 10} {unit}"
    return f"{milliseconds} ms"


def _table(lag: TopicLag) -> LagTable:
    quantiles = ((500, "half of them"), (990, "99 of 100"), (999, "999 of 1,000"))
    within = [
        f"{words} within {duration_text(quantile_ms(lag.pairs, per_mille=per_mille) or 0)}"
        for per_mille, words in quantiles
    ]
    return LagTable(
        topic=lag.topic,
        summary=f"{counted(sum(lag.pairs), 'pair')}: {', '.join(within)}",
        rows=tuple(_rows(lag.pairs)),
    )


def _rows(pairs: Pairs) -> Iterator[LagRow]:
    present = [number for number, count in enumerate(pairs) if count]
    for number in range(present[0], present[-1] + 1):
        words = f"up to {duration_text(EDGES_MS[number])}"
        if number == len(EDGES_MS) - 1:
            words = f"over {duration_text(EDGES_MS[number - 1])}"
        yield LagRow(
            words=words,
            count=pairs[number],
            bar=share_bar(
                {"pairs": pairs[number]},
                whole=max(pairs),
                fills={"pairs": "var(--committed)"},
                label=f"{words}: {counted(pairs[number], 'pair')}",
            ),
        )
