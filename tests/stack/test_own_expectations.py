"""A contract's own suites over stored runs: what is not met is told in words, and what gave no answer is never met."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path

import pytest

from lab.servers.process import REPOSITORY
from tallystick.model.run_result import SideSummary
from tallystick.model.stored_run import ExpectationsOutcome, StoredRun
from tallystick_expectations.own_tables import own_tables
from tests.expectation_outcomes import window_summary
from tests.run_results import run_figures

from .own_suites import ENOUGH, HEAD, MORE_THAN_ONE, evaluated, own, stored, write

__all__ = ["own", "stored", "write"]  # fixtures

EXAMPLE = REPOSITORY / "docs" / "examples" / "payout_suites.py"
PAGE = REPOSITORY / "docs" / "expectations.md"


def refused(run: StoredRun, folder: Path) -> tuple[str, str]:
    """What gave no answer, and why, of an outcome in which that is all."""
    outcome = evaluated(run, folder)
    assert (outcome.met, outcome.not_met) == (0, ())
    (silent,) = outcome.not_evaluated
    return silent.what, silent.why


def test_the_figures_of_both_sides_come_back_as_they_were_stored(stored: Callable[..., StoredRun]) -> None:
    huge = replace(window_summary(), topic=SideSummary(rows=1, keys=1, money={"EUR": 2**62, "JPY": -3}))
    assert stored(summary=huge).result.summary == huge
    assert stored(2, summary=None).result.summary is None


def test_an_expectation_that_is_not_met_is_told_in_words(
    stored: Callable[..., StoredRun], write: Callable[[str], Path], tmp_path: Path
) -> None:
    run = stored()
    write(ENOUGH)
    (one,) = evaluated(run, tmp_path).not_met
    assert (one.table, one.columns, one.severity) == ("window", ("topic_rows",), "warning")
    assert (one.description, one.observed, one.counted) == ("A window has a hundred events.", "3", "1 of 1 row")
    assert one.expected == "topic_rows values must be greater than or equal to 100"
    write(MORE_THAN_ONE)
    assert evaluated(run, tmp_path) == ExpectationsOutcome(module="own_suites_here", met=1)


def test_the_row_that_is_not_as_expected_is_named(
    stored: Callable[..., StoredRun], write: Callable[[str], Path], tmp_path: Path
) -> None:
    agree = window_summary()
    run = stored(
        summary=replace(
            agree,
            topic=SideSummary(rows=3, keys=3, money={"EUR": 1000, "GBP": 70}),
            ledger=SideSummary(rows=3, keys=3, money={"EUR": 1000, "GBP": 65}),
        )
    )
    write(
        HEAD
        + """
def suites():
    return {"currencies": gx.ExpectationSuite(name="c", expectations=[
        gxe.ExpectColumnPairValuesToBeEqual(column_A="topic_amount_minor", column_B="ledger_amount_minor"),
        gxe.ExpectColumnSumToBeBetween(column="topic_amount_minor", min_value=5000),
        gxe.ExpectColumnValuesToBeInSet(column="currency", value_set=["EUR"]),
    ])}
