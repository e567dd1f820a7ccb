"""Who said yes to what: read from what the approval task left behind, by the tasks after it."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tallystick.compensation_plan import Plan


class NotApproved(AirflowFailException):
    """There is no yes of a person on record. No retry cures it."""


def approved_plan(context: Context) -> tuple[dict[str, str], str]:
    """The plan that was shown, and who said yes to it. Raises NotApproved."""
    ti = context["ti"]
    shown: dict[str, str] | None = ti.xcom_pull(task_ids="approve", key="plan")
    answer: dict[str, Any] | None = ti.xcom_pull(task_ids="approve")
    if not shown or not answer or answer["chosen_options"] != ["Approve"]:
        raise NotApproved("no approval is on record for this run")
    approver = (answer.get("responded_by_user") or {}).get("name")
    if not approver:
        raise NotApproved("the approval names no person")
    return shown, approver


def read_shown_plan(engine: "Engine", shown: dict[str, str]) -> "Plan":
    """Read a plan back from the store. Raises NotApproved."""
    from tallystick.store.plan_store import read_plan

    plan = read_plan(engine, UUID(shown["plan_id"]))
    if plan is None:
        raise NotApproved(f"plan {shown['plan_id']} is not in the verdict store")
    return plan
