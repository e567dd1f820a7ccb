"""Evaluates a contract's own suites about one stored run: `expectations: my_package.suites`.

The module is imported, and has one function:

    def suites() -> Mapping[str, great_expectations.ExpectationSuite]

It gives for each table it looks at one suite; own_tables.py says which tables there are, with columns and units. The
suite's expectations are typed, with a `severity` and, best, a `description`, which is what people read.

The module is its owner's code: whatever it does is told in words and passes nothing. So is a table without a row, an
expectation that has no row to look at, and one that Great Expectations does not know, since all of these would pass
unseen. Decides no verdict.
"""

import importlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import great_expectations as gx
import pandas as pd
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.types.resource_identifiers import ValidationResultIdentifier
from great_expectations.expectations.expectation import Expectation

from tallystick.host.artifacts import Place
from tallystick.model.run_result import WindowSummary
from tallystick.model.stored_run import ExpectationNotMet, ExpectationsOutcome, NotEvaluated, StoredRun, unevaluated
from tallystick.text.plain import escape_untrusted
from tallystick_expectations.docs_pages import docs_pages
from tallystick_expectations.evaluation import open_context, write_pages
from tallystick_expectations.own_answers import Answer, answer_of
from tallystick_expectations.own_tables import ROWS_ARE_CALLED, own_tables

_GX_LOG = "great_expectations.core.expectation_suite"
"""Where Great Expectations logs, and does no more, that it left an expectation out of a suite."""


class SuitesUnfit(ValueError):
    """The module gives nothing that can be evaluated. The message says what was got and what was expected."""


def evaluate_own_suites(run: StoredRun, module: str, artifacts: Place) -> ExpectationsOutcome:
    """Evaluate the suites of a module, and write their Data Docs beside those of Tallystick.

    An exception of the module, or of Great Expectations over it, is part of the outcome.
    Raises ArtifactsUnreachable.
    """
    summary = run.result.summary
    if summary is None:
        why = "the run read nothing of the window, or is older than the figures of both sides"
        return unevaluated(module, what=module, why=why)
    with docs_pages(artifacts, run.result.contract) as pages:
        try:
            suites = load_suites(module)
            return _evaluate_all(run, module, suites, summary, pages)
        except (Exception, SystemExit) as error:  # their code, and what Great Expectations makes of it
            return unevaluated(module, what=module, why=_told(error))


def load_suites(module: str) -> Mapping[str, gx.ExpectationSuite]:
    """Import the module and ask it for its suites, by table. Raises SuitesUnfit, and what the module raises."""
    with _nothing_left_out():
        found = importlib.import_module(module)
        ask = getattr(found, "suites", None)
        if not callable(ask):
            raise SuitesUnfit(f"{module} has no function suites; expected one that gives suites by table")
        suites = ask()
    if not isinstance(suites, Mapping) or not suites:
        raise SuitesUnfit(f"{module}.suites() gave {_shown(suites)}; expected a suite for at least one table")
    for table, suite in suites.items():
        if table not in ROWS_ARE_CALLED:
            raise SuitesUnfit(f"{module}.suites() has table {table!r}; expected one of {', '.join(ROWS_ARE_CALLED)}")
        if not isinstance(suite, gx.ExpectationSuite):
            raise SuitesUnfit(f"{module}.suites()[{table!r}] is {_shown(suite)}; expected an ExpectationSuite")
        if not suite.expectations:
            raise SuitesUnfit(f"{module}.suites()[{table!r}] has no expectation; expected at least one")
    return suites


def _shown(value: object) -> str:
    return "nothing" if isinstance(value, Mapping) else type(value).__name__


@contextmanager
def _nothing_left_out() -> Iterator[None]:
    """Raise SuitesUnfit where Great Expectations leaves an expectation out of a suite that is made meanwhile."""
    told: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    listener = Listener(logging.ERROR)
    log = logging.getLogger(_GX_LOG)
    log.addHandler(listener)
    try:
        yield
    finally:
        log.removeHandler(listener)
    if told:
        raise SuitesUnfit(told[0])


def _evaluate_all(
    run: StoredRun,
    module: str,
    suites: Mapping[str, gx.ExpectationSuite],
    summary: WindowSummary,
    pages: Path,
) -> ExpectationsOutcome:
    context = open_context(pages)
    source = context.data_sources.add_pandas("window_figures")
    run_id = RunIdentifier(run_name=f"cut {run.result.cut_n}", run_time=run.recorded_at)
    tables = own_tables(run, summary)
    answers: list[Answer] = []
    written: list[ValidationResultIdentifier] = []
    for table in (name for name in ROWS_ARE_CALLED if name in suites):
        try:
            found, identifier = _evaluate(context, source, table, suites[table], tables[table], run_id)
        except (Exception, SystemExit) as error:  # one table of theirs must not take the others with it
            answers.append(NotEvaluated(what=table, why=_told(error)))
        else:
            answers += found
            written.append(identifier)
    write_pages(context, [identifier.expectation_suite_identifier.name for identifier in written], written, pages)
    return ExpectationsOutcome(
        module=module,
        met=sum(one is None for one in answers),
        not_met=tuple(one for one in answers if isinstance(one, ExpectationNotMet)),
        not_evaluated=tuple(one for one in answers if isinstance(one, NotEvaluated)),
    )


def _evaluate(
    context: Any,
    source: Any,
    table: str,
    suite: gx.ExpectationSuite,
    frame: pd.DataFrame,
    run_id: RunIdentifier,
) -> tuple[list[Answer], ValidationResultIdentifier]:
    """Evaluate one suite; an answer for each of its expectations. Raises SuitesUnfit."""
    name, expected = f"own {table}", len(suite.expectations)
    fresh = [_fresh(one) for one in suite.expectations]
    kept = context.suites.add(
        gx.ExpectationSuite(name=name, expectations=fresh, suite_parameters=suite.suite_parameters)
    )
    batch = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("whole")
    definition = context.validation_definitions.add(gx.ValidationDefinition(name=name, data=batch, suite=kept))
    checkpoint = context.checkpoints.add(
        gx.Checkpoint(
            name=name,
            validation_definitions=[definition],
            actions=[],
            result_format={
                "result_format": "SUMMARY",
                "unexpected_index_column_names": list(ROWS_ARE_CALLED[table]),
            },
        )
    )
    outcome = checkpoint.run(batch_parameters={"dataframe": frame}, run_id=run_id)
    ((identifier, result),) = outcome.run_results.items()
    if len(result.results) != expected:
        raise SuitesUnfit(f"{len(result.results)} expectations gave an answer; expected {expected}")
    return [answer_of(table, one, ROWS_ARE_CALLED[table]) for one in result.results], identifier


def _fresh(expectation: Expectation) -> Expectation:
    """Return a copy that belongs to no suite yet: a module may keep its suites for the next call."""
    return expectation.copy(update={"id": None})


def _told(error: BaseException) -> str:
    words = escape_untrusted(" ".join(str(error).split()))
    return words if isinstance(error, SuitesUnfit) else f"{type(error).__name__}{f': {words}' if words else ''}"
