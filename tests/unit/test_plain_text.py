"""Times are in UTC; a stranger's text can neither turn a line around nor drive a terminal."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tallystick.plain_text import foreign_text, format_time, format_window, story_text
from tallystick.report.evidence_lines import evidence_lines

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_time_is_written_in_utc_whatever_its_zone() -> None:
    assert format_time(NOON.astimezone(timezone(timedelta(hours=9)))) == "2026-03-01 12:00:00 UTC"


def test_a_window_names_a_shared_date_once() -> None:
    assert format_window(NOON, NOON + timedelta(hours=1)) == "2026-03-01 12:00:00 to 13:00:00 UTC"
    assert format_window(NOON, NOON + timedelta(days=1)) == "2026-03-01 12:00:00 to 2026-03-02 12:00:00 UTC"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ev-1", "ev-1"),
        ("caf\u00e9 \u4f60\u597d \u05e9", "caf\u00e9 \u4f60\u597d \u05e9"),
        ("a\nb\tc", "a\\u000ab\\u0009c"),
        ("\x1b[31mred", "\\u001b[31mred"),
        ("pay\u202e001", "pay\\u202e001"),
        ("\u2066x\u2069\u200b", "\\u2066x\\u2069\\u200b"),
        ("k" * 300, "k" * 300),
        ("k" * 301, "k" * 300 + "... (301 characters)"),
    ],
)
def test_what_would_act_on_its_surroundings_is_written_out(text: str, shown: str) -> None:
    assert foreign_text(text) == shown


def test_evidence_is_flattened_in_the_order_of_its_keys() -> None:
    evidence = {"b": [{"y": None, "x": True}, "z"], "a": {"n": 0, "none": []}, "c": ""}
    assert evidence_lines(evidence) == (
        ("a.n", "0"),
        ("a.none", "none"),
        ("b[0].x", "yes"),
        ("b[0].y", "not known"),
        ("b[1]", "z"),
        ("c", "none"),
    )


def test_endless_evidence_is_cut_and_says_so() -> None:
    lines = evidence_lines({"offsets": list(range(100))})
    assert len(lines) == 41
    assert lines[-1] == ("...", "60 more lines in the verdict store")


def test_a_sentence_of_ours_is_not_cut_where_a_stranger_is() -> None:
    sentence = "held: " + "x" * 500 + "\u202e"
    assert story_text(sentence) == sentence[:-1] + "\\u202e"
    assert story_text("x" * 3001).endswith("... (3,001 characters)")
