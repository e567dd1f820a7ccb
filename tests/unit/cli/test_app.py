"""The command line: help that teaches, one sentence per expected error, and exit codes that mean one thing each."""

import gc
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tallystick.cli import app as cli
from tallystick.cli import output as cli_output
from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.config_check import CheckResult, PostureLine
from tallystick.kafka_log.fetch import BrokerUnreachable
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.pipeline import config_check_now, local_run
from tests.unit.cli.commands import COMMANDS, run


@pytest.fixture
def contract_file(tmp_path: Path, contract: Contract) -> Path:
    path = tmp_path / "billing.yaml"
    path.write_text(yaml.safe_dump(contract.model_dump(mode="json")))
    return path


@pytest.mark.parametrize("command", COMMANDS, ids="-".join)
def test_the_help_of_every_command_has_an_example_of_it(command: tuple[str, ...]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert re.search(rf"Example: .*tallystick {' '.join(command)}", re.sub(r"\s+", " ", result.output))


def test_the_help_names_every_command_and_every_exit_code() -> None:
    output = re.sub(r"\s+", " ", run("--help").output)
    for name in (
        "contract",
        "store",
        "run",
        "cut",
        "runs",
        "show",
        "report",
        "explain",
        "write-off",
        "compensation",
        "alert",
        "posture",
        "census",
        "metrics",
    ):
        assert f" {name} " in output
    for code in ("0 matched", "1 broken", "2 refused", "3 inconclusive", "70 a bug", "130 interrupted"):
        assert code in output


def test_good_contracts_are_listed(contract_file: Path) -> None:
    result = run("contract", "check", str(contract_file))
    assert result.exit_code == 0
    assert "billing_payouts" in result.stdout
    assert "billing.fees, billing.payouts" in result.stdout


def test_good_contracts_are_listed_for_machines_too(contract_file: Path, contract: Contract) -> None:
    result = run("contract", "check", "--json", str(contract_file), str(contract_file.parent))
    assert result.exit_code == 0
    first, second = json.loads(result.stdout)
    assert first == second
    assert first == {
        "contract": "billing_payouts",
        "version": 3,
        "direction": "ledger_to_topic",
        "topics": ["billing.fees", "billing.payouts"],
        "table": "billing.payout",
        "schedule": "0 * * * *",
        "fingerprint": contract.fingerprint,
    }


def test_bad_contracts_are_refused_together_on_stderr(contract_file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(contract_file.read_text().replace("version: 3", "version: 0"))
    result = run("contract", "check", str(bad), str(tmp_path / "none.yaml"), str(contract_file))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        f"{bad}: version: got 0; expected 1 or more",
        f"{tmp_path}/none.yaml: no such file; expected a contract in YAML",
    ]


def test_an_empty_folder_passes_no_check(tmp_path: Path) -> None:
    result = run("contract", "check", str(tmp_path))
    assert result.exit_code == 2
    assert result.stderr == f"{tmp_path}: no contract in this folder; expected *.yaml\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("contract", "check"),
        ("contract", "diff"),
        ("contract", "diff", "none.yaml"),
        ("run",),
        ("run", "x.yaml", "--reread", "-1"),
        ("cut", "make"),
        ("cut", "close"),
        ("cut", "none.yaml"),
        ("runs", "--limit", "0"),
        ("census", "topic"),
        ("explain",),
        ("write-off", "billing"),
        ("write-off", "billing", "12345678", "--by", "Ada"),
        ("write-off", "billing", "12345678", "--by", " ", "--reason", "refunded"),
        ("write-off", "billing", "12345678", "--by", "Ada", "--reason", ""),
        ("compensation", "plan"),
        ("compensation", "plan", "none.yaml"),
        ("compensation", "act", "none.yaml", "hash"),
        ("compensation", "stop"),
        ("compensation", "stop", "--by", "Ada"),
        ("compensation", "stop", "--by", " ", "--because", "it hangs"),
        ("compensation", "allow", "--by", "Ada", "--because", ""),
        ("alert", "ack", "billing", "missing_in_ledger"),
        ("alert", "test"),
        ("alert", "test", "none.yaml"),
        ("posture",),
        ("posture", "none.yaml"),
        ("show", "billing"),
        ("show", "billing/x"),
        ("show", "Billing/1"),
        ("report", "../../etc/passwd/1"),
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2_and_says_what_was_expected(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs",),
        ("show", "billing/1"),
        ("report", "billing/1"),
        ("explain", "12345678"),
        ("write-off", "billing", "12345678", "--by", "Ada", "--reason", "refunded"),
        ("compensation", "stop", "--by", "Ada", "--because", "it hangs"),
        ("alert", "ack", "billing", "missing_in_ledger", "--by", "Ada"),
        ("store", "migrate"),
        ("metrics", "show"),
        ("metrics", "serve"),
        ("metrics", "push"),
    ],
    ids=" ".join,
)
def test_a_store_that_nobody_named_is_asked_for(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("the verdict store is not named: expected TALLYSTICK_STORE_DSN=")


def test_a_diff_asks_for_the_store_too(contract_file: Path) -> None:
    result = run("contract", "diff", str(contract_file))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("the verdict store is not named")


def test_garbage_is_searched_for_seldom_while_a_command_works(monkeypatch: pytest.MonkeyPatch) -> None:
    before, inside = gc.get_threshold(), []
    monkeypatch.setattr(cli_output, "print_contracts", lambda *_: inside.append(gc.get_threshold()))
    assert run("contract", "check", "dags/contracts").exit_code == 0
    assert inside[0][0] > 100 * before[0]
    assert gc.get_threshold() == before


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
    ],
)
def test_a_run_shows_each_verdict_and_what_failed_and_ends_with_the_worst(
    verdicts: str,
    failure: Exception | None,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    contract_file: Path,
    broken_run: StoredRun,
) -> None:
    """The first is of a cut that an earlier run had left; a failure comes behind those that were judged."""
    runs = [judged(broken_run, n, Verdict(verdict)) for n, verdict in enumerate(verdicts.split(), start=7)]

    def reconcile(locals_: object, *, settle: bool, judged: Callable[[StoredRun, Path], None]) -> None:
        for one in runs:
            judged(one, Path("report.html"))
        if failure:
            raise failure

    monkeypatch.setattr(cli, "_local_run", lambda *_: SimpleNamespace(engine=None))
    monkeypatch.setattr(cli, "_masked", lambda _, run: run)
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


