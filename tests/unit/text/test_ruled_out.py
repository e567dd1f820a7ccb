"""Every class says what it was told apart from."""

import pytest

from tallystick.model.finding_names import BreakClass
from tallystick.report.break_story import explain
from tallystick.text.ruled_out import RULED_OUT
from tests.unit.report.told_breaks import a_break, told


@pytest.mark.parametrize("break_class", BreakClass)
def test_every_class_says_what_it_was_told_apart_from(break_class: BreakClass) -> None:
    assert all(sentence.endswith(".") for sentence in RULED_OUT[break_class])
    story = explain(told(a_break(break_class)))
    assert all(paragraph.sentences for paragraph in story.paragraphs)


@pytest.mark.parametrize("break_class", [one for one in BreakClass if one.startswith("duplicate_in_topic")])
def test_a_second_event_says_nothing_of_rows_since_the_ledger_may_have_posted_it_too(break_class: BreakClass) -> None:
    assert not any("row" in sentence for sentence in RULED_OUT[break_class])