"""
    )
    pair, total, known = evaluated(run, tmp_path).not_met
    assert (pair.columns, pair.observed, pair.counted) == (
        ("topic_amount_minor", "ledger_amount_minor"),
        "70 and 65 in GBP",
        "1 of 2 rows",
    )
    assert (total.observed, total.counted) == ("1,070", "")
    assert total.expected == "topic_amount_minor sum must be greater than or equal to 5,000"
    assert (known.observed, known.severity) == ("GBP", "critical"), "Great Expectations' own default"


def test_the_documents_example_is_met_by_a_plain_window_and_says_what_an_odd_one_breaks(
    stored: Callable[..., StoredRun], write: Callable[[str, str], Path], tmp_path: Path
) -> None:
    write(EXAMPLE.read_text(), "payout_suites")
    plain = window_summary()
    run = stored(summary=replace(plain, partitions=()))
    at_end = replace(plain.partitions[0], latest_ms=int(run.window_end_utc.timestamp() * 1000) - 60_000)
    whole = replace(run, result=replace(run.result, summary=replace(plain, partitions=(at_end,))))
    assert evaluated(whole, tmp_path, "payout_suites") == ExpectationsOutcome(module="payout_suites", met=5)
    odd = replace(plain, topic=SideSummary(rows=1, keys=1, money={"CHF": 5}), partitions=())
    silent = evaluated(replace(run, result=replace(run.result, summary=odd)), tmp_path, "payout_suites")
    assert [(one.table, one.severity, one.observed) for one in silent.not_met] == [
        ("window", "warning", "1"),
        ("currencies", "critical", "CHF"),
        ("partitions", "warning", "3,600 in billing.payouts 0"),
    ]


def test_the_page_quotes_the_example_and_names_every_column(stored: Callable[..., StoredRun]) -> None:
    page = PAGE.read_text()
    assert f"```python\n{EXAMPLE.read_text()}```" in page
    for table, frame in own_tables(stored(), window_summary()).items():
        assert f"**`{table}`**" in page
        assert [column for column in frame.columns if f"`{column}`" not in page] == []
        assert not frame.isna().any(axis=None), "checks skip nulls"


def test_a_partition_without_a_record_was_silent_for_the_whole_window(stored: Callable[..., StoredRun]) -> None:
    run = stored()
    (row,) = own_tables(run, replace(window_summary(), partitions=()))["partitions"].to_dict("records")
    assert (row["records"], row["earliest_ms"], row["latest_ms"], row["silent_seconds"]) == (0, -1, -1, 3600)
    late = replace(window_summary().partitions[0], latest_ms=int(run.window_end_utc.timestamp() * 1000) + 5000)
    (row,) = own_tables(run, replace(window_summary(), partitions=(late,)))["partitions"].to_dict("records")
    assert (row["records"], row["silent_seconds"]) == (3, -5)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("suites = 3", "own_suites_here has no function suites; expected one that gives suites by table"),
        ("def suites():\n    raise KeyError('boom')", "KeyError: 'boom'"),
        ("import sys\nsys.exit(0)", "SystemExit: 0"),
        (
            "def suites():\n    return {}",
            "own_suites_here.suites() gave nothing; expected a suite for at least one table",
        ),
        ("def suites():\n    return 3", "own_suites_here.suites() gave int; expected a suite for at least one table"),
        (ENOUGH.replace('"window"', '"windw"'), "has table 'windw'; expected one of window, currencies, partitions"),
        (
            "def suites():\n    return {'window': 3}",
            "own_suites_here.suites()['window'] is int; expected an Expectation",
        ),
        (ENOUGH.replace("[enough]", "[]"), "own_suites_here.suites()['window'] has no expectation; expected at least"),
        (
            ENOUGH.replace("[enough]", "[enough, {'type': 'expect_table_row_count_to_be_eqaul', 'kwargs': {}}]"),
            "Could not add expectation",
        ),
    ],
    ids=["import", "no function", "raises", "exits", "empty", "no mapping", "table", "no suite", "no check", "dropped"],
)
def test_a_module_that_gives_no_suites_is_not_evaluated_and_meets_nothing(
    stored: Callable[..., StoredRun], write: Callable[[str], Path], tmp_path: Path, source: str, why: str
) -> None:
    run = stored()
    write(source)
    what, told = refused(run, tmp_path)
    assert what == "own_suites_here"
    assert why in told


@pytest.mark.parametrize(
    ("check", "why"),
    [
        ('gxe.ExpectColumnValuesToBeBetween(column="nope", min_value=1)', '"nope" in BatchData does not exist'),
        (
            'gxe.ExpectColumnValuesToBeBetween(column="topic_rows", min_value=1, '
            "row_condition='ledger_rows > 99', condition_parser='pandas')",
            "no row of the table was looked at",
        ),
    ],
    ids=["no such column", "no row picked"],
)
def test_an_expectation_without_an_answer_is_not_met_and_takes_no_other_with_it(
    stored: Callable[..., StoredRun], write: Callable[[str], Path], tmp_path: Path, check: str, why: str
) -> None:
    run = stored()
    write(MORE_THAN_ONE.replace("[enough]", f"[enough, {check}]"))
    outcome = evaluated(run, tmp_path)
    assert (outcome.met, outcome.not_met, outcome.is_complete) == (1, (), False)
    (silent,) = outcome.not_evaluated
    assert silent.what.startswith("window: ")
    assert why in silent.why


def test_a_table_without_a_row_and_a_run_without_figures_are_not_evaluated(
    stored: Callable[..., StoredRun], write: Callable[[str], Path], tmp_path: Path
) -> None:
    none = SideSummary(rows=0, keys=0, money={})
    run = stored(summary=replace(window_summary(), topic=none, ledger=none))
    write(
        HEAD
        + """
def suites():
    known = gxe.ExpectColumnValuesToBeInSet(column="currency", value_set=["EUR"])
    return {"currencies": gx.ExpectationSuite(name="c", expectations=[known])}
"""
    )
    assert refused(run, tmp_path)[1] == "no row of the table was looked at"
    blind = replace(run, result=replace(run.result, summary=None))
    what, why = refused(blind, tmp_path)
    assert what == "own_suites_here"
    assert why.startswith("the run read nothing of the window")


def test_a_module_may_keep_its_suites_for_the_next_call(
    stored: Callable[..., StoredRun], write: Callable[[str], Path], tmp_path: Path
) -> None:
    run = stored()
    write(ENOUGH + "\nKEPT = suites()\n\n\ndef suites():\n    return KEPT\n")
    assert evaluated(run, tmp_path) == evaluated(run, tmp_path)
    assert import_module("own_suites_here").KEPT


def test_the_pages_stand_beside_ours_and_hold_no_more_rights(
    stored: Callable[..., StoredRun], write: Callable[[str], Path], tmp_path: Path
) -> None:
    run = stored()
    write(ENOUGH)
    evaluated(run, tmp_path)
    pages = tmp_path / "artifacts" / "data_docs" / run.result.contract
    assert "own window" in (pages / "index.html").read_text()
    assert len(list((pages / "validations" / "own window").rglob("*.html"))) == 1
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "artifacts").rglob("*")} == {0o700, 0o600}


def test_figures_are_those_of_the_run(stored: Callable[..., StoredRun]) -> None:
    run = stored()
    figures = run_figures(matched_rows=41, in_flight_items=2, unreadable_records=1)
    odd = replace(
        run,
        result=replace(run.result, figures=figures),
        window_start_utc=run.window_end_utc - timedelta(minutes=5),
    )
    (row,) = own_tables(odd, window_summary(rows=7))["window"].to_dict("records")
    assert row == {
        "topic_rows": 7,
        "ledger_rows": 7,
        "topic_keys": 7,
        "ledger_keys": 7,
        "matched_rows": 41,
        "open_items": 2,
        "unreadable_records": 1,
        "window_seconds": 300,
    }
