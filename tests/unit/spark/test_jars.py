"""A jar is kept only with the sha256 of the lock; a company's repository is a folder here, and Ivy is the real one."""

import hashlib
from pathlib import Path

import psutil
import pytest
from jars import fetch, read_wanted
from typer.testing import CliRunner

from tallystick.cli.app import app
from tallystick.host.private_files import FolderRefused
from tallystick.spark import jars as jars_module
from tallystick.spark.jars import (
    JarsRefused,
    LockedJar,
    fetch_jars,
    has_kafka_source,
    ivy_module,
    read_lock,
    refuse_other_spark,
    sha256_of,
    spark_jars,
)

BODY = b"a jar"
JAR = LockedJar("spark", ("org.example", "piece", "1.0"), hashlib.sha256(BODY).hexdigest())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A Maven repository of one jar."""
    put(tmp_path / "maven" / "org" / "example" / "piece" / "1.0" / "piece-1.0.jar", BODY)
    return tmp_path / "maven"


def test_a_jar_with_the_locked_sha256_is_kept(tmp_path: Path, repository: Path) -> None:
    fetched = fetch_jars(tmp_path / "jars", [JAR], repository=repository.as_uri())
    assert (fetched.downloaded, fetched.removed) == (("piece-1.0.jar",), ())
    assert [path.name for path in (tmp_path / "jars").iterdir()] == ["piece-1.0.jar"]


def test_a_jar_with_another_sha256_is_refused_by_name_and_not_kept(tmp_path: Path, repository: Path) -> None:
    put(repository / "org" / "example" / "piece" / "1.0" / "piece-1.0.jar", b"another jar")
    with pytest.raises(JarsRefused, match=r"org\.example:piece:1\.0: expected sha256"):
        fetch_jars(tmp_path / "jars", [JAR], repository=repository.as_uri())
    assert list((tmp_path / "jars").rglob("*.jar")) == []


def test_a_repository_that_lacks_it_is_told(tmp_path: Path) -> None:
    with pytest.raises(JarsRefused, match=r"Ivy ended with 1; .* does the repository have them") as refused:
        fetch_jars(tmp_path / "jars", [JAR], repository=(tmp_path / "nothing").as_uri())
    assert "org.example#piece;1.0" in str(refused.value)


@pytest.mark.parametrize("address", ["https://maven.example/all", ""])
def test_a_repository_that_does_not_answer_is_given_up_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Java is there, and hears nothing."""
    put(tmp_path / "bin" / "java", b"#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(jars_module, "_IVY_SECONDS_MAX", 0.1)
    before = psutil.Process().children(recursive=True)
    with pytest.raises(JarsRefused) as refused:
        fetch_jars(tmp_path / "jars", [JAR], repository=address)
    assert str(refused.value) == (
        f"jars: Ivy was stopped after 0.1 s, still asking {address or 'its own repository'}; let this host through to "
        "it, or name another repository that answers"
    )
    assert psutil.Process().children(recursive=True) == before
    assert list((tmp_path / "jars").iterdir()) == []


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("maven.example", "expected the address of a Maven repository"),
        ("https://me:s3cret@maven.example/all", "has a user or a password"),
    ],
)
def test_an_address_that_cannot_be_asked_is_refused_without_its_password(
    tmp_path: Path, address: str, reason: str
) -> None:
    with pytest.raises(JarsRefused, match=reason) as refused:
        fetch_jars(tmp_path, [JAR], repository=address)
    assert "s3cret" not in str(refused.value)


def test_a_jar_that_is_there_already_is_not_asked_for(tmp_path: Path) -> None:
    put(tmp_path / "piece-1.0.jar", BODY)
    assert fetch_jars(tmp_path, [JAR], repository="file:///nowhere").downloaded == ()


def test_a_jar_that_was_changed_on_disk_is_fetched_again(tmp_path: Path, repository: Path) -> None:
    put(tmp_path / "jars" / "piece-1.0.jar", b"cut short")
    fetch_jars(tmp_path / "jars", [JAR], repository=repository.as_uri())
    assert (tmp_path / "jars" / "piece-1.0.jar").read_bytes() == BODY


@pytest.mark.parametrize("name", ["piece", "piece/x"])
def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path, repository: Path, name: str) -> None:
    put(tmp_path / "piece", b"no folder")
    said = CliRunner().invoke(app, ["jars", "fetch", str(tmp_path / name), "--repository", repository.as_uri()])
    assert (said.exit_code, said.stdout) == (2, "")
    assert said.stderr == (
        f"the folder of jars: got {tmp_path / name}, but {tmp_path / 'piece'} is no folder; expected one, or a path "
        "to make one\n"
    )


