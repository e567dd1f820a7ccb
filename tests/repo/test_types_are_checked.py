"""mypy's strict rules read every Python file but the tests, the DAG files and the examples."""

import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ROOTS = {"spark_apps", "plugins", "expectations", "setup"}
"""Folders that hold packages or modules, and are no package themselves."""

UNREAD = {
    "tests": "claims, whose helpers take whatever a case gives them",
    "dags": "a task gets arguments that mypy cannot see from its DAG's default_args",
    "docs": "examples for a reader, run by tests",
}


def find_unchecked(files: list[str], mypy: dict[str, list[str]]) -> list[str]:
    """Return the files that belong to no package and to no module of mypy's list."""
    return [file for file in files if name_of(file) not in {*mypy["packages"], *mypy["modules"], *UNREAD}]


def name_of(file: str) -> str:
    """Return the package, or the single module, that a file is imported by."""
    folder, *inside = Path(file).with_suffix("").parts
    return inside[0] if folder in ROOTS else folder


def python_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def configured() -> dict[str, list[str]]:
    """Read the table of mypy from pyproject.toml."""
    table: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    return table


def test_every_file_of_the_project_is_read_by_mypy() -> None:
    files = python_files()
    assert files
    assert find_unchecked(files, configured()) == []


def test_mypy_is_strict() -> None:
    assert configured()["strict"] is True


@pytest.mark.parametrize(
    "file", ["setup/unlisted.py", "spark_apps/unlisted_app.py", "plugins/unlisted/operator.py", "unlisted/module.py"]
)
def test_a_file_outside_the_list_is_found(file: str) -> None:
    assert find_unchecked([file], configured()) == [file]


@pytest.mark.parametrize(
    "file", ["setup/jars.py", "spark_apps/reconcile_app.py", "plugins/tallystick_airflow/plugin.py", "lab/demo/up.py"]
)
def test_a_file_of_the_list_is_not(file: str) -> None:
    assert find_unchecked([file], configured()) == []
