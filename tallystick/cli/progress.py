"""Show on stderr how far a run is: one moving line in a terminal, one line per step elsewhere."""

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from rich.status import Status
from rich.text import Text

from tallystick.cli.table import console
from tallystick.text.duration import span_text
from tallystick.text.verdict_sentence import counted

_LINES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "settling": lambda found: f"Waiting for both sides to settle: {'; '.join(found['waits_for'])}",
    "settled": lambda found: "Both sides have settled",
    "not_settled": lambda found: f"Not settled in time, going on without: {'; '.join(found['waits_for'])}",
    "cut": lambda found: f"Cut {found['cut']} is stored",
    "unfinished_cut": lambda found: f"Cut {found['cut']} of an earlier run has no verdict yet and goes first",
    "starting_spark": lambda found: "Starting Spark",
    "joining_spark": lambda found: "Reading with the Spark server that runs",
    "claimed": lambda found: f"{found['contract']}/{found['cut']}: attempt {found['attempt']}",
    "scanning": lambda found: f"Reading {counted(found['offsets'], 'offset')} and the ledger's slice",
    "index_written": lambda found: "Wrote the key index",
    "fetched": lambda found: f"Kafka sent {found['bytes']:,} bytes",
    "scanned": lambda found: f"Read {found['topic_rows']:,} records and {found['ledger_rows']:,} ledger rows",
    "counting": lambda found: f"Counted {found['done']:,} of {counted(found['of'], 'offset')}",
    "tasks": lambda found: f"Spark has done {found['done']:,} of {counted(found['of'], 'task')}",
    "census_taken": lambda found: f"Counted every offset: {found['unexplained']:,} unexplained",
    "investigated": lambda found: f"Looked up {counted(found['keys'], 'key')} without a simple match",
    "judged": lambda found: f"Judged: {found['verdict']}",
    "committing": lambda found: "Storing the verdict",
    "committed": lambda found: f"Stored: {found['verdict']}",
    "index_kept": lambda found: (
        f"The key index grew by {found['size_bytes']:,} bytes"
        + "".join(f"; the part of cut {cut_n} is past its time and was deleted" for cut_n in found["forgotten_cuts"])
    ),
    "already_judged": lambda found: f"Judged before: {found['verdict']}",
    "failed": lambda found: f"{found['contract_file']}, cut {found['cut']} failed: {found['error']}",
    "reread": lambda found: "Read again: the same digest" if found["same"] else "Read again: another digest",
    "artifacts_owed": lambda found: f"{found['why']}. The verdict is stored; write its files with: tallystick report",
    "alerts_owed": lambda found: f"Alerts that nobody got yet: {'; '.join(found['failures'])}",
    "expectations": lambda found: f"Expectations of {found['outcome']}",
    "report": lambda found: f"Report: {found['path']}",
    "approved": lambda found: "The plan is the approved one",
    "executing": lambda found: "The plan is marked in the store as executing",
    "fenced": lambda found: "Every executor before this one is fenced",
    "progress_read": lambda found: f"Published by an earlier start: {counted(found['published'], 'event')}",
    "proved": lambda found: "Proved again that each repair is still missing",
    "unanswered": lambda found: f"{found['place']}: not all coordinators answer yet, look {found['looks']}",
    "evidence_kept": lambda found: "The audit trail has the evidence",
    "marked": lambda found: "Kafka has the ABORT marker",
    "started": lambda found: f"Airflow has run {found['dag_run_id']} of {found['dag_id']}",
    "begun": lambda found: "The transaction has begun",
    "produced": lambda found: f"Record {found['record']} of {found['of']} is on its way",
    "flushed": lambda found: "Kafka has every record",
    "published": lambda found: "The producer transaction is committed",
    "inserted": lambda found: "The ledger's transaction has the rows",
    "posted": lambda found: "The ledger's transaction is committed",
    "aborted": lambda found: f"Kafka could not take the producer transaction: {found['error']}",
    "recorded": lambda found: f"The store has the outcome of event {found['item']}",
    "finished": lambda found: f"Finished: {counted(len(found['outcomes']), 'event')}",
    "stopped": lambda found: f"Stopped: {found['error']}",
    "verified": lambda found: f"Read again: {found['verdict']}",
    "pruned": lambda found: f"{found['contract']}: deleted {found['gone']:,} {found['kind']}",
    "done": lambda found: f"Spark took {found['seconds']} s",
}
"""Step to its line; a step without a line here is shown by its name."""

_STAYS = ("not_settled", "unfinished_cut", "artifacts_owed", "alerts_owed", "expectations", "report")
"""Steps whose lines stay after the run, also in a terminal."""


_LONG_WORK = 100_000
"""Outside a terminal, only counts of at least so many are shown, at every tenth."""


class Progress:
    """Use this as a context; a run calls `on_progress`. clock: seconds, from any beginning."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = clock()
        self._tenths = 0
        self._console = console(stderr=True)
        self._status = Status("Starting", console=self._console) if self._console.is_terminal else None
        self._last = ""

    def __enter__(self) -> Self:
        if self._status:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status:
            self._status.stop()

    def on_progress(self, step: str, figures: Mapping[str, Any]) -> None:
        """Show a step. A line that is the same as the one before is not written again."""
        line = step_line(step, figures)
        if step == "scanning":
            self._begun, self._tenths = self._clock(), 0
        if step == "counting":
            if not self._status and not self._another_tenth(figures):
                return
            line += self._pace(figures)
        if line == self._last:
            return
        self._last = line
        if self._status:
            self._status.update(Text(line))  # a spinner takes a str for markup
        if not self._status or step in _STAYS:
            self._console.print(line, soft_wrap=True)

    def _another_tenth(self, figures: Mapping[str, Any]) -> bool:
        tenths = 10 * figures["done"] // max(figures["of"], 1)
        before, self._tenths = self._tenths, tenths
        return bool(figures["of"] >= _LONG_WORK and tenths > before)

    def _pace(self, figures: Mapping[str, Any]) -> str:
        """Return the rate and the time left at that rate; empty before they are known."""
        return pace_text(figures["done"], figures["of"], seconds=self._clock() - self._begun)


def pace_text(done: int, of: int, *, seconds: float) -> str:
    """Return the rate of a count, and the time left at that rate. Empty at both ends."""
    if not 0 < done < of or seconds <= 0:
        return ""
    left = timedelta(seconds=(of - done) * seconds / done)
    return f", {done / seconds:,.0f} a second, {span_text(left)} left"


def step_line(step: str, figures: Mapping[str, Any]) -> str:
    """Return one line for a step; never fails on figures that it does not find."""
    try:
        return _LINES[step](figures)
    except (KeyError, TypeError, ValueError):
        return step.replace("_", " ")
