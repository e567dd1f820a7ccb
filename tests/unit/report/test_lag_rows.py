"""Lags are drawn by bucket, and the grace says why it is what it is."""

from dataclasses import replace

import pytest

from tallystick.contract.contract import Contract
from tallystick.model.partner_lag import Grace, RunLag, lags_of_pairs
from tallystick.model.stored_run import StoredRun
from tallystick.report.page import report_page
from tallystick.report.write_report import render_report
from tests.unit.report.parsed_page import Page


def with_lag(run: StoredRun, lag: RunLag | None) -> StoredRun:
    return replace(run, result=replace(run.result, lag=lag))


def measured(*lags_ms: int, grace: Grace) -> RunLag:
    return RunLag(topics=lags_of_pairs(("billing.payouts", lag_ms) for lag_ms in lags_ms), grace=grace)


def test_lags_are_drawn_from_the_fastest_bucket_to_the_slowest(matched_run: StoredRun, contract: Contract) -> None:
    run = with_lag(matched_run, measured(5, 15, 15, 70, 10**9, grace=Grace(seconds=60)))
    (table,) = report_page(run, contract).lags
    assert (table.rows[0].words, table.rows[-1].words) == ("up to 10 ms", "over 46.7 h")
    assert [row.count for row in table.rows[:4]] == [1, 2, 0, 1]
    assert sum(row.count for row in table.rows) == 5
    assert table.summary == "5 pairs: half of them within 20 ms, 99 of 100 within 93.3 h, 999 of 1,000 within 93.3 h"
    assert table.summary in Page(render_report(run, contract)).text


@pytest.mark.parametrize(
    ("grace", "words"),
    [
        (Grace(seconds=60), "as the contract says; no clean run has measured"),
        (
            Grace(seconds=60, measured_ms=640, clean_runs=1),
            "clean run, 999 of 1,000 came within 640 ms, which the",
        ),
        (Grace(seconds=164, measured_ms=163_840, clean_runs=9), "within 2.8 min, more than the 60 seconds that the"),
        (
            Grace(seconds=164, measured_ms=163_840, clean_runs=9, pairs=1_000),
            "in 9 clean runs, 999 of 1,000 came within 2.8 min",
        ),
        (
            Grace(seconds=164, measured_ms=163_840, clean_runs=9, pairs=999),
            "in 9 clean runs, all but the longest of 999 pairs, too few for 999 of 1,000, came within 2.8 min, more",
        ),
        (Grace(seconds=3_600, measured_ms=5_242_880, clean_runs=2), "within 1.5 h, so the grace is its cap"),
    ],
)
def test_the_grace_says_why_it_is_what_it_is(
    matched_run: StoredRun, contract: Contract, grace: Grace, words: str
) -> None:
    page = report_page(with_lag(matched_run, measured(5, grace=grace)), contract)
    assert words in dict(page.guarantees)["Grace"]


def test_a_cap_at_the_contracts_own_grace_is_not_said_to_cover_what_took_longer(
    matched_run: StoredRun, contract: Contract
) -> None:
    capped = contract.model_copy(update={"partner_grace_seconds": 60, "partner_grace_cap_seconds": 60})
    run = with_lag(matched_run, measured(5, grace=Grace(seconds=60, measured_ms=81_920, clean_runs=2)))
    assert "within 1.4 min, so the grace is its cap" in dict(report_page(run, capped).guarantees)["Grace"]


def test_an_older_run_has_measured_nothing(matched_run: StoredRun, contract: Contract) -> None:
    page = report_page(with_lag(matched_run, None), contract)
    assert page.lags == ()
    assert "no clean run has measured" in dict(page.guarantees)["Grace"]
