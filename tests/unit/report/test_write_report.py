"""A report is written whole or not at all, with the same bytes wherever it is written."""

import hashlib
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tallystick.contract.contract import Contract
from tallystick.model.stored_run import StoredRun
from tallystick.report.write_report import render_report, report_path, write_report

RENDER = """
import hashlib, pickle, sys
from tallystick.report.write_report import render_report
run, contract = pickle.load(open(sys.argv[1], "rb"))
print(hashlib.sha256(render_report(run, contract).encode()).hexdigest())
"""


def test_two_processes_write_the_same_bytes(many_breaks_run: StoredRun, contract: Contract, tmp_path: Path) -> None:
    stored = tmp_path / "run.pickle"
    stored.write_bytes(pickle.dumps((many_breaks_run, contract)))
    hashes = {
        subprocess.run(
            [sys.executable, "-c", RENDER, str(stored)],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert hashes == {hashlib.sha256(render_report(many_breaks_run, contract).encode()).hexdigest() + "\n"}


def test_the_zone_a_database_answers_in_changes_no_byte(matched_run: StoredRun, contract: Contract) -> None:
    tokyo = timezone(timedelta(hours=9))
    moved = replace(
        matched_run,
        window_start_utc=matched_run.window_start_utc.astimezone(tokyo),
        window_end_utc=matched_run.window_end_utc.astimezone(tokyo),
        recorded_at=matched_run.recorded_at.astimezone(tokyo),
        now_utc=matched_run.now_utc.astimezone(tokyo),
    )
    assert render_report(moved, contract) == render_report(matched_run, contract)


def test_a_report_is_written_whole_or_not_at_all(
    matched_run: StoredRun, contract: Contract, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_report(matched_run, contract, tmp_path)
    assert path == report_path(tmp_path, "billing_payouts", 6)
    assert path.read_text(encoding="utf-8") == render_report(matched_run, contract)
    before = path.read_bytes()

    def fails(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        write_report(matched_run, contract, tmp_path)
    assert path.read_bytes() == before
