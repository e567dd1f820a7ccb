"""The document of a plan, and what a DAG gets of it."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from tallystick.compensation.plan import PlanContext
from tallystick.compensation.planning import make_plan
from tallystick.documents.plan import conf_of, plan_document
from tallystick.documents.schema import AbortDocument, LeftOutDocument, PlanDocument, PlanItemDocument
from tests.unit.compensation.abort_plans import AROUND
from tests.unit.compensation.plans import HANDS_OVER, NEVER_PRODUCED, PHANTOM, candidate, contract, plan
from tests.unit.compensation.plans import run as clean_run
from tests.unit.documents.checks import keys_of


def test_a_dag_gets_its_break_alone_under_the_hash_of_the_approved_plan() -> None:
    planned = plan(candidate("a"), *(candidate(key, break_class=PHANTOM, rows=()) for key in "bc"), **HANDS_OVER)
    conf = conf_of(planned, planned.items[1])
    assert (conf["plan_hash"], conf["plan_id"]) == (planned.plan_hash, str(planned.plan_id))
    assert [one["match_key"] for one in conf["items"]] == ["b"]
    assert (conf["money_minor"], conf["left_out"], conf["aborts"]) == ({"EUR": 100}, [], [])


def plan_documents() -> list[dict[str, Any]]:
    """A plan of each kind of thing, and what a DAG gets of it."""
    stood = PlanContext(planned=AROUND, newest=AROUND)
    rules = {
        "classes": [NEVER_PRODUCED],
        "trigger": {"connection": "airflow", "dags": {PHANTOM: "by_hand"}},
        "abort_hanging_transactions": True,
        "max_amount_minor": {"EUR": 10_000},
    }
    found = [
        candidate("a"),
        candidate("b", break_class=PHANTOM, leg="", currency="EUR"),
        candidate("c", currency="JPY"),
    ]
    plan = make_plan(contract(**rules), clean_run(), found, around=stood)
    assert [len(part) for part in (plan.aborts, plan.items, plan.left_out)] == [1, 2, 1]
    return [json.loads(json.dumps(one)) for one in (plan_document(plan), conf_of(plan, plan.items[1]))]


def test_a_plan_and_what_a_dag_gets_of_it_are_what_their_schema_says_with_no_key_more_or_less() -> None:
    for document in plan_documents():
        PlanDocument.model_validate_json(json.dumps(document), strict=True)
        assert set(document) == keys_of(PlanDocument)
        parts = {"items": PlanItemDocument, "aborts": AbortDocument, "left_out": LeftOutDocument}
        for name, model in parts.items():
            assert [set(one) for one in document[name]] == [keys_of(model)] * len(document[name])


@pytest.mark.parametrize(
    "changes", [{"schema_version": 2}, {"plan_hash": "x"}, {"items": None}, {"money_minor": {"EUR": "1"}}]
)
def test_a_plan_that_is_not_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PlanDocument.model_validate_json(json.dumps(plan_documents()[0] | changes), strict=True)
