"""The archive of Spark's classes is used by the sessions that tests start; one that does not fit is left aside."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pyspark
import pytest
from machine import find_java
from pyspark.sql import SparkSession

from lab.servers.class_archives import ARCHIVE, archive_options

PROGRAM = ("org.apache.ivy.Main", "-version")


def test_the_session_of_these_tests_has_the_archive_in_its_memory(spark: SparkSession) -> None:
    """Java maps it once it has found that it fits, and not before."""
    assert ARCHIVE.is_file(), "make setup makes it, and says why not"
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()
    mapped = Path(f"/proc/{pid}/maps").read_text()
    assert str(ARCHIVE.resolve()) in mapped, "it does not fit this Java or these jars; make setup makes another"


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    """A jar and the archive of what a small program loads from it."""
    jar, archive = tmp_path / "one.jar", tmp_path / "one.jsa"
    (ivy,) = Path(pyspark.__file__).parent.glob("jars/ivy-*.jar")
    shutil.copy(ivy, jar)
    run(jar, f"-XX:ArchiveClassesAtExit={archive}")
    return jar, archive


def run(jar: Path, *options: str) -> str:
    """What the small program's Java writes to its standard output."""
    argv = [find_java(), "-Xshare:auto", *options, "-cp", str(jar), *PROGRAM]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout


def from_archive(jar: Path, *options: str) -> int:
    """How many classes it took from an archive of ours."""
    return run(jar, *options, "-Xlog:class+load").count("shared objects file (top)")


def test_the_options_use_an_archive_that_fits(small: tuple[Path, Path]) -> None:
    jar, archive = small
    assert from_archive(jar, *shlex.split(archive_options(archive))) > 0


def test_an_archive_that_does_not_fit_is_left_aside_without_a_word(small: tuple[Path, Path]) -> None:
    jar, archive = small
    os.utime(jar, ns=(1, 1))
    options = shlex.split(archive_options(archive))
    assert from_archive(jar, *options) == 0
    assert "warning" not in run(jar, *options)
    assert "warning" in run(jar, options[0]), "Java warns of it by itself no more: the other options may go"
