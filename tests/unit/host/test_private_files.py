"""What a run writes is its owner's alone, or a group's too, and never everybody's: whatever the umask."""

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tallystick.alerting.sinks.file import FileSink
from tallystick.contract.contract import Contract
from tallystick.documents.breaks_parquet import breaks_file
from tallystick.host.private_files import (
    SHARED_VARIABLE,
    FolderRefused,
    SharingRefused,
    narrow,
    private_file,
    private_folder,
    usable_folder,
)
from tallystick.model.stored_run import StoredRun
from tallystick.report.write_report import write_report
from tallystick.spark.spark_job import run_job
from tallystick_spark.readers.key_index_files import INDEX_COLUMNS, write_whole
from tests.unit.alerting.sinks.receivers import ALERT
from tests.unit.pipeline.broken_result import RESULT


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    """A folder that an operator made."""
    folder = tmp_path / "artifacts"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


def modes_below(folder: Path) -> tuple[set[int], set[int]]:
    """Of all folders, and of all files."""
    below = list(folder.rglob("*"))
    assert below
    return tuple(  # type: ignore[return-value]
        {stat.S_IMODE(path.stat().st_mode) for path in below if path.is_dir() == folders} for folders in (True, False)
    )


def write_all(contract: Contract, run: StoredRun, artifacts: Path) -> None:
    """What a run leaves, but for what Spark's JVM and Great Expectations write."""
    with breaks_file(RESULT, contract, artifacts):
        pass
    write_report(run, contract, artifacts)
    FileSink(name="file:a", path=artifacts / "alerts" / "on-call" / "a.jsonl").deliver(ALERT)
    columns = [pa.array([1]), pa.array([1]), pa.array(["topic:t:0"]), pa.array([7])]
    index = pa.table(columns, names=list(INDEX_COLUMNS))
    write_whole(index, private_folder(artifacts / "key_index" / "c" / "cut=1" / "attempt=1", below=artifacts), "one")
    run_job(["true"], log=artifacts / "logs" / "c" / "1.log", environment=os.environ, observe=lambda *_: None)


def test_all_that_a_run_writes_is_its_owners(
    contract: Contract, matched_run: StoredRun, artifacts: Path, umask: int
) -> None:
    write_all(contract, matched_run, artifacts)
    assert modes_below(artifacts) == ({0o700}, {0o600})
    assert stat.S_IMODE(artifacts.stat().st_mode) == 0o755


def test_a_group_shares_it_where_the_environment_says_so(
    contract: Contract, matched_run: StoredRun, artifacts: Path, umask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SHARED_VARIABLE, "group")
    write_all(contract, matched_run, artifacts)
    assert modes_below(artifacts) == ({0o770}, {0o660})


def test_what_an_earlier_release_wrote_for_everybody_is_narrowed_with_the_next_run(
    contract: Contract, matched_run: StoredRun, artifacts: Path
) -> None:
    write_all(contract, matched_run, artifacts)
    for path in artifacts.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    with breaks_file(replace(RESULT, cut_n=8), contract, artifacts):
        pass
    write_report(matched_run, contract, artifacts)
    for name in ("breaks", "reports"):
        assert stat.S_IMODE((artifacts / name).stat().st_mode) == 0o700
    assert stat.S_IMODE(artifacts.stat().st_mode) == 0o755


def test_what_others_code_wrote_is_narrowed_as_a_whole(artifacts: Path) -> None:
    folder = private_folder(artifacts / "docs")
    (folder / "static").mkdir(mode=0o777)
    (folder / "static" / "x.css").write_text("")
    narrow(folder)
    assert modes_below(artifacts) == ({0o700}, {0o600})


def test_the_bit_by_which_a_folder_hands_its_group_on_stays(artifacts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHARED_VARIABLE, "group")
    artifacts.chmod(0o2775)
    made = private_folder(artifacts / "reports" / "c", below=artifacts)
    assert stat.S_IMODE(made.stat().st_mode) == 0o2770
    assert stat.S_IMODE(private_file(made / "1.html").stat().st_mode) == 0o660


@pytest.mark.parametrize("said", ["everybody", "Group", "0644"])
def test_anything_else_is_refused(artifacts: Path, said: str) -> None:
    with pytest.raises(SharingRefused, match=f"{SHARED_VARIABLE}: got '{said}'; expected 'group', or nothing"):
        private_folder(artifacts / "x", environment={SHARED_VARIABLE: said})
    assert not (artifacts / "x").exists()


@pytest.mark.parametrize("name", ["file", "file/x", "file/x/y", "dead link"])
def test_a_folder_that_a_file_stands_in_the_way_of_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dead link").symlink_to(tmp_path / "nowhere")
    standing = tmp_path / name.partition("/")[0]
    with pytest.raises(FolderRefused) as refused:
        usable_folder(tmp_path / name, setting="--folder")
    assert str(refused.value) == (
        f"--folder: got {tmp_path / name}, but {standing} is no folder; expected one, or a path to make one"
    )


@pytest.mark.parametrize("name", ["", "folder", "folder/x/y", "none/x", "link", "link/x"])
def test_a_folder_that_is_there_or_can_be_made_is_taken_and_not_made_yet(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    assert usable_folder(tmp_path / name, setting="--folder") == tmp_path / name
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder", "link"]


@pytest.mark.parametrize("folder", [Path("file", "x"), Path("/proc/nothing/x")], ids=str)
def test_a_folder_that_cannot_be_made_is_refused_by_its_path(artifacts: Path, folder: Path) -> None:
    (artifacts / "file").write_text("")
    with pytest.raises(FolderRefused, match=r"expected a folder that this user can make and write in") as refused:
        private_folder(artifacts / folder)
    assert str((artifacts / folder).parent) in str(refused.value)


def test_a_file_that_cannot_be_written_is_refused_by_its_path_and_one_that_can_is_made(artifacts: Path) -> None:
    (artifacts / "file").write_text("")
    with pytest.raises(FolderRefused, match=f"^{artifacts}/file/1.html: Not a directory; expected a folder"):
        private_file(artifacts / "file" / "1.html")
    assert private_file(artifacts / "1.html").is_file()
