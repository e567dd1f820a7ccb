"""Every step that the Spark app announces has its line; a line never fails a run."""

import re
from pathlib import Path

import pytest

from tallystick.cli.progress import _LINES, Progress, pace_text, step_line
from tallystick.executor.effects.step import ExecutorStep

APP = Path(__file__).parents[3] / "spark_apps" / "tallystick_spark" / "reconcile_app.py"


def test_every_step_that_the_app_announces_has_its_line() -> None:
    announced = set(re.findall(r'announce\("(\w+)"', APP.read_text()))
    assert len(announced) > 5
    assert announced - set(_LINES) == set()


def test_every_step_that_an_executor_tells_has_its_line() -> None:
    assert set(ExecutorStep) - set(_LINES) == set()


def test_a_step_says_its_figures() -> None:
    assert step_line("scanned", {"topic_rows": 1200, "ledger_rows": 1}) == "Read 1,200 records and 1 ledger rows"
    assert step_line("reread", {"same": False}) == "Read again: another digest"


@pytest.mark.parametrize("figures", [{}, {"offsets": "many"}, {"offsets": None}])
def test_a_step_with_other_figures_is_shown_by_its_name(figures: dict[str, object]) -> None:
    assert step_line("scanning", figures) == "scanning"


def test_a_step_that_nobody_knows_is_shown_by_its_name() -> None:
    assert step_line("warming_up", {"x": 1}) == "warming up"


@pytest.mark.parametrize(
    ("done", "seconds", "expected"),
    [
        (250_000, 10.0, ", 25,000 a second, 30 s left"),
        (999_999, 10.0, ", 100,000 a second, 0 s left"),
        (1, 3_600.0, ", 0 a second, 41,666 d 15 h left"),
        (0, 10.0, ""),
        (1_000_000, 10.0, ""),
        (10, 0.0, ""),
    ],
)
def test_a_count_says_its_rate_and_the_time_left(done: int, seconds: float, expected: str) -> None:
    assert pace_text(done, 1_000_000, seconds=seconds) == expected


def test_elsewhere_than_in_a_terminal_long_counts_are_told_at_every_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter(range(1_000))
    with Progress(clock=lambda: next(times)) as progress:
        progress.on_progress("scanning", {"offsets": 1_000_000})
        for done in range(10_000, 1_000_001, 10_000):
            progress.on_progress("counting", {"done": done, "of": 1_000_000})
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 + 10
    assert lines[1] == "Counted 100,000 of 1,000,000 offsets, 100,000 a second, 9 s left"
    assert lines[-1] == "Counted 1,000,000 of 1,000,000 offsets"


def test_short_counts_are_not_told_there(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        progress.on_progress("counting", {"done": 50, "of": 99})
    assert capsys.readouterr().err == ""


def test_without_a_terminal_each_step_is_one_plain_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        for _ in range(3):
            progress.on_progress("settling", {"waits_for": ["billing[0]: the LSO stands at 3, the mark is 5"]})
        progress.on_progress("settled", {})
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "Waiting for both sides to settle: billing[0]: the LSO stands at 3, the mark is 5",
        "Both sides have settled",
    ]
