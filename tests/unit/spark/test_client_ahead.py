"""A client that is started before its cuts: it waits for them, judges once, and never outlives the run."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tallystick.cli.error_handling import stopped_by_sigterm
from tallystick.spark import client_ahead as subject
from tallystick.spark.client_ahead import ClientAhead, client_ahead
from tallystick.spark.spark_job import APP, SparkAppFailed

SERVER = {**os.environ, "SPARK_REMOTE": "sc://localhost:1"}
CUTS = [(Path("a.yaml"), 7), (Path("b.yaml"), 3)]
TELLS = """
import json, os, sys
print("loaded", file=sys.stderr, flush=True)
print(json.dumps({"step": "got", "argv": sys.argv[1:], "pid": os.getpid(), "orders": open("/dev/stdin").read()}))
"""
WAITS = """
import sys
print("loaded", file=sys.stderr, flush=True)
sys.stdin.read()
import time
time.sleep(600)
"""
WHEREVER = """
import json, multiprocessing, os, signal, sys
from pathlib import Path
from tallystick.spark import client_ahead as subject

folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
subject.APP = "its_app"


def run():
    told, log = [], folder / "7.log"
    with subject.client_ahead({**os.environ, "SPARK_REMOTE": "sc://localhost:1"}, folder) as ahead:
        ahead.judge([(Path("a.yaml"), 7)], log=log, observe=lambda *step: told.append(step))
    told = [(step, figures["orders"]) for step, figures in told]
    (folder / "told").write_text(json.dumps([told, log.read_text()]))


"""
DAEMON = "child = multiprocessing.get_context('fork').Process(target=run, daemon=True); child.start(); child.join()"
FAILS = "raise ImportError('no such library')"


def write_app(folder: Path, code: str) -> None:
    (folder / "its_app.py").write_text(f"def run_submitted():\n    exec({code!r}, {{}})\n")


def children_run(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str) -> None:
    write_app(folder, code)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "its_app", raising=False)
    monkeypatch.setattr(subject, "APP", "its_app")


def wait_for_words(folder: Path) -> Path:
    """The log, once the child has written to it."""
    deadline = time.monotonic() + 30
    while not (found := [log for log in folder.glob("logs/client_*.log") if log.read_text()]):
        assert time.monotonic() < deadline, "the child wrote nothing in 30 s"
        time.sleep(0.01)
    return found[0]


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_it_is_handed_its_cuts_and_its_log_is_named_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    children_run(monkeypatch, tmp_path, TELLS)
    steps: list[tuple[str, Mapping[str, Any]]] = []
    log = tmp_path / "logs" / "billing" / "7.log"
    with client_ahead(SERVER, tmp_path) as ahead:
        assert ahead is not None
        assert ahead.is_free
        waiting = wait_for_words(tmp_path)
        assert waiting.stat().st_mode & 0o077 == 0
        ahead.judge(CUTS, log=log, observe=lambda step, figures: steps.append((step, figures)))
        assert not ahead.is_free
    ((step, got),) = steps
    assert (step, got["argv"]) == ("got", ["--follow", "/dev/stdin"])
    assert [json.loads(line) for line in got["orders"].splitlines()] == [
        {"contract": "a.yaml", "cut": 7},
        {"contract": "b.yaml", "cut": 3},
    ]
    assert log.read_text() == "loaded\n"
    assert log.stat().st_mode & 0o077 == 0
    assert not waiting.exists()


def test_the_app_understands_what_it_is_handed(tmp_path: Path) -> None:
    from tallystick_spark.reconcile_app import CutJob, follow, parse_arguments, run_submitted

    assert run_submitted.__module__ == APP
    assert parse_arguments(["--follow", "/dev/stdin"]).follow == Path("/dev/stdin")
    pipe = tmp_path / "orders"
    pipe.write_text('{"contract": "a.yaml", "cut": 7}\n')
    assert list(follow(pipe)) == [CutJob(Path("a.yaml"), 7, reread=False)]


def test_it_has_the_environment_it_is_given_a_session_of_its_own_and_dies_of_sigterm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever starts it takes SIGTERM for Ctrl-C, and may have a variable that Spark's client must not."""
    code = (
        "import json, os, signal\n"
        "print(json.dumps({'step': 'is', 'leads': os.getsid(0) == os.getpid(), 'own': os.environ.get('NOT_ITS_OWN'), "
        "'python': os.environ['PYSPARK_PYTHON'], 'sigterm': signal.getsignal(signal.SIGTERM) == signal.SIG_DFL}))"
    )
    children_run(monkeypatch, tmp_path, code)
    monkeypatch.setenv("NOT_ITS_OWN", "1")
    told: list[Mapping[str, Any]] = []
    with stopped_by_sigterm(), client_ahead(SERVER, tmp_path) as ahead:
        assert ahead is not None
        ahead.judge(CUTS, log=tmp_path / "logs" / "7.log", observe=lambda step, figures: told.append(figures))
    assert told == [{"leads": True, "own": None, "python": sys.executable, "sigterm": True}]
    assert os.environ["NOT_ITS_OWN"] == "1"


