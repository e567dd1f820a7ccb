"""What the lab's children have started goes with the lab, also when it is killed."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from lab.servers.orphan_reaper import kill_sessions, start_guard
from lab.servers.process import REPOSITORY, spawn, wait_until

# A child that has started one of its own, in a process group of its own, as Airflow's scheduler does with its tasks.
FAMILY = [
    sys.executable,
    "-c",
    "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'],"
    " process_group=0); time.sleep(300)",
]
LAB = """
import time
from lab.servers.orphan_reaper import start_guard
from lab.servers.process import spawn
with start_guard() as guard:
    child = spawn({family!r})
    guard.watch(child.pid)
    print(child.pid, flush=True)
    time.sleep(300)
"""


def members(session_id: int) -> list[psutil.Process]:
    return [each for each in psutil.process_iter() if is_in(each.pid, session_id)]


def is_in(pid: int, session_id: int) -> bool:
    try:
        return os.getsid(pid) == session_id and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False


def wait_for_both(session_id: int) -> None:
    wait_until(lambda: len(members(session_id)) == 2, what="a child and its child")


def test_a_guarded_session_is_gone_after_the_block() -> None:
    with start_guard() as guard:
        child = spawn(FAMILY)
        guard.watch(child.pid)
        wait_for_both(child.pid)
    assert members(child.pid) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_guarded_session_does_not_outlive_a_killed_lab(number: signal.Signals) -> None:
    argv = [sys.executable, "-c", LAB.format(family=FAMILY)]
    with subprocess.Popen(argv, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout is not None
        session_id = int(lab.stdout.readline())
        wait_for_both(session_id)
        lab.send_signal(number)
    wait_until(lambda: members(session_id) == [], what="the end of the session")


def test_a_session_that_nobody_guards_stays() -> None:
    child = spawn(FAMILY)
    try:
        wait_for_both(child.pid)
        with start_guard():
            pass
        assert len(members(child.pid)) == 2
    finally:
        assert kill_sessions([child.pid]) == 2
    assert members(child.pid) == []
