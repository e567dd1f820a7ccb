"""The arithmetic of a cluster follows from what was measured, and says so where nothing was."""

from dataclasses import replace
from typing import Any

import pytest

from bench.cluster_arithmetic import Day, FiguresIncomplete, Measured, arithmetic, as_markdown, measured_in

FIGURES: dict[str, Any] = {
    "size": {"events": 3_000_000},
    "cores": 2,
    "arms": {"floor": {"ledger_seconds": [3.0, 2.0]}, "ours": {"warm_seconds": 5.0}},
}
MEASURED = Measured(pairs=3_000_000, cores=2, pairs_per_core_second=300_000, rows_per_second=1_500_000)
DAY = Day(events=864_000_000, windows=24, reading_share=0.25, record_bytes=100)


def told(measured: Measured = MEASURED, day: Day = DAY) -> dict[str, str]:
    return {line.what: line.figure for line in arithmetic(measured, day)}


def test_rates_are_those_of_the_run_per_core_and_of_the_quicker_copy() -> None:
    assert measured_in(FIGURES) == MEASURED


@pytest.mark.parametrize("without", ["size", "cores", "floor", "ours"])
def test_figures_that_lack_an_arm_are_refused_by_name(without: str) -> None:
    rest = {name: value for name, value in FIGURES.items() if name != without}
    rest["arms"] = {name: value for name, value in FIGURES["arms"].items() if name != without}
    with pytest.raises(FiguresIncomplete, match=f"the figures have no '{without}'"):
        measured_in(rest)


def test_a_day_is_told_by_its_window() -> None:
    figures = told()
    assert figures["events in a window, `n`"] == "36,000,000"
    assert figures["time for its verdict, `t`"] == "900 s"
    assert figures["executor cores, `c`"] == "1", "36,000,000 / 300,000 / 900 is 0.13"
    assert figures["the log of a window"] == "3.6 GB"
    assert figures["what brokers hand out meanwhile"] == "4 MB/s"
    assert figures["the ledger, by one COPY"] == "24 s"
    assert figures["shuffled, on the executors' disks"] == "4.3 GB"


def test_cores_are_whole_and_enough() -> None:
    exactly = replace(MEASURED, pairs_per_core_second=20_000)
    assert told(exactly)["executor cores, `c`"] == "2"
    slower = replace(MEASURED, pairs_per_core_second=19_999)
    assert told(slower)["executor cores, `c`"] == "3"
    assert told(slower)["executors of 4 cores"] == "1"


def test_half_the_time_takes_twice_the_cores_and_the_bandwidth() -> None:
    slow = replace(MEASURED, pairs_per_core_second=1_000)
    whole, half = told(slow, DAY), told(slow, replace(DAY, reading_share=0.125))
    assert (whole["executor cores, `c`"], half["executor cores, `c`"]) == ("40", "80")
    assert (whole["beside what producers write"], half["beside what producers write"]) == ("4.0 times", "8.0 times")


def test_it_is_printed_as_a_table_for_the_docs() -> None:
    lines = as_markdown(arithmetic(MEASURED, DAY)).splitlines()
    assert lines[:3] == ["| | by | |", "|---|---|---|", "| events in a window, `n` | 864,000,000 / 24 | 36,000,000 |"]
    assert all(line.count("|") == 4 for line in lines)
