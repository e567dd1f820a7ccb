"""A forked process is told what any other is, ends with a code of its own, and can be killed and frozen."""

import json
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab.servers import process
from lab.servers.warm_python import PipedChild, spawn, spawn_piped

TELLING = (sys.executable, "-m", "tests.unit.lab.servers.telling_process")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.txt"


def telling(log: Path, code: int = 0, **environment: str) -> PipedChild:
    return spawn_piped([*TELLING, str(code)], log=log, environment=environment)


def test_it_has_its_arguments_its_environment_and_a_session_of_its_own(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER", "of the lab")
    child = telling(log, 3, WORD="hello")
    assert json.loads(child.stdout.readline()) == {"argv": ["3"], "word": "hello", "leads": True}
    assert child.poll() is None
    child.stdin.write(b"end\n")
    child.stdin.flush()
    assert child.wait(30) == child.returncode == 3
    assert log.read_text() == "a complaint\n"


def test_without_pipes_all_that_it_says_is_in_the_log_and_nobody_speaks_to_it(log: Path) -> None:
    child = spawn([*TELLING, "0"], log=log, environment={})
    assert child.wait(30) == 0
    assert "argv" in log.read_text()
    assert "a complaint" in log.read_text()


def test_one_that_is_killed_or_frozen_is_so(log: Path) -> None:
    child = telling(log)
    child.stdout.readline()
    process.freeze(child)
    child.stdin.write(b"end\n")
    child.stdin.flush()
    assert child.poll() is None
    child.send_signal(signal.SIGCONT)
    assert child.wait(30) == 0
    killed = telling(log)
    killed.stdout.readline()
    process.kill_tree(killed)
    assert killed.returncode == -signal.SIGKILL


def test_one_that_says_nothing_more_is_killed_at_its_deadline(log: Path) -> None:
    child = telling(log)
    child.stdout.readline()
    process.freeze(child)
    assert child.read(0.1) == b""
    assert child.wait(30) == -signal.SIGKILL


def test_many_at_once_end_each_with_its_own_code(log: Path) -> None:
    def code_of(number: int) -> int:
        child = telling(log, number)
        child.read(30)
        return child.wait(30)

    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(code_of, range(40))] == [*range(40)]
