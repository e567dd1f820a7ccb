"""Fetches promtool into .tools/ out of Debian's package prometheus, unless a promtool is there already.

The package is taken apart and not installed: it would start a server on whoever's machine this is.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROMTOOL = ROOT / ".tools" / "promtool"
INSIDE = "usr/bin/promtool"


def main() -> int:
    """Nothing to do where it is on the path."""
    if PROMTOOL.exists():
        return 0
    PROMTOOL.parent.mkdir(exist_ok=True)
    found = shutil.which("promtool")
    if found:
        PROMTOOL.symlink_to(found)
        return 0
    if not shutil.which("apt-get"):
        print("setup: promtool: expected it on the path; it comes with Prometheus", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["apt-get", "download", "-qq", "prometheus"], cwd=folder, check=False).returncode:
            subprocess.run(["apt-get", "update", "-qq"], check=True)
            subprocess.run(["apt-get", "download", "-qq", "prometheus"], cwd=folder, check=True)
        (package,) = Path(folder).glob("prometheus_*.deb")
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
        shutil.move(Path(folder) / INSIDE, PROMTOOL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
