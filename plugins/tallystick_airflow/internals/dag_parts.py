"""Parts of a DAG that minor releases of Airflow have in different places, or not at all."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, DeadlineAlert  # type: ignore[attr-defined] # not in Airflow's stub of its own API
from airflow.sdk.definitions._internal.contextmanager import DagContext

from tallystick_airflow.internals.installed import airflow_minor

if TYPE_CHECKING or airflow_minor() < (3, 3):
    from airflow.sdk.definitions.deadline import BaseDeadlineReference
else:
    from airflow.sdk import BaseDeadlineReference

__all__ = ["ASKED_RUN_TYPES", "NOT_RESUMED", "BaseDeadlineReference", "forget_dag", "mark_result", "named_deadline"]

ASKED_RUN_TYPES: Any = ["manual", "operator_triggered"] if airflow_minor() >= (3, 3) else ["manual"]
"""Types of runs that a person or a task has asked for; below Airflow 3.3 a task's are manual ones."""

NOT_RESUMED: dict[str, Any] = {"durable": False} if airflow_minor() >= (3, 3) else {}
"""Keeps a task of spark-submit from looking for the driver of an earlier try; below Airflow 3.3 none does."""


def named_deadline(name: str, *, reference: BaseDeadlineReference, interval: timedelta, callback: Any) -> DeadlineAlert:
    """Return a deadline; below Airflow 3.3 one has no name."""
    named = {"name": name} if airflow_minor() >= (3, 3) else {}
    return DeadlineAlert(reference=reference, interval=interval, callback=callback, **named)


def forget_dag(dag_id: str) -> None:
    """Keep a DAG that could not be built from being shown and run with the tasks that it had until then: Airflow takes
    every one whose `with` has ended.
    """
    taken = DagContext.autoregistered_dags
    taken.difference_update([one for one in taken if one[0].dag_id == dag_id])


def mark_result(dag: DAG, output: Any) -> None:
    """Let what a task returns be the result of the run; below Airflow 3.3 a run has none."""
    if airflow_minor() >= (3, 3):
        dag.add_result(output)
