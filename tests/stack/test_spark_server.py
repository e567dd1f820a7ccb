"""Over a Spark Connect server that stays, a run says what it says by spark-submit, with one start of Java for all."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from tallystick.cli.app import app
from tallystick.model.cut import Cut
from tallystick.model.verdict import Verdict
from tallystick.spark.spark_job import SparkAppFailed, run_job, submit_argv
from tallystick.spark.spark_server import (
    SparkServer,
    SparkServerRuns,
    running_server,
    start_server,
    stop_server,
    with_running_server,
)
from tallystick.store.runs.run_store import read_run
from tests.stack.live_books import TWO_LEGS, LiveBooks, both_legs, expected, invoice, kinds, payment

from .live import RUN_SETTINGS, NewBooks

pytestmark = pytest.mark.timeout(600)

Steps = list[tuple[str, Mapping[str, Any]]]


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("artifacts")


@pytest.fixture(scope="module")
def settings(artifacts: Path) -> dict[str, str]:
    return {"TALLYSTICK_ARTIFACTS_DIR": str(artifacts), **RUN_SETTINGS}


def start(artifacts: Path, settings: Mapping[str, str]) -> SparkServer:
    return start_server(artifacts, environment={**os.environ, **settings})


@pytest.fixture
def server(artifacts: Path, settings: dict[str, str]) -> SparkServer:
    """The server that the tests of this file share; one that a test has killed is started again."""
    return running_server(artifacts) or start(artifacts, settings)


@pytest.fixture(scope="module", autouse=True)
def _stopped(artifacts: Path) -> Iterator[None]:
    yield
    stop_server(artifacts)


@pytest.fixture
def books(new_books: NewBooks) -> Iterator[LiveBooks]:
    with new_books(direction="topic_to_ledger", legs=TWO_LEGS) as opened:
        opened.take_cut()
        opened.both(*both_legs("agreed"))
        opened.produce(*both_legs("lost"))
        opened.both(payment("torn"))
        opened.post(*both_legs("phantom"))
        opened.produce(payment("wrong", 1000), invoice("wrong"))
        opened.post(payment("wrong", 999), invoice("wrong"))
        yield opened


def judge(
    books: LiveBooks,
    cut: Cut,
    settings: Mapping[str, str],
    *,
    reread: bool = False,
    on_step: Callable[[str], None] = lambda step: None,
) -> Steps:
    """Run the app of a cut as `tallystick run` does, and give back its steps."""
    steps: Steps = []

    def observe(step: str, figures: Mapping[str, Any]) -> None:
        steps.append((step, figures))
        on_step(step)

    dsn = books.store.url.set(drivername="postgresql").render_as_string(hide_password=False)
    environment = {**os.environ, **settings, "TALLYSTICK_STORE_DSN": dsn}  # new_books has put the connections there
    argv = submit_argv([(books.contract_file, cut.n)], reread=reread, environment=environment)
    run_job(argv, log=Path(settings["TALLYSTICK_ARTIFACTS_DIR"], "app.log"), environment=environment, observe=observe)
    return steps


def command_lines(server: psutil.Process) -> list[str]:
    """Give the command line of a server and of each of its children that has not ended: Spark's come and go."""
    lines = []
    for one in (server, *server.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            lines.append(" ".join(one.cmdline()))
    return lines


def test_both_ways_say_the_same(
    books: LiveBooks, server: SparkServer, settings: dict[str, str], artifacts: Path
) -> None:
    """By the server first; then read again by spark-submit, and by the server, which has not moved. Artifacts go to a
    folder that is named from here: the server's workers have working folders of their own.
    """
    over_server = with_running_server(settings, artifacts) | {"TALLYSTICK_ARTIFACTS_DIR": os.path.relpath(artifacts)}
    cut = books.take_cut()
    judge(books, cut, over_server)
    run = books.stored_run(cut)
    assert run.result.verdict is Verdict.BROKEN
    assert set(kinds(run)) == set(
        expected(
            ("missing_in_ledger", payment("lost")),
            ("missing_in_ledger", invoice("lost")),
            ("torn_transaction", invoice("torn")),
            ("phantom_in_ledger", payment("phantom")),
            ("phantom_in_ledger", invoice("phantom")),
            ("amount_mismatch", payment("wrong", 1000)),
        )
    )
    for way in (settings, over_server):
        (again,) = [figures for step, figures in judge(books, cut, way, reread=True) if step == "reread"]
        assert again["digest"] == run.result.digest
        assert again["same"]
    assert running_server(artifacts) == server
    log = Path(artifacts, "app.log").read_text()
    assert "SparkContext" not in log, "the client started no Java"


def test_a_server_that_dies_under_a_run_is_told_in_words_and_the_retry_judges_the_same_cut(
    books: LiveBooks, server: SparkServer, settings: dict[str, str], artifacts: Path
) -> None:
    cut = books.take_cut()

    def kill(step: str) -> None:
        if step == "scanning":
            psutil.Process(server.pid).kill()

    with pytest.raises(SparkAppFailed, match="the Spark Connect server does not answer, or was started again"):
        judge(books, cut, with_running_server(settings, artifacts), on_step=kill)
    assert read_run(books.store, books.contract.name, cut.n) is None
    assert running_server(artifacts) is None

    start(artifacts, settings)
    steps = judge(books, cut, with_running_server(settings, artifacts))
    assert [figures["attempt"] for step, figures in steps if step == "claimed"] == [2]
    assert books.stored_run(cut).result.verdict is Verdict.BROKEN


def test_who_does_not_know_the_token_is_refused(
    books: LiveBooks, server: SparkServer, settings: dict[str, str], artifacts: Path
) -> None:
    stranger = {**with_running_server(settings, artifacts), "SPARK_CONNECT_AUTHENTICATE_TOKEN": "guessed"}
    with pytest.raises(SparkAppFailed, match="refuses the token"):
        judge(books, books.take_cut(), stranger)
    state = artifacts / "spark" / "server.json"
    assert state.stat().st_mode & 0o077 == 0
    lines = command_lines(psutil.Process(server.pid))
    assert any("SparkConnectServer" in line for line in lines)
    assert not any(server.token in line for line in lines), "nobody reads it from a command line"


def test_one_server_at_a_time_and_nothing_of_it_is_left(
    server: SparkServer, settings: dict[str, str], artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SparkServerRuns, match="runs already"):
        start(artifacts, settings)
    monkeypatch.setenv("TALLYSTICK_ARTIFACTS_DIR", str(artifacts))
    assert server.remote in CliRunner().invoke(app, ["spark", "status"]).stdout
    family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
    assert CliRunner().invoke(app, ["spark", "stop"]).stdout == f"{server.remote}: stopped\n"
    assert not psutil.wait_procs(family, timeout=20)[1]  # a child of it is reaped by the system, in its own time
    assert running_server(artifacts) is None
    assert with_running_server(settings, artifacts) == settings
