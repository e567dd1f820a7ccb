"""Fetches exactly the jars that requirements/jars.lock names, and makes that lock from requirements/jars.in.

Uses Java and the Ivy jar inside the pyspark wheel, nothing else. Names no repository: Ivy's own default serves.
Resolving walks 200 poms (over a minute); fetching a locked list asks for no pom (seconds). Hence the lock.

    python setup/jars.py fetch FOLDER [CONFIGURATION]    FOLDER/<configuration>/<artifact>-<version>.jar
    python setup/jars.py lock
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from machine import SetupRefused, find_java

ROOT = Path(__file__).resolve().parent.parent
JARS_IN = ROOT / "requirements" / "jars.in"
JARS_LOCK = ROOT / "requirements" / "jars.lock"

LOCK_HEADER = """\
# Every jar and its sha256. Made from {listed} by `make lock`; do not edit.
# configuration group:artifact:version sha256
"""

IVY_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="public"/>
  <resolvers><ibiblio name="public" m2compatible="true" usepoms="false" useMavenMetadata="false"/></resolvers>
</ivysettings>
"""

Coordinates = tuple[str, str, str]  # group, artifact, version


@dataclass(frozen=True)
class WantedJar:
    """One line of jars.in."""

    configuration: str
    coordinates: Coordinates
    with_dependencies: bool


@dataclass(frozen=True)
class LockedJar:
    """One line of jars.lock."""

    configuration: str
    coordinates: Coordinates
    sha256: str

    @property
    def path(self) -> Path:
        """Where it lies inside the folder of jars."""
        _, artifact, version = self.coordinates
        return Path(self.configuration) / f"{artifact}-{version}.jar"

    @property
    def line(self) -> str:
        """As it stands in the lock."""
        return f"{self.configuration} {':'.join(self.coordinates)} {self.sha256}"


def fetch(folder: Path, *, ivy: Path, locked: list[LockedJar], configurations: set[str]) -> int:
    """Make FOLDER hold the locked jars of these configurations and no other jar; return how many were downloaded.

    A jar that is there with the right sha256 stays. A downloaded one is moved in only after its sha256 was checked.
    Raises SetupRefused on a mismatch, naming the jar.
    """
    wanted = [jar for jar in locked if jar.configuration in configurations]
    missing = [jar for jar in wanted if sha256_of(folder / jar.path) != jar.sha256]
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as work:
            jars = [WantedJar(jar.configuration, jar.coordinates, with_dependencies=False) for jar in missing]
            run_ivy(Path(work), ivy=ivy, wanted=jars, walk_poms=False)
            refuse_mismatches(missing, Path(work) / "jars")
            for jar in missing:
                (folder / jar.path).parent.mkdir(exist_ok=True)
                os.replace(Path(work) / "jars" / jar.path, folder / jar.path)
    remove_strangers(folder, wanted)
    return len(missing)


def refuse_mismatches(jars: list[LockedJar], folder: Path) -> None:
    """Hold every downloaded jar against the lock."""
    for jar in jars:
        got = sha256_of(folder / jar.path) or "no file"
        if got != jar.sha256:
            raise SetupRefused(
                f"Jar {':'.join(jar.coordinates)}: expected sha256 {jar.sha256} (requirements/jars.lock), got {got}; "
                f"nothing was kept; if the new file is the right one, run make lock and review the change"
            )


def remove_strangers(folder: Path, wanted: list[LockedJar]) -> None:
    """Delete jars that the lock no longer names: two versions on one class path are a lottery."""
    paths = {folder / jar.path for jar in wanted}
    for configuration in {jar.configuration for jar in wanted}:
        for jar in (folder / configuration).glob("*.jar"):
            if jar not in paths:
                jar.unlink()


def lock(listed: Path, *, ivy: Path) -> list[LockedJar]:
    """Resolve a list of jars with all dependencies and return the lock, sorted."""
    with tempfile.TemporaryDirectory(prefix="jars-lock-") as work:
        log = run_ivy(Path(work), ivy=ivy, wanted=read_wanted(listed), walk_poms=True)
        by_path = {}
        for group, artifact, version in re.findall(r"\[SUCCESSFUL \] (\S+?)#(\S+?);(\S+?)!", log):
            by_path[f"{artifact}-{version}.jar"] = (group, artifact, version)
        files = sorted((Path(work) / "jars").glob("*/*.jar"))
        locked = [LockedJar(file.parent.name, by_path[file.name], sha256_of(file)) for file in files]
    return sorted(locked, key=lambda jar: (jar.configuration, jar.coordinates))


def lock_text(listed: Path, locked: list[LockedJar]) -> str:
    """Write a lock as its file holds it."""
    return LOCK_HEADER.format(listed=listed.name) + "".join(f"{jar.line}\n" for jar in locked)


