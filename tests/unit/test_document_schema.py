"""What other programs rely on is what we write, and docs/schemas/ says so.

To write the schemas anew: `python -m tallystick.document_schema`.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from tallystick.document_schema import (
    SCHEMAS,
    AlertDocument,
    BreakDocument,
    VerdictDocument,
    VerdictEventDocument,
    schema_text,
)
from tallystick.run_document import run_document, verdict_event_document
from tallystick.store.run_store import StoredRun
from tests.alert_snapshots import FOLDER as SNAPSHOTS

SCHEMA_FOLDER = Path(__file__).parents[2] / "docs" / "schemas"


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


def test_every_key_has_its_sentence() -> None:
    for model in SCHEMAS.values():
        assert [name for name, field in model.model_fields.items() if not field.description] == []
