"""Fuzzes each target for some time, one after the other: python -m tests.fuzz.main [--seconds N] [--targets NAME ...].

Prints a line for each as it is through; figures in build/fuzz.json, what was found in build/fuzz/NAME/. Exit 1 where
anything was found.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .targets import CORPUS, TARGETS

ROOT = Path(__file__).parents[2]
FOLDER, OUT = ROOT / "build" / "fuzz", ROOT / "build" / "fuzz.json"
ATHERIS = FOLDER / "atheris"
MEMORY_MB_MAX, INPUT_BYTES_MAX = 2_048, 1 << 14
BLOCKED_SECONDS_MAX = 3_600
"""libFuzzer's own alarm and its report of slow inputs, by the clock on the wall: for an input that waits for ever. How
long one may compute is held by one_target. An alarm while a finding is written down kills the process before it is.
"""
_STAT = re.compile(r"^stat::(\w+):\s+(\d+)$", re.MULTILINE)
_COVERAGE = re.compile(r"cov: (\d+)")


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seconds", type=int, default=600, help="for each target")
    asked.add_argument("--targets", nargs="*", metavar="NAME", choices=[*TARGETS], help="these alone")
    given = asked.parse_args()
    figures: dict[str, Any] = {}
    for name in given.targets or TARGETS:
        figures[name] = fuzz(name, seconds=given.seconds)
        print(line_of(name, figures[name]), flush=True)
        OUT.write_text(json.dumps(document_of(figures, seconds=given.seconds), indent=2) + "\n")
    return 1 if any(one["found"] for one in figures.values()) else 0


def fuzz(name: str, *, seconds: int) -> dict[str, Any]:
    """New inputs are kept under build/, so that the next time goes on from there."""
    corpus, found = FOLDER / name / "corpus", FOLDER / name / "found"
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    before, begun = set(found.iterdir()), time.monotonic()
    options = (
        *(f"-max_total_time={seconds}", f"-timeout={BLOCKED_SECONDS_MAX}", f"-rss_limit_mb={MEMORY_MB_MAX}"),
        f"-report_slow_units={BLOCKED_SECONDS_MAX}",
        *(f"-max_len={INPUT_BYTES_MAX}", f"-artifact_prefix={found}/", "-print_final_stats=1", "-verbosity=1"),
    )
    command = [sys.executable, "-m", "tests.fuzz.one_target", name, *options, str(corpus), str(CORPUS / name)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ATHERIS), str(ROOT)])}
    log = FOLDER / name / "log.txt"
    with log.open("w") as out:
        code = subprocess.run(command, cwd=ROOT, env=environment, stdout=out, stderr=out, check=False).returncode
    said = log.read_text(errors="replace")
    stats = {stat: int(number) for stat, number in _STAT.findall(said)}
    new = sorted(path.name for path in set(found.iterdir()) - before)
    return {
        "seconds": round(time.monotonic() - begun),
        "runs": stats.get("number_of_executed_units", 0),
        "memory_mb": stats.get("peak_rss_mb", 0),
        "coverage": max(map(int, _COVERAGE.findall(said)), default=0),
        "corpus": len(list(corpus.iterdir())),
        "exit_code": code,
        "found": new or ([f"exit code {code}: {log.relative_to(ROOT)}"] if code else []),
        "why": list(_why(said)),
    }


def _why(said: str) -> Iterator[str]:
    """The last words of each error."""
    lines = said.splitlines()
    for n, line in enumerate(lines):
        if "Uncaught Python exception" in line or line.startswith("ERROR: libFuzzer"):
            yield from [one.strip() for one in lines[n + 1 : n + 3] if one.strip()]


def line_of(name: str, figures: dict[str, Any]) -> str:
    """For people."""
    told = (
        f"{name}: {figures['runs']:,} inputs in {figures['seconds']} s, {figures['coverage']:,} places reached, "
        f"{figures['memory_mb']:,} MB"
    )
    if not figures["found"]:
        return f"{told}; nothing found"
    return "\n  ".join([f"{told}; FOUND {', '.join(figures['found'])}", *figures["why"]])


def document_of(targets: dict[str, Any], *, seconds: int) -> dict[str, Any]:
    return {"python": platform.python_version(), "seconds_a_target": seconds, "targets": targets}


if __name__ == "__main__":
    sys.exit(main())