def test_without_a_server_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "APP", None)
    environment = {name: value for name, value in SERVER.items() if name != "SPARK_REMOTE"}
    with client_ahead(environment, tmp_path) as ahead:
        assert ahead is None
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("waits", [True, False], ids=["it waits", "it has failed"])
def test_one_that_nobody_needed_leaves_no_process_and_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    children_run(monkeypatch, tmp_path, WAITS if waits else FAILS)
    pids: list[int] = []

    def stopped(ahead: ClientAhead | None) -> None:
        assert ahead is not None
        wait_for_words(tmp_path)
        pids.append(ahead._job.pid)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), client_ahead(SERVER, tmp_path) as ahead:
        stopped(ahead)
    assert is_gone(pids[0])
    assert not [*tmp_path.glob("logs/*")]


def test_one_that_failed_before_it_had_its_cuts_is_told_by_its_last_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    children_run(monkeypatch, tmp_path, FAILS)
    log = tmp_path / "logs" / "billing" / "7.log"
    with client_ahead(SERVER, tmp_path) as ahead:
        assert ahead is not None
        ahead._job.wait(30)
        with pytest.raises(SparkAppFailed) as failed:
            ahead.judge(CUTS, log=log, observe=lambda *_: None)
    assert str(failed.value) == (
        f"the Spark app ended with exit code 1: ImportError: no such library; its log is {log}"
    )


@pytest.mark.parametrize(
    ("app", "said"),
    [
        ("raise SystemExit(3)", "exit code 3: it named no error"),
        ("raise SystemExit('Refused: no token')", "exit code 1: Refused: no token"),
        ("raise ValueError('no text: \\udce9')", "exit code 1: ValueError: no text: \\udce9"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "exit code -9: it named no error"),
    ],
)
def test_it_ends_as_a_program_of_its_own_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, app: str, said: str
) -> None:
    children_run(monkeypatch, tmp_path, app)
    log = tmp_path / "7.log"
    with pytest.raises(SparkAppFailed) as failed, client_ahead(SERVER, tmp_path) as ahead:
        assert ahead is not None
        ahead.judge(CUTS, log=log, observe=lambda *_: None)
    assert str(failed.value) == f"the Spark app ended with {said}; its log is {log}"


@pytest.mark.parametrize(
    "begin",
    ["run()", "os.close(0); run()", "signal.signal(signal.SIGCHLD, signal.SIG_IGN); run()", DAEMON],
    ids=["at a terminal", "without a standard input", "where nobody asks how children end", "in a daemon's child"],
)
def test_it_is_forked_wherever_a_run_is_started(tmp_path: Path, begin: str) -> None:
    write_app(tmp_path, TELLS)
    subprocess.run([sys.executable, "-c", WHEREVER + begin, str(tmp_path)], check=True, timeout=60)
    order = json.dumps({"contract": "a.yaml", "cut": 7}) + "\n"
    assert json.loads((tmp_path / "told").read_text()) == [[["got", order]], "loaded\n"]


def test_one_that_nobody_needed_is_ended_at_once_however_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    children_run(monkeypatch, tmp_path, WAITS)
    began = time.monotonic()
    for _ in range(20):
        with client_ahead(SERVER, tmp_path):
            pass
    assert time.monotonic() - began < 10, "one of them did not hear SIGTERM, and was killed 10 s later"
