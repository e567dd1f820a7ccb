"""One mixed round on real servers: every planted fault is found under its own name, and nothing is invented."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from lab.product.command_line import CommandLine
from lab.rounds.main import figures_of
from lab.rounds.mixed_round import run_round
from lab.servers.process import REPOSITORY, wait_until
from lab.servers.stack import LabStack

pytestmark = pytest.mark.stack

SEED = 5


def test_every_planted_fault_is_found_under_its_class_and_clean_books_match(
    lab_stack: LabStack, lab_folder: Path
) -> None:
    CommandLine(addresses=lab_stack, folder=lab_folder).migrate_store()
    result = run_round(lab_stack, SEED, lab_folder)
    assert result.score.differs == ()
    assert result.score.total.planted >= 8
    assert set(result.clean.values()) == {("MATCHED", "MATCHED")}
    figures = figures_of([result], asked=[SEED], seconds=result.seconds)
    assert figures["planted"] == figures["found"] == sum(each["planted"] for each in figures["classes"].values())
    truth = json.loads((lab_folder / "truth.json").read_text())
    assert {one["finding"]["name"] for one in truth["planted"]} == set(figures["classes"])


@pytest.mark.lab
def test_nothing_is_left_of_a_round_that_is_interrupted_while_spark_works(lab_folder: Path, tmp_path: Path) -> None:
    argv, log = [sys.executable, "-m", "lab.rounds.main", f"--folder={lab_folder}"], tmp_path / "stderr"
    with log.open("wb") as stderr:
        runner = subprocess.Popen(argv, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=stderr)
    family: list[psutil.Process] = []
    try:
        assert runner.stdout is not None
        while b"faults are planted" not in runner.stdout.readline():
            assert runner.poll() is None, log.read_text(errors="replace")[-3000:]
        artifacts = lab_folder / "rounds" / "1" / "artifacts"
        wait_until(lambda: _judges(artifacts), what="a run", deadline_seconds=60)
        server = json.loads((artifacts / "spark" / "server.json").read_text())
        for process in (psutil.Process(runner.pid), psutil.Process(server["pid"])):
            family += [process, *process.children(recursive=True)]
        runner.send_signal(signal.SIGINT)
        assert runner.wait(60) != 0
    finally:
        runner.kill()
        runner.wait()
    wait_until(lambda: not [m for m in family if m.is_running()], what="the children's end", deadline_seconds=20)


def _judges(artifacts: Path) -> bool:
    """Has a Spark client been told the cut of a window? Its log is named for it by then; 0 is the baseline's."""
    return any(artifacts.glob("logs/*/[1-9]*.log"))
