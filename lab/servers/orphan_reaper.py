"""Ends what a killed lab would leave behind.

A process of its own (`python -m lab.servers.orphan_reaper`) that reads session ids, one a line, from its standard
input. Once the input ends, because its parent has closed it or has died, it kills every process of those sessions. So
children of children go too, which the kernel's death signal does not reach: Airflow's workers, Spark's JVM.
"""

import os
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from signal import SIGCONT, SIGKILL

import psutil

from lab.servers import process


class Guard:
    """The guard, seen from the lab."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child

    def watch(self, session_id: int) -> None:
        """Have this session killed when the lab ends, however it ends. A child's session id is its process id."""
        assert self._child.stdin is not None
        self._child.stdin.write(f"{session_id}\n".encode())
        self._child.stdin.flush()


@contextmanager
def start_guard() -> Iterator[Guard]:
    """Guard sessions for the length of a block; at its end they are killed."""
    argv = [sys.executable, "-m", "lab.servers.orphan_reaper"]
    child = process.spawn(argv, stdin=subprocess.PIPE, death_signal=SIGCONT)  # it must outlive the lab for a moment
    try:
        yield Guard(child)
    finally:
        assert child.stdin is not None
        child.stdin.close()
        child.wait(30)


def kill_sessions(session_ids: Collection[int], *, deadline_seconds: float = 20.0) -> int:
    """SIGKILL all processes of these sessions until none is left. Returns how many there were."""
    killed: set[psutil.Process] = set()
    end = time.monotonic() + deadline_seconds
    while (members := list(_members(session_ids))) and time.monotonic() < end:
        for member in members:
            try:
                member.send_signal(SIGKILL)
            except psutil.NoSuchProcess:
                continue
        killed.update(members)
        psutil.wait_procs(members, timeout=1)
    return len(killed)


def _members(session_ids: Collection[int]) -> Iterator[psutil.Process]:
    for candidate in psutil.process_iter(["status"]):
        try:
            if os.getsid(candidate.pid) in session_ids and candidate.info["status"] != psutil.STATUS_ZOMBIE:
                yield candidate
        except ProcessLookupError:
            continue


def main() -> None:
    session_ids = {int(line) for line in sys.stdin if line.strip()}
    kill_sessions(session_ids)


if __name__ == "__main__":
    main()
