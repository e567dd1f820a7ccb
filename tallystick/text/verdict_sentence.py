"""One sentence for a verdict: why it is what it is. The report, the command line and the UI say the same words."""

from collections.abc import Collection
from dataclasses import dataclass

from tallystick.model.finding_names import BreakClass
from tallystick.model.findings import Break, Money, money_at_stake
from tallystick.model.run_result import RunResult
from tallystick.model.verdict import Verdict
from tallystick.text.money import format_money


@dataclass(frozen=True, kw_only=True)
class BreakSums:
    """The breaks of a run: how many, of which classes, and the money at stake in integer minor units."""

    count: int
    classes: frozenset[BreakClass]
    money: Money


def sums_of(breaks: Collection[Break]) -> BreakSums:
    """Count them."""
    return BreakSums(
        count=len(breaks),
        classes=frozenset(item_break.break_class for item_break in breaks),
        money=money_at_stake(breaks),
    )


def verdict_sentence(result: RunResult) -> str:
    """Say why this run concluded what it did."""
    return verdict_sentence_of(result, sums_of(result.breaks))


def verdict_sentence_of(result: RunResult, found: BreakSums) -> str:
    """The same, for a run whose breaks were counted and not read."""
    match result.verdict:
        case Verdict.BROKEN:
            return f"{_breaks(found)}{_doubts_beside(result)}"
        case Verdict.INCONCLUSIVE:
            first = result.doubts[0].sentence if result.doubts else "Nothing was proven."
            return f"No break was found, but the window is not proven either. {first}{_more_doubts(result)}"
        case Verdict.MATCHED:
            return f"{_matched(result)}{_in_flight(result)}"


def counted(number: int, noun: str) -> str:
    """1 break, 2 breaks, 3 classes, 4 currencies, 5 keys."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}{'es' if noun.endswith('s') else 's'}"


def _breaks(found: BreakSums) -> str:
    at_stake = f"{format_money(found.money)} at stake" if found.money else "no money named"
    return f"{counted(found.count, 'break')} in {counted(len(found.classes), 'class')}, {at_stake}."


def _doubts_beside(result: RunResult) -> str:
    if not result.doubts:
        return ""
    return f" Besides, {counted(len(result.doubts), 'doubt')}: not all could be seen."


def _more_doubts(result: RunResult) -> str:
    more = len(result.doubts) - 1
    return f" And {counted(more, 'more doubt')}." if more > 0 else ""


def _matched(result: RunResult) -> str:
    figures = result.figures
    if not figures.matched_rows and (figures.topic_rows or figures.ledger_rows):
        return "Both sides were read whole, and nothing of them has found its partner yet."
    if not figures.matched_rows:
        return "Both sides were read whole and had nothing to pair, which the contract allows."
    pairs = counted(figures.matched_rows, "pair")
    of = "output and input" if result.of_inputs else "event and ledger row"
    return f"{pairs} of {of} agree exactly once, {format_money(figures.matched_money)} in all."


def _in_flight(result: RunResult) -> str:
    figures = result.figures
    if not figures.in_flight_items:
        return ""
    verb = "is" if figures.in_flight_items == 1 else "are"
    return f" {counted(figures.in_flight_items, 'item')} {verb} still open and carried to the next run."
