"""Reads docker-compose.yml by Compose itself, without a daemon: `make compose-check`.

With an .env of setup/compose_env.py Compose must accept the file; with each value left out in turn it must refuse it
and name that value. The image must be built once and pulled by nobody. The schema that tests/repo holds the file
against must be the one that this Compose uses.

Exit 0: so it is. 1: it is not, and each fault is on stderr. 2: Compose could not be built.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from compose_env import filled
from go_tool import COMPOSE, ToolNotBuilt, build, needed_module

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "tests" / "repo" / "compose-spec.json"
OUR_IMAGE = "tallystick-airflow"


def faults_of(program: Path, environment: str) -> list[str]:
    """Ask Compose about the file, with this text as .env and without a part of it."""
    code, said = _config(program, environment)
    if code:
        return [f"Compose refuses the file: {said.strip()}"]
    services = json.loads(said)["services"]
    ours = {name: one for name, one in services.items() if one["image"].startswith(f"{OUR_IMAGE}:")}
    built = [name for name, one in ours.items() if "build" in one]
    faults = [] if len(built) == 1 else [f"{OUR_IMAGE}: expected one service that builds it, got {built}"]
    faults += [
        f"{name}: expected pull_policy never or build, got {one.get('pull_policy')}"
        for name, one in ours.items()
        if one.get("pull_policy") != ("build" if name in built else "never")
    ]
    for left_out in re.findall(r"^(\w+)=", environment, flags=re.MULTILINE):
        code, said = _config(program, re.sub(rf"^{left_out}=.*$", "", environment, flags=re.MULTILINE))
        if not code or left_out not in said:
            got = said.strip() if code else "none"
            faults.append(f"without {left_out}: expected a refusal that names it, got {got}")
    return faults


def _config(program: Path, environment: str) -> tuple[int, str]:
    """Let Compose read the file; returns its exit code, and the file as JSON or the reason."""
    with tempfile.NamedTemporaryFile("w", suffix=".env") as file:
        file.write(environment)
        file.flush()
        command = [str(program), "--env-file", file.name, "--file", str(ROOT / "docker-compose.yml"), "config"]
        done = subprocess.run(
            [*command, "--format", "json"], env={}, capture_output=True, text=True, check=False
        )  # no variable of this shell may fill a gap
    return done.returncode, done.stderr if done.returncode else done.stdout


def main() -> int:
    """Build Compose where it is missing, and ask it."""
    try:
        program = build(COMPOSE)
        schema = needed_module(COMPOSE, "github.com/compose-spec/compose-go/v2") / "schema" / SCHEMA.name
    except ToolNotBuilt as fault:
        print(f"compose-check: {fault}", file=sys.stderr)
        return 2
    faults = faults_of(program, filled((ROOT / ".env.example").read_text()))
    if schema.read_bytes() != SCHEMA.read_bytes():
        faults.append(f"{SCHEMA.relative_to(ROOT)}: expected the schema of Compose {COMPOSE.version}: copy {schema}")
    for found in faults:
        print(f"compose-check: {found}", file=sys.stderr)
    if not faults:
        print(f"compose-check: Compose {COMPOSE.version} accepts docker-compose.yml, and misses each value of .env")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