def run_ivy(work: Path, *, ivy: Path, wanted: list[WantedJar], walk_poms: bool) -> str:
    """Let Ivy put the jars into WORK/jars/<configuration>/; return what it printed."""
    if not ivy.is_file():
        raise SetupRefused(f"Jars: expected Ivy at {ivy}, where pyspark brings it; run make setup")
    (work / "ivy.xml").write_text(ivy_module(wanted))
    (work / "ivysettings.xml").write_text(IVY_SETTINGS)
    command = [find_java(), "-jar", str(ivy), "-ivy", "ivy.xml", "-cache", str(work / "cache")]
    if not walk_poms:
        command += ["-settings", "ivysettings.xml"]
    command += ["-retrieve", "jars/[conf]/[artifact]-[revision].[ext]"]
    done = subprocess.run(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        reasons = "\n".join(line for line in done.stdout.splitlines() if "UNRESOLVED" in line or "ERROR" in line)
        raise SetupRefused(f"Jars: Ivy ended with {done.returncode}; is the network there?\n{reasons or done.stdout}")
    return done.stdout


def ivy_module(wanted: list[WantedJar]) -> str:
    """Write the module file that asks for these jars."""
    names = dict.fromkeys(jar.configuration for jar in wanted)
    configurations = "".join(f'<conf name="{name}"/>' for name in names)
    dependencies = "\n".join(ivy_dependency(jar) for jar in wanted)
    return (
        '<ivy-module version="2.0"><info organisation="tallystick" module="jars"/>\n'
        f"<configurations>{configurations}</configurations>\n"
        f"<dependencies>\n{dependencies}\n</dependencies></ivy-module>\n"
    )


def ivy_dependency(jar: WantedJar) -> str:
    """One jar, in Ivy's words."""
    group, artifact, version = jar.coordinates
    transitive = "true" if jar.with_dependencies else "false"
    return (
        f'<dependency org="{group}" name="{artifact}" rev="{version}" transitive="{transitive}" '
        f'conf="{jar.configuration}->default"/>'
    )


def read_wanted(path: Path) -> list[WantedJar]:
    """Read jars.in. Raises SetupRefused with the line number."""
    wanted = []
    for number, (configuration, coordinates, reach) in read_lines(path, columns=3):
        if reach not in ("alone", "with-dependencies"):
            raise SetupRefused(f"{path.name} line {number}: expected alone or with-dependencies, got '{reach}'")
        wanted.append(WantedJar(configuration, split_coordinates(path, number, coordinates), reach != "alone"))
    return wanted


def read_lock(path: Path) -> list[LockedJar]:
    """Read jars.lock. Raises SetupRefused with the line number, and if the lock names no jar at all."""
    locked = []
    for number, (configuration, coordinates, sha256) in read_lines(path, columns=3):
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise SetupRefused(f"{path.name} line {number}: expected a sha256 of 64 hex digits, got '{sha256}'")
        locked.append(LockedJar(configuration, split_coordinates(path, number, coordinates), sha256))
    if not locked:
        raise SetupRefused(f"{path.name}: expected jars, got none; run make lock")
    return locked


def read_lines(path: Path, *, columns: int) -> list[tuple[int, list[str]]]:
    """Split the lines that are no comment into columns, each with its line number."""
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        words = line.partition("#")[0].split()
        if words and len(words) != columns:
            raise SetupRefused(f"{path.name} line {number}: expected {columns} columns, got {len(words)}")
        if words:
            rows.append((number, words))
    return rows


def split_coordinates(path: Path, number: int, text: str) -> Coordinates:
    """Split group:artifact:version."""
    parts = text.split(":")
    if len(parts) != 3:
        raise SetupRefused(f"{path.name} line {number}: expected group:artifact:version, got '{text}'")
    return (parts[0], parts[1], parts[2])


def sha256_of(path: Path) -> str:
    """Return the file's sha256, or nothing if there is no such file."""
    if not path.is_file():
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def ivy_of(site_packages: Path) -> Path:
    """Find the Ivy jar that pyspark brings."""
    found = sorted((site_packages / "pyspark" / "jars").glob("ivy-*.jar"))
    return found[-1] if found else site_packages / "pyspark" / "jars" / "ivy.jar"


def site_packages_of_pyspark() -> Path:
    """Where this interpreter keeps pyspark."""
    import importlib.util

    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise SetupRefused(f"Jars: {sys.executable} has no pyspark, and with it no Ivy; run make setup")
    return Path(found.origin).parent.parent


def main(arguments: list[str]) -> int:
    """Fetch or lock; 2 means refused."""
    try:
        if not find_java():
            raise SetupRefused("Java: none found on PATH or in JAVA_HOME")
        ivy = ivy_of(site_packages_of_pyspark())
        if arguments == ["lock"]:
            locked = lock(JARS_IN, ivy=ivy)
            JARS_LOCK.write_text(lock_text(JARS_IN, locked))
            print(f"requirements/jars.lock: {len(locked)} jars")
        elif arguments[:1] == ["fetch"] and len(arguments) in (2, 3):
            locked = read_lock(JARS_LOCK)
            configurations = set(arguments[2:]) or {jar.configuration for jar in locked}
            print(fetch(Path(arguments[1]), ivy=ivy, locked=locked, configurations=configurations), "jars downloaded")
        else:
            raise SetupRefused(f"usage: {(__doc__ or '').partition(chr(10) * 2)[2].strip()}")
    except SetupRefused as refused:
        print(f"setup: {refused}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
