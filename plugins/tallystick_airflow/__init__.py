"""Airflow's side of Tallystick: DAGs from contracts, operators, a sensor and its trigger, connections and pages.

Installed as a package, not loaded from the plugins folder (see plugins/.airflowignore). What is heavy (Spark's, Kafka's
and PostgreSQL's clients, the report) is imported inside the methods that run, never while a DAG file is parsed.
"""

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tallystick_airflow.dags.factory import (
        compensation_dags,
        reconcile_dags,
        reconcile_task_group,
        refuse_contract_dags,
    )
    from tallystick_airflow.dags.reconcile_dag import verdict_deadline

__all__ = ["compensation_dags", "reconcile_dags", "reconcile_task_group", "refuse_contract_dags", "verdict_deadline"]

for _client in ("kafka", "alembic", "great_expectations"):  # at INFO they write thirty lines for each of ours
    logging.getLogger(_client).setLevel(logging.WARNING)


def __getattr__(name: str) -> Any:
    """Import what a DAG file asks for: this package is also loaded by commands that parse no DAG."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tallystick_airflow.dags import factory, reconcile_dag

    return getattr(reconcile_dag if name == "verdict_deadline" else factory, name)
