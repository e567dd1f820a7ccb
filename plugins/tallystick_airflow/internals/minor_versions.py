"""Asks Airflow for what not every supported minor version has: 3.2 lacks three things that the DAGs use.

Looks whether a thing is there, not at a version, so that a patch release may bring it.
"""

from inspect import signature
from typing import Any

from airflow.sdk import DAG
from airflow.sdk.definitions.deadline import DeadlineAlert
from airflow.utils.types import DagRunType


def started_by_person_or_dag() -> list[str]:
    """Return the types of run for `allowed_run_types`: 3.2 counts what another DAG started as started by hand."""
    known = {one.value for one in DagRunType}
    return [name for name in ("manual", "operator_triggered") if name in known]


def named_deadline(name: str, **given: Any) -> DeadlineAlert:
    """Return the deadline with its name; without one in 3.2, where a DAG's deadlines are told apart by nothing."""
    if "name" in signature(DeadlineAlert).parameters:
        given["name"] = name
    return DeadlineAlert(**given)


def make_result(dag: DAG, output: Any) -> None:
    """Make a task's XCom the result of the run, which 3.2 knows nothing of."""
    if hasattr(dag, "add_result"):
        dag.add_result(output)
