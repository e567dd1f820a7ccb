"""What the benchmark's figures end with: versions, cores and memory. No name, no path: results are kept for years."""

from importlib.metadata import version
from typing import Any

import psutil

from lab.soak.long_run import measured_on

_RIVALS = ("datacompy", "duckdb", "adbc-driver-postgresql")


def machine() -> dict[str, Any]:
    """Versions by package, the machine's cores, its memory in GiB."""
    measured = measured_on()
    versions = measured["versions"] | {package: version(package) for package in _RIVALS}
    return measured | {"versions": versions, "memory_gib": round(psutil.virtual_memory().total / 2**30, 1)}
