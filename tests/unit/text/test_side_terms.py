"""What is said of a ledger, said of an input topic."""

import re

import pytest

from tallystick.text.finding_guide import BREAK_TEXTS
from tallystick.text.ruled_out import RULED_OUT
from tallystick.text.side_terms import for_direction
from tests.unit.builders import L2T, T2L, T2T

OF_LEDGERS = re.compile(r"(?<![\w.:-])([Ll]edger|rows?)(?![\w:-])")
TEXTS = [
    *(text for one in BREAK_TEXTS.values() for text in (one.title, one.means, one.check_first)),
    *(sentence for sentences in RULED_OUT.values() for sentence in sentences),
]


@pytest.mark.parametrize(
    ("said", "of_inputs"),
    [
        ("The ledger committed ledger:in:0:4, and no record", "The input topic committed input:in:0:4, and no record"),
        ("the ledger never had a row for it.", "the input topic never had an input for it."),
        ("its partner lies beyond the cut of the ledger", "its partner lies beyond the cut of the input topic"),
        ("topic:billing.ledger:0:17 repeats topic:ledger:0:3", "topic:billing.ledger:0:17 repeats topic:ledger:0:3"),
        ("billing.row[0]: 3 offsets", "billing.row[0]: 3 offsets"),
    ],
)
def test_a_sentence_names_the_input_topic_and_leaves_names_whole(said: str, of_inputs: str) -> None:
    assert for_direction(T2T, said) == of_inputs
    assert for_direction(T2L, said) == for_direction(L2T, said) == said


def test_no_text_of_a_class_speaks_of_a_ledger_or_its_rows_where_there_is_none() -> None:
    assert any(map(OF_LEDGERS.search, TEXTS))
    assert [text for text in TEXTS if OF_LEDGERS.search(for_direction(T2T, text))] == []
    assert [text for text in TEXTS if re.search(r"\b[Aa] input", for_direction(T2T, text))] == []
