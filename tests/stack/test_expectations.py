"""Great Expectations over stored runs: a clean run passes, a broken one fails by name, and no check is lost unseen."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import great_expectations.expectations as gxe
import pytest
from sqlalchemy import Engine

from tallystick.contract.contract import Contract
from tallystick.model.finding_names import Doubt
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.store.runs.run_store import read_run
from tallystick_expectations.breaks_suite import breaks_suite
from tallystick_expectations.census_suite import census_suite
from tallystick_expectations.evaluate_run import evaluate_run
from tallystick_expectations.evaluation import EvidenceShrunk, SuiteOutcome, evaluate_suites
from tallystick_expectations.figures_suite import figures_suite
from tallystick_expectations.suite import Suite


@pytest.fixture
def stored(store: Engine, books: Any) -> Callable[..., StoredRun]:
    """Commit cut 0 of the plain contract with this result, and read it back."""

    def commit(**result: Any) -> StoredRun:
        books.commit(store, books.result(0, **result))
        run = read_run(store, books.contract.name, 0)
        assert run is not None
        return replace(run, cut=replace(run.cut, n=1))  # not a baseline: that one reads no partition

    return commit


def suites_of(run: StoredRun, contract: Contract) -> tuple[Suite, ...]:
    return figures_suite(run, contract), breaks_suite(run), census_suite(run)


def evaluated(suites: tuple[Suite, ...], run: StoredRun, folder: Path) -> dict[str, SuiteOutcome]:
    outcomes = evaluate_suites(suites, pages=folder / "pages", run_name="cut 1", run_time=run.recorded_at)
    return {outcome.name: outcome for outcome in outcomes}


def with_census(run: StoredRun, **changes: Any) -> StoredRun:
    (part,) = run.result.figures.census
    figures = replace(run.result.figures, census=(replace(part, **changes),))
    return replace(run, result=replace(run.result, figures=figures))


def test_a_clean_run_meets_every_expectation(stored: Callable[..., StoredRun], books: Any, tmp_path: Path) -> None:
    run = stored()
    suites = suites_of(run, books.contract)
    outcomes = evaluated(suites, run, tmp_path)
    assert all(outcome.success for outcome in outcomes.values())
    for suite in suites:
        assert outcomes[suite.name].evaluated == len(suite.expectations) > 5


def test_a_break_fails_the_breaks_and_the_figures_and_not_the_census(
    stored: Callable[..., StoredRun], books: Any, tmp_path: Path
) -> None:
    run = stored(verdict=Verdict.BROKEN, breaks=(books.missing("a"),))
    outcomes = evaluated(suites_of(run, books.contract), run, tmp_path)
    assert outcomes["breaks"].failed == ("expect_table_row_count_to_equal",)
    assert outcomes["figures"].failed == (
        "expect_column_values_to_be_between breaks",
        "expect_column_values_to_be_between money_at_stake_minor_max",
        "expect_column_values_to_be_in_set verdict",
    )
    assert outcomes["census"].success


def test_a_doubt_fails_the_figures_alone(stored: Callable[..., StoredRun], books: Any, tmp_path: Path) -> None:
    run = stored(verdict=Verdict.INCONCLUSIVE, doubts=(Doubt.VACUOUS_RUN,))
    outcomes = evaluated(suites_of(run, books.contract), run, tmp_path)
    assert [name for name, outcome in outcomes.items() if not outcome.success] == ["figures"]


@pytest.mark.parametrize(
    ("changes", "failed"),
    [
        (
            {"unexplained": 1, "committed": 6, "spark_rows": 6},
            {
                "expect_column_values_to_be_between unexplained",
                "expect_column_pair_values_to_be_equal offsets named_offsets",
            },
        ),
        ({"spark_rows": 8}, {"expect_column_pair_values_to_be_equal spark_rows readable_records"}),
        (
            {"spark_rows": None},
            {
                "expect_column_pair_values_to_be_equal spark_rows readable_records",
                "expect_column_values_to_be_between spark_rows",
            },
        ),
        ({"lso": 9}, {"expect_column_pair_values_a_to_be_greater_than_b lso kafka_offset_end"}),
        (
            {"aborted": -1, "commit_markers": 3},
            {"expect_column_values_to_be_between aborted"},
        ),
    ],
    ids=["unexplained", "one row more", "not read by Spark", "end above the LSO", "negative"],
)
def test_a_census_that_does_not_add_up_fails_by_name(
    stored: Callable[..., StoredRun], tmp_path: Path, changes: dict[str, Any], failed: set[str]
) -> None:
    run = with_census(stored(), **changes)
    assert set(evaluated((census_suite(run),), run, tmp_path)["census"].failed) == failed


def test_a_partition_that_nobody_counted_fails_the_census(stored: Callable[..., StoredRun], tmp_path: Path) -> None:
    run = stored()
    silent = replace(run, result=replace(run.result, figures=replace(run.result.figures, census=())))
    assert evaluated((census_suite(silent),), run, tmp_path)["census"].failed == ("expect_table_row_count_to_equal",)


def test_a_run_that_compared_nothing_passes_only_where_the_contract_allows_it(
    stored: Callable[..., StoredRun], new_contract: Callable[..., Contract], tmp_path: Path
) -> None:
    run = stored()
    empty = replace(run, result=replace(run.result, figures=replace(run.result.figures, matched_rows=0)))
    refused, allowed = new_contract(empty="refused"), new_contract(empty="allowed")
    failed = evaluated((figures_suite(empty, refused),), run, tmp_path)["figures"].failed
    assert failed == ("expect_column_values_to_be_between matched_rows",)
    assert evaluated((figures_suite(empty, allowed),), run, tmp_path)["figures"].success


def test_an_emptied_suite_and_no_suite_at_all_are_refused(stored: Callable[..., StoredRun], tmp_path: Path) -> None:
    run = stored()
    emptied = replace(breaks_suite(run), expectations=())
    with pytest.raises(EvidenceShrunk, match="suite breaks: 0 expectations were kept"):
        evaluated((emptied,), run, tmp_path)
    with pytest.raises(EvidenceShrunk, match="no suite"):
        evaluated((), run, tmp_path)


def test_an_expectation_that_great_expectations_drops_is_missed(
    stored: Callable[..., StoredRun], tmp_path: Path
) -> None:
    run = stored()
    suite = breaks_suite(run)
    typo: Any = {"type": "expect_table_row_count_to_be_eqaul", "kwargs": {"value": 0}}
    with pytest.raises(EvidenceShrunk, match=f"{len(suite.expectations)} expectations were kept"):
        evaluated((replace(suite, expectations=(*suite.expectations, typo)),), run, tmp_path)


def test_a_suite_that_cannot_fail_is_refused(stored: Callable[..., StoredRun], tmp_path: Path) -> None:
    run = stored()
    blind = replace(breaks_suite(run), expectations=(gxe.ExpectTableRowCountToBeBetween(min_value=0),))
    with pytest.raises(EvidenceShrunk, match="a planted fault was not found"):
        evaluated((blind,), run, tmp_path)


def test_a_check_that_ends_with_an_exception_is_no_answer(stored: Callable[..., StoredRun], tmp_path: Path) -> None:
    run = stored()
    suite = breaks_suite(run)
    broken = replace(suite, expectations=(*suite.expectations, gxe.ExpectColumnMaxToBeBetween(column="no such column")))
    with pytest.raises(EvidenceShrunk, match="expect_column_max_to_be_between no such column ended with an exception"):
        evaluated((broken,), run, tmp_path)


def test_the_pages_list_every_run_once(stored: Callable[..., StoredRun], books: Any, tmp_path: Path) -> None:
    run = stored()
    second = replace(run, result=replace(run.result, cut_n=2))
    for one in (run, second, second):
        evaluate_run(one, books.contract, tmp_path)
    pages = tmp_path / "data_docs" / books.contract.name
    listed = {path.parent.parent.name for path in (pages / "validations" / "figures").rglob("*.html")}
    assert listed == {"cut 0", "cut 2"}
    index = (pages / "index.html").read_text()
    assert index.index("cut 2") < index.index("cut 0"), "the newest first"
    linked = [unquote(address) for address in re.findall(r'href="([^"]+)"', index)]
    assert len(linked) == 2 * len(suites_of(run, books.contract))
    assert all((pages / address).is_file() for address in linked)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")} == {0o700, 0o600}


def test_the_pages_of_earlier_runs_are_neither_read_nor_written(
    stored: Callable[..., StoredRun], books: Any, tmp_path: Path
) -> None:
    run = stored()
    evaluate_run(run, books.contract, tmp_path)
    earlier = list((tmp_path / "data_docs" / books.contract.name / "validations").rglob("*.html"))
    for page in earlier:
        page.write_text("as it was")
    evaluate_run(replace(run, result=replace(run.result, cut_n=2)), books.contract, tmp_path)
    assert {page.read_text() for page in earlier} == {"as it was"}
    assert not list(tmp_path.rglob("*.json")), "no result is kept that the next run would read"


def test_the_answer_says_what_failed_and_where_the_pages_are(
    stored: Callable[..., StoredRun], books: Any, tmp_path: Path
) -> None:
    run = stored(verdict=Verdict.BROKEN, breaks=(books.missing("a"),))
    answer = evaluate_run(run, books.contract, tmp_path)
    assert (answer["contract"], answer["cut"], answer["success"]) == ("payouts", 0, False)
    assert answer["evaluated"] > 0
    assert set(answer["failed"]) == {"breaks", "figures"}
    assert Path(answer["data_docs"]).is_file()