def test_a_folder_that_the_system_lets_nobody_make_is_refused(repository: Path) -> None:
    with pytest.raises(FolderRefused, match=r"^/proc/nothing.*: No such file or directory; expected a folder"):
        fetch_jars(Path("/proc/nothing/x"), [JAR], repository=repository.as_uri())


def test_another_version_leaves_the_folder_and_somebody_elses_jars_stay(tmp_path: Path) -> None:
    put(tmp_path / "piece-1.0.jar", BODY)
    put(tmp_path / "piece-0.9.jar", b"old")
    put(tmp_path / "piece-work-2.0.jar", b"another artifact")
    put(tmp_path / "ojdbc17.jar", b"another's")
    assert fetch_jars(tmp_path, [JAR]).removed == ("piece-0.9.jar",)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ojdbc17.jar", "piece-1.0.jar", "piece-work-2.0.jar"]


def test_setup_clears_what_no_lock_names_from_its_own_folders_alone(tmp_path: Path) -> None:
    put(tmp_path / "spark" / "piece-1.0.jar", BODY)
    put(tmp_path / "spark" / "gone-1.0.jar", b"of an older lock")
    put(tmp_path / "broker" / "other-1.0.jar", b"other")
    assert fetch(tmp_path, [JAR]) == 0
    assert sorted(path.name for path in tmp_path.rglob("*.jar")) == ["other-1.0.jar", "piece-1.0.jar"]


def test_jars_of_the_installed_sparks_minor_are_taken_and_others_are_not() -> None:
    refuse_other_spark(spark_jars(), "4.1.99")
    with pytest.raises(JarsRefused, match=r"pyspark 4\.0\.2 is installed, and these jars are for Spark 4\.1\.\d"):
        refuse_other_spark(spark_jars(), "4.0.2")


def test_a_folder_with_sparks_kafka_source_has_it(tmp_path: Path) -> None:
    assert not has_kafka_source(tmp_path)
    put(tmp_path / "spark-sql-kafka-0-10_2.13-4.1.3.jar", b"")
    assert has_kafka_source(tmp_path)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("spark org.example:piece:1.0", "line 1: expected 3 columns, got 2"),
        ("spark org.example:piece:1.0 cafe", "line 1: expected a sha256"),
        (f"spark org.example:piece {'0' * 64}", "line 1: expected group:artifact:version"),
        ("# only a comment", "expected jars, got none"),
    ],
)
def test_a_broken_lock_is_refused_with_its_line(tmp_path: Path, line: str, reason: str) -> None:
    lock = tmp_path / "jars.lock"
    lock.write_text(line)
    with pytest.raises(JarsRefused, match=reason):
        read_lock(lock)


def test_a_locked_line_reads_back_as_it_was_written(tmp_path: Path) -> None:
    lock = tmp_path / "jars.lock"
    lock.write_text(f"# comment\n{JAR.line}\n")
    assert read_lock(lock) == [JAR]


def test_only_a_jar_with_dependencies_is_asked_for_transitively(tmp_path: Path) -> None:
    listed = tmp_path / "jars.in"
    listed.write_text("spark a:b:1 alone\nbroker c:d:2 with-dependencies # why\n")
    module = ivy_module(read_wanted(listed))
    assert 'name="b" rev="1" transitive="false" conf="spark->default"' in module
    assert 'name="d" rev="2" transitive="true" conf="broker->default"' in module


def test_the_command_fetches_what_the_lock_names_and_says_so(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars_module, "spark_jars", lambda: [JAR, KAFKA_SOURCE])
    put(repository / "org" / "example" / KAFKA_SOURCE.coordinates[1] / "4.1.3" / KAFKA_SOURCE.file_name, BODY)
    asked = ["jars", "fetch", str(tmp_path / "jars"), "--repository", repository.as_uri()]
    first, second = CliRunner().invoke(app, asked), CliRunner().invoke(app, asked)
    assert (first.exit_code, first.stdout) == (0, f"{tmp_path}/jars: has all 2 jars, 2 of them fetched now\n")
    assert second.stdout.endswith("has all 2 jars, 0 of them fetched now\n")
    assert sha256_of(tmp_path / "jars" / "piece-1.0.jar") == JAR.sha256


KAFKA_SOURCE = LockedJar("spark", ("org.example", "spark-sql-kafka-0-10_2.13", "4.1.3"), JAR.sha256)


def test_the_command_lists_each_jar_with_its_hash() -> None:
    said = CliRunner().invoke(app, ["jars", "list"])
    assert [line.split()[1] for line in said.stdout.splitlines()] == [jar.sha256 for jar in spark_jars()]


def put(path: Path, body: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
