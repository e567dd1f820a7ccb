"""`tallystick run` shows each verdict and what failed beside it, and ends with the worst of all."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from tallystick.cli.commands import run as run_command
from tallystick.kafka_log.fetch import BrokerUnreachable
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.pipeline import local_run
from tallystick.store import engine
from tests.unit.cli.command_line import run


def judged(run: StoredRun, n: int, verdict: Verdict) -> StoredRun:
    return replace(run, result=replace(run.result, cut_n=n, verdict=verdict))


@pytest.mark.parametrize(
    ("verdicts", "failure", "code"),
    [
        ("BROKEN MATCHED", None, 1),
        ("INCONCLUSIVE MATCHED", None, 3),
        ("MATCHED MATCHED", None, 0),
        ("BROKEN", BrokerUnreachable("Kafka at b:1: refused"), 1),
        ("MATCHED", BrokerUnreachable("Kafka at b:1: refused"), 2),
        ("INCONCLUSIVE", BrokerUnreachable("Kafka at b:1: refused"), 2),
        ("", BrokerUnreachable("Kafka at b:1: refused"), 2),
        ("MATCHED", ZeroDivisionError("a bug"), 70),
        ("BROKEN", ZeroDivisionError("a bug"), 1),
        ("BROKEN MATCHED", KeyboardInterrupt(), 130),
        ("", KeyboardInterrupt(), 130),
    ],
)
def test_a_run_shows_each_verdict_and_what_failed_and_ends_with_the_worst(
    verdicts: str,
    failure: BaseException | None,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    contract_file: Path,
    broken_run: StoredRun,
) -> None:
    """The first is of a cut that an earlier run had left; a failure comes behind those that were judged."""
    runs = [judged(broken_run, n, Verdict(verdict)) for n, verdict in enumerate(verdicts.split(), start=7)]

    def reconcile(locals_: object, *, settle: bool, judged: Callable[[StoredRun, Path], None], ahead: object) -> None:
        for one in runs:
            judged(one, Path("report.html"))
        if failure:
            raise failure

    monkeypatch.setattr(run_command, "local_run", lambda *_: SimpleNamespace(engine=None))
    monkeypatch.setattr(run_command, "masked", lambda _, run: run)
    monkeypatch.setattr(local_run, "reconcile_now", reconcile)
    shown, machine = run("run", str(contract_file)), run("run", str(contract_file), "--json")
    assert (shown.exit_code, machine.exit_code) == (code, code)
    names = [line.split()[:2] for line in shown.stdout.splitlines() if line.startswith(tuple(Verdict))]
    assert names == [[one.result.verdict, f"{one.result.contract}/{one.result.cut_n}"] for one in runs]
    assert (str(failure) in shown.stderr) == bool(failure)
    if runs:
        documents = json.loads(machine.stdout)
        cuts = [one["cut"] for one in (documents if len(runs) > 1 else [documents])]
        assert cuts == [one.result.cut_n for one in runs]


def test_a_run_that_spark_cannot_read_is_refused_before_the_store_is_opened(
    monkeypatch: pytest.MonkeyPatch, contract_file: Path, tmp_path: Path
) -> None:
    """An earlier version stored the cut first, and left it without a verdict."""
    monkeypatch.setenv("TALLYSTICK_JARS_DIR", str(tmp_path))
    monkeypatch.setattr(engine, "open_store", Mock(side_effect=AssertionError("the store was opened")))
    result = run("run", str(contract_file))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"TALLYSTICK_JARS_DIR: {tmp_path} has no jars; ")


@pytest.mark.parametrize("name", ["file", "file/x"])
def test_artifacts_in_place_of_a_file_are_refused_before_the_store_is_opened(
    monkeypatch: pytest.MonkeyPatch, contract_file: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TALLYSTICK_ARTIFACTS_DIR", str(tmp_path / name))
    monkeypatch.setattr(engine, "open_store", Mock(side_effect=AssertionError("the store was opened")))
    commands = (
        ("run", str(contract_file)),
        ("cut", "make", str(contract_file)),
        ("report", "billing/1"),
        ("spark", "start"),
        ("spark", "status"),
        ("spark", "stop"),
    )
    for command in commands:
        result = run(*command)
        assert (result.exit_code, result.stdout) == (2, ""), command
        assert result.stderr.splitlines()[-1] == (
            f"TALLYSTICK_ARTIFACTS_DIR: got {tmp_path / name}, but {tmp_path / 'file'} is no folder; expected one, or "
            "a path to make one"
        )


def test_no_spark_runs_for_artifacts_that_are_not_there_yet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TALLYSTICK_ARTIFACTS_DIR", str(tmp_path / "none" / "x"))
    for command in ("status", "stop"):
        assert run("spark", command).stdout == "no Spark server runs for these artifacts\n"


@pytest.mark.parametrize(
    ("command", "setting"),
    [
        (("report", "billing/1"), "--folder"),
        (("init", "orders", "--topic", "t", "--table", "s.t", "--kafka", "k", "--ledger", "l"), "--folder"),
    ],
    ids=["report", "init"],
)
def test_a_folder_below_a_file_is_refused_before_anything_is_read(
    command: tuple[str, ...], setting: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    result = run(*command, "--folder", str(tmp_path / "file" / "x"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{setting}: got {tmp_path}/file/x, but {tmp_path}/file is no folder; ")
    other = run(*command, "--folder", str(tmp_path / "none"))
    assert (other.exit_code, "is no folder" in other.stderr) == (2, False)
