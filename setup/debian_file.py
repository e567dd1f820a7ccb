"""Takes one file out of a Debian package into .tools/, without installing the package."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent / ".tools"


def take_out(package: str, inside: str) -> bool:
    """Fetch the package and put its file `inside`, a glob, into .tools/; False where there is no apt."""
    if not shutil.which("apt-get"):
        print(f"setup: expected apt-get, which has the package {package}", file=sys.stderr)
        return False
    TOOLS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=False).returncode:
            subprocess.run(["apt-get", "update", "-qq"], check=True)
            subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True)
        (archive,) = Path(folder).glob(f"{package}_*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)
        (found,) = Path(folder).glob(inside)
        shutil.move(found, TOOLS / found.name)
    return True
