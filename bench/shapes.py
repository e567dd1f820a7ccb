"""On no shape of the data may what people use today be faster than ours.

    python -m bench.shapes --events 300000 --times 3
    python -m bench.shapes --shape plain --shape "10 KB payloads"

Each shape is a data set of its own on servers of its own, run under the floors and what runs in Spark of bench/arms.py:
plain, also with one row of a hundred wrong; large payloads; one hot partition; many partitions; one hot key. Writes
build/bench_shapes.json, in which shapes that were not asked for stay as they were measured before. Ends with 1 when
naive or datacompy is faster than ours on any of them, by medians of warm runs, or an answer is wrong.
"""

import argparse
import json
import sys
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from rich.table import Table

from bench.answers import faster_than_ours
from bench.comparison import BARE, BROKEN_TABLE, COMMAND, DATACOMPY, DUCKDB, PLANTED, measure
from bench.data_set import DataSize
from lab.servers.process import REPOSITORY
from lab.soak.long_run import LongRun

FIGURES = REPOSITORY / "build" / "bench_shapes.json"
_ONLY_SPARK = (DUCKDB, BARE, PLANTED, COMMAND)
_NO_FAULTS = (*_ONLY_SPARK, BROKEN_TABLE)


class Shape(NamedTuple):
    """A data set, and what a measurement of it does without. naive_times: runs of naive, if not as many as of ours."""

    size: DataSize
    without: Collection[str]
    naive_times: int | None = None


def shapes(events: int) -> dict[str, Shape]:
    """By name. Of what is large in another way there are fewer events, so that each shape takes about as long.

    Spark's Kafka source has a cost of its own for each partition: on many of them naive takes minutes, and runs once;
    datacompy, which reads the topic anew for each of its many counts, is left out. So it is where one key stands often:
    there it told differences that are none, other ones in each run.
    """
    return {
        "plain": Shape(DataSize(events=events), _ONLY_SPARK),
        "10 KB payloads": Shape(DataSize(events=events // 4, filler_bytes=10_000), _NO_FAULTS),
        "90 % on one partition": Shape(DataSize(events=events, hot_partition_percent=90), _NO_FAULTS),
        "1,000 partitions": Shape(DataSize(events=events // 4, partitions=1_000), (*_NO_FAULTS, DATACOMPY), 1),
        "one key 2,000 times": Shape(DataSize(events=events, hot_key_copies=2_000), (*_NO_FAULTS, DATACOMPY)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=300_000, help="of a plain shape (default 300000)")
    parser.add_argument("--times", type=int, default=3, help="runs in one session; the first is cold (default 3)")
    parser.add_argument("--shape", choices=shapes(0), action="append", help="only this one; may be repeated")
    given = parser.parse_args()
    run, measured = LongRun(), measured_before() if given.shape else {}
    for name, shape in shapes(given.events).items():
        if name in (given.shape or shapes(0)):
            run.say(f"[bold]{name}[/bold]")
            measured[name] = measure(
                run, shape.size, times=given.times, naive_times=shape.naive_times, without=shape.without
            )
    wrong = problems(measured)
    figures = {"shapes": measured, "problems": wrong, "seconds": round(run.seconds, 1)}
    FIGURES.write_text(json.dumps(figures, indent=2) + "\n")
    run.console.print(table_of(measured))
    for problem in wrong:
        run.console.print(f"[red]{problem}[/red]", highlight=False, soft_wrap=True)
    sys.exit(1 if wrong else 0)


def measured_before() -> dict[str, dict[str, Any]]:
    """The shapes in build/, by name; none where there is no file."""
    before: dict[str, dict[str, Any]] = json.loads(FIGURES.read_text())["shapes"] if FIGURES.exists() else {}
    return before


def problems(measured: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What a shape fails by: an answer that is not what was written, or another program that is faster."""
    return [
        f"{name}: {problem}"
        for name, figures in measured.items()
        for problem in (*figures["disagreements"], *faster_than_ours(figures["arms"]))
    ]


def table_of(measured: Mapping[str, Mapping[str, Any]]) -> Table:
    """A line for each shape and ledger: seconds when warm, and the most memory that ours held."""
    table = Table("shape", "floor, s", "ours, s", "naive, s", "datacompy, s", "ours, peak MiB")
    for name, figures in measured.items():
        arms = figures["arms"]
        for suffix, words in (("", ""), ("_broken", ", one row of a hundred wrong")):
            if f"ours{suffix}" in arms:
                compared = ("floor", *(f"{program}{suffix}" for program in ("ours", "naive", "datacompy")))
                seconds = (f"{arms[one]['warm_seconds']:.2f}" if one in arms else "not run" for one in compared)
                table.add_row(f"{name}{words}", *seconds, f"{arms[f'ours{suffix}']['peak_mib']:,}")
    return table


if __name__ == "__main__":
    main()
