"""Deletes the files that belong to pruned runs: report, breaks and logs. What else lies in the folder is not touched.

The key index has a reach of its own, and Data Docs are one site for all runs.
"""

import re

from tallystick.host.artifacts import Place, delete_file, delete_folder, names_below

_FOLDERS = (
    ("reports", re.compile(r"(\d+)\.html")),
    ("breaks", re.compile(r"cut=(\d+)")),
    ("logs", re.compile(r"(\d+)(\.expectations)?\.log")),
)
"""Folder below the artifacts, and how it names what belongs to one cut."""


def prune_artifacts(artifacts: Place, contract_name: str, *, kept_from_cut_n: int, dry_run: bool) -> int:
    """Delete what belongs to cuts below kept_from_cut_n, and give how many files that were, or would be.

    Raises ArtifactsUnreachable.
    """
    deleted = 0
    for name, pattern in _FOLDERS:
        folder, leaving = artifacts / name / contract_name, set[str]()
        for path in names_below(folder):
            first, _, within = path.partition("/")
            named = pattern.fullmatch(first)
            if named is None or int(named[1]) >= kept_from_cut_n:
                continue
            deleted += 1
            if within:
                leaving.add(first)
            elif not dry_run:
                delete_file(folder / first)
        for first in () if dry_run else leaving:
            delete_folder(folder / first)
    return deleted
