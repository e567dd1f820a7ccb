"""The outcome of own expectations is stored once, alerts a real receiver, and changes no verdict."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from tallystick.alerting.alert import OWN_EXPECTATIONS
from tallystick.alerting.sinks.connection import SinkConnection
from tallystick.alerting.sinks.registry import sinks_for
from tallystick.contract.contract import Contract
from tallystick.model.stored_run import ExpectationNotMet, ExpectationsOutcome, NotEvaluated, StoredRun
from tallystick.model.verdict import Verdict
from tallystick.pipeline.deliver_alerts import deliver_pending
from tallystick.pipeline.missing_verdict_alert import page_no_verdict
from tallystick.pipeline.own_expectations import are_due, evaluate_apart
from tallystick.report.write_report import render_report
from tallystick.store.alerts.acknowledgement_store import acknowledge
from tallystick.store.alerts.alert_store import firing_names, pending_alerts
from tallystick.store.runs.expectations_store import store_outcome
from tallystick.store.runs.run_store import read_run
from tests.alert_receiver import Receiver, receiving
from tests.expectation_outcomes import not_met

from .own_suites import ENOUGH, MORE_THAN_ONE, evaluated, own, stored, write

__all__ = ["own", "stored", "write"]  # fixtures


def test_an_outcome_stands_for_good_once_everything_gave_an_answer(
    stored: Callable[..., StoredRun], write: Callable[[str], Path], store: Engine, own: Contract, tmp_path: Path
) -> None:
    run = stored()
    assert are_due(own, run)
    write("import no_such_package")
    first = store_outcome(store, own, run, evaluated(run, tmp_path))
    assert store_outcome(store, own, run, first) == first
    again = read_run(store, own.name, 1)
    assert again is not None and again.expectations == first and are_due(own, again)
    write(ENOUGH)
    found = store_outcome(store, own, run, evaluated(run, tmp_path))
    stands = read_run(store, own.name, 1)
    assert stands is not None and stands.expectations == found and not are_due(own, stands)
    write(MORE_THAN_ONE)
    assert store_outcome(store, own, run, evaluated(run, tmp_path)) == found
    assert render_report(stands, own) == render_report(replace(run, expectations=found), own)
    with store.connect() as connection:
        assert connection.scalar(text("select count(*) from tallystick.expectations_outcome")) == 2


def test_no_outcome_is_changed_or_deleted(
    stored: Callable[..., StoredRun], write: Callable[[str], Path], owned_store: Engine, own: Contract, tmp_path: Path
) -> None:
    run = stored()
    write(ENOUGH)
    store_outcome(owned_store, own, run, evaluated(run, tmp_path))
    for change in (
        "update tallystick.expectations_outcome set cut_n = 0",
        "truncate tallystick.expectations_outcome",
    ):
        with pytest.raises(Exception, match="append"), owned_store.begin() as connection:
            connection.execute(text(change))


def test_a_baseline_is_held_against_nothing_nor_is_a_run_of_a_contract_without_suites(
    stored: Callable[..., StoredRun], store: Engine, own: Contract
) -> None:
    run = stored()
    baseline = read_run(store, own.name, 0)
    assert baseline is not None and not are_due(own, baseline)
    assert not are_due(own.model_copy(update={"expectations": None}), run)


def deliver(store: Engine, contract: Contract, receiver: Receiver, artifacts: Path) -> None:
    sinks = sinks_for(contract, connections={"pager": SinkConnection(address=receiver.address)}, artifacts=artifacts)
    deliver_pending(store, contract.name, sinks, only=OWN_EXPECTATIONS)


def test_a_window_that_does_not_meet_them_pages_and_one_that_does_resolves_it(
    stored: Callable[..., StoredRun], write: Callable[[str], Path], store: Engine, own: Contract, tmp_path: Path
) -> None:
    missed, no_answer = "expectation_not_met", "expectation_not_evaluated"
    with receiving() as receiver:

        def judged(n: int, source: str) -> list[tuple[str, str]]:
            run, before = stored(n), len(receiver.taken)
            write(source)
            store_outcome(store, own, run, evaluated(run, tmp_path))
            deliver(store, own, receiver, tmp_path)
            return receiver.story[before:]

        assert judged(1, ENOUGH) == [("trigger", missed)]
        assert receiver.taken[0]["severity"] == "warning"
        assert "A window has a hundred events" in receiver.taken[0]["summary"]
        assert judged(1, MORE_THAN_ONE) == [], "what was evaluated stands"
        assert judged(2, "import no_such_package") == [("trigger", no_answer)]
        assert judged(2, "import no_such_module") == [], "told once for each window"
        assert firing_names(store, own.name) == {missed, no_answer}, "what is not evaluated is not met"
        assert judged(3, MORE_THAN_ONE) == [("resolve", no_answer), ("resolve", missed)]
        assert judged(2, ENOUGH) == [], "an earlier window tells nobody any more"
        assert firing_names(store, own.name) == set()
    runs = [read_run(store, own.name, n) for n in (1, 2, 3)]
    assert [run.result.verdict for run in runs if run] == [Verdict.MATCHED] * 3


def test_a_window_that_is_evaluated_again_tells_only_what_is_worse(
    stored: Callable[..., StoredRun], store: Engine, own: Contract
) -> None:
    run, silent = stored(), (NotEvaluated(what="suites", why="no answer"),)
    few, lags = not_met(), not_met(table="partitions", severity="critical")

    def told(*found: ExpectationNotMet, by: tuple[NotEvaluated, ...] = silent) -> list[tuple[str, Any]]:
        before = {one.alert.outbox_id for one in pending_alerts(store, own.name)}
        store_outcome(store, own, run, ExpectationsOutcome(module="m", met=len(by), not_met=found, not_evaluated=by))
        new = [one.alert for one in pending_alerts(store, own.name) if one.alert.outbox_id not in before]
        return [(one.name, (one.severity, one.details.get("count"))) for one in new]

    both = (*silent, NotEvaluated(what="rows", why="no answer"))
    assert told(few) == [("expectation_not_met", ("warning", 1)), ("expectation_not_evaluated", ("warning", 1))]
    assert told(replace(few, observed="4")) == []
    assert told(replace(few, severity="critical")) == [("expectation_not_met", ("critical", 1))]
    assert told(few) == []
    assert told(few, by=both) == [("expectation_not_evaluated", ("warning", 2))]
    assert told(lags) == [("expectation_not_met", ("critical", 1))]
    acknowledge(store, own.name, "expectation_not_met", by="Ada")
    assert told(replace(lags, observed="5")) == []
    assert told(few, lags, by=()) == [
        ("expectation_not_evaluated", ("info", None)),
        ("expectation_not_met", ("critical", 2)),
    ]


def test_only_the_alerts_that_are_asked_for_are_delivered(
    stored: Callable[..., StoredRun],
    write: Callable[[str], Path],
    store: Engine,
    own: Contract,
    tmp_path: Path,
) -> None:
    run = stored()
    write(ENOUGH)
    store_outcome(store, own, run, evaluated(run, tmp_path))
    page_no_verdict(store, own, scheduler_run_id="r", cut_n=None)
    with receiving() as receiver:
        deliver(store, own, receiver, tmp_path)
        assert receiver.story == [("trigger", "expectation_not_met")]
    assert [one.alert.name for one in pending_alerts(store, own.name)] == ["no_verdict"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (ENOUGH, ""),
        ("import os\nos._exit(0)", "its process ended before it had stored anything"),
        ("import os\nos._exit(3)", "its process ended with exit code 3"),
    ],
    ids=["not met", "ends at once", "crashes"],
)
def test_a_process_of_its_own_stores_the_outcome_and_its_end_is_no_end_of_the_run(
    stored: Callable[..., StoredRun],
    write: Callable[[str], Path],
    store: Engine,
    own: Contract,
    tmp_path: Path,
    source: str,
    told: str,
) -> None:
    run, contract_file = stored(), tmp_path / "payouts.yaml"
    contract_file.write_text(own.model_dump_json(exclude_defaults=True, by_alias=True))
    environment = {
        **os.environ,
        "PYTHONPATH": str(write(source)),
        "TALLYSTICK_STORE_DSN": store.url.render_as_string(hide_password=False),
        "TALLYSTICK_ARTIFACTS_DIR": str(tmp_path / "artifacts"),
    }
    log = tmp_path / "logs" / "1.expectations.log"
    outcome = evaluate_apart(store, own, run, contract_file=contract_file, log=log, environment=environment)
    again = read_run(store, own.name, 1)
    assert again is not None and again.expectations == outcome
    if told:
        assert outcome.not_evaluated[0].why.startswith(told)
    else:
        assert [one.observed for one in outcome.not_met] == ["3"]
        assert log.read_text() == "own_suites_here: 0 expectations met, 1 not met\n"
