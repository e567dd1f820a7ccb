"""A plan for machines: as JSON (docs/schemas/plan.v1.json), and as the conf of a DAG that is handed one break of it."""

from dataclasses import replace
from typing import Any

from tallystick.compensation.plan import PLAN_JSON, Plan, PlanItem
from tallystick.compensation.plan_text import plan_sentence

SCHEMA_VERSION = 1
"""Of a plan as JSON."""


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan for machines: what would be done, what not and why, and what an approval names."""
    document: dict[str, Any] = PLAN_JSON.dump_python(plan, mode="json")
    head = {
        "schema_version": SCHEMA_VERSION,
        "plan_id": str(plan.plan_id),
        "plan_hash": plan.plan_hash,
        "sentence": plan_sentence(plan),
        "money_minor": plan.money_minor,
    }
    return head | document


def conf_of(plan: Plan, item: PlanItem) -> dict[str, Any]:
    """Return a DAG's conf: the plan with this break alone, under the id and hash of the plan that was approved."""
    alone = plan_document(replace(plan, items=(item,), aborts=(), left_out=()))
    return alone | {"plan_id": str(plan.plan_id), "plan_hash": plan.plan_hash}
