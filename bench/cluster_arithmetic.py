"""How many cores, and how much of broker, ledger and memory, does a day of so many events take? On paper.

    python -m bench.cluster_arithmetic build/bench.json

Scales up what `make bench` measured, line by line, and prints the formula beside each figure. The benchmark's broker
and ledger ran on Spark's own cores, so a cluster whose brokers stand elsewhere does better; a network does worse.
"""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_EXECUTOR_CORES = 4
_HASHED_ROW_BYTES, _BUCKETS, _KEPT_ROWS, _BATCH_BYTES = 60, 256, 1 << 18, 32 << 20
"""Of the match by hash: what a row of either side is shuffled as, into how many buckets, how many a task keeps."""
_INTERPRETER_BYTES = 200 << 20
_GIB = 1 << 30


class FiguresIncomplete(ValueError):
    """The file lacks what the arithmetic begins with."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """pairs: an event and its row. rows_per_second: of one COPY of the ledger, and nothing done with them."""

    pairs: int
    cores: int
    pairs_per_core_second: float
    rows_per_second: float


@dataclass(frozen=True, kw_only=True)
class Day:
    """reading_share: of a window's length, by which its verdict is there. record_bytes: of one in the log."""

    events: int = 5_000_000_000
    windows: int = 24
    reading_share: float = 0.25
    record_bytes: int = 160

    @property
    def window_events(self) -> int:
        return math.ceil(self.events / self.windows)

    @property
    def window_seconds(self) -> float:
        return 86_400 / self.windows

    @property
    def reading_seconds(self) -> float:
        return self.window_seconds * self.reading_share


@dataclass(frozen=True)
class Line:
    what: str
    formula: str
    figure: str


def measured_in(figures: Mapping[str, Any]) -> Measured:
    """What `make bench` wrote: the arm where the sides agree, warm. Raises FiguresIncomplete."""
    try:
        pairs, cores = int(figures["size"]["events"]), int(figures["cores"])
        ours, floor = (figures["arms"][name] for name in ("ours", "floor"))
        return Measured(
            pairs=pairs,
            cores=cores,
            pairs_per_core_second=pairs / ours["warm_seconds"] / cores,
            rows_per_second=pairs / min(floor["ledger_seconds"]),
        )
    except KeyError as missing:
        raise FiguresIncomplete(f"the figures have no {missing}: expected the file that `make bench` writes") from None


def arithmetic(measured: Measured, day: Day) -> list[Line]:
    """A line each; the letters of the formulas are those of the first lines."""
    events, seconds, rate = day.window_events, day.reading_seconds, measured.pairs_per_core_second
    cores = math.ceil(events / rate / seconds)
    log_bytes = events * day.record_bytes
    bucket_bytes = 2 * events * _HASHED_ROW_BYTES / _BUCKETS
    task_bytes = _INTERPRETER_BYTES + _KEPT_ROWS * _HASHED_ROW_BYTES + bucket_bytes + _BATCH_BYTES
    return [
        Line("events in a window, `n`", f"{day.events:,} / {day.windows}", f"{events:,}"),
        Line(
            "time for its verdict, `t`", f"{day.reading_share:.0%} of {day.window_seconds:,.0f} s", f"{seconds:,.0f} s"
        ),
        Line(
            "pairs per core and second, `r`",
            f"measured: {measured.pairs:,} pairs on {measured.cores} cores",
            f"{rate:,.0f}",
        ),
        Line("core hours a window", "n / r / 3,600", f"{events / rate / 3600:,.1f}"),
        Line("executor cores, `c`", "n / r / t", f"{cores:,}"),
        Line(f"executors of {_EXECUTOR_CORES} cores", f"c / {_EXECUTOR_CORES}", f"{-(-cores // _EXECUTOR_CORES):,}"),
        Line("partitions of the topics, at least", "c: one task walks whole partitions", f"{cores:,}"),
        Line("the log of a window", f"n * {day.record_bytes} bytes", f"{log_bytes / 1e9:,.1f} GB"),
        Line("what brokers hand out meanwhile", "log / t, read once", f"{log_bytes / seconds / 1e6:,.0f} MB/s"),
        Line("beside what producers write", "window / t", f"{1 / day.reading_share:.1f} times"),
        Line("ledger rows per second", "n / t", f"{events / seconds:,.0f}"),
        Line(
            "the ledger, by one COPY",
            f"n / {measured.rows_per_second:,.0f} rows per second, measured",
            f"{events / measured.rows_per_second:,.0f} s",
        ),
        Line(
            "shuffled, on the executors' disks",
            f"2 n * {_HASHED_ROW_BYTES} bytes",
            f"{2 * events * _HASHED_ROW_BYTES / 1e9:,.1f} GB",
        ),
        Line(
            "Python memory per core",
            f"interpreter, kept rows, a batch, 2 n * {_HASHED_ROW_BYTES} / {_BUCKETS}",
            f"{task_bytes / _GIB:,.2f} GiB",
        ),
    ]


def as_markdown(lines: Sequence[Line]) -> str:
    return "\n".join(
        ["| | by | |", "|---|---|---|", *(f"| {line.what} | {line.formula} | {line.figure} |" for line in lines)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=Path, help="what `make bench` wrote")
    parser.add_argument("--events-a-day", type=int, default=Day.events, help="default 5000000000")
    parser.add_argument("--windows-a-day", type=int, default=Day.windows, help="default 24")
    parser.add_argument("--reading-share", type=float, default=Day.reading_share, help="of a window (default 0.25)")
    parser.add_argument("--record-bytes", type=int, default=Day.record_bytes, help="of a record in the log")
    given = parser.parse_args()
    day = Day(
        events=given.events_a_day,
        windows=given.windows_a_day,
        reading_share=given.reading_share,
        record_bytes=given.record_bytes,
    )
    print(as_markdown(arithmetic(measured_in(json.loads(given.figures.read_text())), day)))


if __name__ == "__main__":
    main()
