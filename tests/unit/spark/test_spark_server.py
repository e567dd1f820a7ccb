"""Who reads with the server that stays, and who does not."""

import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from tallystick.spark.spark_job import submit_argv
from tallystick.spark.spark_server import SparkServer, running_server, stop_server, with_running_server


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
        sys.executable, "-m", "tallystick_spark.reconcile_app", "--contract", "billing.yaml", "--cut", "7", "--reread",
    ]  # fmt: skip
