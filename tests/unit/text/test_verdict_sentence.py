"""What a run says in one sentence: breaks with their money, what was not seen, what agrees and what waits."""

from dataclasses import replace

import pytest

from tallystick.judging.judge import judge
from tallystick.matching.match_case import RecordLocation
from tallystick.model.finding_names import Doubt
from tallystick.model.findings import DoubtFound
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.text.verdict_sentence import counted, verdict_sentence
from tests.unit.builders import HOUR, IN_TOPIC, NOON, evidence_of, item_of, row, seen


def test_a_broken_run_says_how_many_breaks_and_how_much_money(broken_run: StoredRun) -> None:
    assert verdict_sentence(broken_run.result) == (
        "4 breaks in 4 classes, 500.00 EUR, 700 JPY at stake. Besides, 1 doubt: not all could be seen."
    )


def test_an_inconclusive_run_says_what_it_could_not_see(inconclusive_run: StoredRun) -> None:
    sentence = verdict_sentence(inconclusive_run.result)
    assert (
        sentence
        == f"No break was found, but the window is not proven either. {inconclusive_run.result.doubts[0].sentence}"
    )
    two = replace(inconclusive_run.result, doubts=inconclusive_run.result.doubts * 2)
    assert verdict_sentence(two).endswith(" And 1 more doubt.")


def test_a_run_without_any_finding_says_that_nothing_was_proven(inconclusive_run: StoredRun) -> None:
    nothing = replace(inconclusive_run.result, doubts=())
    assert verdict_sentence(nothing).endswith("Nothing was proven.")


def test_a_matched_run_says_what_agrees_and_what_is_still_in_flight(matched_run: StoredRun) -> None:
    assert verdict_sentence(matched_run.result) == (
        "2 pairs of event and ledger row agree exactly once, 1,500.00 EUR in all. "
        "1 item is still open and carried to the next run."
    )


def test_an_item_that_is_overdue_and_waits_for_what_lies_beyond_the_cut_is_not_said_to_be_within_grace() -> None:
    overdue = item_of(row(1), due_utc=NOON - HOUR)
    evidence = evidence_of(carried=(overdue,), lookup_hits=(seen(IN_TOPIC, RecordLocation.PENDING, 25),))
    result = judge(
        evidence, matched_rows=8, matched_money={"EUR": 8_000}, content_digests={}, look_ups={}, carried=(overdue,)
    )
    assert (result.verdict, result.figures.in_flight_items) == (Verdict.MATCHED, 1)
    assert verdict_sentence(result).endswith(" 1 item is still open and carried to the next run.")


def test_an_empty_match_does_not_boast(matched_run: StoredRun) -> None:
    figures = replace(matched_run.result.figures, matched_rows=0, matched_money={}, in_flight_items=0)
    assert "nothing of them has found its partner yet" in verdict_sentence(replace(matched_run.result, figures=figures))
    empty = replace(figures, topic_rows=0, ledger_rows=0)
    assert "nothing to pair" in verdict_sentence(replace(matched_run.result, figures=empty))


def test_a_matched_run_never_shows_doubts(matched_run: StoredRun) -> None:
    doubt = DoubtFound(doubt=Doubt.BASELINE, sentence="The books begin here.")
    result = replace(matched_run.result, verdict=Verdict.INCONCLUSIVE, doubts=(doubt,))
    assert "agree" not in verdict_sentence(result)


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "break", "1 break"),
        (0, "break", "0 breaks"),
        (2, "class", "2 classes"),
        (1200, "entry", "1,200 entries"),
        (0, "key", "0 keys"),
    ],
)
def test_a_noun_follows_its_number(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text
