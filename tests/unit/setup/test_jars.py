"""A jar is kept only with the sha256 of the lock; Ivy itself is not started here."""

import hashlib
from pathlib import Path

import jars
import pytest
from jars import LockedJar, WantedJar, fetch, ivy_module, read_lock, read_wanted
from machine import SetupRefused

BODY = b"a jar"
JAR = LockedJar("spark", ("org.example", "piece", "1.0"), hashlib.sha256(BODY).hexdigest())
NO_IVY = Path("no-ivy.jar")


@pytest.fixture
def ivy_brings(monkeypatch: pytest.MonkeyPatch):
    """Put a body where Ivy would put the jar."""

    def bring(body: bytes) -> None:
        def run_ivy(work: Path, *, wanted: list[WantedJar], **_: object) -> str:
            file = work / "jars" / JAR.path
            file.parent.mkdir(parents=True)
            file.write_bytes(body)
            return ""

        monkeypatch.setattr(jars, "run_ivy", run_ivy)

    return bring


def test_a_jar_with_the_locked_sha256_is_kept(tmp_path: Path, ivy_brings) -> None:
    ivy_brings(BODY)
    assert fetch(tmp_path, ivy=NO_IVY, locked=[JAR], configurations={"spark"}) == 1
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.jar")] == ["spark/piece-1.0.jar"]


def test_a_jar_with_another_sha256_is_refused_by_name_and_not_kept(tmp_path: Path, ivy_brings) -> None:
    ivy_brings(b"another jar")
    with pytest.raises(SetupRefused, match=r"org\.example:piece:1\.0: expected sha256"):
        fetch(tmp_path, ivy=NO_IVY, locked=[JAR], configurations={"spark"})
    assert list(tmp_path.rglob("*.jar")) == []


def test_a_jar_that_is_there_already_is_not_downloaded_again(tmp_path: Path) -> None:
    put(tmp_path / JAR.path, BODY)
    assert fetch(tmp_path, ivy=NO_IVY, locked=[JAR], configurations={"spark"}) == 0


def test_a_jar_that_was_changed_on_disk_is_fetched_again(tmp_path: Path, ivy_brings) -> None:
    put(tmp_path / JAR.path, b"cut short")
    ivy_brings(BODY)
    assert fetch(tmp_path, ivy=NO_IVY, locked=[JAR], configurations={"spark"}) == 1
    assert (tmp_path / JAR.path).read_bytes() == BODY


def test_an_older_version_leaves_the_class_path(tmp_path: Path) -> None:
    put(tmp_path / JAR.path, BODY)
    put(tmp_path / "spark" / "piece-0.9.jar", b"old")
    fetch(tmp_path, ivy=NO_IVY, locked=[JAR], configurations={"spark"})
    assert [path.name for path in (tmp_path / "spark").iterdir()] == ["piece-1.0.jar"]


def test_another_configuration_is_neither_fetched_nor_cleared(tmp_path: Path) -> None:
    put(tmp_path / "broker" / "other-1.0.jar", b"other")
    assert fetch(tmp_path, ivy=NO_IVY, locked=[JAR], configurations={"broker"}) == 0
    assert (tmp_path / "broker" / "other-1.0.jar").exists()


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
    with pytest.raises(SetupRefused, match=reason):
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


def put(path: Path, body: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
