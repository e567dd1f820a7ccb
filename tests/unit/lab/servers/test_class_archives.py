"""The archive of Spark's classes is whole or not there, and setup goes on without it; Spark is not started here."""

import os
from pathlib import Path

import bootstrap
import pytest
from bootstrap import make_archives_if_they_can_be
from class_archive import ArchiveNotMade, describe_jars, make_archive
from machine import Machine

from lab.servers.class_archives import archive_options

MACHINE = Machine(
    python_path="python3",
    python_version="3.11.7",
    has_venv_module=True,
    java_path="java",
    java_said='openjdk version "17.0.15"',
    checkout="here",
    free_bytes=1,
)
WRITES = """made=$(printf '%s' "$*" | sed 's/.*ArchiveClassesAtExit=\\([^"]*\\).*/\\1/'); env > "$made" """


def stand_in(tmp_path: Path, script: str) -> Path:
    """A python whose spark-submit does this instead."""
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text(f"#!/bin/sh\n{script}\n")
    submit.chmod(0o755)
    return submit.with_name("python")


def test_what_the_jvm_writes_at_its_exit_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", "somebody's own")
    make_archive(tmp_path / "jars" / "a.jsa", python=stand_in(tmp_path, WRITES), jars=[])
    told = (tmp_path / "jars" / "a.jsa").read_text()
    assert "PYSPARK_PYTHON=" in told
    assert "SPARK_CONF_DIR" not in told
    assert os.listdir(tmp_path / "jars") == ["a.jsa"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo no CDS here", "Java wrote none, and said last: no CDS here"),
        (f"{WRITES}; echo full disk >&2; exit 3", "Spark ended with 3, and said last: full disk"),
        ("exit 3", "Spark ended with 3, and said last: nothing"),
    ],
)
def test_an_archive_that_could_not_be_made_leaves_the_one_before(tmp_path: Path, script: str, why: str) -> None:
    archive = tmp_path / "jars" / "a.jsa"
    archive.parent.mkdir()
    archive.write_text("the one before")
    with pytest.raises(ArchiveNotMade) as refused:
        make_archive(archive, python=stand_in(tmp_path, script), jars=[])
    assert str(refused.value) == why
    assert archive.read_text() == "the one before"
    assert os.listdir(archive.parent) == ["a.jsa"]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one jar of pyspark's. Returns that jar."""
    jar = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages" / "pyspark" / "jars" / "one.jar"
    jar.parent.mkdir(parents=True)
    jar.write_text("a jar")
    (tmp_path / ".jars" / "broker").mkdir(parents=True)
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(bootstrap, "JARS", tmp_path / ".jars")
    monkeypatch.setattr(bootstrap, "make_broker_archive", lambda: None)
    return jar


def test_setup_makes_it_again_where_a_jar_was_laid_down_anew_and_not_otherwise(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    monkeypatch.setattr(bootstrap, "make_archive", lambda archive, **_: made.append(archive))
    make_archives_if_they_can_be(MACHINE)
    make_archives_if_they_can_be(MACHINE)
    assert made == [bootstrap.JARS / "spark.jsa"]
    os.utime(checkout, ns=(1, 1))
    make_archives_if_they_can_be(MACHINE)
    assert len(made) == 2


def test_setup_goes_on_without_it_says_so_once_and_tries_again_next_time(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[Path] = []

    def refuse(archive: Path, **_: object) -> None:
        tried.append(archive)
        raise ArchiveNotMade("a full disk")

    monkeypatch.setattr(bootstrap, "make_archive", refuse)
    make_archives_if_they_can_be(MACHINE)
    assert capsys.readouterr().err == (
        "setup: no archive of Spark's classes, so that starts more slowly: a full disk\n"
    )
    make_archives_if_they_can_be(MACHINE)
    assert len(tried) == 2


def test_the_archive_of_kafkas_classes_is_made_beside_it_once_whatever_becomes_of_the_other(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def refuse(*_: object, **__: object) -> None:
        raise ArchiveNotMade("a full disk")

    monkeypatch.setattr(bootstrap, "make_archive", refuse)
    monkeypatch.setattr(bootstrap, "make_broker_archive", lambda: made.append("broker"))
    make_archives_if_they_can_be(MACHINE)
    make_archives_if_they_can_be(MACHINE)
    assert made == ["broker"]


def test_a_jar_of_another_size_makes_another_archive(checkout: Path) -> None:
    before = describe_jars(checkout.parent)
    assert describe_jars(checkout.parent) == before
    time = checkout.stat().st_mtime_ns
    checkout.write_text("another jar")
    os.utime(checkout, ns=(time, time))
    assert describe_jars(checkout.parent) != before


def test_an_archive_is_named_to_java_where_there_is_one_and_only_there(tmp_path: Path) -> None:
    archive = tmp_path / "a folder" / "spark.jsa"
    assert archive_options(archive) == ""
    archive.parent.mkdir()
    archive.touch()
    assert archive_options(archive).startswith(f'"-XX:SharedArchiveFile={archive}" ')
