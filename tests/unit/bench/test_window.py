"""A window is compared with an empty task by medians; its CPU time is counted from outside, and none is lost."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.process_cpu import TaskMeter, cpu_of_tree, cpu_waited_for
from bench.window import summary, task_table
from lab.servers.process import wait_until

_BURN = "import time\nwhile time.process_time() < 0.3: pass\n"
_BURNT = 0.25  # the counters are told in ticks
_TASK = "0190a1b2-0000-7000-8000-000000000001"


def run_of(seconds: float, task: str) -> dict[str, object]:
    one = {"began_after": 0.1, "wall_seconds": seconds, "cpu_seconds": seconds}
    return {"wall_seconds": seconds, "cpu_seconds": seconds, "cpu": {"tasks": seconds}, "tasks": {task: one}}


def test_a_window_is_told_as_so_many_empty_tasks_by_medians() -> None:
    figures = summary(
        {
            "bench_empty": [run_of(seconds, "nothing") for seconds in (0.5, 0.4, 9.0)],
            "bench_window": [run_of(seconds, "cut") for seconds in (4.0, 90.0, 5.0)],
        }
    )
    assert (figures["cpu_over_empty"], figures["wall_over_empty"]) == (10.0, 10.0)
    assert figures["medians"]["bench_window"]["tasks"]["cut"]["cpu_seconds"] == 5.0
    table = task_table(figures)
    assert [*table.columns[0].cells] == ["nothing", "bench_empty", "cut", "bench_window"]


def test_what_a_process_has_waited_for_counts_with_it() -> None:
    before, waited_before = cpu_of_tree(os.getpid()), cpu_waited_for([os.getpid()])
    subprocess.run([sys.executable, "-c", _BURN], check=True)
    assert cpu_waited_for([os.getpid()]) - waited_before >= _BURNT
    assert cpu_of_tree(os.getpid()) - before >= _BURNT


def test_a_process_counts_for_the_task_that_its_title_names_and_one_of_another_title_for_none() -> None:
    with (
        TaskMeter([os.getpid()]).running() as told,
        burning("airflow worker -- LocalExecutor: <idle>") as idle,
        burning(f"airflow worker -- {_TASK}"),
    ):
        wait_until(lambda: cpu_of_tree(idle.pid) >= _BURNT and told.get(_TASK, 0.0) >= _BURNT, what="both have burnt")
    assert list(told) == [_TASK]


@contextmanager
def burning(title: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process of this title that has used its CPU seconds soon, and lives until the block ends."""
    words = f"from setproctitle import setproctitle; setproctitle({title!r})\n{_BURN}input()"
    child = subprocess.Popen([sys.executable, "-c", words], stdin=subprocess.PIPE)
    try:
        yield child
    finally:
        child.communicate(b"\n")
