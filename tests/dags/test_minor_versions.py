"""What a minor version of Airflow lacks is left out; what it has is used."""

from datetime import timedelta
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import AsyncCallback

from tallystick_airflow.internals import minor_versions
from tallystick_airflow.internals.minor_versions import make_result, named_deadline, started_by_person_or_dag
from tallystick_airflow.overdue_verdict import page_if_overdue
from tallystick_airflow.sensors.window_end import WindowEnd

GIVEN: dict[str, Any] = {
    "reference": WindowEnd(),
    "interval": timedelta(hours=1),
    "callback": AsyncCallback(page_if_overdue, kwargs={}),
}


class RunTypesOf32(Enum):
    MANUAL = "manual"
    SCHEDULED = "scheduled"


class DeadlineOf32:
    """As Airflow 3.2 has it: it knows no name."""

    def __init__(self, reference: Any, interval: Any, callback: Any) -> None:
        self.given = reference, interval, callback


def test_where_airflow_has_all_of_it_all_of_it_is_used() -> None:
    results: list[object] = []
    make_result(SimpleNamespace(add_result=results.append), "output")  # type: ignore[arg-type]
    assert results == ["output"]
    assert named_deadline("verdict", **GIVEN).name == "verdict"
    assert started_by_person_or_dag() == ["manual", "operator_triggered"]


def test_under_3_2_a_deadline_has_no_name_and_a_run_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minor_versions, "DeadlineAlert", DeadlineOf32)
    deadline: Any = named_deadline("verdict", **GIVEN)
    assert deadline.given == tuple(GIVEN.values())
    make_result(SimpleNamespace(), "output")  # type: ignore[arg-type]


def test_under_3_2_what_a_dag_starts_is_a_manual_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minor_versions, "DagRunType", RunTypesOf32)
    assert started_by_person_or_dag() == ["manual"]
