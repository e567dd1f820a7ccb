"""Does time grow with the rows and nothing else, and memory within its bound?

    python -m bench.growth --events 3000000 --factor 10 --times 3

Runs the floor and ours on a data set and on one so many times as large, each on servers of its own. Growth is seconds
of the larger over those of the smaller, over the factor: 1.0 is linear. Floor's own growth stands beside it, since disk
and caches grow their own way. Writes build/bench_growth.json; ends with 1 where an answer is wrong.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from bench.comparison import PARTS, measure
from bench.data_set import DataSize
from lab.servers.process import REPOSITORY
from lab.soak.long_run import LongRun

FIGURES = REPOSITORY / "build" / "bench_growth.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=DataSize.events, help="of the smaller one (default 3000000)")
    parser.add_argument("--factor", type=int, default=10, help="the larger one has so many times as many (default 10)")
    parser.add_argument("--times", type=int, default=3, help="runs in one session; the first is cold (default 3)")
    given = parser.parse_args()
    run, measured = LongRun(), []
    for events in (given.events, given.events * given.factor):
        run.say(f"[bold]{events:,} events[/bold]")
        measured.append(measure(run, DataSize(events=events), times=given.times, without=PARTS))
    wrong = [problem for figures in measured for problem in figures["disagreements"]]
    grown = growth(measured, given.factor)
    figures = {"sizes": measured, "growth": grown, "problems": wrong, "seconds": round(run.seconds, 1)}
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    run.console.print(table_of(measured, grown))
    for problem in wrong:
        run.console.print(f"[red]{problem}[/red]", highlight=False, soft_wrap=True)
    sys.exit(1 if wrong else 0)


def growth(measured: Sequence[Mapping[str, Any]], factor: int) -> dict[str, float]:
    """Of each arm: warm seconds of the larger over those of the smaller, over the factor. No unit."""
    smaller, larger = (figures["arms"] for figures in measured)
    return {
        name: round(larger[name]["warm_seconds"] / smaller[name]["warm_seconds"] / factor, 3)
        for name in ("floor", "ours")
    }


def table_of(measured: Sequence[Mapping[str, Any]], grown: Mapping[str, float]) -> Table:
    """A line for each size, and one for the growth."""
    table = Table("events", "floor, s", "ours, s", "ours over floor", "ours, peak MiB")
    for figures in measured:
        floor, ours = figures["arms"]["floor"], figures["arms"]["ours"]
        seconds = (f"{arm['warm_seconds']:.2f}" for arm in (floor, ours))
        ratio = figures["ratios"]["ours_over_floor"]
        table.add_row(f"{figures['size']['events']:,}", *seconds, f"{ratio:.2f}", f"{ours['peak_mib']:,}")
    table.add_row("growth, 1 is linear", f"{grown['floor']:.2f}", f"{grown['ours']:.2f}", "", "")
    return table


if __name__ == "__main__":
    main()
