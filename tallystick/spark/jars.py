"""The jars that Spark reads Kafka and ledgers with, each held against its sha256 in jars.lock beside this file.

Fetched by Java and the Ivy jar inside the pyspark wheel, from the repository that the caller names, or else from Ivy's
own default. A locked list asks for no pom, so it is there in seconds.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from tallystick.host.extras import require
from tallystick.host.private_files import system_refusals, usable_folder
from tallystick.model.errors import TallystickError

SPARK_LOCK = Path(__file__).with_name("jars.lock")

_IVY_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="wanted"/>
  <resolvers><ibiblio name="wanted" m2compatible="true" usepoms="false" useMavenMetadata="false"{root}/></resolvers>
</ivysettings>
"""
_IVY_SECONDS_MAX = 900
"""For all jars of a lock by a slow line; by itself Ivy waits for ever for a repository that says nothing."""
_KAFKA_SOURCE = "spark-sql-kafka-0-10_"

Coordinates = tuple[str, str, str]
"""Group, artifact, version."""


class JarsRefused(TallystickError):
    """A list of jars is wrong, or a jar could not be had, or it is not the one that the lock names."""


@dataclass(frozen=True)
class WantedJar:
    """A jar to ask Ivy for. configuration: the folder that Ivy puts it into."""

    configuration: str
    coordinates: Coordinates
    with_dependencies: bool


@dataclass(frozen=True)
class LockedJar:
    """One line of a lock."""

    configuration: str
    coordinates: Coordinates
    sha256: str

    @property
    def file_name(self) -> str:
        """The name that a Maven repository gives it, without classifier."""
        _, artifact, version = self.coordinates
        return f"{artifact}-{version}.jar"

    @property
    def line(self) -> str:
        """The text of the lock."""
        return f"{self.configuration} {':'.join(self.coordinates)} {self.sha256}"


@dataclass(frozen=True)
class FetchedJars:
    """The names of files that a fetch changed in its folder."""

    downloaded: tuple[str, ...]
    removed: tuple[str, ...]


def fetch_jars(folder: Path, jars: Sequence[LockedJar], *, repository: str = "") -> FetchedJars:
    """Make FOLDER hold these jars, each in its locked version alone; leave every other file there.

    A jar that is there with the right sha256 stays. A downloaded one is moved in only after its sha256 was checked.
    Raises JarsRefused, FolderRefused.
    """
    usable_folder(folder, setting="the folder of jars")
    missing = [jar for jar in jars if sha256_of(folder / jar.file_name) != jar.sha256]
    if missing:
        with system_refusals(folder):
            folder.mkdir(parents=True, exist_ok=True)
        with system_refusals(folder), tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as work:
            wanted = [WantedJar("jars", jar.coordinates, with_dependencies=False) for jar in missing]
            run_ivy(Path(work), wanted, settings=_settings(repository), repository=repository)
            came = Path(work) / "jars" / "jars"
            _refuse_mismatches(missing, came)
            for jar in missing:
                os.replace(came / jar.file_name, folder / jar.file_name)
    return FetchedJars(tuple(jar.file_name for jar in missing), tuple(_remove_other_versions(folder, jars)))


def _refuse_mismatches(jars: Sequence[LockedJar], folder: Path) -> None:
    for jar in jars:
        got = sha256_of(folder / jar.file_name) or "no file"
        if got != jar.sha256:
            raise JarsRefused(
                f"jar {':'.join(jar.coordinates)}: expected sha256 {jar.sha256}, got {got}; nothing was kept; "
                "ask whoever keeps the repository why its file differs from what this version was tested with"
            )


def _remove_other_versions(folder: Path, jars: Sequence[LockedJar]) -> list[str]:
    """Two versions of one jar on a class path: nobody knows which is read."""
    removed = []
    for jar in jars:
        version = re.compile(rf"{re.escape(jar.coordinates[1])}-\d[^/]*\.jar")
        others = [file for file in folder.glob("*.jar") if version.fullmatch(file.name) and file.name != jar.file_name]
        for file in others:
            file.unlink()
            removed.append(file.name)
    return removed


def _settings(repository: str) -> str:
    """Return Ivy's settings: one repository. Raises JarsRefused for an address that Ivy cannot ask."""
    if not repository:
        return _IVY_SETTINGS.format(root="")
    address = urlsplit(repository)
    if address.scheme not in ("http", "https", "file"):
        raise JarsRefused(
            f"repository {repository}: expected the address of a Maven repository, http://, https:// or file://"
        )
    if address.username or address.password:
        raise JarsRefused(
            "the repository's address has a user or a password, which every process list would show; fetch the jars "
            "of `tallystick jars list` with a tool that has a login into the folder, then run this command again: "
            "it checks what is there"
        )
    return _IVY_SETTINGS.format(root=f" root={quoteattr(repository.rstrip('/') + '/')}")


def run_ivy(work: Path, wanted: Sequence[WantedJar], *, settings: str = "", repository: str = "") -> str:
    """Let Ivy put the jars into WORK/jars/<configuration>/; return what it printed. Raises JarsRefused.

    settings: the text of an ivysettings.xml; "" for Ivy's own, which read poms. repository: which one they name.
    """
    return run_ivy_module(work, ivy_module(wanted), settings=settings, repository=repository)


