"""Tables are as wide as the terminal; nothing is cut off, and a pipe gets every column on one line a row."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from rich.text import Text

from tallystick.cli import output
from tallystick.cli.table import Rows, console, set_plain
from tallystick.model.stored_run import RunSummary, StoredRun

WIDTHS = (40, 60, 80, 200)
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7][0-9;]*m")
CODE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def colour_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "COLUMNS", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    set_plain(False)


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What a print function of cli_output writes: at a terminal's width, or into a pipe."""

    def show(function: Callable[..., None], *values: Any, width: int | None = None) -> str:
        if width is None:
            monkeypatch.delenv("FORCE_COLOR", raising=False)
        else:
            monkeypatch.setenv("FORCE_COLOR", "1")
            monkeypatch.setenv("COLUMNS", str(width))
        function(*values)
        return capsys.readouterr().out

    return show


@pytest.fixture
def runs(matched_run: StoredRun, broken_run: StoredRun, inconclusive_run: StoredRun) -> list[RunSummary]:
    return [
        RunSummary(
            contract=run.result.contract,
            cut_n=run.result.cut_n,
            verdict=run.result.verdict,
            doubts=run.result.doubts,
            breaks=len(run.result.breaks),
            money_minor={"EUR": 123_456_789} if run.result.breaks else {},
            window_start_utc=run.window_start_utc,
            window_end_utc=run.window_end_utc,
            scheduler_run_id=run.scheduler_run_id,
            recorded_at=run.recorded_at,
            completed_by_cut=None,
        )
        for run in (inconclusive_run, broken_run, matched_run)
    ]


def lines_of(text: str) -> list[str]:
    return [CODE.sub("", line).rstrip() for line in text.splitlines()]


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_of_a_run_is_wider_than_the_terminal_and_none_is_cut_off(
    shown: Any, broken_run: StoredRun, width: int
) -> None:
    text = shown(output.print_run, broken_run, width=width)
    assert COLOUR.search(text)
    assert max(len(line) for line in lines_of(text)) <= width
    letters = re.sub(r"\s", "", CODE.sub("", text))
    for found in broken_run.result.breaks:
        for said in (found.match_key, found.story):
            assert re.sub(r"\s", "", said) in letters
    assert "\N{HORIZONTAL ELLIPSIS}" not in text


@pytest.mark.parametrize(
    ("width", "spared"),
    [(40, None), (60, "stored at, doubts, window"), (80, "stored at, doubts"), (200, None)],
)
def test_runs_keep_name_verdict_breaks_and_money_at_every_width(
    shown: Any, runs: list[RunSummary], width: int, spared: str | None
) -> None:
    lines = lines_of(shown(output.print_runs, runs, width=width))
    assert max(len(line) for line in lines) <= width
    text = re.sub(r"\s+", " ", " ".join(lines))
    for expected in ("billing_payouts/7", "BROKEN", "1,234,567.89 EUR", "INCONCLUSIVE"):
        assert expected in text
    if spared is None:
        assert "stored at" in text and "--plain" not in text
    else:
        assert text.endswith(f"without {spared}: the terminal is too narrow; --plain shows all")


def test_a_pipe_gets_every_column_and_no_code(shown: Any, runs: list[RunSummary]) -> None:
    text = shown(output.print_runs, runs)
    assert "\x1b" not in text
    header, *rows = text.splitlines()
    assert header.split("  ")[0] == "run"
    assert [row.split()[0] for row in rows] == [f"billing_payouts/{n}" for n in (8, 7, 6)]
    for column in ("window", "breaks", "at stake", "doubts", "stored at"):
        assert column in header


def test_plain_in_a_terminal_is_what_a_pipe_gets(shown: Any, broken_run: StoredRun, runs: list[RunSummary]) -> None:
    for function, value in ((output.print_run, broken_run), (output.print_runs, runs)):
        piped = shown(function, value)
        set_plain(True)
        assert shown(function, value, width=60) == piped
        set_plain(False)


def test_no_color_is_heeded_in_a_terminal(shown: Any, broken_run: StoredRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert not COLOUR.search(shown(output.print_run, broken_run, width=80))


def rendered(rows: Rows, width: int, capsys: pytest.CaptureFixture[str]) -> list[str]:
    out = console()
    out.width = width
    out.print(rows.fitting(width))
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def sample() -> Rows:
    rows = Rows("name", ">count", "words", spared=("count",))
    rows.add_row("first", "1,234,567", Text("some words that may be folded"))
    rows.add_row("second", "8", "few")
    return rows


def test_a_table_that_fits_stays_whole_and_words_fold(capsys: pytest.CaptureFixture[str]) -> None:
    assert rendered(sample(), 60, capsys) == [
        "name        count  words",
        "first   1,234,567  some words that may be folded",
        "second          8  few",
    ]
    assert rendered(sample(), 38, capsys) == [
        "name        count  words",
        "first   1,234,567  some words that may",
        "                   be folded",
        "second          8  few",
    ]


def test_a_spared_column_goes_first_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    lines = rendered(sample(), 30, capsys)
    assert lines[0] == "name    words"
    assert " ".join(lines[-3:]).endswith("without count: the terminal is too narrow; --plain shows all")


def test_what_does_not_fit_at_all_stands_in_a_block_a_row_with_every_column(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert rendered(sample(), 20, capsys) == [
        "name   first",
        "count  1,234,567",
        "words  some words",
        "       that may be",
        "       folded",
        "",
        "name   second",
        "count  8",
        "words  few",
    ]
