"""The Spark app as a child: its steps are heard, its secrets stay out of argv, and it never outlives us."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tallystick.spark.spark_job import (
    JAVA_OPTIONS,
    PYTHON_SETTINGS,
    SparkAppFailed,
    SparkNotReady,
    last_words,
    run_job,
    submit_argv,
)

CONTRACT = Path("billing.yaml")
OTHER = Path("dags/contracts/billing_payouts.yaml")


def child(code: str) -> list[str]:
    return [sys.executable, "-u", "-c", code]


def run(argv: list[str], log: Path, observe: Callable[[str, Mapping[str, Any]], None] = lambda *_: None) -> None:
    run_job(argv, log=log, environment=dict(os.environ), observe=observe)


def is_alive(pid: int) -> bool:
    """Is it there, and no zombie?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_steps_are_told_in_order_and_everything_else_goes_to_the_log(tmp_path: Path) -> None:
    steps: list[tuple[str, Mapping[str, Any]]] = []
    code = """
import sys
print('{"step": "claimed", "attempt": 2}')
print('warning: something of Spark')
print('{"other": 1}')
print('{"step": "done"}')
print('on stderr', file=sys.stderr)
"""
    run(child(code), tmp_path / "logs" / "1.log", lambda step, figures: steps.append((step, figures)))
    assert steps == [("claimed", {"attempt": 2}), ("done", {})]
    log = (tmp_path / "logs" / "1.log").read_text()
    for line in ("warning: something of Spark", '{"other": 1}', "on stderr"):
        assert line in log


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["kafka.errors.NoBrokers: none"], "NoBrokers: none"),
        (["NoBrokers: none: at all", "  File x: y", "26/03/01 12:00:00 ERROR Utils: z"], "NoBrokers: none: at all"),
        (["First: 1", "a.b.Second: 2", "not an error: 3"], "Second: 2"),
        (["Error.lower: x", "KeyError:", ""], "it named no error"),
        (["NoBrokers: none", "x" * 1_000_000 + ": x"], "NoBrokers: none"),
        (["Far: away", *["x" * 1_000] * 1_100], "it named no error"),
        (["NoBrokers: none", "x" * 500_000, "A.b" * 100_000], "NoBrokers: none"),
        (["NoBrokers: none", "A" * 1_000_000], "NoBrokers: none"),
        (["NoBrokers: none", "Ab" * 500_000], "NoBrokers: none"),
    ],
)
def test_the_last_words_are_the_last_line_that_names_an_error(tmp_path: Path, lines: list[str], expected: str) -> None:
    """However long a line is: looked at again from each of its capitals, one of a million would take hours."""
    log = tmp_path / "1.log"
    log.write_text("\n".join(lines))
    assert last_words(log) == expected


def test_a_failed_app_is_told_by_its_last_error_and_its_log(tmp_path: Path) -> None:
    log = tmp_path / "1.log"
    code = """
import sys
print("26/03/01 12:00:00 WARN Utils: nothing of note", file=sys.stderr)
class BrokerUnreachable(Exception): pass
raise BrokerUnreachable("Kafka at localhost:1: refused")
"""
    with pytest.raises(SparkAppFailed) as failed:
        run(child(code), log)
    assert str(failed.value) == (
        f"the Spark app ended with exit code 1: BrokerUnreachable: Kafka at localhost:1: refused; its log is {log}"
    )


def test_a_failed_app_without_a_word_says_so(tmp_path: Path) -> None:
    with pytest.raises(SparkAppFailed, match="exit code 7: it named no error"):
        run(child("raise SystemExit(7)"), tmp_path / "1.log")


def test_the_log_is_for_its_owner_only(tmp_path: Path) -> None:
    run(child("pass"), tmp_path / "1.log")
    assert (tmp_path / "1.log").stat().st_mode & 0o077 == 0


STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
grandchild = subprocess.Popen([sys.executable, "-c", code])
import json, os
print(json.dumps({"step": "started", "pids": [os.getpid(), grandchild.pid]}))
time.sleep(600)
"""


def test_an_interrupt_leaves_no_child_and_no_grandchild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallystick.spark.spark_job._SECONDS_TO_STOP", 0.2)
    pids: list[int] = []

    def interrupt(step: str, figures: Mapping[str, Any]) -> None:
        pids.extend(figures["pids"])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(child(STUBBORN), tmp_path / "1.log", interrupt)
    assert len(pids) == 2
    deadline = time.monotonic() + 10
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)  # the grandchild's new parent reaps it
    assert not [pid for pid in pids if is_alive(pid)]


MILD = STUBBORN.replace("signal.signal(signal.SIGTERM, signal.SIG_IGN)", "pass")
OUTER = f"""
import os, sys
from pathlib import Path
from tallystick.spark.spark_job import run_job
argv = [sys.executable, "-u", "-c", {MILD!r}]
observe = lambda step, found: print(*found["pids"], flush=True)
try:
    run_job(argv, log=Path(sys.argv[1]), environment=dict(os.environ), observe=observe)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_in_a_terminal_reaches_the_child_through_us(tmp_path: Path) -> None:
    outer = subprocess.Popen(
        [sys.executable, "-c", OUTER, str(tmp_path / "1.log")],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert outer.stdout is not None
    pids = [int(pid) for pid in outer.stdout.readline().split()]
    assert all(is_alive(pid) for pid in pids)
    os.killpg(outer.pid, signal.SIGINT)  # what a terminal does: to our group, which the child is not in
    assert outer.wait(30) == 130
    deadline = time.monotonic() + 10
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not [pid for pid in pids if is_alive(pid)]
    outer.stdout.close()


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    (tmp_path / "b.jar").touch()
    (tmp_path / "a.jar").touch()
    return tmp_path


def test_argv_names_app_cut_and_jars_and_no_secret(jars: Path) -> None:
    secret = "postgresql://tally:hunter2@db/tally"
    environment = {"TALLYSTICK_JARS_DIR": str(jars), "TALLYSTICK_STORE_DSN": secret, "TALLYSTICK_CONN_LEDGER": secret}
    argv = submit_argv([(CONTRACT, 7)], reread=False, environment=environment)
    assert argv[0].endswith("/spark-submit")
    assert argv[argv.index("--jars") + 1] == f"{jars}/a.jar,{jars}/b.jar"
    assert argv[argv.index("--master") + 1] == "local[*]"
    assert argv[-5:-4][0].endswith("spark_apps/tallystick_spark/reconcile_app.py")
    assert argv[-4:] == ["--contract", "billing.yaml", "--cut", "7"]
    assert "hunter2" not in " ".join(argv)


@pytest.mark.parametrize("setting", ["spark.jars", "spark.jars.packages"])
def test_jars_that_the_settings_name_need_not_be_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {"TALLYSTICK_SPARK_CONF": json.dumps({setting: "somewhere"})}
    argv = submit_argv([(CONTRACT, 7)], reread=False, environment=environment)
    assert "--jars" not in argv
    assert f"{setting}=somewhere" in argv


def test_jars_that_spark_has_itself_need_not_be_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {"SPARK_HOME": str(tmp_path)}
    with pytest.raises(SparkNotReady, match=r"tallystick jars fetch \.jars/spark"):
        submit_argv([(CONTRACT, 7)], reread=False, environment=environment)
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-sql-kafka-0-10_2.13-4.1.3.jar").touch()
    assert "--jars" not in submit_argv([(CONTRACT, 7)], reread=False, environment=environment)


def test_argv_is_understood_by_the_app_itself(jars: Path) -> None:
    from tallystick_spark.reconcile_app import parse_arguments

    environment = {"TALLYSTICK_JARS_DIR": str(jars)}
    for reread in (False, True):
        argv = submit_argv([(CONTRACT, 7), (OTHER, 3)], reread=reread, environment=environment)
        app = next(place for place, part in enumerate(argv) if part.endswith("reconcile_app.py"))
        parsed = parse_arguments(argv[app + 1 :])
        assert (parsed.contract, parsed.cut, parsed.reread) == ([CONTRACT, OTHER], [7, 3], reread)


def test_the_app_refuses_a_contract_without_its_cut(capsys: pytest.CaptureFixture[str]) -> None:
    from tallystick_spark.reconcile_app import parse_arguments

    with pytest.raises(SystemExit) as refused:
        parse_arguments(["--contract", "a.yaml", "--cut", "1", "--contract", "b.yaml"])
    assert refused.value.code == 2
    assert "got 2 --contract and 1 --cut; expected a --cut for each" in capsys.readouterr().err


@pytest.mark.parametrize("more", [(), ("--reread",)])
def test_the_app_refuses_to_judge_nothing(more: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    from tallystick_spark.reconcile_app import parse_arguments

    with pytest.raises(SystemExit) as refused:
        parse_arguments(more)
    assert refused.value.code == 2
    assert "got no cut to judge; expected --contract and --cut, or --follow" in capsys.readouterr().err


def test_the_app_takes_further_cuts_from_a_pipe_until_it_is_closed(tmp_path: Path) -> None:
    from tallystick_spark.reconcile_app import CutJob, follow, parse_arguments

    pipe = tmp_path / "orders"
    pipe.write_text('{"contract": "a.yaml", "cut": 7}\n{"contract": "b.yaml", "cut": 3, "reread": true}\n')
    assert parse_arguments(["--follow", str(pipe)]).follow == pipe
    assert list(follow(pipe)) == [CutJob(Path("a.yaml"), 7, reread=False), CutJob(Path("b.yaml"), 3, reread=True)]


def test_own_settings_go_before_ours(jars: Path) -> None:
    environment = {
        "TALLYSTICK_JARS_DIR": str(jars),
        "TALLYSTICK_SPARK_MASTER": "local[2]",
        "TALLYSTICK_SPARK_CONF": '{"spark.driver.memory": "8g", "spark.x": 1}',
    }
    argv = submit_argv([(CONTRACT, 7)], reread=False, environment=environment)
    assert "local[2]" in argv
    assert "spark.driver.memory=8g" in argv
    assert "spark.driver.memory=2g" not in argv
    assert "spark.x=1" in argv
    assert f"spark.driver.defaultJavaOptions={JAVA_OPTIONS}" in argv
    assert {f"{name}={value}" for name, value in PYTHON_SETTINGS.items()} <= set(argv)


def test_own_java_options_stand_in_place_of_ours(jars: Path) -> None:
    own = {"TALLYSTICK_JARS_DIR": str(jars), "TALLYSTICK_SPARK_CONF": '{"spark.driver.defaultJavaOptions": "-Dx=y"}'}
    argv = submit_argv([(CONTRACT, 7)], reread=False, environment=own)
    assert [part for part in argv if "defaultJavaOptions" in part] == ["spark.driver.defaultJavaOptions=-Dx=y"]


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"TALLYSTICK_JARS_DIR": "/nowhere"}, "TALLYSTICK_JARS_DIR: /nowhere has no jars"),
        ({"TALLYSTICK_SPARK_CONF": "[]"}, "TALLYSTICK_SPARK_CONF: expected a JSON object"),
        ({"TALLYSTICK_SPARK_CONF": "{"}, "TALLYSTICK_SPARK_CONF: expected a JSON object"),
        ({"TALLYSTICK_SCAN": "bogus"}, "TALLYSTICK_SCAN: got 'bogus'; expected 'by_client', 'pair_by_pair' or nothing"),
        ({"TALLYSTICK_SCAN": "bogus", "SPARK_REMOTE": "sc://localhost:1"}, "TALLYSTICK_SCAN: got 'bogus'; expected"),
    ],
)
def test_what_is_not_ready_is_named(jars: Path, changes: dict[str, str], refused: str) -> None:
    with pytest.raises(SparkNotReady, match=refused):
        submit_argv([(CONTRACT, 7)], reread=False, environment={"TALLYSTICK_JARS_DIR": str(jars), **changes})


@pytest.mark.parametrize("way", ["", "by_client", "pair_by_pair"])
def test_each_way_to_scan_that_there_is_may_be_asked_for(jars: Path, way: str) -> None:
    environment = {"TALLYSTICK_JARS_DIR": str(jars)}
    argv = submit_argv([(CONTRACT, 7)], reread=False, environment=environment)
    assert submit_argv([(CONTRACT, 7)], reread=False, environment={**environment, "TALLYSTICK_SCAN": way}) == argv
