"""A report is written whole or not at all, with the same bytes wherever it is written; what its contract's own
expectations found has a section, in words.
"""

import hashlib
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tallystick.contract.contract import Contract
from tallystick.model.stored_run import ExpectationNotMet, ExpectationsOutcome, NotEvaluated, StoredRun
from tallystick.report.write_report import render_report, report_path, write_report
from tests.expectation_outcomes import MODULE, not_met
from tests.unit.report.parsed_page import Page

RENDER = """
import hashlib, pickle, sys
from tallystick.report.write_report import render_report
run, contract = pickle.load(open(sys.argv[1], "rb"))
print(hashlib.sha256(render_report(run, contract).encode()).hexdigest())
"""


def test_two_processes_write_the_same_bytes(many_breaks_run: StoredRun, contract: Contract, tmp_path: Path) -> None:
    stored = tmp_path / "run.pickle"
    stored.write_bytes(pickle.dumps((many_breaks_run, contract)))
    hashes = {
        subprocess.run(
            [sys.executable, "-c", RENDER, str(stored)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert hashes == {hashlib.sha256(render_report(many_breaks_run, contract).encode()).hexdigest() + "\n"}


def test_the_zone_a_database_answers_in_changes_no_byte(matched_run: StoredRun, contract: Contract) -> None:
    tokyo = timezone(timedelta(hours=9))
    moved = replace(
        matched_run,
        window_start_utc=matched_run.window_start_utc.astimezone(tokyo),
        window_end_utc=matched_run.window_end_utc.astimezone(tokyo),
        recorded_at=matched_run.recorded_at.astimezone(tokyo),
        now_utc=matched_run.now_utc.astimezone(tokyo),
    )
    assert render_report(moved, contract) == render_report(matched_run, contract)


def test_a_report_is_written_whole_or_not_at_all(
    matched_run: StoredRun, contract: Contract, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_report(matched_run, contract, tmp_path)
    assert path == report_path(tmp_path, "billing_payouts", 6)
    assert path.read_text(encoding="utf-8") == render_report(matched_run, contract)
    before = path.read_bytes()

    def fails(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        write_report(matched_run, contract, tmp_path)
    assert path.read_bytes() == before


@pytest.fixture
def own(contract: Contract) -> Contract:
    return contract.model_copy(update={"expectations": MODULE})


def sections(html: str) -> list[str | None]:
    return [attributes["id"] for tag, attributes in Page(html).elements if tag == "section"]


def test_a_contract_without_any_has_no_section(matched_run: StoredRun, contract: Contract, own: Contract) -> None:
    assert "expectations" not in sections(render_report(matched_run, contract))
    with_any = sections(render_report(matched_run, own))
    assert with_any[with_any.index("notices") + 1] == "expectations"


def test_what_was_evaluated_is_shown_also_once_the_contract_names_no_module_any_more(
    matched_run: StoredRun, contract: Contract
) -> None:
    stored = replace(matched_run, expectations=ExpectationsOutcome(module=MODULE, met=3))
    html = render_report(stored, contract)
    assert "expectations" in sections(html)
    assert '<a href="#expectations">' in html


def test_what_was_not_met_says_the_column_what_was_expected_what_was_found_and_how_many(
    matched_run: StoredRun, own: Contract
) -> None:
    outcome = ExpectationsOutcome(module=MODULE, met=4, not_met=(not_met(),))
    html = render_report(replace(matched_run, expectations=outcome), own)
    text = " ".join(Page(html).text.split())
    assert "<h1>MATCHED</h1>" in html
    for words in (
        "Suites of my_package.suites about the figures of both sides. They change no verdict.",
        "Met: 4, not met: 1, not evaluated: 0.",
        "A window has at least a hundred events. not met, warning window",
        "column topic_rows expected topic_rows values must be greater than or equal to 100 found 3 rows 1 of 1 row",
    ):
        assert words in text, words
    assert "All of them were met." not in text


def test_an_expectation_without_a_description_is_its_own_heading(matched_run: StoredRun, own: Contract) -> None:
    outcome = ExpectationsOutcome(module=MODULE, met=0, not_met=(not_met(description=""),))
    text = " ".join(Page(render_report(replace(matched_run, expectations=outcome), own)).text.split())
    assert text.count("topic_rows values must be greater than or equal to 100") == 1


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (ExpectationsOutcome(module=MODULE, met=4), "All of them were met."),
        (None, "Not evaluated yet."),
        (
            ExpectationsOutcome(module=MODULE, met=0, not_evaluated=(NotEvaluated(what=MODULE, why="No module."),)),
            "my_package.suites not evaluated No module.",
        ),
    ],
    ids=["met", "not yet", "no answer"],
)
def test_met_and_not_evaluated_are_told_apart(
    matched_run: StoredRun, own: Contract, outcome: ExpectationsOutcome | None, words: str
) -> None:
    text = " ".join(Page(render_report(replace(matched_run, expectations=outcome), own)).text.split())
    assert words in text
    assert sum(one in text for one in ("All of them were met.", "Not evaluated yet.", "not evaluated No module.")) == 1


@pytest.mark.parametrize(
    "one", [not_met(description="<script>x</script>"), not_met(observed="<b>1</b>"), not_met(columns=("<i>",))]
)
def test_words_of_others_stay_text(matched_run: StoredRun, own: Contract, one: ExpectationNotMet) -> None:
    outcome = ExpectationsOutcome(module=MODULE, met=0, not_met=(one,))
    html = render_report(replace(matched_run, expectations=outcome), own)
    assert not any(tag in html for tag in ("<script>", "<b>1</b>", "<i>"))
