"""Fetches promtool into .tools/ out of Debian's package prometheus, unless a promtool is there already.

The package is taken apart and not installed: it would start a server on whoever's machine this is.
"""

from __future__ import annotations

import shutil
import sys

from debian_file import TOOLS, take_out

PROMTOOL = TOOLS / "promtool"


def main() -> int:
    """Nothing to do where it is on the path."""
    if PROMTOOL.exists():
        return 0
    TOOLS.mkdir(exist_ok=True)
    found = shutil.which("promtool")
    if found:
        PROMTOOL.symlink_to(found)
        return 0
    return 0 if take_out("prometheus", "usr/bin/promtool") else 1


if __name__ == "__main__":
    sys.exit(main())
