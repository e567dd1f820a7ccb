"""What other programs rely on is what we write, and docs/schemas/ says so.

To write the schemas anew: `python -m tallystick.documents.schema`.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from tallystick.compensation.plan import PlanContext
from tallystick.compensation.planning import make_plan
from tallystick.documents.plan import conf_of, plan_document
from tallystick.documents.run import run_document, story_document, verdict_event_document
from tallystick.documents.schema import (
    SCHEMAS,
    AbortDocument,
    AlertDocument,
    BreakDocument,
    LeftOutDocument,
    LifeStepDocument,
    ParagraphDocument,
    PlanDocument,
    PlanItemDocument,
    StoryDocument,
    VerdictDocument,
    VerdictEventDocument,
    schema_text,
)
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tests.alert_snapshots import FOLDER as SNAPSHOTS
from tests.unit.compensation.test_abort_plan import AROUND
from tests.unit.compensation.test_plan import NEVER_PRODUCED, PHANTOM, candidate, contract
from tests.unit.compensation.test_plan import run as clean_run
from tests.unit.report.test_break_story import a_break, told
from tests.unit.report.test_break_story import item as open_item

SCHEMA_FOLDER = Path(__file__).parents[3] / "docs" / "schemas"


@pytest.fixture(params=["matched_run", "broken_run", "inconclusive_run", "baseline_run"])
def run(request: pytest.FixtureRequest) -> StoredRun:
    """Runs of every verdict."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def document(run: StoredRun) -> Any:
    """A run as it is printed."""
    return json.loads(json.dumps(run_document(run)))


def sent() -> list[Any]:
    """Every alert of the snapshots, as a webhook gets it."""
    texts = [path.read_text() for path in sorted(SNAPSHOTS.iterdir())]
    return [json.loads(text.removeprefix("=== webhook, file\n").split("\n=== ")[0]) for text in texts]


def keys_of(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_in_the_repository_is_the_one_the_code_writes(name: str) -> None:
    assert (SCHEMA_FOLDER / name).read_text() == schema_text(name)


def test_no_other_schema_lies_there() -> None:
    assert {path.name for path in SCHEMA_FOLDER.iterdir()} == set(SCHEMAS)


def test_a_run_is_what_its_schema_says_with_no_key_more_or_less(document: Any) -> None:
    VerdictDocument.model_validate_json(json.dumps(document), strict=True)
    assert set(document) == keys_of(VerdictDocument)
    for one in document["breaks"]:
        assert set(one) == keys_of(BreakDocument)


def test_a_story_is_what_its_schema_says_with_no_key_more_or_less() -> None:
    story = told(a_break(), open_item(ItemState.OPEN), open_item(ItemState.BROKEN))
    document = json.loads(json.dumps(story_document(story)))
    StoryDocument.model_validate_json(json.dumps(document), strict=True)
    assert set(document) == keys_of(StoryDocument)
    for name, model in (("paragraphs", ParagraphDocument), ("life", LifeStepDocument)):
        assert [set(one) for one in document[name]] == [keys_of(model)] * len(document[name])
        assert document[name]


def test_an_event_of_a_verdict_is_what_its_schema_says_and_says_what_the_run_says(
    run: StoredRun, document: Any
) -> None:
    event = json.loads(json.dumps(verdict_event_document(run)))
    VerdictEventDocument.model_validate_json(json.dumps(event), strict=True)
    assert set(event) == keys_of(VerdictEventDocument)
    counted = event.pop("breaks_by_class")
    assert counted == Counter(one["class"] for one in document["breaks"])
    assert event.pop("doubts") == sorted({one["doubt"] for one in document["doubts"]})
    assert event == {name: document[name] for name in event}


def test_every_alert_is_what_its_schema_says_with_no_key_more_or_less() -> None:
    for message in sent():
        AlertDocument.model_validate_json(json.dumps(message), strict=True)
        assert set(message) == keys_of(AlertDocument)


@pytest.mark.parametrize("changes", [{"verdict": "FINE"}, {"cut": -1}, {"cut": "7"}, {"breaks": None}, {"run": "x"}])
def test_a_run_that_is_not_is_refused(document: Any, changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        VerdictDocument.model_validate_json(json.dumps(document | changes), strict=True)


@pytest.mark.parametrize("changes", [{"schema_version": 2}, {"severity": "loud"}, {"dedup_key": "payouts"}])
def test_an_alert_that_is_not_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AlertDocument.model_validate_json(json.dumps(sent()[0] | changes), strict=True)


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


def test_every_key_has_its_sentence() -> None:
    parts = (PlanItemDocument, AbortDocument, LeftOutDocument, ParagraphDocument, LifeStepDocument)
    for model in (*SCHEMAS.values(), *parts):
        assert [name for name, field in model.model_fields.items() if not field.description] == []