LINES = (
    PostureLine(
        setting="min.insync.replicas", scope="t", value="1", needs="2", standing=CheckResult.AT_RISK, do="set 2"
    ),
    PostureLine(
        setting="retention.ms", scope="t", value="not read", needs="1 h", standing=CheckResult.UNKNOWN, do="ask"
    ),
    PostureLine(setting="cleanup.policy", scope="t", value="delete", needs="delete", standing=CheckResult.OK, do=""),
)


@pytest.mark.parametrize(("lines", "code"), [(LINES, 1), (LINES[1:], 3), (LINES[2:], 0)], ids=str)
def test_a_posture_ends_with_the_code_of_its_worst_line(
    lines: tuple[PostureLine, ...],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    contract_file: Path,
) -> None:
    monkeypatch.setenv("TALLYSTICK_CONN_KAFKA_BILLING", json.dumps({"bootstrap.servers": "localhost:1"}))
    monkeypatch.setattr(config_check_now, "read_posture", lambda *_: lines)
    shown, machine = run("posture", str(contract_file)), run("posture", str(contract_file), "--json")
    assert (shown.exit_code, machine.exit_code) == (code, code)
    assert [line["setting"] for line in json.loads(machine.stdout)] == [line.setting for line in lines]
    for line in lines:
        assert line.setting in shown.stdout
        assert line.do in shown.stdout
