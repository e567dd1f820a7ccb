"""Fetches exactly the jars that two locks name, and makes these locks from requirements/jars.in.

Spark's jars are locked beside the code that fetches them, tallystick/spark/jars.lock, since users fetch them too; the
lab's broker in requirements/jars.lock. Resolving walks 200 poms (over a minute); fetching a locked list asks for none.

    python setup/jars.py fetch FOLDER    FOLDER/<configuration>/<artifact>-<version>.jar
    python setup/jars.py lock
"""

from __future__ import annotations

import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tallystick.spark.jars import (
    SPARK_LOCK,
    JarsRefused,
    LockedJar,
    WantedJar,
    fetch_jars,
    read_lines,
    read_lock,
    run_ivy,
    sha256_of,
    split_coordinates,
)

ROOT = Path(__file__).resolve().parent.parent
JARS_IN = ROOT / "requirements" / "jars.in"
JARS_LOCK = ROOT / "requirements" / "jars.lock"

LOCK_HEADER = """\
# Every jar and its sha256. Made from {listed} by `make lock`; do not edit.
# configuration group:artifact:version sha256
"""


def fetch(folder: Path, locked: list[LockedJar]) -> int:
    """Make FOLDER/<configuration>/ hold the locked jars and no other jar; return how many were downloaded."""

    def fetch_one(configuration: str) -> int:
        jars = [jar for jar in locked if jar.configuration == configuration]
        downloaded = fetch_jars(folder / configuration, jars).downloaded
        names = {jar.file_name for jar in jars}
        for stranger in (folder / configuration).glob("*.jar"):
            if stranger.name not in names:  # a lock that no longer names it
                stranger.unlink()
        return len(downloaded)

    with ThreadPoolExecutor() as pool:
        return sum(pool.map(fetch_one, sorted({jar.configuration for jar in locked})))


def read_locks() -> list[LockedJar]:
    """Return what setup fetches: Spark's jars and the broker's."""
    return [*read_lock(SPARK_LOCK), *read_lock(JARS_LOCK)]


def lock(listed: Path) -> list[LockedJar]:
    """Resolve a list of jars with all dependencies and return the lock, sorted."""
    with tempfile.TemporaryDirectory(prefix="jars-lock-") as work:
        log = run_ivy(Path(work), read_wanted(listed))
        by_path = {}
        for group, artifact, version in re.findall(r"\[SUCCESSFUL \] (\S+?)#(\S+?);(\S+?)!", log):
            by_path[f"{artifact}-{version}.jar"] = (group, artifact, version)
        files = sorted((Path(work) / "jars").glob("*/*.jar"))
        locked = [LockedJar(file.parent.name, by_path[file.name], sha256_of(file)) for file in files]
    return sorted(locked, key=lambda jar: (jar.configuration, jar.coordinates))


def lock_text(listed: Path, locked: list[LockedJar]) -> str:
    """Write a lock as its file holds it."""
    return LOCK_HEADER.format(listed=listed.name) + "".join(f"{jar.line}\n" for jar in locked)


def read_wanted(path: Path) -> list[WantedJar]:
    """Read a list such as jars.in. Raises JarsRefused with the line number."""
    wanted = []
    for number, (configuration, coordinates, reach) in read_lines(path, columns=3):
        if reach not in ("alone", "with-dependencies"):
            raise JarsRefused(f"{path.name} line {number}: expected alone or with-dependencies, got '{reach}'")
        wanted.append(WantedJar(configuration, split_coordinates(path, number, coordinates), reach != "alone"))
    return wanted


def main(arguments: list[str]) -> int:
    """Fetch or lock; 2 means refused."""
    try:
        if arguments == ["lock"]:
            locked = lock(JARS_IN)
            for path, is_sparks in ((SPARK_LOCK, True), (JARS_LOCK, False)):
                path.write_text(lock_text(JARS_IN, [j for j in locked if (j.configuration == "spark") is is_sparks]))
            print(f"{SPARK_LOCK.relative_to(ROOT)}, {JARS_LOCK.relative_to(ROOT)}: {len(locked)} jars")
        elif arguments[:1] == ["fetch"] and len(arguments) == 2:
            print(fetch(Path(arguments[1]), read_locks()), "jars downloaded")
        else:
            raise JarsRefused(f"usage: {(__doc__ or '').partition(chr(10) * 2)[2].strip()}")
    except JarsRefused as refused:
        print(f"setup: {refused}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
