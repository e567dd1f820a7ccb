"""Makes the archive of classes with which the JVM of a small Spark run starts sooner (Java's class data sharing).

It is speed and nothing else. A JVM takes it where Java and pyspark's jars, with their sizes and times, are those that
it was made from, and goes without it where anything differs. The jars of .jars/spark are not in it: Spark loads them by
a class loader of its own, and Java archives no classes of those.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

APP = Path(__file__).with_name("class_archive_app.py")
_SECONDS_MAX = 300
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "JAVA_HOME")
"""No SPARK_CONF_DIR and the like: they change the class path, and the archive would fit nobody else's."""


class ArchiveNotMade(Exception):
    """There is no new archive; the message says why."""


def describe_jars(folder: Path) -> str:
    """What a JVM compares before it takes an archive: each jar with its size and time. folder: pyspark's jars."""
    seen = ((jar.name, jar.stat()) for jar in sorted(folder.glob("*.jar")))
    return "\n".join([str(folder.resolve()), *(f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in seen)])


def make_archive(archive: Path, *, python: Path, jars: list[Path]) -> None:
    """Run the app once and keep what its JVM writes at its exit. jars: of .jars/spark. Raises ArchiveNotMade.

    python: that has pyspark, with spark-submit beside it. The file appears whole or not at all.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".archive-", dir=archive.parent) as work:
        made = Path(work, archive.name)
        said = _run_app(python, jars, made, Path(work))
        if not made.is_file():
            raise ArchiveNotMade(f"Java wrote none{said and f', and said last: {said}'}")
        os.replace(made, archive)


def _run_app(python: Path, jars: list[Path], made: Path, work: Path) -> str:
    """The app's last words. Raises ArchiveNotMade."""
    options = f'-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "-XX:ArchiveClassesAtExit={made}"'
    settings = {
        "spark.driver.extraJavaOptions": options,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(work),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    argv = [str(python.with_name("spark-submit")), "--master", "local[2]", "--driver-memory", "600m"]
    argv += ["--jars", ",".join(map(str, jars))]
    argv += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
    try:
        done = subprocess.run(
            [*argv, str(APP), str(work)],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise ArchiveNotMade(str(fault)) from None
    last = (done.stdout.splitlines() or [""])[-1].strip()
    if done.returncode:
        raise ArchiveNotMade(f"Spark ended with {done.returncode}, and said last: {last or 'nothing'}")
    return last
