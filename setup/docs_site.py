"""Builds the documentation as a site in build/site: `make docs`.

Copies the pages into build/docs-source in the repository's own layout, so that a relative link is right on both.
mkdocs runs strictly: a broken link, a missing anchor or a page outside the navigation fails the build.
mkdocs has an environment of its own, .venv-docs, made from requirements/docs.lock.
Exit 0: built. 1: a step failed, and said why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bootstrap import StepFailed, fingerprint, run

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-docs"
LOCK = ROOT / "requirements" / "docs.lock"
SOURCE = ROOT / "build" / "docs-source"

PAGES = ("*.md", "adr/*.md", "docs/**/*", "dags/contracts/*.yaml")
"""Everything that a page may link to."""


def main() -> int:
    """Make the environment, collect the pages and build the site."""
    try:
        make_environment()
    except StepFailed as failed:
        print(f"docs: {failed}", file=sys.stderr)
        return 1
    collect_pages(ROOT, SOURCE)
    return build_site()


def make_environment() -> None:
    """Install docs.lock into .venv-docs, unless its stamp says that this was done."""
    stamp, key = VENV / ".stamp", fingerprint(sys.version, LOCK)
    if stamp.is_file() and stamp.read_text() == key:
        return
    uv = str(ROOT / ".venv" / "bin" / "uv")
    run(uv, "--quiet", "venv", "--clear", "--python", sys.executable, str(VENV))
    python = str(VENV / "bin" / "python")
    run(uv, "--quiet", "pip", "sync", "--python", python, "--require-hashes", "--compile-bytecode", str(LOCK))
    stamp.write_text(key)


def collect_pages(root: Path, folder: Path) -> None:
    """Copy what PAGES names into an empty folder, each file under its own path."""
    shutil.rmtree(folder, ignore_errors=True)
    for file in sorted(file for pattern in PAGES for file in root.glob(pattern) if file.is_file()):
        target = folder / file.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def build_site() -> int:
    """Run mkdocs. Its theme prints a notice about a later mkdocs, which this lock does not hold; that is turned off."""
    command = [str(VENV / "bin" / "mkdocs"), "build", "--strict", "--clean"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
        print("docs: not built; each warning above names a page and what is wrong with it", file=sys.stderr)
        return 1
    print("docs: build/site/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
