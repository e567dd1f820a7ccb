"""Re-makes the locks from the hand-written lists in requirements/: packages with uv, jars with Ivy.

Keeps what is locked and still allowed; `--upgrade` takes the newest allowed. Installs nothing: `make setup` does.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

COMPILE = "uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header"
LOCKS = (
    # lock, its list, and options: the image runs what the tests ran; mutmut is a program, of which we import one module
    ("requirements/uv.lock", "requirements/uv.in", ()),
    ("requirements/dev.lock", "requirements/dev.in", ()),
    ("requirements/runtime.lock", "requirements/runtime.in", ("-c", "requirements/dev.lock")),
    ("requirements/docs.lock", "requirements/docs.in", ()),
    ("requirements/fuzz.lock", "requirements/fuzz.in", ()),
    ("requirements/mutants.lock", "requirements/mutants.in", ("--no-deps",)),
)


def main(arguments: list[str]) -> int:
    """Make every lock; stop at the first that cannot be made."""
    uv, *options = COMPILE.split()
    for lock, source, rest in LOCKS:
        command = [str(ROOT / ".venv" / "bin" / uv), *options, *arguments, "-o", lock, *rest, source]
        subprocess.run(command, cwd=ROOT, check=True)
        pins = re.findall(r"^[a-z0-9].*==", (ROOT / lock).read_text(), flags=re.MULTILINE)
        print(f"{lock}: {len(pins)} packages")
    for program in ("setup/jars.py", "setup/old_jars.py", "setup/old_postgres.py", "setup/schema_registry.py"):
        if code := subprocess.run([sys.executable, program, "lock"], cwd=ROOT, check=False).returncode:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
