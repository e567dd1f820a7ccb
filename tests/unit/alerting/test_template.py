"""What each kind of sink is sent is what was committed, byte for byte; a template can do no more than write."""

import pytest
from jinja2 import UndefinedError
from jinja2.exceptions import SecurityError

from tallystick.alerting.template import JSON_KINDS, LINE_KINDS, new_environment
from tests.alert_snapshots import FOLDER
from tests.unit.alerting.snapshot_texts import TEXTS


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_what_is_sent_is_what_was_committed(name: str) -> None:
    assert TEXTS[name] == (FOLDER / name).read_text()


def test_no_text_is_left_over_from_a_class_that_went() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(TEXTS)


@pytest.mark.parametrize("kind", [*JSON_KINDS, *LINE_KINDS])
def test_every_kind_of_sink_stands_in_every_text(kind: str) -> None:
    assert [name for name, text in TEXTS.items() if f"=== {kind}\n" not in text] == []


def test_a_name_that_a_template_gets_wrong_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        new_environment().from_string("{{ summery }}").render(summary="x")


@pytest.mark.parametrize("text", ["{{ ''.__class__.__mro__ }}", "{{ facts.append(1) }}"])
def test_a_template_can_reach_nothing_and_change_nothing(text: str) -> None:
    with pytest.raises(SecurityError):
        new_environment().from_string(text).render(facts=[])
