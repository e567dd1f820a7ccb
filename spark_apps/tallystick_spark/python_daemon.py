"""Spark's Python daemon, which forks the workers: with what their tasks need in it already, and without its archives.

Python's path begins with archives that Spark brings along, and each task reads the directories of all of them again,
once for each package that came from them. Where Python has the very same pyspark installed it needs none. What is
imported here is imported once, and not in each worker, and the search for garbage that Spark has each worker make after
a task leaves it out. Together these cost each task a tenth to a fifth of a second.

Spark starts it where `spark.python.daemon.module` names it.
"""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

_TASKS = (
    "tallystick_spark.matching.hash_match",
    "tallystick_spark.readers.log_reader",
    "tallystick_spark.readers.postgres_rows",
    "aiokafka.record.default_records",
    "pandas",
    "adbc_driver_postgresql",
    "adbc_driver_manager",
)
"""The modules that tasks import. pandas: `keyed_hash` imports it when it hashes first; aiokafka: `open_batch`, with the
first batch; adbc is of another extra.
"""


def main() -> None:
    sys.path[:] = without_archives(sys.path)
    sys.path_importer_cache.clear()
    for name in _TASKS:
        if find_spec(name):
            import_module(name)
    gc.freeze()
    import_module("pyspark.daemon").manager()


def without_archives(path: Sequence[str]) -> list[str]:
    """Return the path without the archives that a package pyspark carries, if the rest of it leads to that package."""
    rest = [place for place in path if not place.endswith((".zip", ".jar"))]
    found = PathFinder.find_spec("pyspark", rest)
    folders = [Path(folder).resolve() for folder in found.submodule_search_locations or ()] if found else []
    return [
        place
        for place in path
        if place in rest or not any(folder in Path(place).resolve().parents for folder in folders)
    ]


if __name__ == "__main__":
    main()
