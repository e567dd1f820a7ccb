"""Runs a Python script whose every line on stdout is a barrier: python -m lab.crash.barrier_script SCRIPT ARGUMENTS...

The script stands in its print until a line comes on stdin; once stdin has ended nothing holds it any more. So whoever
reads its lines may kill it, stop it, or let it go on, exactly where it said to be.
"""

import io
import runpy
import sys


class BarrierOutput(io.TextIOWrapper):
    """A stdout that waits at the end of each line."""

    def write(self, text: str) -> int:
        written = super().write(text)
        if text.endswith("\n"):
            self.flush()
            sys.stdin.readline()
        return written


def run_step_by_step() -> None:
    """Run the script that argv names, as if it had been started itself."""
    sys.stdout = BarrierOutput(sys.stdout.buffer, encoding="utf-8")
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    run_step_by_step()
