"""Every target explains itself and sets up what is missing; no folder of tests is left out."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS: dict[str, str] = dict(re.findall(r"^([a-z-]+):(.*)$", MAKEFILE, flags=re.MULTILINE))


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """As from a shell: a make above this one, such as that of `make test`, would have this one say where it is."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


def reaches(target: str, *wanted: str) -> bool:
    needs = TARGETS[target].partition("##")[0].split()
    return not set(wanted).isdisjoint(needs) or any(reaches(need, *wanted) for need in needs)


def test_every_target_works_as_the_first_command_on_a_fresh_clone() -> None:
    assert [target for target in TARGETS if not reaches(target, "setup", "packages")] == ["help", "setup", "packages"]


def test_only_what_starts_no_java_of_ours_goes_without_jars() -> None:
    without = {target for target in TARGETS if not reaches(target, "setup")} - {"help", "setup", "packages"}
    assert without == {"lint", "format", *(target for target in TARGETS if target.endswith("-setup"))}


def test_every_target_has_its_line_of_help() -> None:
    assert [target for target, rest in TARGETS.items() if "## " not in rest] == []
    assert set(re.findall(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.MULTILINE)[0].split()) == set(TARGETS)


def test_every_folder_of_tests_is_run() -> None:
    folders = {f"tests/{file.relative_to(ROOT / 'tests').parts[0]}" for file in (ROOT / "tests").glob("*/**/test_*.py")}
    commands = re.findall(r"^(?:\t|ON_SERVERS := )\$\(PYTEST\) .*$", MAKEFILE, flags=re.MULTILINE)
    run = set(re.findall(r"tests/[a-z_]+(?![\w/])", "\n".join(commands)))
    assert folders
    assert folders - run == set()


def test_what_one_target_leaves_out_on_servers_another_runs() -> None:
    marks = re.findall(r"^\t\$\(ON_SERVERS\)(.*)$", MAKEFILE, flags=re.MULTILINE)
    assert sorted(marks) == [' -m "not lab"', " -m lab"]


RENAMED = {
    "test-rules": "test-alert-rules",
    "bench-keep": "bench-save",
    "bench-growth": "bench-scaling",
    "bench-eos": "bench-exactly-once",
    "history": "long-history",
}


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_a_target_by_its_old_name_does_nothing_and_names_the_new_one(old: str, new: str) -> None:
    made = make(old)
    assert (made.returncode, made.stdout) == (2, "")
    assert made.stderr.splitlines()[0] == f"make {old} has a new name: use make {new}"


def test_a_target_by_its_new_name_is_there_and_an_old_one_is_in_no_help() -> None:
    assert set(RENAMED.values()) <= set(TARGETS)
    assert set(RENAMED) & set(TARGETS) == set()
    helped = make("help").stdout
    assert {line.split()[1] for line in helped.splitlines()} == set(TARGETS)
