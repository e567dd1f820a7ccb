"""A child that takes too long is ended, with all that it started; one that ends by itself has its say."""

import os
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tallystick.contract.contract import Contract
from tallystick.model.stored_run import ExpectationsOutcome, StoredRun
from tallystick.pipeline import own_expectations

PATIENT = 60
"""Seconds: a busy machine ends a process late."""

STARTS_ANOTHER = """
import os, subprocess, sys
held = os.open(os.environ["HELD"], os.O_WRONLY)
subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], pass_fds=[held])
os.write(held, b"x")
os.close(held)
"""
"""The other one holds the file open for as long as it lives."""


@pytest.fixture
def child_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write what the child does in place of evaluating suites."""
    monkeypatch.setattr(own_expectations, "_APP", "does")
    monkeypatch.setattr(own_expectations, "read_outcome", lambda *_: None)
    monkeypatch.setattr(own_expectations, "store_outcome", lambda engine, contract, run, outcome: outcome)
    return (tmp_path / "does.py").write_text


@pytest.fixture
def held(tmp_path: Path) -> Iterator[int]:
    """The reading end of a file that somebody holds open."""
    os.mkfifo(tmp_path / "held")
    reading = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    yield reading
    os.close(reading)


def evaluate(contract: Contract, run: StoredRun, folder: Path) -> ExpectationsOutcome:
    return own_expectations.evaluate_apart(
        None,  # type: ignore[arg-type]
        contract.model_copy(update={"expectations": "suites.py"}),
        run,
        contract_file=folder / "contract.yaml",
        log=folder / "logs" / "own.log",
        environment={**os.environ, "PYTHONPATH": str(folder), "HELD": str(folder / "held")},
    )


def can_be_read(reading: int) -> bool:
    return bool(select.select([reading], [], [], PATIENT)[0])


def test_a_child_that_takes_too_long_is_ended_with_all_that_it_started(
    contract: Contract,
    matched_run: StoredRun,
    tmp_path: Path,
    child_does: Any,
    held: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    child_does(f"{STARTS_ANOTHER}\nimport signal; signal.pause()")
    time_is_over: list[float] = []

    class Late(subprocess.Popen[bytes]):
        """Its time is over once it has started the other one."""

        def wait(self, timeout: float | None = None) -> int:
            if timeout and not time_is_over:
                time_is_over.append(timeout)
                assert can_be_read(held) and os.read(held, 1) == b"x"
                raise subprocess.TimeoutExpired(self.args, timeout)
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Late)
    outcome = evaluate(contract, matched_run, tmp_path)
    assert "its process took longer than 600 s" in str(outcome)
    assert can_be_read(held) and os.read(held, 1) == b"", "nobody holds it any more"


def test_a_child_that_ends_by_itself_says_how(
    contract: Contract, matched_run: StoredRun, tmp_path: Path, child_does: Any
) -> None:
    child_does("raise KeyError('of its own')")
    assert "exit code 1: KeyError: 'of its own'" in str(evaluate(contract, matched_run, tmp_path))
    child_does("")
    assert "its process ended before it had stored anything" in str(evaluate(contract, matched_run, tmp_path))
