"""An expectation reads as one sentence: what was asked for, what is expected, what was found."""

import pytest

from tallystick.model.stored_run import ExpectationNotMet, ExpectationsOutcome, NotEvaluated
from tallystick.text.expectation_words import not_evaluated_text, not_met_text, outcome_text
from tests.expectation_outcomes import not_met


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (
            not_met(),
            "window: A window has at least a hundred events: topic_rows values must be greater than or equal to 100; "
            "found 3 (1 of 1 row).",
        ),
        (
            not_met(description="", expected="Must have exactly 3 rows.", observed="1", counted=""),
            "window: Must have exactly 3 rows; found 1.",
        ),
        (
            not_met(description="", expected="zz is a required field", observed="", counted=""),
            "window: zz is a required field.",
        ),
    ],
)
def test_what_was_not_met_is_one_sentence(one: ExpectationNotMet, text: str) -> None:
    assert not_met_text(one) == text


def test_what_gave_no_answer_is_told_with_its_reason() -> None:
    found = NotEvaluated(what="my_package.suites", why="ModuleNotFoundError: No module named 'my_package'.")
    told = "my_package.suites: not evaluated: ModuleNotFoundError: No module named 'my_package'."
    assert not_evaluated_text(found) == told


def test_an_outcome_is_counted_and_says_where_something_gave_no_answer() -> None:
    whole = ExpectationsOutcome(module="m", met=1, not_met=(not_met(), not_met()))
    assert outcome_text(whole) == "m: 1 expectation met, 2 not met"
    part = ExpectationsOutcome(module="m", met=2, not_evaluated=(NotEvaluated(what="window", why="x"),))
    assert outcome_text(part) == "m: 2 expectations met, 0 not met, not everything was evaluated"
