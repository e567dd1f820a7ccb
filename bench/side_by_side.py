"""How dear is the whole proof, beside reading the two sides once and beside what people use today?

    python -m bench.side_by_side --events 3000000 --times 4

The programs are those of bench/arms.py, on one data set by seed. Ratios count, absolute times drift: all of them are
medians of warm runs of this one run. `tallystick run` itself, whole and cold, is told moment by moment: when it reads
its first byte, when the verdict is stored. In the end a few faults are planted among all rows, which ours must find.
Writes build/bench.json; ends with 1 when an answer is not what was written.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from bench.comparison import PARTS, measure
from bench.data_set import DataSize
from bench.start_up import start_up_table
from lab.servers.process import REPOSITORY
from lab.soak.long_run import LongRun

FIGURES = REPOSITORY / "build" / "bench.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=DataSize.events, help="committed events (default 3000000)")
    parser.add_argument("--partitions", type=int, default=2, help="of the topic (default 2)")
    parser.add_argument("--filler-bytes", type=int, default=0, help="text that nobody asks for, in each event")
    parser.add_argument("--hot-percent", type=int, default=0, help="share of the events on partition 0 beyond its own")
    parser.add_argument("--hot-key-copies", type=int, default=1, help="so often the first event stands on both sides")
    parser.add_argument("--wrong-percent", type=int, default=1, help="of the broken table's rows (default 1)")
    parser.add_argument("--times", type=int, default=4, help="runs in one session; the first is cold (default 4)")
    parser.add_argument("--seed", type=int, default=1, help="which events are made (default 1)")
    parser.add_argument("--without", choices=PARTS, action="append", default=[], help="leave a part out")
    given = parser.parse_args()
    size = DataSize(
        events=given.events,
        partitions=given.partitions,
        filler_bytes=given.filler_bytes,
        hot_partition_percent=given.hot_percent,
        hot_key_copies=given.hot_key_copies,
        wrong_percent=given.wrong_percent,
        seed=given.seed,
    )
    run = LongRun()
    figures = measure(run, size, times=given.times, without=given.without)
    FIGURES.write_text(json.dumps(figures | {"seconds": round(run.seconds, 1)}, indent=2) + "\n")
    run.console.print(table_of(figures["arms"]))
    if "command" in figures["arms"]:
        run.console.print(start_up_table(figures["arms"]["command"]))
    for problem in figures["disagreements"]:
        run.console.print(f"[red]differs:[/red] {problem}", highlight=False)
    sys.exit(1 if figures["disagreements"] else 0)


def table_of(arms: Mapping[str, Mapping[str, Any]]) -> Table:
    """The arms, a line each."""
    table = Table("program", "warm, s", "cold process, s", "peak, MiB", "over raw")
    floor = arms["raw"]["warm_seconds"]
    for name, arm in arms.items():
        warm, cold, peak = (arm.get(figure) for figure in ("warm_seconds", "cold_process_seconds", "peak_mib"))
        table.add_row(
            name,
            "" if warm is None else f"{warm:.2f}",
            "" if cold is None else f"{cold:.1f}",
            "" if peak is None else f"{peak:,}",
            "" if warm is None else f"{warm / floor:.2f}",
        )
    return table


if __name__ == "__main__":
    main()
