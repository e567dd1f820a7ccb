"""Every target explains itself and sets up what is missing; no folder of tests is left out."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS: dict[str, str] = dict(re.findall(r"^([a-z-]+):(.*)$", MAKEFILE, flags=re.MULTILINE))


def reaches_setup(target: str) -> bool:
    needs = TARGETS[target].partition("##")[0].split()
    return "setup" in needs or any(reaches_setup(need) for need in needs)


def test_every_target_works_as_the_first_command_on_a_fresh_clone() -> None:
    assert [target for target in TARGETS if not reaches_setup(target)] == ["help", "setup"]


def test_every_target_has_its_line_of_help() -> None:
    assert [target for target, rest in TARGETS.items() if "## " not in rest] == []
    assert set(re.findall(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.MULTILINE)[0].split()) == set(TARGETS)


def test_every_folder_of_tests_is_run() -> None:
    folders = {f"tests/{file.relative_to(ROOT / 'tests').parts[0]}" for file in (ROOT / "tests").glob("*/**/test_*.py")}
    run = set(
        re.findall(
            r"tests/[a-z]+(?![\w/])", "\n".join(re.findall(r"^\t\$\(PYTEST\) .*$", MAKEFILE, flags=re.MULTILINE))
        )
    )
    assert folders
    assert folders - run == set()
