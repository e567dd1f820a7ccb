"""Committed runs as the report, the pages and the command line read them."""

from dataclasses import dataclass
from datetime import datetime

from tallystick.model.cut import Cut
from tallystick.model.findings import Break, DoubtFound, Money
from tallystick.model.open_item import ItemTotal
from tallystick.model.run_result import RunResult
from tallystick.model.verdict import Verdict


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
    first_seen_cut: int
    """That first saw the copy which it is about; with several, the first of them."""
