"""Evaluates suites with Great Expectations, and proves that nothing of them was lost on the way.

Great Expectations drops what it cannot read from a suite, and lets an emptied suite pass. So the expectations are
counted before, inside and after; a check that ended with an exception proved nothing; and each suite must find a fault
that was planted for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import great_expectations as gx
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)
from great_expectations.data_context.types.resource_identifiers import (
    ExpectationSuiteIdentifier,
    ValidationResultIdentifier,
)

from tallystick_expectations.docs_index import write_index
from tallystick_expectations.suite import Suite


class EvidenceShrunk(RuntimeError):
    """Fewer checks ran than were asked for, or a check cannot fail: the result means nothing."""


@dataclass(frozen=True, kw_only=True)
class SuiteOutcome:
    """The result of one suite. failed: types of the expectations that were not met, with their column."""

    name: str
    success: bool
    evaluated: int
    failed: tuple[str, ...]


def evaluate_suites(
    suites: Sequence[Suite], *, pages: Path, run_name: str, run_time: datetime
) -> tuple[SuiteOutcome, ...]:
    """Evaluate every suite and write its page. The same run name and time write the same page again.

    pages: the folder of one contract's pages. Those of other runs stay as they are, and are not read.
    Raises EvidenceShrunk.
    """
    if not suites:
        raise EvidenceShrunk("no suite to evaluate; expected at least one")
    context = open_context(pages)
    source = context.data_sources.add_pandas("verdict_store")
    run_id = RunIdentifier(run_name=run_name, run_time=run_time)
    evaluated = [_evaluate(context, source, suite, run_id) for suite in suites]
    write_pages(context, [suite.name for suite in suites], [identifier for _, identifier in evaluated], pages)
    return tuple(outcome for outcome, _ in evaluated)


def write_pages(
    context: Any, suites: Sequence[str], results: Sequence[ValidationResultIdentifier], pages: Path
) -> None:
    """Write the pages of these suites and results, and the contract's first page anew."""
    shown = [ExpectationSuiteIdentifier(name) for name in suites]
    for identifiers in (shown, results):
        context.build_data_docs(resource_identifiers=identifiers, build_index=False)  # that reads every result ever
    write_index(pages)


def open_context(pages: Path) -> Any:
    """Open a context of Great Expectations; nothing of a project is kept on disk but the pages."""
    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(),
        progress_bars=ProgressBarsConfig(globally=False),
    )
    config.data_docs_sites = {
        "runs": {
            "class_name": "SiteBuilder",
            "show_how_to_buttons": False,
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
            "store_backend": _folder_backend(pages),
        }
    }
    return gx.get_context(project_config=config, mode="ephemeral")


def _folder_backend(folder: Path) -> dict[str, Any]:
    return {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(folder.resolve())}


def _evaluate(
    context: Any, source: Any, suite: Suite, run_id: RunIdentifier
) -> tuple[SuiteOutcome, ValidationResultIdentifier]:
    expected = len(suite.expectations)
    kept = context.suites.add(gx.ExpectationSuite(name=suite.name, expectations=list(suite.expectations)))
    _refuse_shrunk(suite.name, "kept", len(kept.expectations), expected)
    batch = source.add_dataframe_asset(suite.name).add_batch_definition_whole_dataframe("whole")
    definition = context.validation_definitions.add(gx.ValidationDefinition(name=suite.name, data=batch, suite=kept))
    _refuse_blind(suite, definition)
    checkpoint = context.checkpoints.add(
        gx.Checkpoint(
            name=suite.name,
            validation_definitions=[definition],
            actions=[],
            result_format="SUMMARY",
        )
    )
    answer = checkpoint.run(batch_parameters={"dataframe": suite.frame}, run_id=run_id)
    ((identifier, result),) = answer.run_results.items()
    return _outcome(suite.name, result, expected), identifier


def _refuse_blind(suite: Suite, definition: Any) -> None:
    """The planted fault must be found, by a check that ran to its end."""
    result = definition.run(batch_parameters={"dataframe": suite.planted}, result_format="BOOLEAN_ONLY")
    if suite.found_by not in _outcome(suite.name, result, len(suite.expectations)).failed:
        raise EvidenceShrunk(f"suite {suite.name}: a planted fault was not found; expected it by {suite.found_by}")


def _outcome(name: str, result: Any, expected: int) -> SuiteOutcome:
    _refuse_shrunk(name, "evaluated", result.statistics["evaluated_expectations"], expected)
    _refuse_shrunk(name, "answered", len(result.results), expected)
    for one in result.results:
        if raised(one.exception_info):
            raise EvidenceShrunk(f"suite {name}: {name_of(one)} ended with an exception; expected an answer")
    failed = tuple(sorted(name_of(one) for one in result.results if not one.success))
    return SuiteOutcome(name=name, success=bool(result.success), evaluated=expected, failed=failed)


def _refuse_shrunk(name: str, what: str, got: int, expected: int) -> None:
    if got != expected or expected == 0:
        raise EvidenceShrunk(f"suite {name}: {got} expectations were {what}; expected {expected}, and at least one")


def raised(exception_info: Any) -> str:
    """Return the message of the exception that a check ended with; empty where it ended with an answer.

    exception_info: one record of an exception, or a mapping from metric to such records.
    """
    records = [exception_info] if "raised_exception" in exception_info else exception_info.values()
    messages = [record.get("exception_message") or "no message" for record in records if record.get("raised_exception")]
    return str(messages[0]) if messages else ""


def name_of(result: Any) -> str:
    """Return the expectation's type and the columns it looks at."""
    kwargs = result.expectation_config.kwargs
    columns = [str(kwargs[key]) for key in ("column", "column_A", "column_B") if key in kwargs]
    return " ".join([str(result.expectation_config.type), *columns])
