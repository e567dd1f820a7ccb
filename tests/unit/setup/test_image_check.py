"""A step of the image is carried out in the replay's own folder, and one that fails is named."""

from pathlib import Path

import pytest
from dockerfile import Instruction, Stage
from image_check import ImageStepFailed, StageReplay


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> StageReplay:
    return StageReplay(tmp_path_factory.mktemp("replay"), Stage("base", "image"))


def do(replay: StageReplay, name: str, text: str, user: str = "airflow") -> str:
    return replay.carry_out(Instruction(name, text, user), {"image": replay})


def test_a_step_writes_below_the_folder_of_the_replay(replay: StageReplay) -> None:
    do(replay, "WORKDIR", "/opt/here")
    do(replay, "ENV", "PLACE=/opt/here")
    assert do(replay, "RUN", 'echo "$PLACE" > /opt/here/said && echo ran > beside') == ""
    assert Path(replay.here("/opt/here/said")).read_text().strip() == str(replay.opt / "here")
    assert (replay.opt / "here" / "beside").is_file()
    assert not Path("/opt/here").exists()


def test_a_step_that_fails_is_named(replay: StageReplay) -> None:
    with pytest.raises(ImageStepFailed, match="ended with 3"):
        do(replay, "RUN", "exit 3")


def test_a_step_of_root_is_not_carried_out_and_says_so(replay: StageReplay) -> None:
    assert do(replay, "RUN", "exit 3", user="root") == "root's"


def test_a_file_that_does_not_reach_the_builder_is_named(replay: StageReplay) -> None:
    with pytest.raises(ImageStepFailed, match=r"COPY Makefile: no file"):
        do(replay, "COPY", "Makefile there/")


def test_a_file_that_does_is_copied(replay: StageReplay) -> None:
    do(replay, "COPY", "--chown=airflow:0 LICENSE setup/build_backend.py there/")
    assert {file.name for file in replay.here("there").iterdir()} == {"LICENSE", "build_backend.py"}


def test_a_stage_without_a_compiler_has_none(replay: StageReplay, tmp_path: Path) -> None:
    assert replay.variables["CC"] == "false"
    packages = Instruction("RUN", "apt-get install --yes gcc", "root")
    assert "CC" not in StageReplay(tmp_path, Stage("base", "wheel", (packages,))).variables
