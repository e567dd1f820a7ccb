"""Shows on stderr how far a run is: a line that moves in a terminal, a line per step elsewhere."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from rich.status import Status

from tallystick.cli_output import console
from tallystick.verdict_text import counted

_LINES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "settling": lambda found: f"Waiting for both sides to settle: {'; '.join(found['waits_for'])}",
    "settled": lambda found: "Both sides have settled",
    "not_settled": lambda found: f"Not settled in time, going on without: {'; '.join(found['waits_for'])}",
    "cut": lambda found: f"Cut {found['cut']} is stored",
    "unfinished_cut": lambda found: f"Cut {found['cut']} of an earlier run has no verdict yet and goes first",
    "starting_spark": lambda found: "Starting Spark",
    "claimed": lambda found: f"{found['contract']}/{found['cut']}: attempt {found['attempt']}",
    "scanning": lambda found: f"Reading {counted(found['offsets'], 'offset')} and the ledger's slice",
    "index_written": lambda found: "Wrote the index of keys",
    "scanned": lambda found: f"Read {found['topic_rows']:,} records and {found['ledger_rows']:,} ledger rows",
    "census_taken": lambda found: f"Counted every offset: {found['unexplained']:,} unexplained",
    "investigated": lambda found: f"Looked up {counted(found['keys'], 'key')} that did not simply pair",
    "judged": lambda found: f"Judged: {found['verdict']}",
    "committing": lambda found: "Storing the verdict",
    "committed": lambda found: f"Stored: {found['verdict']}",
    "index_kept": lambda found: (
        f"The index of keys holds {found['size_bytes']:,} bytes more"
        + "".join(f"; that of cut {cut_n} lay beyond the horizon and was deleted" for cut_n in found["forgotten_cuts"])
    ),
    "already_judged": lambda found: f"Judged before: {found['verdict']}",
    "failed": lambda found: f"{found['contract_file']}, cut {found['cut']} failed: {found['error']}",
    "reread": lambda found: "Read again: the same digest" if found["same"] else "Read again: another digest",
    "alerts_owed": lambda found: f"Alerts that nobody got yet: {'; '.join(found['failures'])}",
    "report": lambda found: f"Report: {found['path']}",
    "approved": lambda found: "The plan is what was approved",
    "executing": lambda found: "The store says that it is being executed",
    "fenced": lambda found: "Every executor before this one is fenced",
    "progress_read": lambda found: f"Published by an earlier start: {counted(found['published'], 'event')}",
    "proved": lambda found: "Each absence is proven once more",
    "evidence_kept": lambda found: "The trail has what stands there",
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
    "done": lambda found: f"Spark took {found['seconds']} s",
}
"""Step to the line that tells it; a step without a line here is shown by its name."""

_STAYS = ("not_settled", "unfinished_cut", "alerts_owed", "report")
"""Lines that stand after the run, also in a terminal."""


class Progress:
    """Use as a context; `tell` is the observer that a run takes."""

    def __init__(self) -> None:
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

    def tell(self, step: str, figures: Mapping[str, Any]) -> None:
        """Show a step. A line that is the same as the one before is not written again."""
        line = step_line(step, figures)
        if line == self._last:
            return
        self._last = line
        if self._status:
            self._status.update(line)
        if not self._status or step in _STAYS:
            self._console.print(line, soft_wrap=True)


def step_line(step: str, figures: Mapping[str, Any]) -> str:
    """One line for a step; never fails on figures that it does not find."""
    try:
        return _LINES[step](figures)
    except (KeyError, TypeError, ValueError):
        return step.replace("_", " ")
