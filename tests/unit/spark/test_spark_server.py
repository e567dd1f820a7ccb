"""Who reads with the server that stays, and who does not."""

import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from tallystick.host.private_files import FolderRefused
from tallystick.spark import spark_server
from tallystick.spark.spark_job import submit_argv
from tallystick.spark.spark_server import (
    SparkServer,
    SparkServerNotStarted,
    SparkServerRuns,
    log_of,
    running_server,
    start_server,
    stop_server,
    with_running_server,
)


@pytest.fixture
def server(tmp_path: Path) -> SparkServer:
    """A server as its file tells of it; this test's own process stands for it."""
    found = SparkServer(
        pid=os.getpid(), created=psutil.Process().create_time(), port=15002, python=sys.executable, token="secret"
    )
    write(tmp_path, found)
    return found


def write(folder: Path, server: SparkServer) -> None:
    state = folder / "spark" / "server.json"
    state.parent.mkdir(exist_ok=True)
    state.write_text(json.dumps(asdict(server)))


def test_a_run_reads_with_the_server_of_its_artifacts(tmp_path: Path, server: SparkServer) -> None:
    found = with_running_server({"LANG": "C"}, tmp_path)
    assert found == {
        "LANG": "C",
        "SPARK_REMOTE": "sc://localhost:15002",
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": "secret",
    }


@pytest.mark.usefixtures("server")
def test_a_server_that_somebody_names_goes_before_it(tmp_path: Path) -> None:
    named = {"SPARK_REMOTE": "sc://spark.example:443/;use_ssl=true"}
    assert with_running_server(named, tmp_path) == named


def test_one_of_another_python_is_left_alone(tmp_path: Path, server: SparkServer) -> None:
    """Its tasks would run with other packages than the client's."""
    write(tmp_path, replace(server, python="another python"))
    assert with_running_server({}, tmp_path) == {}


def test_one_that_has_ended_is_none_also_where_another_process_has_its_number(
    tmp_path: Path, server: SparkServer
) -> None:
    assert running_server(tmp_path) == server
    write(tmp_path, replace(server, created=server.created - 1))
    assert running_server(tmp_path) is None
    assert stop_server(tmp_path) is None, "and nobody stops the other one"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_file_that_tells_of_no_server_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "spark").mkdir()
    (tmp_path / "spark" / "server.json").write_text(text)
    assert running_server(tmp_path) is None


def test_a_client_is_started_as_python_alone_and_its_command_line_has_no_token(server: SparkServer) -> None:
    cuts = [(Path("billing.yaml"), 7)]
    argv = submit_argv(cuts, reread=True, environment=server.for_clients())
    assert argv == [
        *(sys.executable, "-m", "tallystick_spark.reconcile_app_client"),
        *("--contract", "billing.yaml", "--cut", "7", "--reread"),
    ]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What a start needs beside the spark-submit that a test puts into the folder."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    (tmp_path / "spark.jar").touch()
    return {"TALLYSTICK_JARS_DIR": str(tmp_path), "PATH": os.environ["PATH"]}


def put_spark_submit(folder: Path, does: str) -> None:
    (folder / "spark-submit").write_text(f"#!/bin/sh\n{does}\n")
    (folder / "spark-submit").chmod(0o755)


def test_a_server_that_ends_at_once_is_told_with_its_last_words_and_its_log(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    put_spark_submit(tmp_path, """echo 'Exception in thread "main" org.x.SparkException: Master must' >&2; exit 3""")
    with pytest.raises(SparkServerNotStarted) as told:
        start_server(tmp_path, environment=settings)
    assert str(told.value) == (
        f"the Spark server ended with exit code 3: SparkException: Master must; its log is {log_of(tmp_path)}"
    )


def test_a_server_that_never_answers_is_told_too_and_ended(
    tmp_path: Path, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = psutil.Process().children(recursive=True)
    put_spark_submit(tmp_path, "exec sleep 60")
    monkeypatch.setattr(spark_server, "_START_SECONDS_MAX", 0.2)
    with pytest.raises(SparkServerNotStarted, match="does not answer after 0 s"):
        start_server(tmp_path, environment=settings)
    assert psutil.Process().children(recursive=True) == before


def test_a_server_that_nobody_could_find_again_is_ended(
    tmp_path: Path, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file cannot be written once it answers."""
    before = psutil.Process().children(recursive=True)
    put_spark_submit(tmp_path, "exec sleep 60")

    def answers(port: int) -> bool:
        (tmp_path / "spark" / "server.json").mkdir()
        return True

    monkeypatch.setattr(spark_server, "_answers", answers)
    with pytest.raises(FolderRefused, match=r"server\.json: Is a directory; expected a folder"):
        start_server(tmp_path, environment=settings)
    assert psutil.Process().children(recursive=True) == before


def test_of_two_that_are_started_at_once_the_second_is_refused(
    tmp_path: Path, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put_spark_submit(tmp_path, "exec sleep 60")
    refused: list[str] = []

    def answers(port: int) -> bool:
        """Start the second one while the first does not answer yet."""
        monkeypatch.setattr(spark_server, "_answers", lambda port: True)
        with pytest.raises(SparkServerRuns) as told:
            start_server(tmp_path, environment=settings)
        refused.append(str(told.value))
        return True

    monkeypatch.setattr(spark_server, "_answers", answers)
    started = start_server(tmp_path, environment=settings)
    assert refused == [
        f"{tmp_path}: another process is starting a Spark server for these artifacts; once it has, runs read with that "
        "one: see tallystick spark status"
    ]
    with pytest.raises(SparkServerRuns, match=f"runs already, as process {started.pid}; stop it with"):
        start_server(tmp_path, environment=settings)
    assert stop_server(tmp_path) == started
    again = start_server(tmp_path, environment=settings)
    assert stop_server(tmp_path) == again, "and once it has ended, another one may be started"


def test_no_server_runs_for_a_folder_that_is_a_file_and_none_is_started(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    (tmp_path / "file").write_text("")
    put_spark_submit(tmp_path, "exit 3")
    assert running_server(tmp_path / "file") is None
    with pytest.raises(FolderRefused, match="/file/spark: Not a directory; expected a folder"):
        start_server(tmp_path / "file", environment=settings)
