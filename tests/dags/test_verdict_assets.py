"""A verdict updates its contract's assets once, and only a MATCHED one the asset of clean windows."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.dag_processing.dagbag import BundleDagBag
from airflow.sdk.execution_time.context import OutletEventAccessors

from tallystick.documents import run as run_document
from tallystick.model.verdict import Verdict
from tallystick_airflow.verdict_assets import announce, matched_asset, verdict_asset, verdicts_of

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "docs" / "examples"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PAYOUTS = "billing_payouts"
VERDICT, CLEAN = f"tallystick://{PAYOUTS}/verdict", f"tallystick://{PAYOUTS}/matched"


class Events(list[Any]):
    """What Airflow recorded before. since: from when on it was asked for."""

    since = ""

    def after(self, since: str) -> "Events":
        self.since = since
        return self


def told(*cuts: int) -> Events:
    return Events(SimpleNamespace(extra={"cut": cut}) for cut in cuts)


def context_with(before: Events) -> Any:
    return {"inlet_events": {verdicts_of(PAYOUTS): before}, "outlet_events": OutletEventAccessors()}


def added(context: Any) -> list[tuple[str, Any]]:
    accessor = context["outlet_events"][verdicts_of(PAYOUTS)]
    return [(event.dest_asset_key.uri, event.extra) for event in accessor.asset_alias_events]


@pytest.fixture(autouse=True)
def document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_document, "verdict_event_document", lambda run: {"cut": run.result.cut_n})


def run_of(verdict: Verdict, *, cut_n: int = 7) -> Any:
    result = SimpleNamespace(contract=PAYOUTS, cut_n=cut_n, verdict=verdict)
    return SimpleNamespace(result=result, recorded_at=NOON)


def test_a_clean_window_updates_both_assets() -> None:
    context = context_with(told())
    assert announce(context, run_of(Verdict.MATCHED))
    assert added(context) == [(VERDICT, {"cut": 7}), (CLEAN, {"cut": 7})]


@pytest.mark.parametrize("verdict", [Verdict.BROKEN, Verdict.INCONCLUSIVE])
def test_any_other_verdict_does_not_update_the_asset_of_clean_windows(verdict: Verdict) -> None:
    context = context_with(told())
    assert announce(context, run_of(verdict))
    assert added(context) == [(VERDICT, {"cut": 7})]


def test_a_cut_that_is_run_again_updates_nothing() -> None:
    context = context_with(before := told(6, 7, 8))
    assert not announce(context, run_of(Verdict.MATCHED))
    assert added(context) == []
    assert before.since == (NOON - timedelta(hours=1)).isoformat()


def test_the_events_of_other_cuts_keep_no_verdict_back() -> None:
    context = context_with(told(6, 8, 70))
    assert announce(context, run_of(Verdict.MATCHED))
    assert len(added(context)) == 2


@pytest.mark.parametrize("task_id", ["finish", "reconcile"])
def test_both_tasks_that_store_verdicts_may_tell_of_them(task_id: str) -> None:
    dags = REPOSITORY / "dags"
    bag = BundleDagBag(dag_folder=str(dags), bundle_path=dags, bundle_name="dags-folder")
    task = bag.dags[f"reconcile_{PAYOUTS}"].get_task(task_id)
    assert task.inlets == task.outlets == [verdicts_of(PAYOUTS)]


def test_the_example_is_scheduled_on_the_clean_windows_of_a_contract() -> None:
    bag = BundleDagBag(dag_folder=str(EXAMPLES), bundle_path=EXAMPLES, bundle_name="examples")
    assert (bag.import_errors, list(bag.dags)) == ({}, ["after_a_clean_window"])
    asset = bag.dags["after_a_clean_window"].timetable.asset_condition
    assert asset == matched_asset(PAYOUTS) != verdict_asset(PAYOUTS)
