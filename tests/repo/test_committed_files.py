"""No committed file names a place on somebody's machine, a package registry, or work left undone."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# The character ~ is taken out before use: without it this file would find itself.
FORBIDDEN = {
    "a path of one machine": r"(?<![\w/.:$}-])/(?:w~ork|r~oot|t~mp|h~ome)\b",
    "a folder outside the repository": r"\.\./s~hared",
    "a registry's host": r"repo\d?\.m~aven|m~aven2/|p~ypi\.org|p~ythonhosted|n~pmjs\.org|g~hcr\.io",
    "work left undone": r"\b(?:T~ODO|F~IXME)\b",
}


def find_forbidden(text: str) -> list[str]:
    """Return `line number: what` for each forbidden thing."""
    return [
        f"{number}: {what}"
        for number, line in enumerate(text.splitlines(), start=1)
        for what, pattern in FORBIDDEN.items()
        if re.search(pattern.replace("~", ""), line)
    ]


def committed_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_no_committed_file_holds_anything_forbidden() -> None:
    files = committed_files()
    assert files
    found = [
        f"{file.relative_to(ROOT)}:{finding}"
        for file in files
        for finding in find_forbidden(file.read_bytes().decode(errors="replace"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "cd /w~ork/main",
        'open("/t~mp/x")',
        "HOME=/r~oot",
        "see ../s~hared/notes.md",
        "https://repo1.m~aven.org/m~aven2/org",
        "--index-url https://p~ypi.org/simple",
        "# T~ODO: later",
    ],
)
def test_a_forbidden_line_is_found(line: str) -> None:
    assert find_forbidden(f"fine\n{line}\n".replace("~", ""))[0].startswith("2: ")


@pytest.mark.parametrize(
    "line",
    [
        "tests/work/x",
        "https://example.org/home/x",
        "the workload",
        "$(TMP)/x",
        "/opt/airflow",
        "a root folder",
        "{root}/tmp",
    ],
)
def test_its_harmless_neighbour_is_not(line: str) -> None:
    assert find_forbidden(line) == []
