"""The report's section on the contract's own expectations: there where it names any, in words, and escaped."""

from dataclasses import replace

import pytest

from tallystick.contract.contract import Contract
from tallystick.model.stored_run import ExpectationNotMet, ExpectationsOutcome, NotEvaluated, StoredRun
from tallystick.report.write_report import render_report
from tests.expectation_outcomes import MODULE, not_met
from tests.unit.report.parsed_page import Page


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
