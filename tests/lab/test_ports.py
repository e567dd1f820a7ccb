"""Ports are handed out once among all processes that live, and again when their process has ended."""

import subprocess
import sys

from lab.servers.process import REPOSITORY

_MANY = 500
"""Of each of four processes: without a lock some hundred of them would be another's too."""

_PICK = "from lab.servers import ports; print([ports.free_port() for _ in range({count})], flush=True); input()"
_PICK_OF_ONE = "from lab.servers import ports; ports._PORT_START, ports._PORT_END = {port}, {port} + 1; " + _PICK


def _start(program: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", program]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)


def _ports(child: subprocess.Popen[str]) -> list[int]:
    assert child.stdout is not None
    return [int(port) for port in child.stdout.readline().strip("[]\n").split(",")]


def _end(*children: subprocess.Popen[str]) -> None:
    for child in children:
        child.communicate("\n", timeout=30)


def test_processes_that_live_share_no_port_and_one_that_ended_gives_its_back() -> None:
    children = [_start(_PICK.format(count=_MANY)) for _ in range(4)]
    try:
        picked = [port for child in children for port in _ports(child)]
    finally:
        _end(*children)
    assert len(picked) == 4 * _MANY
    assert len(set(picked)) == len(picked)

    heir = _start(_PICK_OF_ONE.format(port=picked[0], count=1))
    try:
        assert _ports(heir) == picked[:1]
    finally:
        _end(heir)
