"""Decides whether this machine can hold Tallystick: Python, Java and free disk.

Installs nothing. `look_at` asks the machine; `find_problems` judges what it said, so that tests can make machines up.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PYTHON_NEEDED = "3.11"
JAVA_MAJOR_MIN = 17  # Kafka 4's broker and Spark 4 both refuse less
DISK_BYTES_MIN = 6 * 1024**3  # 1.5 GB of packages, their byte code, uv's cache of them, jars, and room to run


class SetupRefused(Exception):
    """Setup cannot go on; the message says what, where, what was expected and what to do."""


@dataclass(frozen=True)
class Machine:
    """What the machine answered. An empty java_path means that no java was found; java_said is its own first line."""

    python_path: str
    python_version: str
    has_venv_module: bool
    java_path: str
    java_said: str
    checkout: str
    free_bytes: int


def look_at(checkout: Path) -> Machine:
    """Ask the machine. `JAVA_HOME` goes before `PATH`, as it does for spark-submit."""
    java_path = find_java()
    return Machine(
        python_path=sys.executable,
        python_version=platform.python_version(),
        has_venv_module=all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")),
        java_path=java_path,
        java_said=ask_java(java_path) if java_path else "",
        checkout=str(checkout),
        free_bytes=shutil.disk_usage(checkout).free,
    )


def find_java() -> str:
    """Name the java that will be used, or nothing."""
    home = os.environ.get("JAVA_HOME")
    if home:
        path = Path(home) / "bin" / "java"
        return str(path) if os.access(path, os.X_OK) else ""
    return shutil.which("java") or ""


def ask_java(java_path: str) -> str:
    """Return the first line of `java -version` that names a version; whatever it said, if none does."""
    try:
        done = subprocess.run([java_path, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    lines = (done.stderr + done.stdout).splitlines()
    return next((line for line in lines if " version " in line), " ".join(lines))


def java_major(java_said: str) -> int:
    """Read 17 from `openjdk version "17.0.15"` and 8 from `java version "1.8.0_372"`; 0 where there is none."""
    found = re.search(r'version "(?:1\.)?(\d+)', java_said)
    return int(found.group(1)) if found else 0


def find_problems(machine: Machine, *, disk_bytes_min: int = DISK_BYTES_MIN) -> list[str]:
    """Return one sentence per thing that is missing or wrong; none, if Tallystick fits."""
    findings = [python_problem(machine), java_problem(machine), disk_problem(machine, disk_bytes_min=disk_bytes_min)]
    return [finding for finding in findings if finding]


def python_problem(machine: Machine) -> str:
    """Airflow, Spark and the locks are held to one Python minor."""
    if machine.python_version.split(".")[:2] != PYTHON_NEEDED.split("."):
        return (
            f"Python: expected {PYTHON_NEEDED}.x, got {machine.python_version} at {machine.python_path}; "
            f"install Python {PYTHON_NEEDED} and say where it is: make setup PYTHON=python{PYTHON_NEEDED}"
        )
    if not machine.has_venv_module:
        return (
            f"Python: {machine.python_path} lacks the modules venv and ensurepip; "
            f"install them (on Debian and Ubuntu: apt-get install python{PYTHON_NEEDED}-venv)"
        )
    return ""


def java_problem(machine: Machine) -> str:
    """Spark and the broker run on Java."""
    if not machine.java_path:
        where = f"in JAVA_HOME={os.environ['JAVA_HOME']}" if os.environ.get("JAVA_HOME") else "on PATH"
        return (
            f"Java: none found {where}, expected version {JAVA_MAJOR_MIN} or newer; install a JRE "
            f"(on Debian and Ubuntu: apt-get install openjdk-17-jre-headless) or point JAVA_HOME at one"
        )
    if java_major(machine.java_said) < JAVA_MAJOR_MIN:
        return (
            f"Java: expected version {JAVA_MAJOR_MIN} or newer, got '{machine.java_said}' at {machine.java_path}; "
            f"install a newer one or point JAVA_HOME at it"
        )
    return ""


def disk_problem(machine: Machine, *, disk_bytes_min: int) -> str:
    """A full disk would stop the installation halfway."""
    if machine.free_bytes < disk_bytes_min:
        return (
            f"Disk: expected {disk_bytes_min / 1024**3:.1f} GB free at {machine.checkout}, "
            f"got {machine.free_bytes / 1024**3:.1f} GB; free some space or clone to a larger disk"
        )
    return ""
