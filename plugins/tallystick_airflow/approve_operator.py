"""Asks a person."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from tallystick_airflow.contract_operator import open_verdict_store


class ApprovePlanOperator(ApprovalOperator):
    """Show the plan and park until a person approves or rejects it. Nobody answering in time is a no, and fails.

    No default answer: Airflow would take it for a yes. Rejected: what follows is skipped.
    Asks once per run: Airflow keeps the first text of a task that is cleared, so a second question would show the old
    plan under a new one's name.
    Every answer, that there was none, and that it was not asked again stand in the store's trail with the plan's hash.
    XCom `plan`: contract, id and hash of the plan that was shown, for the task that acts; beside Airflow's own answer.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            subject="{{ dag.dag_id }}: carry out this plan?",
            body="{{ ti.xcom_pull(task_ids='plan')['markdown'] }}",
            retries=0,
            **kwargs,
        )

    def execute(self, context: Context) -> Any:
        ti = context["ti"]
        plan = ti.xcom_pull(task_ids="plan")
        if ti.try_number > 1:
            _keep(context, plan, actor="airflow", event="not_asked_again")
            raise AirflowFailException("an approval is asked once per run: start a new run for a new plan")
        ti.xcom_push(key="plan", value={name: plan[name] for name in ("plan_id", "plan_hash", "contract")})
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        shown = context["ti"].xcom_pull(task_ids="approve", key="plan")
        answer, who = _answer_of(event)
        _keep(context, shown, actor=who, event=answer, responded_at=event.get("responded_at"))
        return super().execute_complete(context, event)


def _keep(
    context: Context, plan: Mapping[str, str], *, actor: str, event: str, responded_at: datetime | None = None
) -> None:
    """Append one line to the trail of a plan. responded_at: when the person answered, as Airflow's API server says."""
    from tallystick.store.clock import dated_by_store, read_clock  # SQLAlchemy: not while parsing
    from tallystick.store.plan_store import ANSWERED_AT, append_audit, asked_at

    plan_id, run_id = UUID(plan["plan_id"]), context["run_id"]
    detail = {"plan_hash": plan["plan_hash"], "scheduler_run_id": run_id}
    with open_verdict_store() as engine:
        if responded_at is not None:
            asked = asked_at(engine, plan_id, scheduler_run_id=run_id)
            detail[ANSWERED_AT] = dated_by_store(read_clock(engine), responded_at, not_before=asked).isoformat()
        append_audit(engine, plan["contract"], plan_id=plan_id, actor=actor, event=event, detail=detail)


def _answer_of(event: dict[str, Any]) -> tuple[str, str]:
    """What the trail says of an answer, and whose it is."""
    if "error" in event:
        return ("unanswered" if event["error_type"] == "timeout" else "approval_failed"), "airflow"
    who = (event["responded_by_user"] or {}).get("name") or "nobody"
    return ("agreed" if event["chosen_options"] == [ApprovePlanOperator.APPROVE] else "rejected"), who
