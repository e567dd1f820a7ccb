"""Airflow's parts that are no public API are as we use them, in the Airflow that is installed.

One row for each minor that was looked at. Another one fails here first, and says what to look at.
"""

import inspect
import logging
import re
import runpy
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest
from airflow.providers.standard.triggers.hitl import HITLTriggerEventFailurePayload, HITLTriggerEventSuccessPayload
from airflow.sdk import Param, get_parsing_context
from airflow.serialization.definitions.deadline import SerializedReferenceModels
from airflow.serialization.encoders import encode_deadline_reference

from tallystick_airflow import plugin
from tallystick_airflow.internals import installed, runs
from tallystick_airflow.internals.dag_parts import ASKED_RUN_TYPES
from tallystick_airflow.internals.installed import airflow_minor, lost_tasks
from tallystick_airflow.plugin import TallystickPlugin
from tallystick_airflow.sensors import window_end
from tallystick_airflow.sensors.window_end import WindowEnd

PACKAGE = Path(plugin.__file__).parent
LOOKED_AT = {(3, 2): {"dag_id", "run_id"}, (3, 3): {"dag_id", "run_id"}}
"""Minor, and the names by which it gives a deadline its run."""
ELEVEN = datetime(2026, 3, 1, 11, tzinfo=UTC)
NO_API = re.compile(r"from airflow\.(models|api|api_fastapi|utils|serialization|jobs|executors|dag_processing)\b")


def test_the_installed_minor_is_one_that_was_looked_at() -> None:
    assert airflow_minor() in LOOKED_AT, "see each test here, then add its row and docs/compatibility.md"


def test_what_is_no_api_is_imported_in_one_place() -> None:
    found = {
        str(file.relative_to(PACKAGE))
        for file in PACKAGE.rglob("*.py")
        if NO_API.search(file.read_text()) and "internals" not in file.parts
    }
    assert found == set()
    assert NO_API.search((PACKAGE / "internals" / "runs.py").read_text())


def test_airflow_starts_a_run_by_the_words_that_we_use() -> None:
    from airflow.api.common.trigger_dag import trigger_dag
    from airflow.utils.types import DagRunTriggeredByType

    inspect.signature(trigger_dag).bind(
        "dag", triggered_by=DagRunTriggeredByType.UI, triggering_user_name="u", run_id="r", conf={}
    )
    assert "trigger_dag(" in inspect.getsource(runs.start_run)


def test_airflow_knows_of_a_dag_what_we_ask() -> None:
    from airflow.models.dag import DagModel

    assert {"is_stale", "is_paused"} <= set(DagModel.__table__.columns.keys())
    assert "dag_id" in inspect.signature(DagModel.get_current).parameters


def test_the_api_server_has_the_doors_that_pages_use() -> None:
    from tallystick_airflow.internals import access

    inspect.signature(access.requires_access_dag).bind("GET", access.DagAccessEntity.RUN, "dag")
    assert set(access.__all__) <= set(vars(access))


def test_an_approvals_answer_has_the_keys_that_we_read() -> None:
    success, failure = get_type_hints(HITLTriggerEventSuccessPayload), get_type_hints(HITLTriggerEventFailurePayload)
    assert {"chosen_options", "responded_by_user", "responded_at"} <= set(success)
    assert set(failure) == {"error", "error_type"}


def test_a_tasks_process_names_its_dag(monkeypatch: pytest.MonkeyPatch) -> None:
    assert get_parsing_context().dag_id is None
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "a")
    assert get_parsing_context().dag_id == "a"


def test_words_of_a_run_type_are_taken() -> None:
    from airflow.utils.types import DagRunType

    assert set(ASKED_RUN_TYPES) <= {str(one.value) for one in DagRunType}
    assert Param(type="integer", minimum=0).schema["type"] == "integer"


class Session:
    """One that knows the end of one run."""

    def scalar(self, statement: Any) -> datetime:
        asked = statement.compile().params
        assert sorted(asked.values()) == ["a_dag", "a_run"]
        return ELEVEN


def as_the_scheduler_asks(reference: Any, **run: Any) -> datetime | None:
    """By Airflow's own code of this minor."""
    wrapped = SerializedReferenceModels.SerializedCustomReference(reference)
    return wrapped.evaluate_with(session=Session(), interval=timedelta(hours=1), **run)


def test_the_installed_airflow_counts_a_deadline_from_the_windows_end() -> None:
    assert encode_deadline_reference(WindowEnd())["reference_type"] == "WindowEnd"
    assert set(WindowEnd.required_kwargs) == LOOKED_AT[airflow_minor()]
    assert as_the_scheduler_asks(WindowEnd(), dag_id="a_dag", run_id="a_run") == ELEVEN + timedelta(hours=1)


def as_airflow_3_4(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class as it is made where 3.4 is installed."""
    monkeypatch.setattr(installed, "version", lambda _: "3.4.0")
    return runpy.run_path(str(window_end.__file__))["WindowEnd"]()


def test_airflow_3_4_gives_the_run_itself_and_has_nothing_to_warn_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """As its change 70714 has it: by the names of the parameters, where there is no `required_kwargs`."""
    reference = as_airflow_3_4(monkeypatch)
    assert not hasattr(reference, "required_kwargs")
    run = SimpleNamespace(dag_id="a_dag", run_id="a_run", data_interval_end=ELEVEN)
    given = {"dagrun": run, "unheard_of": 1}
    parameters = inspect.signature(reference._evaluate_with).parameters
    assert reference._evaluate_with(session=None, **{k: v for k, v in given.items() if k in parameters}) == ELEVEN
    run.data_interval_end = None
    assert reference._evaluate_with(session=None, dagrun=run) is None


def test_a_run_that_is_not_named_is_no_run_without_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="neither the run nor its ids"):
        as_airflow_3_4(monkeypatch)._evaluate_with(session=None)


def test_the_stock_setting_that_loses_parked_tasks_is_told_with_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", raising=False)
    assert lost_tasks().startswith("[workers] min_heartbeat_interval is 5 s: ")
    assert "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL=1" in lost_tasks()
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "1")
    assert lost_tasks() == ""


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["airflow", "scheduler"], True),
        (["airflow", "celery", "worker"], True),
        (["airflow", "celery", "flower"], False),
        (["airflow", "dags", "list"], False),
        (["airflow"], False),
    ],
)
def test_what_starts_tasks_says_it_at_its_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, command: list[str], told: bool
) -> None:
    monkeypatch.setattr(sys, "argv", command)
    monkeypatch.setattr(plugin, "forks_tasks", lambda: False)
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "5")
    with caplog.at_level(logging.WARNING, logger=plugin.__name__):
        TallystickPlugin.on_load()
    assert ["min_heartbeat_interval" in record.getMessage() for record in caplog.records] == [True] * told


def test_a_minor_is_read_from_any_version(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, minor in (("3.3.2", (3, 3)), ("3.4.0rc1", (3, 4)), ("3.10.0.dev0", (3, 10))):
        monkeypatch.setattr(installed, "version", lambda _, text=text: text)
        assert airflow_minor() == minor
