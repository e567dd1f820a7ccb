"""A Dockerfile is read as its builder reads it, as far as ours goes; what it does not know is refused."""

from pathlib import Path

import pytest
from dockerfile import DockerfileRefused, files_of_context, read_stages

TEXT = """# A comment.
FROM apache/airflow:1 AS base
USER root
RUN apt-get install --yes gcc libc6-dev \\
    && rm -rf lists

FROM base
RUN first
USER airflow
COPY --chown=airflow:0 a/ b.txt c/
COPY --from=base /opt/x/ x/
ENV A=1 \\
    B="two words"
"""


def test_stages_have_their_base_and_their_steps() -> None:
    base, image = read_stages(TEXT)
    assert (base.base, base.name, image.base, image.name) == ("apache/airflow:1", "base", "base", "image")
    assert [one.name for one in image.instructions] == ["RUN", "USER", "COPY", "COPY", "ENV"]


def test_a_continued_line_is_one_step() -> None:
    base, _ = read_stages(TEXT)
    (run,) = base.named("RUN")
    assert run.text == "apt-get install --yes gcc libc6-dev && rm -rf lists"
    assert run.debian_packages == ["gcc", "libc6-dev"]


def test_a_step_has_its_user_and_a_stage_begins_with_that_of_its_base() -> None:
    _, image = read_stages(TEXT)
    assert [(one.name, one.user) for one in image.instructions[:3]] == [
        ("RUN", "root"),
        ("USER", "airflow"),
        ("COPY", "airflow"),
    ]


def test_a_copy_says_from_where_to_where() -> None:
    _, image = read_stages(TEXT)
    ours, built = image.named("COPY")
    assert (ours.sources, ours.target, ours.copied_from) == (["a/", "b.txt"], "c/", "")
    assert (built.sources, built.target, built.copied_from) == (["/opt/x/"], "x/", "base")


def test_variables_are_read_as_a_shell_reads_them() -> None:
    _, image = read_stages(TEXT)
    assert image.named("ENV")[0].variables == {"A": "1", "B": "two words"}


@pytest.mark.parametrize("line", ["ADD a b", 'RUN ["a"]', "RUN <<EOF", "ARG X=1"])
def test_what_is_not_known_is_refused(line: str) -> None:
    with pytest.raises(DockerfileRefused, match="expected one of FROM"):
        read_stages(f"FROM a\n{line}\n")


def test_nothing_stands_before_the_first_stage() -> None:
    with pytest.raises(DockerfileRefused, match="RUN a"):
        read_stages("RUN a\nFROM b\n")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in (
        "in/a.py",
        "in/deep/b.py",
        "in/deep/__pycache__/b.pyc",
        "in/c.so",
        "out/d.py",
        "tools/e.py",
        "tools/f.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_the_last_line_that_fits_decides_what_reaches_the_builder(checkout: Path) -> None:
    ignore = "# ours\n*\n!in\n!tools/e.py\n**/__pycache__\n**/*.so\n"
    assert sorted(files_of_context(checkout, ignore)) == ["in/a.py", "in/deep/b.py", "tools/e.py"]


def test_a_file_that_is_let_in_last_comes_back(checkout: Path) -> None:
    assert files_of_context(checkout, "*\n!in/deep\nin/deep\n!in/deep/b.py\n") == ["in/deep/b.py"]
