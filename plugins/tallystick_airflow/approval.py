"""The approval of a plan: read from the verdict store, where the approval task kept it.

Whoever may edit a DAG's XComs can write anything into them and clear the task that acts. So nothing is taken from
there; an answer that says something else there than in the store is refused, and stands in the trail.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tallystick.compensation.plan import Plan
    from tallystick.store.plans.approval_store import ApprovalStep

APPROVALS = ("approve", "second_approval")
"""Ids of the tasks that ask a person, in their order."""

_YES = [ApprovalOperator.APPROVE]


class NotApproved(AirflowFailException):
    """There is no yes of a person on record. No retry cures it."""


def approved_plan(engine: "Engine", contract_name: str, context: Context) -> tuple["Plan", str]:
    """The plan that was shown in this run, and who said yes to it last. Raises NotApproved."""
    from tallystick.store.plans.approval_store import AGREED, agreements_in, last_approval_step

    run_id = context["run_id"]
    last = last_approval_step(engine, contract_name, scheduler_run_id=run_id)
    if last is None or last.event != AGREED:
        found = f"the last of it there is {last.event}" if last else "nothing of it stands there"
        raise NotApproved(f"the verdict store has no approval in run {run_id}: {found}")
    agreed = agreements_in(engine, contract_name, scheduler_run_id=run_id)
    for task_id, step in zip(APPROVALS, agreed, strict=False):
        _refuse_rewritten(engine, contract_name, context, task_id, step)
    return read_plan_of(engine, last), last.actor


def _refuse_rewritten(
    engine: "Engine", contract_name: str, context: Context, task_id: str, step: "ApprovalStep"
) -> None:
    """Hold the XCom of an approval against the line that it has written. Raises NotApproved."""
    from tallystick.store.plans.plan_store import append_audit
    from tallystick.text.plain import escape_untrusted

    options, name = _answer_in(context["ti"].xcom_pull(task_ids=task_id))
    if (options, name) == (_YES, step.actor):
        return
    detail = {
        "plan_hash": step.plan_hash,
        "scheduler_run_id": context["run_id"],
        "task_id": task_id,
        "xcom_names": escape_untrusted(name),
    }
    append_audit(
        engine, contract_name, plan_id=step.plan_id, actor="airflow", event="approval_rewritten", detail=detail
    )
    raise NotApproved(
        f"task {task_id}'s XCom names {escape_untrusted(name) or 'nobody'}, and the verdict store {step.actor}: "
        f"somebody "
        "has rewritten the answer; nothing was done; look at Airflow's audit log, and start a new run"
    )


def read_plan_of(engine: "Engine", step: "ApprovalStep") -> "Plan":
    """Read a plan back from the store. Raises NotApproved."""
    from tallystick.store.plans.plan_store import read_plan

    plan = read_plan(engine, step.plan_id)
    if plan is None or plan.plan_hash != step.plan_hash:
        raise NotApproved(f"plan {step.plan_id} of hash {step.plan_hash} is not in the verdict store; start a new run")
    return plan


def _answer_in(xcom: Any) -> tuple[Any, str]:
    """Chosen options and name, whatever stands there."""
    if not isinstance(xcom, Mapping):
        return None, ""
    who = xcom.get("responded_by_user")
    return xcom.get("chosen_options"), str(who.get("name")) if isinstance(who, Mapping) else ""
