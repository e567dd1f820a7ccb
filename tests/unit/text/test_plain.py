"""Times are in UTC; a stranger's text can neither turn a line around nor drive a terminal."""

import sys
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tallystick.cli.error_handling import report_error
from tallystick.cli.output import print_json
from tallystick.cli.progress import Progress
from tallystick.cli.table import Rows, console
from tallystick.ledger.protocol import LedgerRefused
from tallystick.text.plain import escape_untrusted, format_time, format_window, printed_text, story_text

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
    assert escape_untrusted(text) == shown


def test_a_sentence_of_ours_is_not_cut_where_a_stranger_is() -> None:
    sentence = "held: " + "x" * 500 + "\u202e"
    assert story_text(sentence) == sentence[:-1] + "\\u202e"
    assert story_text("x" * 3001).endswith("... (3,001 characters)")


ACTING = "".join(
    character
    for character in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
)
"""Both sets of controls, marks of direction, lone surrogates, line separators: every one that there is."""
SOME = "\0\a\b\t\n\r\x1b\x7f\x80\x85\x9b\x9d\x9f\u061c\u200e\u200f\u2028\u2029\u202e\u2069\ufeff\ud800\udfff"
HONEST = "caf\u00e9 \u4f60\u597d \u05e9 \u20ac [red]"


def test_what_acts_is_among_what_is_tried() -> None:
    assert set(SOME) <= set(ACTING)


@pytest.mark.parametrize("written_out", [escape_untrusted, story_text, printed_text])
def test_every_character_that_acts_is_written_out(written_out: Callable[[str], str]) -> None:
    for character in ACTING:
        shown = written_out(f"a{character}b")
        keeps = written_out is printed_text and character == "\n"
        assert shown == ("a\nb" if keeps else f"a\\u{ord(character):04x}b")
    assert written_out(HONEST) == HONEST


def print_by_console(text: str) -> None:
    console().print(text)


def print_as_a_cell(text: str) -> None:
    table = Rows("key", ">amount")
    table.add_row(text, "1")
    console().print(table.fitting(100_000))


def print_as_an_error(text: str) -> None:
    report_error(LedgerRefused(f"expected text, got {text}"))


def print_as_a_bug(text: str) -> None:
    report_error(RuntimeError(text))


def print_a_step(text: str) -> None:
    with Progress() as progress:
        progress.on_progress("report", {"path": text})


def print_as_json(text: str) -> None:
    print_json({text: [text]})


@pytest.mark.parametrize(
    "show", [print_by_console, print_as_a_cell, print_as_an_error, print_as_a_bug, print_a_step, print_as_json]
)
def test_no_such_character_reaches_a_terminal_or_a_pipe(
    show: Callable[[str], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    show(f"<{ACTING}> {HONEST}")
    shown = "".join(capsys.readouterr())
    assert "<" in shown and "[red]" in shown
    assert set(shown) & set(ACTING) <= {"\n"}


def test_a_text_that_looks_like_markup_is_none_in_a_line_that_moves(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    with Progress() as progress:
        progress.on_progress("stopped", {"error": "[red]x[/red][/]"})
        assert progress._status is not None
        progress._console.print(progress._status)
    assert "[red]x[/red][/]" in capsys.readouterr().err
