"""What people read of a reason may be worded anew: nothing that is compared changes with it."""

from collections.abc import Iterator

import pytest

from tallystick.model.item_reason import ReasonCode, ReasonSide, read_reason, reason_of
from tallystick.report.page_rows import item_row
from tallystick.store.runs.open_item_store import item_columns
from tallystick.text import reason_texts
from tallystick.text.reason_texts import REASON_TEXTS, reason_text
from tallystick.text.side_terms import for_inputs
from tests.unit.builders import event, evidence_of, row
from tests.unit.judging.results import judged


@pytest.fixture
def worded_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    anew = {code: f"anew: {text}" for code, text in REASON_TEXTS.items()}
    monkeypatch.setattr(reason_texts, "REASON_TEXTS", anew)
    yield
    monkeypatch.undo()


def test_each_reason_has_a_text_that_names_what_it_names() -> None:
    assert set(REASON_TEXTS) == set(ReasonCode)
    for code in ReasonCode:
        shown = reason_text(reason_of(code, there=ReasonSide.TOPIC, about="what it names"))
        assert shown
        assert "{" not in shown
        named = any(place in code.value for place in ("{about}", "{break_class}", "{text}"))
        assert ("what it names" in shown) == named


@pytest.mark.parametrize("code", ReasonCode)
def test_what_is_stored_of_inputs_reads_as_the_rewritten_sentence_of_old_did(code: ReasonCode) -> None:
    """Cuts of topic_to_topic hold sentences that were rewritten as a whole before reasons were codes."""
    for there in (ReasonSide.TOPIC, ReasonSide.LEDGER):
        reason = reason_of(code, there=there, about="billing.fees")
        assert reason.of_inputs().stored == for_inputs(reason.stored)


def items_and_digest() -> tuple[list[str], str]:
    result = judged(evidence_of(row(1), row(2, "ev-2"), event(11, "ev-3", leg="fee")))
    return [str(item_columns(item)["reason"]) for item in result.items], result.digest


def test_no_stored_row_and_no_digest_changes_with_the_words(request: pytest.FixtureRequest) -> None:
    items, digest = items_and_digest()
    assert len(items) == 3
    request.getfixturevalue("worded_anew")
    assert items_and_digest() == (items, digest)


@pytest.mark.usefixtures("worded_anew")
def test_the_page_changes_with_the_words() -> None:
    (item,) = judged(evidence_of(row(1))).items
    assert item_row(item).reason == "anew: missing_in_topic_never_produced"


def test_an_unknown_reason_is_shown_as_it_was_stored() -> None:
    assert reason_text(read_reason("the moon was {full}")) == "the moon was {full}"
