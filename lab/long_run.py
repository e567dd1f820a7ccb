"""A long run that a maker target starts: when it says what, and that it unwinds when it is told to stop."""

import signal
import sys
import time

from rich.console import Console


class LongRun:
    """Make one at the start of `main`. SIGTERM ends the process by SystemExit, which stops the servers it started."""

    def __init__(self) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        self.console = Console()
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._started

    def say(self, text: str) -> None:
        """A line for people, behind the seconds so far."""
        self.console.print(f"[dim]{self.seconds:6.1f} s[/dim]  {text}", highlight=False, soft_wrap=True)
