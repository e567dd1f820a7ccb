"""Every class and doubt has its words, and no words are left over."""

from collections.abc import Mapping
from enum import StrEnum

import pytest

from tallystick.model.finding_names import BreakClass, Doubt, Notice
from tallystick.text.finding_guide import BREAK_TEXTS, DOUBT_TEXTS, NOTICE_TEXTS, ClassText


@pytest.mark.parametrize(
    ("members", "texts"), [(BreakClass, BREAK_TEXTS), (Doubt, DOUBT_TEXTS), (Notice, NOTICE_TEXTS)]
)
def test_every_member_has_its_text_and_no_text_is_left_over(
    members: type[StrEnum], texts: Mapping[StrEnum, ClassText]
) -> None:
    assert set(texts) == set(members)


@pytest.mark.parametrize(
    "text", [*BREAK_TEXTS.values(), *DOUBT_TEXTS.values(), *NOTICE_TEXTS.values()], ids=lambda text: text.title
)
def test_a_text_is_one_sentence_of_meaning_and_one_of_action(text: ClassText) -> None:
    assert text.means.endswith(".")
    assert text.check_first[-1] in ".?"
    assert text.title
    assert not text.title.endswith(".")


def test_titles_tell_the_classes_apart() -> None:
    titles = [text.title for text in (*BREAK_TEXTS.values(), *DOUBT_TEXTS.values(), *NOTICE_TEXTS.values())]
    assert len(set(titles)) == len(titles)
