"""The score of a crash matrix can fail: what stands twice, is lost or told wrongly is told, and nothing else is."""

from dataclasses import replace
from typing import Any

import pytest

from lab.crash.score import EventEnd, RoundEnd, Told, crash_figures

PUBLISHED = EventEnd(match_key="pay-7", counted_as="pay-7", copies=1, told=Told(fate="published"), state="done")
HELD = Told(fate="refused", reason="not provable now: an open producer transaction holds payouts")
REFUSED = EventEnd(match_key="pay-8", counted_as="pay-8", copies=0, told=HELD, state="refused")
ROUND = RoundEnd(
    name="7.113",
    books="republish",
    kind="republish",
    step="begun",
    fault="frozen",
    events=(PUBLISHED, REFUSED),
    starts=2,
    hung=0,
    seconds=5.0,
    may_refuse=1,
)


def ends_as(event: EventEnd, **fields: Any) -> str:
    return replace(event, **fields).column


def test_an_event_that_stands_once_and_is_told_so_is_exactly_once() -> None:
    assert ends_as(PUBLISHED) == "exactly_once"
    assert ends_as(PUBLISHED, told=Told(fate="already_published")) == "exactly_once"


@pytest.mark.parametrize("fate", ["done", "already_done"])
def test_a_marker_that_stands_once_is_told_as_done(fate: str) -> None:
    assert ends_as(PUBLISHED, told=Told(fate=fate)) == "exactly_once"


def test_a_marker_of_which_no_evidence_was_kept_is_without_evidence_and_one_that_was_not_written_needs_none() -> None:
    assert ends_as(PUBLISHED, evidence=False) == "without_evidence"
    assert ends_as(PUBLISHED, evidence=False, copies=2) == "doubled"
    assert ends_as(REFUSED, evidence=False) == "refused"


def test_an_event_that_stands_nowhere_and_was_refused_with_a_reason_is_refused() -> None:
    assert ends_as(REFUSED) == "refused"


@pytest.mark.parametrize("told", [PUBLISHED.told, HELD, Told()])
def test_an_event_that_stands_twice_is_doubled_whatever_is_told(told: Told) -> None:
    assert ends_as(PUBLISHED, copies=2, told=told) == "doubled"


@pytest.mark.parametrize("told", [PUBLISHED.told, Told(fate="already_published"), Told()])
def test_an_event_that_stands_nowhere_and_was_not_refused_is_lost(told: Told) -> None:
    assert ends_as(REFUSED, told=told) == "lost"


def test_a_refusal_without_a_reason_is_no_word() -> None:
    assert ends_as(REFUSED, told=Told(fate="refused")) == "lost"


def test_a_refusal_of_what_the_store_calls_done_is_lost() -> None:
    assert ends_as(REFUSED, state="done") == "lost"


@pytest.mark.parametrize("fields", [{"told": HELD}, {"told": Told()}, {"state": "executing"}, {"state": "refused"}])
def test_an_event_that_stands_once_while_something_else_is_told_is_mistold(fields: dict[str, Any]) -> None:
    assert ends_as(PUBLISHED, **fields) == "mistold"


ELSEWHERE = replace(REFUSED, copies=1, by_another=True)


def test_an_event_that_somebody_else_brought_about_is_refused_rightly() -> None:
    assert ends_as(ELSEWHERE) == "refused_rightly"
    assert ends_as(ELSEWHERE, state="") == "refused_rightly"  # its contract never began it


@pytest.mark.parametrize(
    "fields", [{"told": PUBLISHED.told}, {"told": Told()}, {"told": Told(fate="refused")}, {"state": "done"}]
)
def test_an_event_that_somebody_else_brought_about_and_that_is_not_refused_is_mistold(fields: dict[str, Any]) -> None:
    assert ends_as(ELSEWHERE, **fields) == "mistold"


def test_an_event_that_both_brought_about_is_doubled_and_one_that_somebody_only_says_to_have_done_is_lost() -> None:
    assert ends_as(ELSEWHERE, copies=2) == "doubled"
    assert ends_as(ELSEWHERE, copies=0) == "lost"


def test_a_round_in_which_somebody_else_acts_has_that_many_refused_rightly() -> None:
    both = replace(ROUND, events=(PUBLISHED, REFUSED, ELSEWHERE), by_another=1)
    assert both.differs == ()
    assert replace(both, by_another=0).differs == (f"1 refused_rightly, expected 0: {ELSEWHERE.sentence}",)
    assert replace(ROUND, by_another=1).differs == ("0 refused_rightly, expected 1",)
    assert "stands 1 times, by another hand; executor: refused" in ELSEWHERE.sentence


def test_a_round_without_a_fault_differs_in_nothing() -> None:
    assert ROUND.differs == ()
    assert ROUND.counts == {"events": 2, "exactly_once": 1, "refused": 1}


def test_a_refusal_where_nothing_spoke_against_the_event_is_told_and_so_is_one_that_was_due_and_did_not_come() -> None:
    assert replace(ROUND, may_refuse=0).differs == (f"1 refused, expected 0: {REFUSED.sentence}",)
    assert replace(ROUND, events=(PUBLISHED, PUBLISHED)).differs == ("0 refused, expected 1",)


def test_a_round_without_an_event_proves_nothing() -> None:
    assert replace(ROUND, events=(), may_refuse=0).differs == ("it has no event, so it proves nothing",)


def test_a_doubled_event_is_told_with_what_was_said_of_it() -> None:
    twice = replace(PUBLISHED, copies=2)
    assert replace(ROUND, events=(twice,)).differs == ("event pay-7 stands 2 times; executor: published; store: done",)


def test_what_else_went_wrong_is_told_too() -> None:
    assert replace(ROUND, faults=("plan 5 is not finished after 8 starts",)).differs == (
        "plan 5 is not finished after 8 starts",
    )


def test_the_figures_sum_all_rounds_up_and_each_step_and_fault() -> None:
    other = replace(ROUND, name="7.114", step="flushed", events=(PUBLISHED,), starts=3, hung=1, may_refuse=0)
    figures = crash_figures([ROUND, other])
    assert (figures["events"], figures["exactly_once"], figures["refused"]) == (3, 2, 1)
    assert (figures["starts"], figures["hung"], figures["cells"]) == (5, 1, 2)
    assert figures["differs"] == []
    by_step: Any = figures["by_step"]
    assert by_step["flushed"] == {
        "rounds": 1,
        "events": 1,
        "exactly_once": 1,
        "refused_rightly": 0,
        "refused": 0,
        "doubled": 0,
        "lost": 0,
        "mistold": 0,
        "without_evidence": 0,
    }
    by_kind: Any = figures["by_kind"]
    assert (by_kind["republish"]["rounds"], by_kind["republish"]["events"]) == (2, 3)
    by_fault: Any = figures["by_fault"]
    assert by_fault["frozen"]["rounds"] == 2


def test_the_figures_say_how_a_round_that_failed_is_run_alone() -> None:
    lost = replace(REFUSED, told=Told())
    figures = crash_figures([ROUND, replace(ROUND, events=(lost,))])
    assert figures["differs"] == [
        "round 7.113 (republish, begun, frozen): event pay-8 stands 0 times; executor: nothing; store: refused; "
        "alone: make crash ROUNDS=1 SEED=7.113"
    ]
