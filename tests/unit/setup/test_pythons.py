"""The Pythons that the package supports are found, in order; one that does not answer is none."""

import sys
import tomllib
from pathlib import Path

import pytest
from pythons import MINORS, find_pythons

ROOT = Path(__file__).parents[3]


def test_the_python_that_runs_this_is_found_and_the_oldest_comes_first() -> None:
    found = find_pythons()
    assert found[sys.version_info[:2]] == Path(sys.executable)
    assert list(found) == sorted(found)


def test_a_link_to_a_python_that_does_not_run_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [minor for minor in MINORS if (3, minor) != sys.version_info[:2]]
    for minor in others:
        (tmp_path / f"python3.{minor}").write_text("#!/bin/sh\nexit 127\n")
        (tmp_path / f"python3.{minor}").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert not set(find_pythons().values()) & {tmp_path / f"python3.{minor}" for minor in others}


def test_they_are_those_that_the_package_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">=3.{MINORS[0]},<3.{MINORS[-1] + 1}"
    said = {
        one.rpartition(" ")[2]
        for one in project["classifiers"]
        if one.startswith("Programming Language :: Python :: 3.")
    }
    assert said == {f"3.{minor}" for minor in MINORS}
