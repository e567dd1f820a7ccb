"""Words the outcome of an expectation as one sentence each, for alerts, logs and the terminal. Pure."""

from tallystick.model.stored_run import ExpectationNotMet, ExpectationsOutcome, NotEvaluated
from tallystick.text.verdict_sentence import counted


def not_met_text(one: ExpectationNotMet) -> str:
    """Say which expectation of which table was not met, and what was found."""
    asked = f"{one.description.rstrip('.')}: " if one.description else ""
    found = f"; found {one.observed}" if one.observed else ""
    return f"{one.table}: {asked}{one.expected.rstrip('.')}{found}{f' ({one.counted})' if one.counted else ''}."


def not_evaluated_text(one: NotEvaluated) -> str:
    """Say what gave no answer, and why."""
    return f"{one.what}: not evaluated: {one.why.rstrip('.')}."


def outcome_text(outcome: ExpectationsOutcome) -> str:
    """Say in one line what came of a module."""
    counts = [f"{counted(outcome.met, 'expectation')} met", f"{len(outcome.not_met):,} not met"]
    if outcome.not_evaluated:
        counts.append("not everything was evaluated")
    return f"{outcome.module}: {', '.join(counts)}"


def outcome_sentences(outcome: ExpectationsOutcome) -> list[str]:
    """Return a sentence for each expectation that was not met, and for each thing that gave no answer."""
    return [*map(not_met_text, outcome.not_met), *map(not_evaluated_text, outcome.not_evaluated)]