def run_ivy_module(work: Path, module: str, *, settings: str = "", repository: str = "") -> str:
    """Let Ivy fetch what a module file asks for, whatever its artifacts are. Raises JarsRefused."""
    java = _find_java()
    (work / "ivy.xml").write_text(module)
    command = [java, "-jar", str(_find_ivy()), "-ivy", "ivy.xml", "-cache", str(work / "cache")]
    if settings:
        (work / "ivysettings.xml").write_text(settings)
        command += ["-settings", "ivysettings.xml"]
    command += ["-retrieve", "jars/[conf]/[artifact]-[revision].[ext]"]
    try:
        done = subprocess.run(
            command,
            cwd=work,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_IVY_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        raise JarsRefused(
            f"jars: Ivy was stopped after {_IVY_SECONDS_MAX:g} s, still asking {repository or 'its own repository'}; "
            "let this host through to it, or name another repository that answers"
        ) from None
    if done.returncode:
        said = (line.strip(" :\t") for line in done.stdout.splitlines())
        reasons = "\n".join(dict.fromkeys(line for line in said if "not found" in line or "ERROR" in line))
        raise JarsRefused(
            f"jars: Ivy ended with {done.returncode}; is the network there, and does the repository have them?\n"
            f"{reasons or done.stdout}"
        )
    return done.stdout


def ivy_module(wanted: Sequence[WantedJar]) -> str:
    """Write the module file that asks for these jars."""
    names = dict.fromkeys(jar.configuration for jar in wanted)
    configurations = "".join(f'<conf name="{name}"/>' for name in names)
    dependencies = "\n".join(_ivy_dependency(jar) for jar in wanted)
    return (
        '<ivy-module version="2.0"><info organisation="tallystick" module="jars"/>\n'
        f"<configurations>{configurations}</configurations>\n"
        f"<dependencies>\n{dependencies}\n</dependencies></ivy-module>\n"
    )


def _ivy_dependency(jar: WantedJar) -> str:
    group, artifact, version = jar.coordinates
    transitive = "true" if jar.with_dependencies else "false"
    return (
        f'<dependency org="{group}" name="{artifact}" rev="{version}" transitive="{transitive}" '
        f'conf="{jar.configuration}->default"/>'
    )


def _find_java() -> str:
    """Name the java that spark-submit would take."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if java is None:
        raise JarsRefused(f"java: none {f'in JAVA_HOME={home}' if home else 'on PATH'}; expected 17 or newer, as Spark")
    return java


def _find_ivy() -> Path:
    require("pyspark")
    spec = find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec and spec.origin else Path()
    found = sorted(folder.glob("ivy-*.jar"))
    if not found:
        raise JarsRefused(f"Ivy: not in {folder}, where the package pyspark has it; pip install 'tallystick[spark]'")
    return found[-1]


def spark_jars() -> list[LockedJar]:
    """Return the jars that this version of Tallystick was tested with."""
    return read_lock(SPARK_LOCK)


def refuse_other_spark(jars: Sequence[LockedJar], installed: str) -> None:
    """Raise JarsRefused where the Kafka source of these jars is of another Spark minor than the installed one.

    installed: such as 4.1.3. Spark's connectors call its private API, which changes with each minor.
    """
    (source,) = [jar for jar in jars if jar.coordinates[1].startswith(_KAFKA_SOURCE)]
    if source.coordinates[2].split(".")[:2] != installed.split(".")[:2]:
        raise JarsRefused(
            f"pyspark {installed} is installed, and these jars are for Spark {source.coordinates[2]}; "
            "install a pyspark of that minor, or let spark.jars.packages name the jars of yours"
        )


def has_kafka_source(folder: Path) -> bool:
    """Return whether a Spark finds its Kafka source in this folder of jars by itself."""
    return any(folder.glob(f"{_KAFKA_SOURCE}*.jar"))


def read_lock(path: Path) -> list[LockedJar]:
    """Read a lock. Raises JarsRefused with the line number, and if it names no jar at all."""
    locked = []
    for number, (configuration, coordinates, sha256) in read_lines(path, columns=3):
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise JarsRefused(f"{path.name} line {number}: expected a sha256 of 64 hex digits, got '{sha256}'")
        locked.append(LockedJar(configuration, split_coordinates(path, number, coordinates), sha256))
    if not locked:
        raise JarsRefused(f"{path.name}: expected jars, got none")
    return locked


def read_lines(path: Path, *, columns: int) -> list[tuple[int, list[str]]]:
    """Split the lines that are no comment into columns, each with its line number. Raises JarsRefused."""
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        words = line.partition("#")[0].split()
        if words and len(words) != columns:
            raise JarsRefused(f"{path.name} line {number}: expected {columns} columns, got {len(words)}")
        if words:
            rows.append((number, words))
    return rows


def split_coordinates(path: Path, number: int, text: str) -> Coordinates:
    """Split group:artifact:version. Raises JarsRefused."""
    parts = text.split(":")
    if len(parts) != 3:
        raise JarsRefused(f"{path.name} line {number}: expected group:artifact:version, got '{text}'")
    return (parts[0], parts[1], parts[2])


def sha256_of(path: Path) -> str:
    """Return the file's sha256, or nothing if there is no such file."""
    if not path.is_file():
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()
