"""Evaluates the expectations about one stored run, and writes their Data Docs.

They are a second pair of eyes: whether they are met or not, the verdict is Tallystick's.
"""

from typing import Any

from tallystick.contract.contract import Contract
from tallystick.host.artifacts import Place
from tallystick.model.stored_run import StoredRun
from tallystick_expectations.breaks_suite import breaks_suite
from tallystick_expectations.census_suite import census_suite
from tallystick_expectations.docs_pages import docs_pages, docs_place
from tallystick_expectations.evaluation import evaluate_suites
from tallystick_expectations.figures_suite import figures_suite


def evaluate_run(run: StoredRun, contract: Contract, artifacts: Place) -> dict[str, Any]:
    """Evaluate all suites; the answer's keys are stable. Raises EvidenceShrunk, ArtifactsUnreachable."""
    with docs_pages(artifacts, contract.name) as pages:
        outcomes = evaluate_suites(
            (figures_suite(run, contract), breaks_suite(run), census_suite(run)),
            pages=pages,
            run_name=f"cut {run.result.cut_n}",
            run_time=run.recorded_at,
        )
    return {
        "contract": contract.name,
        "cut": run.result.cut_n,
        "success": all(outcome.success for outcome in outcomes),
        "evaluated": sum(outcome.evaluated for outcome in outcomes),
        "failed": {outcome.name: list(outcome.failed) for outcome in outcomes if outcome.failed},
        "data_docs": str(docs_place(artifacts, contract.name) / "index.html"),
    }
