"""Fetches libfaketime into .tools/ out of Debian's package, for tests that need a host whose clock is wrong."""

from __future__ import annotations

import sys

from debian_file import TOOLS, take_out

LIBRARY = TOOLS / "libfaketime.so.1"


def main() -> int:
    """Nothing to do where it is there already."""
    return 0 if LIBRARY.exists() or take_out("libfaketime", f"usr/lib/*/faketime/{LIBRARY.name}") else 1


if __name__ == "__main__":
    sys.exit(main())
