"""Asks a person."""

from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException


class ApprovePlanOperator(ApprovalOperator):
    """Show the plan and park until a person approves or rejects it. Nobody answering in time is a no, and fails.

    No default answer: Airflow would take it for a yes. Rejected: what follows is skipped.
    Asks once per run: Airflow keeps the first text of a task that is cleared, so a second question would show the old
    plan under a new one's name.
    XCom `plan`: the id and the hash of the plan that was shown, for the task that acts; beside Airflow's own answer.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            subject="{{ dag.dag_id }}: publish again what is missing?",
            body="{{ ti.xcom_pull(task_ids='plan')['markdown'] }}",
            retries=0,
            **kwargs,
        )

    def execute(self, context: Context) -> Any:
        ti = context["ti"]
        if ti.try_number > 1:
            raise AirflowFailException("an approval is asked once per run: start a new run for a new plan")
        plan = ti.xcom_pull(task_ids="plan")
        ti.xcom_push(key="plan", value={name: plan[name] for name in ("plan_id", "plan_hash", "requested_by")})
        return super().execute(context)
