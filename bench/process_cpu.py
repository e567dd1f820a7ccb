"""CPU seconds of processes that live and of what they have waited for, and of each Airflow task by its own process.

Linux's own counters, read from outside: nothing of what is measured knows of it. A process that has ended counts with
whoever waited for it, so sums before and after are exact to a tick; a task's own figure misses its last moments.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import UUID

import psutil

_TITLE = "airflow worker -- "
"""What Airflow's task runner calls its process, before the id of the task instance."""
_LOOK_EVERY_SECONDS = 0.02


def cpu_of_tree(pid: int) -> float:
    """User and system seconds of a process, of all below it that live, and of those that they have waited for.

    By the kernel's own lists of children: cheap enough to be asked fifty times a second.
    """
    total = sum(psutil.Process(pid).cpu_times()[:4])
    for child in children_of(pid):
        with suppress(psutil.NoSuchProcess):
            total += cpu_of_tree(child)
    return total


def children_of(pid: int) -> list[int]:
    """The living children of all threads of a process."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(word) for word in thread.read_text().split()]
    return found


def cpu_waited_for(pids: Iterable[int]) -> float:
    """User and system seconds of the children that these processes have waited for."""
    return sum(sum(psutil.Process(pid).cpu_times()[2:4]) for pid in pids)


class TaskMeter:
    """CPU seconds by task instance, of the processes below Airflow's workers."""

    def __init__(self, workers: Iterable[int]) -> None:
        self._workers = tuple(workers)
        self._seconds: dict[str, float] = {}
        self._ids: dict[int, str] = {}
        self._stopped = threading.Event()

    @contextmanager
    def running(self) -> Iterator[dict[str, float]]:
        """Look again and again for the length of a block; the figures are whole once it has ended."""
        thread = threading.Thread(target=self._watch)
        thread.start()
        try:
            yield self._seconds
        finally:
            self._stopped.set()
            thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(_LOOK_EVERY_SECONDS):
            for pid in (child for worker in self._workers for child in children_of(worker)):
                if (task_id := self._ids.get(pid) or _task_instance(pid)) is None:
                    continue
                self._ids[pid] = task_id
                with suppress(psutil.NoSuchProcess):
                    self._seconds[task_id] = cpu_of_tree(pid)


def _task_instance(pid: int) -> str | None:
    """The id in the process's title; None before it is set."""
    try:
        title = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
        return str(UUID(title.removeprefix(_TITLE)))
    except (OSError, ValueError):
        return None
