"""Thirteen windows of a soak: runs and servers are really killed, and the sum over all windows is the truth."""

import json
from pathlib import Path

import pytest

from lab.product.command_line import CommandLine
from lab.servers.stack import LabStack
from lab.soak.main import figures_of
from lab.soak.soak_plan import Disturbance
from lab.soak.soak_run import SoakResult, run_soak

pytestmark = [pytest.mark.stack, pytest.mark.lab, pytest.mark.timeout(1800)]

SEED = 242
WINDOWS = 13
"""So few of this seed have every disturbance, and a run of which the driver is killed, and one of which the JVM is."""


def test_the_sum_over_all_windows_is_the_truth_whatever_was_killed(lab_stack: LabStack, lab_folder: Path) -> None:
    CommandLine(addresses=lab_stack, folder=lab_folder).migrate_store()
    kept: list[SoakResult] = []
    result = run_soak(lab_stack, seed=SEED, windows=WINDOWS, folder=lab_folder / "books", keep=kept.append)
    score, done = result.score, result.done

    assert score.differs == ()
    assert score.planted == score.found >= WINDOWS
    assert (score.lost, score.double, score.false) == (0, 0, 0)
    truth = json.loads((lab_folder / "books" / "truth.json").read_text())
    assert {one["finding"]["name"] for one in truth["planted"]} == set(score.by_class)

    happened = {each for each in Disturbance if done[str(each)]}
    assert happened == {each for each in Disturbance if each.server or each.needs_process}
    assert done["cuts refused"] == 1
    assert done["cuts read again"] and done["verdicts cleared"]

    figures = figures_of(result, asked=WINDOWS, seconds=0)
    assert figures["windows"] == WINDOWS
    assert figures["kills"] >= 4
    assert {"kafka", "tallystick"} <= figures["versions"].keys()
    assert figures["restarts"] == 3
    assert sum(figures["verdicts"].values()) >= WINDOWS + 2
    assert all(figures[count] for count in ("offsets", "records", "rows", "cleared", "store_bytes_per_window"))
    assert [len(one.seconds) for one in kept] == [10]
    assert [one.score.differs for one in kept] == [()]
