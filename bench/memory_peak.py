"""The most memory that a process and its children held at one moment."""

import subprocess

import psutil

_LOOK_EVERY_SECONDS = 0.2


def peak_of(child: subprocess.Popen[bytes]) -> int:
    """Wait for the child to end; in MiB, by the sum of its tree's resident sets. What they share counts for each."""
    peak, tree = 0, psutil.Process(child.pid)
    while True:
        try:
            child.wait(_LOOK_EVERY_SECONDS)
            return peak >> 20
        except subprocess.TimeoutExpired:
            peak = max(peak, _resident(tree))


def _resident(tree: psutil.Process) -> int:
    total = 0
    for process in (tree, *tree.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total
