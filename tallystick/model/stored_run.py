"""Committed runs as the report, the pages and the command line read them, with what came of the expectations that the
contract's owner wrote: those change no verdict.
"""

from dataclasses import dataclass
from datetime import datetime

from tallystick.model.cut import Cut
from tallystick.model.findings import Break, DoubtFound, Money
from tallystick.model.open_item import ItemTotal
from tallystick.model.run_result import RunResult
from tallystick.model.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class ExpectationNotMet:
    """One expectation that the window did not meet, in words.

    table: that it looked at. columns: of it, none where it is about the whole table. severity: critical, warning or
    info. description: the author's, or empty. counted: how many rows of how many; empty where it counts none.
    """

    table: str
    columns: tuple[str, ...]
    severity: str
    description: str
    expected: str
    observed: str
    counted: str


@dataclass(frozen=True, kw_only=True)
class NotEvaluated:
    """Something that gave no answer, so it passes nothing: a module, a table or one expectation; and why."""

    what: str
    why: str


@dataclass(frozen=True, kw_only=True)
class ExpectationsOutcome:
    """The result of one module of suites. met: how many expectations were met."""

    module: str
    met: int
    not_met: tuple[ExpectationNotMet, ...] = ()
    not_evaluated: tuple[NotEvaluated, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Return whether everything gave an answer."""
        return not self.not_evaluated


def unevaluated(module: str, *, what: str, why: str) -> ExpectationsOutcome:
    """Return the outcome of a module of which nothing was evaluated."""
    return ExpectationsOutcome(module=module, met=0, not_evaluated=(NotEvaluated(what=what, why=why),))


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A committed run with the cut it read. Breaks are in order of class, match key and id; items in order of id.

    standing: every item that the run left open or broken, also those that it did not touch. completes: the held cuts
    before it that it was the first to read whole.
    """

    result: RunResult
    window_start_utc: datetime
    window_end_utc: datetime
    now_utc: datetime
    scheduler_run_id: str
    attempt: int
    recorded_at: datetime
    cut: Cut
    standing: tuple[ItemTotal, ...] = ()
    completes: tuple[int, ...] = ()
    ledger_guarantee: str = ""
    """Which one the contract of then gave for the ledger's slices, in short."""
    expectations: ExpectationsOutcome | None = None
    """What came of the contract's own expectations, once they were evaluated."""


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """A committed run on one line. money_minor: at stake in the breaks it found.

    completed_by_cut: where a side was held, the later cut that read what this one could not, once there is one.
    """

    contract: str
    cut_n: int
    verdict: Verdict
    doubts: tuple[DoubtFound, ...]
    breaks: int
    money_minor: Money
    window_start_utc: datetime
    window_end_utc: datetime
    scheduler_run_id: str
    recorded_at: datetime
    completed_by_cut: int | None


@dataclass(frozen=True, kw_only=True)
class OutstandingBreak:
    """A break that nobody has cleared or written off, found at cut_n."""

    item_break: Break
    cut_n: int
    first_seen_utc: datetime
    seen_by: tuple[tuple[str, int], ...]
    """The item ids of the copies that it is about, each with the cut that first saw it."""

    @property
    def first_seen_cut(self) -> int:
        """Return the cut that first saw one of its copies."""
        return min(cut_n for _, cut_n in self.seen_by)
