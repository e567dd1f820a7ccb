"""What on-call hears of own expectations: as severe as they say, no more while acknowledged, over when they are met."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tallystick.alerting.alert import EXPECTATION_NOT_EVALUATED, EXPECTATION_NOT_MET, Alert, AlertAction
from tallystick.alerting.expectation_alerts import expectation_alerts
from tallystick.contract.alerts import Severity
from tallystick.model.stored_run import ExpectationNotMet, ExpectationsOutcome, NotEvaluated, StoredRun
from tallystick.model.verdict import Verdict
from tests.expectation_outcomes import MODULE, not_met
from tests.run_results import run_result
from tests.unit.alerting.run_alerts import CONTRACT, NOON, alerts, cut, fired

RUN = StoredRun(
    result=run_result("payouts", 5),
    window_start_utc=NOON,
    window_end_utc=NOON,
    now_utc=NOON,
    scheduler_run_id="r",
    attempt=1,
    recorded_at=NOON,
    cut=cut(5),
)
SILENT = NotEvaluated(what="currencies", why="no row of the table was looked at")
WITH_SUITES = CONTRACT.model_copy(update={"expectations": MODULE})


def outcome(*found: ExpectationNotMet, silent: tuple[NotEvaluated, ...] = ()) -> ExpectationsOutcome:
    return ExpectationsOutcome(module=MODULE, met=1, not_met=found, not_evaluated=silent)


def told(of: ExpectationsOutcome, firing: Mapping[str, Alert] | None = None) -> list[tuple[str, str, str]]:
    found = expectation_alerts(WITH_SUITES, RUN, of, firing=firing or {})
    return [(alert.action.value, alert.name, alert.severity.value) for alert in found]


def test_an_expectation_that_is_not_met_pages_with_its_sentence_and_one_that_is_met_does_not() -> None:
    (alert,) = expectation_alerts(WITH_SUITES, RUN, outcome(not_met(), not_met(table="currencies")), firing={})
    assert alert.dedup_key == "tallystick/payouts/expectation_not_met"
    assert alert.summary == (
        "payouts: expectation not met: window: A window has at least a hundred events: topic_rows values must be "
        "greater than or equal to 100; found 3 (1 of 1 row). And 1 more."
    )
    assert (alert.details["count"], len(alert.details["sentences"]), alert.cut_n) == (2, 2, 5)
    assert alert.sinks == ("webhook:pager", "file:alerts.jsonl")
    assert told(outcome()) == []


@pytest.mark.parametrize(
    ("severities", "loudest"),
    [(("info",), "info"), (("info", "warning"), "warning"), (("critical", "info"), "critical")],
)
def test_an_alert_is_as_severe_as_the_most_severe_expectation(severities: tuple[str, ...], loudest: str) -> None:
    found = outcome(*(not_met(severity=severity) for severity in severities))
    assert told(found) == [("trigger", EXPECTATION_NOT_MET, loudest)]


def test_an_alert_that_fires_never_becomes_less_severe() -> None:
    firing = {EXPECTATION_NOT_MET: fired(EXPECTATION_NOT_MET, severity=Severity.CRITICAL, count=1)}
    assert told(outcome(not_met()), firing) == [("trigger", EXPECTATION_NOT_MET, "critical")]


def test_the_first_window_that_meets_all_resolves_both() -> None:
    firing = {name: fired(name, count=1) for name in (EXPECTATION_NOT_MET, EXPECTATION_NOT_EVALUATED)}
    assert told(outcome(), firing) == [
        ("resolve", EXPECTATION_NOT_EVALUATED, "info"),
        ("resolve", EXPECTATION_NOT_MET, "info"),
    ]


def test_an_end_names_the_owner_that_was_told_last() -> None:
    firing = {EXPECTATION_NOT_MET: fired(EXPECTATION_NOT_MET, count=1, owner="first-team")}
    (over,) = expectation_alerts(WITH_SUITES, RUN, outcome(), firing=firing)
    assert over.details["owner"] == "first-team"


def test_what_gave_no_answer_warns_and_resolves_nothing() -> None:
    firing = {EXPECTATION_NOT_MET: fired(EXPECTATION_NOT_MET, count=1)}
    assert told(outcome(silent=(SILENT,)), firing) == [("trigger", EXPECTATION_NOT_EVALUATED, "warning")]


def test_a_window_that_is_evaluated_again_ends_that_alone_while_something_is_not_met() -> None:
    firing = {EXPECTATION_NOT_EVALUATED: fired(EXPECTATION_NOT_EVALUATED, count=1)}
    assert told(outcome(not_met()), firing) == [
        ("trigger", EXPECTATION_NOT_MET, "warning"),
        ("resolve", EXPECTATION_NOT_EVALUATED, "info"),
    ]


@pytest.mark.parametrize(
    ("found", "pages"),
    [
        ((not_met(),), False),
        ((not_met(), not_met(table="currencies")), True),
        ((not_met(severity="critical"),), True),
    ],
    ids=["the same", "one more", "louder"],
)
def test_an_acknowledged_alert_pages_again_only_where_it_is_worse(
    found: tuple[ExpectationNotMet, ...], pages: bool
) -> None:
    before = fired(EXPECTATION_NOT_MET, severity=Severity.WARNING, by="Ada", count=1)
    assert bool(told(outcome(*found), {EXPECTATION_NOT_MET: before})) is pages


@pytest.mark.parametrize(("table", "pages"), [("window", False), ("currencies", True)])
def test_an_acknowledged_alert_pages_again_where_another_expectation_is_not_met(table: str, pages: bool) -> None:
    (first,) = expectation_alerts(WITH_SUITES, RUN, outcome(not_met(table="window")), firing={})
    taken = replace(first, action=AlertAction.ACKNOWLEDGE)
    assert bool(told(outcome(not_met(table=table)), {EXPECTATION_NOT_MET: taken})) is pages


@pytest.mark.parametrize("name", [EXPECTATION_NOT_MET, EXPECTATION_NOT_EVALUATED])
@pytest.mark.parametrize("verdict", [Verdict.MATCHED, Verdict.INCONCLUSIVE])
def test_a_run_resolves_them_only_where_its_contract_has_no_expectations_any_more(name: str, verdict: Verdict) -> None:
    of = {"verdict": verdict, "firing": (name,)}
    assert ("resolve", name) in [(one.action, one.name) for one in alerts(**of)]
    assert name not in [one.name for one in alerts(**of, expectations=MODULE)]
