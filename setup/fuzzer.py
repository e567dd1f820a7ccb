"""Puts the fuzzer of `make fuzz` into build/fuzz/atheris: a folder beside .venv, which nothing else imports from.

Exit 0: it is there. 1: it could not be installed, and its words stand above.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from bootstrap import StepFailed, fingerprint, run

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "fuzz" / "atheris"
LOCK = ROOT / "requirements" / "fuzz.lock"


def install_beside(folder: Path, lock: Path, *, who: str) -> int:
    """Install a lock into a folder of its own, unless its stamp says that this was done."""
    stamp, key = folder / ".stamp", fingerprint(sys.version, lock)
    if stamp.is_file() and stamp.read_text() == key:
        return 0
    shutil.rmtree(folder, ignore_errors=True)
    python = str(ROOT / ".venv" / "bin" / "python")
    uv = [str(ROOT / ".venv" / "bin" / "uv"), "--quiet", "pip", "install", "--python", python]
    try:
        run(*uv, "--no-deps", "--require-hashes", "--target", str(folder), "-r", str(lock))
    except StepFailed as failed:
        print(f"{who}: {failed}", file=sys.stderr)
        return 1
    stamp.write_text(key)
    return 0


if __name__ == "__main__":
    sys.exit(install_beside(FOLDER, LOCK, who="fuzz"))
