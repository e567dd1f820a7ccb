"""Airflow's simple auth manager with rights per DAG, as larger ones have: some users are denied some DAGs."""

from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.models.dag import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.utils.session import create_session

DENIED = {
    "stranger": "reconcile_billing_payouts",
    "blind_op": "reconcile_billing_payouts",
    "reading_op": "compensate_billing_payouts",
}
"""User to the DAG on which they have no right at all."""


class ReadersAuthManager(SimpleAuthManager):
    def is_authorized_dag(self, *, user: Any, details: Any = None, **rest: Any) -> bool:
        if details is not None and DENIED.get(user.get_name()) == details.id:
            return False
        return bool(super().is_authorized_dag(user=user, details=details, **rest))


def add_dags(*dag_ids: str) -> None:
    """Make DAGs known to Airflow."""
    with create_session() as session:
        session.merge(DagBundleModel(name="dags"))
        session.flush()
        for dag_id in dag_ids:
            session.add(DagModel(dag_id=dag_id, bundle_name="dags", fileloc="", is_stale=False, is_paused=False))


def change_dag(dag_id: str, **columns: Any) -> None:
    """is_paused or is_stale."""
    with create_session() as session:
        for name, value in columns.items():
            setattr(session.get(DagModel, dag_id), name, value)
