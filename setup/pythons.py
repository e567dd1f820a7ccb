"""Finds the Pythons of this machine that the package supports; `python setup/pythons.py` prints them, oldest first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MINORS = range(11, 15)
"""Of Python 3, as pyproject.toml says."""


def find_pythons() -> dict[tuple[int, int], Path]:
    """Return version -> interpreter, by version; the one that runs this counts too."""
    found = {}
    for minor in MINORS:
        fitting = (path for path in _candidates(minor) if _version(path) == (3, minor))
        if path := next(fitting, None):
            found[3, minor] = path
    return found


def _candidates(minor: int) -> Iterator[Path]:
    """Yield where this minor version may be: this process, PATH, and the folder of pyenv, whose links may be dead."""
    name = f"python3.{minor}"
    if sys.version_info[:2] == (3, minor):
        yield Path(sys.executable)
    if on_path := shutil.which(name):
        yield Path(on_path)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from sorted(pyenv.glob(f"versions/3.{minor}.*/bin/{name}"), reverse=True)


def _version(python: Path) -> tuple[int, int] | None:
    """Ask an interpreter that can make environments and compile for its version; None where it does not answer."""
    code = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
    asked = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    return (int(asked.stdout.split()[0]), int(asked.stdout.split()[1])) if asked.returncode == 0 else None


if __name__ == "__main__":
    for (major, minor), python in find_pythons().items():
        print(f"{major}.{minor} {python}")
