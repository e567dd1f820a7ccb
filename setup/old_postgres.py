"""Puts the oldest PostgreSQL that a ledger may be into .tools/postgres_13, for tests that start it. Needs x86_64.

    python setup/old_postgres.py          fetch and unpack what requirements/old_postgres.lock names
    python setup/old_postgres.py lock     make that lock from requirements/old_postgres.in

A jar of these has one archive: initdb, pg_ctl and postgres with their libraries. Nothing is unpacked but what has the
sha256 of the lock. Exit 0: it is there. 2: refused, and the reason stands on stderr.
"""

from __future__ import annotations

import io
import shutil
import sys
import tarfile
from zipfile import ZipFile

from debian_file import TOOLS
from jars import ROOT, fetch, lock, lock_text

from tallystick.spark.jars import JarsRefused, LockedJar, read_lock

FOLDER = ROOT / ".jars" / "old"
LISTED = ROOT / "requirements" / "old_postgres.in"
LOCK = ROOT / "requirements" / "old_postgres.lock"


def unpack(jar: LockedJar) -> None:
    """Put a fetched jar's server into .tools/<configuration>/, unless that very one is there."""
    folder = TOOLS / jar.configuration
    stamp = folder / "sha256"
    if stamp.is_file() and stamp.read_text() == jar.sha256:
        return
    shutil.rmtree(folder, ignore_errors=True)
    with ZipFile(FOLDER / jar.configuration / jar.file_name) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".txz")]
        with tarfile.open(fileobj=io.BytesIO(archive.read(name)), mode="r:xz") as files:
            files.extraction_filter = getattr(tarfile, "data_filter", None)  # Python has it from 3.11.4 on
            files.extractall(folder)
    stamp.write_text(jar.sha256)


def main(arguments: list[str]) -> int:
    """Fetch or lock; 2 means refused."""
    try:
        if arguments == ["lock"]:
            locked = lock(LISTED)
            LOCK.write_text(lock_text(LISTED, locked))
            print(f"{LOCK.relative_to(ROOT)}: {len(locked)} jars")
        else:
            locked = read_lock(LOCK)
            fetch(FOLDER, locked)
            for jar in locked:
                unpack(jar)
    except JarsRefused as refused:
        print(f"setup: {refused}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
