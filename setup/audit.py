"""Asks OSV which of the locked packages have known holes, through pip-audit: `make audit`, and in .ci/run.

pip-audit calls a package that its service has never heard of "not vulnerable". So a package with a known hole is asked
for first: if that one passes, or a locked one was skipped, nothing is proven and that is said.
Exit 0: none. 1: there are some, or a reason in ACCEPTED is for none. 3: not audited.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCKS = (
    "requirements/dev.lock",
    "requirements/docs.lock",
    "requirements/fuzz.lock",
    "requirements/mutants.lock",
    "requirements/uv.lock",
)
"""All that is installed anywhere: runtime.lock is a part of the first."""

ACCEPTED: dict[str, str] = {}
"""Advisory, and why it does not reach us."""

_CANARY = "jinja2==2.10"
"""Has known holes since 2019 and is installed nowhere."""
_SERVICE_SECONDS = "10"


class NotAudited(Exception):
    """The service did not answer, or does not know what it is asked about."""


def audit(locks: list[Path], *, options: list[str]) -> dict[str, list[str]]:
    """Find the advisories of each locked package that has some. Raises NotAudited."""
    with tempfile.TemporaryDirectory() as folder:
        canary = Path(folder) / "canary.txt"
        canary.write_text(f"{_CANARY}\n")
        if not any(found["vulns"] for found in _ask([canary], ["--no-deps", *options])):
            raise NotAudited(f"expected the known holes of {_CANARY}, got none")
    answered = _ask(locks, ["--require-hashes", *options])
    if not answered:
        raise NotAudited("expected the locked packages in the answer, got none")
    return {
        f"{one['name']} {one['version']}": [hole["id"] for hole in one["vulns"]] for one in answered if one["vulns"]
    }


def _ask(files: list[Path], options: list[str]) -> list[dict[str, Any]]:
    """What pip-audit says of each package of these files. Raises NotAudited."""
    argv = [sys.executable, "-m", "pip_audit", "--disable-pip", "--vulnerability-service", "osv", "--format", "json"]
    argv += ["--progress-spinner", "off", "--timeout", _SERVICE_SECONDS, *options]
    argv += [word for file in files for word in ("--requirement", str(file))]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (json.JSONDecodeError, KeyError, TypeError):
        reason = done.stderr.strip().splitlines()[-1:] or [f"pip-audit ended with {done.returncode}"]
        raise NotAudited(reason[0]) from None
    skipped = [one["name"] for one in packages if "vulns" not in one]
    if skipped:
        raise NotAudited(f"expected an answer about each package, got none about {', '.join(skipped)}")
    return packages


def main(options: list[str], *, root: Path = ROOT, accepted: dict[str, str] | None = None) -> int:
    """Audit the locks and say what was found."""
    reasons = ACCEPTED if accepted is None else accepted
    try:
        found = audit([root / lock for lock in LOCKS], options=options)
    except NotAudited as fault:
        print(f"audit: NOT AUDITED, so nothing is known of the locked packages: {fault}", file=sys.stderr)
        return 3
    open_holes = {name: [hole for hole in holes if hole not in reasons] for name, holes in found.items()}
    for name, holes in open_holes.items():
        if holes:
            print(f"audit: {name}: {', '.join(holes)}; take a newer one (make lock), or say in setup/audit.py why not")
    stale = set(reasons) - {hole for holes in found.values() for hole in holes}
    for hole in sorted(stale):
        print(f"audit: {hole}: no locked package has it any more; take it out of setup/audit.py")
    return 1 if stale or any(open_holes.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
