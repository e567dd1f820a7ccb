"""Stop what `python -m lab.demo.up` started, in order, and say what was stopped. Nothing running is fine, too."""

import os
import signal
import sys
import time

from lab.demo.up import LOG, STOPPED, is_running, serving_pid

_SECONDS_TO_STOP_MAX = 120


def main() -> int:
    """Return 0 once nothing runs, 1 if something did not stop in time."""
    if not is_running():
        print("Nothing is running.")
        return 0
    already_logged = LOG.stat().st_size if LOG.exists() else 0
    os.kill(serving_pid(), signal.SIGTERM)
    end = time.monotonic() + _SECONDS_TO_STOP_MAX
    while is_running():
        if time.monotonic() > end:
            print(f"It did not stop within {_SECONDS_TO_STOP_MAX} s; see {LOG}", file=sys.stderr)
            return 1
        time.sleep(0.2)
    with open(LOG, errors="replace") as log:
        log.seek(already_logged)
        print("".join(line for line in log if line.startswith(STOPPED)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
