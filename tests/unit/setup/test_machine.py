"""Setup names what a machine lacks in one sentence each, and is silent about a good one."""

from dataclasses import replace
from pathlib import Path

import pytest
from machine import Machine, ask_java, find_java, find_problems, java_major

GOOD = Machine(
    python_path="/usr/bin/python3",
    python_version="3.11.7",
    has_venv_module=True,
    java_path="/usr/bin/java",
    java_said='openjdk version "17.0.15" 2025-04-15',
    checkout="/srv/tallystick",
    free_bytes=6 * 1024**3,
)


def test_a_machine_with_everything_has_no_problem() -> None:
    assert find_problems(GOOD) == []


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (
            replace(GOOD, python_version="3.12.1"),
            ["Python", "expected 3.11.x", "got 3.12.1", "/usr/bin/python3", "PYTHON="],
        ),
        (replace(GOOD, python_version="3.1.1"), ["Python", "got 3.1.1"]),
        (replace(GOOD, has_venv_module=False), ["Python", "venv", "apt-get install"]),
        (replace(GOOD, java_path="", java_said=""), ["Java", "none found", "17", "install"]),
        (
            replace(GOOD, java_said='java version "1.8.0_372"'),
            ["Java", "expected version 17", "1.8.0_372", "/usr/bin/java"],
        ),
        (replace(GOOD, java_said="cannot execute"), ["Java", "cannot execute"]),
        (replace(GOOD, free_bytes=6 * 1024**3 - 2**29), ["Disk", "expected 6.0 GB", "got 5.5 GB", "/srv/tallystick"]),
    ],
)
def test_each_lack_is_one_sentence_with_what_where_expected_and_got(machine: Machine, words: list[str]) -> None:
    (problem,) = find_problems(machine)
    assert "\n" not in problem
    assert [word for word in words if word not in problem] == []


def test_two_lacks_are_both_named_at_once() -> None:
    assert len(find_problems(replace(GOOD, python_version="3.9.18", free_bytes=0))) == 2


@pytest.mark.parametrize(
    ("said", "major"),
    [('openjdk version "21" 2023-09-19', 21), ('java version "1.8.0_372"', 8), ("Error: no such option", 0)],
)
def test_java_majors_old_and_new(said: str, major: int) -> None:
    assert java_major(said) == major


def test_java_is_asked_past_the_notes_it_prints_first(tmp_path: Path) -> None:
    java = fake_java(tmp_path, "Picked up JAVA_TOOL_OPTIONS: -Xmx1g", 'openjdk version "11.0.2" 2019-01-15')
    assert ask_java(str(java)) == 'openjdk version "11.0.2" 2019-01-15'


def test_java_home_goes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path, 'openjdk version "17.0.15"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == str(java)


def test_a_java_home_without_java_is_not_replaced_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == ""


def fake_java(home: Path, *lines: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\ncat >&2 <<'END'\n" + "\n".join(lines) + "\nEND\n")
    java.chmod(0o755)
    return java
