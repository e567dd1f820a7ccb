"""The tasks of one window of one contract, in a DAG of its own or in a group of another's."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import BaseOperator, TriggerRule

from tallystick_airflow.contract_files import ContractFile
from tallystick_airflow.dags.settings import DagSettings
from tallystick_airflow.operators.alert_operator import AlertOperator
from tallystick_airflow.operators.cut_operator import CutOperator
from tallystick_airflow.operators.finish_operator import FinishOperator
from tallystick_airflow.operators.judge_operator import JudgeOperator
from tallystick_airflow.operators.offer_compensation_operator import OfferCompensationOperator
from tallystick_airflow.operators.reconcile_operator import ReconcileOperator
from tallystick_airflow.operators.report_operator import ReportOperator
from tallystick_airflow.sensors.settle_sensor import SettleSensor

PATIENCE: dict[str, Any] = {
    "retries": 2,
    "retry_delay": timedelta(seconds=15),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=10),
    "execution_timeout": timedelta(hours=2),
}
"""How often and how long a task of a window is tried, where nobody asks for another."""


@dataclass(frozen=True, kw_only=True)
class WindowTasks:
    """The tasks that others are wired to. offer: none where the contract allows no repair."""

    reconcile: ReconcileOperator
    offer: BaseOperator | None


def add_window_tasks(file: ContractFile, settings: DagSettings) -> WindowTasks:
    """Add finish, settle, cut, reconcile; then report, alert and the offer to compensate; then judge.

    To the DAG, or the group in it, that is open here.
    """
    name = f"tallystick {file.contract.name}"
    stored = {"contract_file": str(file.path), "store_conn_id": settings.store_conn_id}
    spark = {"name": name, "spark_conn_id": settings.spark_conn_id}

    def of(task_id: str, **arguments: Any) -> dict[str, Any]:
        return {"task_id": task_id, **stored, **arguments, **settings.for_task(task_id)}

    finish = FinishOperator(**of("finish", **spark))
    settle = SettleSensor(**of("settle", deferrable=settings.deferrable))
    cut = CutOperator(**of("cut"))
    # Its id has the group's before it, where there is one.
    cut_n = {"cut_n": f"{{{{ ti.xcom_pull(task_ids='{cut.task_id}') }}}}"}
    reconcile = ReconcileOperator(**of("reconcile", **spark, **cut_n))
    report = ReportOperator(**of("report", retries=1, **cut_n))
    # The page must come also when there is no verdict to tell of.
    alert = AlertOperator(**of("alert", trigger_rule=TriggerRule.ALL_DONE, retries=5, **cut_n))
    # After the report, since it is the last word; it judges by the stored row, whatever became of the report.
    judge = JudgeOperator(**of("judge", trigger_rule=TriggerRule.ALL_DONE, **cut_n))
    finish >> settle >> cut >> reconcile >> [report, alert]
    report >> judge
    if not file.contract.compensation:
        return WindowTasks(reconcile=reconcile, offer=None)
    offer = OfferCompensationOperator(**of("offer_compensation", dag_id_prefix=settings.dag_id_prefix, **cut_n))
    reconcile >> offer
    return WindowTasks(reconcile=reconcile, offer=offer)


def add_end_of_offer(offer: BaseOperator, settings: DagSettings) -> None:
    """Add what succeeds also where there was nothing to offer, so that tasks behind the group are not skipped."""
    offer >> EmptyOperator(task_id="offered", trigger_rule=TriggerRule.NONE_FAILED, **settings.for_task("offered"))
