"""Puts the old Kafkas of `make natural` into .jars/old: beside .jars/broker, so that no other class path has them.

    python setup/old_jars.py          fetch what requirements/old_jars.lock names
    python setup/old_jars.py lock     make that lock from requirements/old_jars.in

Exit 0: they are there. 2: refused, and the reason stands on stderr.
"""

from __future__ import annotations

import sys

from jars import ROOT, fetch, lock, lock_text

from tallystick.spark.jars import JarsRefused, read_lock

FOLDER = ROOT / ".jars" / "old"
OLD_IN = ROOT / "requirements" / "old_jars.in"
OLD_LOCK = ROOT / "requirements" / "old_jars.lock"


def main(arguments: list[str]) -> int:
    """Fetch or lock; 2 means refused."""
    try:
        if arguments == ["lock"]:
            locked = lock(OLD_IN)
            OLD_LOCK.write_text(lock_text(OLD_IN, locked))
            print(f"requirements/old_jars.lock: {len(locked)} jars")
        else:
            fetch(FOLDER, read_lock(OLD_LOCK))
    except JarsRefused as refused:
        print(f"setup: {refused}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
