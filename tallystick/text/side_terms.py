"""The names of the ledger's side. Every text is written for a ledger and its rows; where an input topic plays that
part, this is the one place that says it in an input topic's words. Class names stay as they are.
"""

import re

from tallystick.model.direction import Direction

_SAID_OF_INPUTS = (
    (r"a ledger transaction that was rolled back", "an input whose producer transaction was aborted"),
    (r"outbox or relay", "service"),
    (r"the ledger's horizon", "the input topic's LSO"),
    (r"in the whole table", "in the key index and on the retained log"),
    (r"\bledger:(?=\S+:\d+:\d+)", "input:"),
    (r"\b([Aa]) ledger row\b", r"\1n input"),
    (r"\bledger row", "input"),
    (r"\b([Aa]) (?:ledger|row)\b(?!:)", r"\1n input"),
    (r"(?<![\w.:/-])ledger(?![\w:/-]|\.\w)", "input topic"),
    (r"(?<![\w.:/-])Ledger(?![\w:/-]|\.\w)", "Input topic"),
    (r"(?<![\w.:/-])row(s?)(?![\w:/-]|\.\w)", r"input\1"),
)


def for_direction(direction: Direction, text: str) -> str:
    """The same text, as it reads for a contract of this direction. Names of topics and item ids stay whole."""
    return for_inputs(text) if direction is Direction.TOPIC_TO_TOPIC else text


def for_inputs(text: str) -> str:
    """A text about a ledger, about an input topic."""
    for of_ledgers, of_inputs in _SAID_OF_INPUTS:
        text = re.sub(of_ledgers, of_inputs, text)
    return text
