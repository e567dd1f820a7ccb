"""Airflow's simple auth manager with a right per DAG, as larger ones have: a stranger may not read the payouts."""

from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.utils.session import create_session

HIDDEN = "reconcile_billing_payouts"


class ReadersAuthManager(SimpleAuthManager):
    def is_authorized_dag(self, *, user: Any, details: Any = None, **rest: Any) -> bool:
        if user.get_name() == "stranger" and details is not None and details.id == HIDDEN:
            return False
        return bool(super().is_authorized_dag(user=user, details=details, **rest))


def add_dags(*dag_ids: str) -> None:
    """Make DAGs known to Airflow."""
    with create_session() as session:
        session.add(DagBundleModel(name="dags"))
        session.flush()
        for dag_id in dag_ids:
            session.add(DagModel(dag_id=dag_id, bundle_name="dags", fileloc="", is_stale=False, is_paused=False))


def pause(dag_id: str, *, is_paused: bool) -> None:
    with create_session() as session:
        session.get(DagModel, dag_id).is_paused = is_paused
