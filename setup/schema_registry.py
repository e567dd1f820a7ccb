"""Puts the schema registry of the tests, Apicurio, into .tools/apicurio: a Java program that keeps all in memory.

    python setup/schema_registry.py          fetch and unpack what requirements/registry.lock names
    python setup/schema_registry.py lock     make that lock from requirements/registry.in

Nothing is unpacked but what has the sha256 of the lock. Exit 0: it is there. 2: refused, and the reason stands on
stderr.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

from debian_file import TOOLS
from jars import ROOT, lock_text

from tallystick.spark.jars import (
    JarsRefused,
    LockedJar,
    read_lines,
    read_lock,
    run_ivy_module,
    sha256_of,
    split_coordinates,
)

LISTED = ROOT / "requirements" / "registry.in"
LOCK = ROOT / "requirements" / "registry.lock"
_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven"><info organisation="tallystick" module="registry"/>
<configurations><conf name="{configuration}"/></configurations>
<dependencies><dependency org="{group}" name="{artifact}" rev="{version}" transitive="false"
conf="{configuration}->default"><artifact name="{artifact}" type="zip" ext="zip" m:classifier="{classifier}"/>
</dependency></dependencies></ivy-module>
"""


def fetch_archive(work: Path) -> tuple[str, tuple[str, str, str], Path]:
    """Let Ivy put the listed archive into WORK; return configuration, coordinates and file. Raises JarsRefused."""
    ((number, (configuration, text, classifier)),) = read_lines(LISTED, columns=3)
    group, artifact, version = coordinates = split_coordinates(LISTED, number, text)
    module = _MODULE.format(
        configuration=configuration, group=group, artifact=artifact, version=version, classifier=classifier
    )
    run_ivy_module(work, module)
    return configuration, coordinates, work / "jars" / configuration / f"{artifact}-{version}.zip"


def unpack(archive: Path, jar: LockedJar) -> None:
    """Put the registry into .tools/<configuration>/. Raises JarsRefused for another archive than the lock's."""
    got = sha256_of(archive)
    if got != jar.sha256:
        raise JarsRefused(f"{archive.name}: expected sha256 {jar.sha256}, got {got or 'no file'}; nothing was kept")
    folder = TOOLS / jar.configuration
    shutil.rmtree(folder, ignore_errors=True)
    with ZipFile(archive) as files:
        files.extractall(folder)
    (folder / "sha256").write_text(jar.sha256)


def main(arguments: list[str]) -> int:
    """Fetch or lock; 2 means refused."""
    try:
        with tempfile.TemporaryDirectory(prefix="registry-") as work:
            if arguments == ["lock"]:
                configuration, coordinates, archive = fetch_archive(Path(work))
                locked = [LockedJar(configuration, coordinates, sha256_of(archive))]
                LOCK.write_text(lock_text(LISTED, locked))
                print(f"{LOCK.relative_to(ROOT)}: {len(locked)} archive")
                return 0
            (jar,) = read_lock(LOCK)
            stamp = TOOLS / jar.configuration / "sha256"
            if not stamp.is_file() or stamp.read_text() != jar.sha256:
                unpack(fetch_archive(Path(work))[2], jar)
    except JarsRefused as refused:
        print(f"setup: {refused}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
