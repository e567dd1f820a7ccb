"""What people and machines are sent is what stands here, byte for byte, for every class.

To write the expected texts anew: `python -m tests.alert_snapshots`.
"""

import pytest
from jinja2 import UndefinedError
from jinja2.exceptions import SecurityError

from tallystick.alerting.template import JSON_KINDS, LINE_KINDS, new_environment
from tests.alert_snapshots import FOLDER, snapshots

TEXTS = snapshots()


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_what_is_sent_is_what_was_committed(name: str) -> None:
    assert TEXTS[name] == (FOLDER / name).read_text()


def test_no_text_is_left_over_from_a_class_that_went() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(TEXTS)


@pytest.mark.parametrize("kind", [*JSON_KINDS, *LINE_KINDS])
def test_every_kind_of_sink_stands_in_every_text(kind: str) -> None:
    assert [name for name, text in TEXTS.items() if f"=== {kind}\n" not in text] == []


def test_no_text_shows_a_key_unless_the_contract_does() -> None:
    """The keys of the literal breaks are their transactions' too; neither leaves the house."""
    shown = [name for name, text in TEXTS.items() if "transaction-" in text or "match_key" in text]
    assert shown == ["shown_key_of_a_backfill.txt"]


def test_a_key_that_turns_a_page_around_is_written_out() -> None:
    mail = TEXTS["shown_key_of_a_backfill.txt"].split("=== email")[1]
    assert "\u202e" not in mail
    assert "\\u202e" in mail


def test_a_name_that_a_template_gets_wrong_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        new_environment().from_string("{{ summery }}").render(summary="x")


@pytest.mark.parametrize("text", ["{{ ''.__class__.__mro__ }}", "{{ facts.append(1) }}"])
def test_a_template_can_reach_nothing_and_change_nothing(text: str) -> None:
    with pytest.raises(SecurityError):
        new_environment().from_string(text).render(facts=[])
