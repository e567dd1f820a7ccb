"""An outcome is complete where everything gave an answer, met or not."""

from tallystick.model.stored_run import ExpectationsOutcome, NotEvaluated, unevaluated
from tests.expectation_outcomes import not_met


def test_an_outcome_is_complete_where_everything_gave_an_answer() -> None:
    assert ExpectationsOutcome(module="m", met=2, not_met=(not_met(),)).is_complete
    assert not ExpectationsOutcome(module="m", met=2, not_evaluated=(NotEvaluated(what="window", why="x"),)).is_complete


def test_a_module_of_which_nothing_was_evaluated_has_met_nothing() -> None:
    outcome = unevaluated("m", what="m", why="No module named 'm'")
    assert (outcome.met, outcome.not_met, outcome.is_complete) == (0, (), False)
