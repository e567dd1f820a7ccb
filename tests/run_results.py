"""The result of a run, for tests of any part: one row that agrees with its event, unless a test says otherwise."""

from dataclasses import replace
from typing import Any

from tallystick.model.run_result import RunFigures, RunResult
from tallystick.model.verdict import Verdict


def run_figures(**changes: Any) -> RunFigures:
    """Return the figures of one row and its event, which agree, but for what is given."""
    unremarkable = RunFigures(
        topic_rows=1,
        ledger_rows=1,
        matched_rows=1,
        matched_money={},
        in_flight_items=0,
        in_flight_money={},
        carried_items=0,
        undecidable_items=0,
        unreadable_records=0,
        ledger_older_rows=None,
        census=(),
    )
    return replace(unremarkable, **changes)


def run_result(contract_name: str, cut_n: int, **changes: Any) -> RunResult:
    """Return the result of a run that found nothing, but for what is given."""
    unremarkable = RunResult(
        contract=contract_name,
        cut_n=cut_n,
        verdict=Verdict.MATCHED,
        doubts=(),
        breaks=(),
        items=(),
        figures=run_figures(),
        digest="d",
    )
    return replace(unremarkable, **changes)
