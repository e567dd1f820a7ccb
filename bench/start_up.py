"""From a command to the first byte that it reads, and on to the stored verdict: where the seconds of a run go.

The command is `tallystick run`, whole processes of it, each on a contract of its own. When it came how far is told by
its own lines and, between them, by Spark's event log. The machine's clock, so nothing else should run beside.
"""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from bench.event_log import recorded_events, spark_moments
from lab.servers import process

TOLD_BY: Mapping[str, str] = {
    "both sides asked, and settled": "Both sides have settled",
    "the cut stored, Spark called": "Starting Spark",
    "the app up: two JVMs, Python, imports": ": attempt ",
    "Kafka sent the log": "Kafka sent ",
    "the verdict stored": "Stored: ",
    "the report written": "Report: ",
}
"""What is reached, and words of the line that tells it."""
SESSION, FIRST_READ, ENDED = "Spark's session", "the first task: a byte is read", "the process ended"


class NotReached(LookupError):
    """The command ended without a line that tells how far it came."""


def run_command(contracts: Sequence[Path], log: Path) -> dict[str, Any]:
    """An arm: seconds of each whole process, their median, mean CPU time, medians of when each moment was reached."""
    cpu_before = _cpu_of_children()
    runs = [_run_once(path, log) for path in contracts]
    reached = {moment: round(median(run[moment] for run in runs), 2) for moment in runs[0]}
    seconds = [run[ENDED] for run in runs]
    return {
        "seconds": seconds,
        "cold_process_seconds": median(seconds),
        "cpu_seconds": (_cpu_of_children() - cpu_before) / len(runs),
        "reached": dict(in_order(reached)),
    }


def _run_once(contract: Path, log: Path) -> dict[str, float]:
    """Seconds since its start, by moment. Its lines go to the log too. Raises SystemExit unless the sides matched."""
    lines = []
    with recorded_events() as recorded, log.open("w") as words:
        started = time.time()  # Spark tells moments by this clock
        argv = [sys.executable, "-m", "tallystick", "run", str(contract)]
        command = subprocess.Popen(argv, cwd=process.REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert command.stderr is not None
        try:
            for line in command.stderr:
                lines.append((time.time() - started, line.decode()))
                words.write(line.decode())
            code = command.wait()
        finally:
            process.kill_tree(command)
        ended = time.time() - started
        if code:
            raise SystemExit(f"tallystick run ended with {code}, expected 0: the sides match; its log is {log}")
        spark = spark_moments(recorded())
    return {
        **told_in(lines),
        SESSION: spark.session - started,
        FIRST_READ: spark.first_task - started,
        ENDED: ended,
    }


def _cpu_of_children() -> float:
    """Seconds on any core, of children that have ended and of theirs."""
    times = os.times()
    return times.children_user + times.children_system


def told_in(lines: Sequence[tuple[float, str]]) -> dict[str, float]:
    """Seconds by moment, of lines behind the seconds at which they came. Raises NotReached."""
    reached = {}
    for moment, words in TOLD_BY.items():
        seconds = next((seconds for seconds, line in lines if words in line), None)
        if seconds is None:
            raise NotReached(f"expected a line with {words!r} among {len(lines)}: the command says it in other words")
        reached[moment] = seconds
    return reached


def in_order(reached: Mapping[str, float]) -> list[tuple[str, float]]:
    """The moments as they came."""
    return sorted(reached.items(), key=lambda one: one[1])


def start_up_table(arm: Mapping[str, Any]) -> Table:
    """A line for each moment: when, and how long after the one before."""
    table = Table("tallystick run", "after, s", "took, s", caption=f"{arm['cpu_seconds']:.1f} s of CPU time a run")
    before = 0.0
    for moment, seconds in arm["reached"].items():
        table.add_row(moment, f"{seconds:.2f}", f"{seconds - before:.2f}")
        before = seconds
    return table
