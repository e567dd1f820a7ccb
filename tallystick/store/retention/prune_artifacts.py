"""Deletes the files that belong to pruned runs: report, breaks and logs. What else lies in the folder is not touched.

The key index has a horizon of its own, and Data Docs are one site for all runs.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

_PLACES = (
    ("reports", re.compile(r"(\d+)\.html")),
    ("breaks", re.compile(r"cut=(\d+)")),
    ("logs", re.compile(r"(\d+)(\.expectations)?\.log")),
)
"""Folder below the artifacts, and how it names what belongs to one cut."""


def prune_artifacts(artifacts: Path, contract_name: str, *, kept_from_cut_n: int, dry_run: bool) -> int:
    """Delete what belongs to cuts below kept_from_cut_n, and give how many files or folders that were, or would be."""
    found = list(_of_pruned(artifacts, contract_name, kept_from_cut_n))
    if not dry_run:
        for path in found:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    return len(found)


def _of_pruned(artifacts: Path, contract_name: str, kept_from_cut_n: int) -> Iterator[Path]:
    for place, pattern in _PLACES:
        folder = artifacts / place / contract_name
        if not folder.is_dir():
            continue
        for path in folder.iterdir():
            named = pattern.fullmatch(path.name)
            if named and int(named[1]) < kept_from_cut_n:
                yield path
