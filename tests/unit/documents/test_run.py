"""A run, a story and a verdict's event are what their schemas say, with no key more or less."""

import json
from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from tallystick.documents.run import run_document, story_document, verdict_event_document
from tallystick.documents.schema import (
    AlertDocument,
    BreakDocument,
    LifeStepDocument,
    ParagraphDocument,
    StoryDocument,
    VerdictDocument,
    VerdictEventDocument,
)
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tests.alert_snapshots import FOLDER as SNAPSHOTS
from tests.unit.documents.checks import keys_of
from tests.unit.report.told_breaks import a_break, told
from tests.unit.report.told_breaks import item as open_item


@pytest.fixture(params=["matched_run", "broken_run", "inconclusive_run", "baseline_run", "closed_run"])
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


def test_what_only_a_run_that_reads_can_count_is_null_where_nobody_read(
    closed_run: StoredRun, inconclusive_run: StoredRun
) -> None:
    counted = ("in_flight_items", "in_flight_money_minor", "undecidable_items", "unreadable_records")
    unread, read = run_document(closed_run), run_document(inconclusive_run)
    assert [unread[name] for name in counted] == [None] * 4
    assert verdict_event_document(closed_run)["in_flight_items"] is None
    assert None not in [read[name] for name in counted]
    assert (unread["topic_rows"], unread["ledger_rows"], unread["matched_rows"]) == (None, None, 0)
    assert set(unread["legal_oddities"]["counts"].values()) == {None}


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
