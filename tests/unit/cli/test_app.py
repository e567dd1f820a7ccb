"""The command line: help that teaches, one sentence per expected error, and exit codes that mean one thing each."""

import gc
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from tallystick.cli import app as cli
from tallystick.cli import output as cli_output
from tallystick.cli.app import app
from tallystick.contract.change import contract_changes
from tallystick.contract.contract import Contract
from tallystick.documents.run import run_document
from tallystick.kafka_cluster.config_check import CheckResult, PostureLine
from tallystick.kafka_log.fetch import BrokerUnreachable
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import ExitCode, Verdict, exit_code_of, worst_of
from tallystick.pipeline import config_check_now, local_run
from tallystick.pipeline.local_run import RereadDiffers
from tallystick.store.runs.contract_store import NewestContract

COMMANDS = [
    ("contract", "check"),
    ("contract", "diff"),
    ("store", "migrate"),
    ("run",),
    ("cut", "make"),
    ("cut", "close"),
    ("runs",),
    ("show",),
    ("report",),
    ("watch",),
    ("explain",),
    ("write-off",),
    ("compensation", "plan"),
    ("compensation", "sheet"),
    ("compensation", "act"),
    ("compensation", "reopen"),
    ("compensation", "stop"),
    ("compensation", "allow"),
    ("alert", "ack"),
    ("alert", "test"),
    ("posture",),
    ("grants",),
    ("census",),
    ("metrics", "show"),
    ("metrics", "serve"),
    ("metrics", "push"),
]


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """No colours from the surroundings, and no address either."""
    for name in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TALLYSTICK_STORE_DSN"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


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


def test_every_verdict_has_a_code_of_its_own_that_nothing_else_has() -> None:
    assert [exit_code_of(verdict) for verdict in Verdict] == [0, 3, 1]
    assert len({int(code) for code in ExitCode}) == len(ExitCode)


def test_the_worst_of_several_codes_is_the_money_that_is_wrong() -> None:
    matched, inconclusive, refused, bug, broken = (ExitCode(code) for code in (0, 3, 2, 70, 1))
    rising = [matched, inconclusive, refused, bug, broken]
    for position, worst in enumerate(rising, start=1):
        assert worst_of(rising[:position]) == worst_of(reversed(rising[:position])) == worst


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


def test_a_store_that_does_not_answer_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", "postgresql://tally:hunter2@127.0.0.1:1/verdicts")
    result = run("runs")
    assert result.exit_code == 2
    assert result.stderr.startswith("verdict store at 127.0.0.1:1/verdicts: ")
    assert len(result.stderr.splitlines()) == 1
    assert "hunter2" not in result.output


def test_a_connection_that_nobody_gave_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TALLYSTICK_CONN_KAFKA_BILLING", raising=False)
    result = run("census", "billing.payments", "--kafka", "kafka_billing")
    assert result.exit_code == 2
    assert result.stderr == (
        "connection kafka_billing: expected the environment variable TALLYSTICK_CONN_KAFKA_BILLING\n"
    )


def fails_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> Result:
    """`contract check` with an output that raises."""

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(cli_output, "print_contracts", fail)
    return run("contract", "check", "dags/contracts")


def test_a_bug_keeps_its_traceback_and_is_not_mistaken_for_broken_books(monkeypatch: pytest.MonkeyPatch) -> None:
    result = fails_with(monkeypatch, ZeroDivisionError("division by zero"))
    assert result.exit_code == 70
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("ZeroDivisionError: this is a bug in Tallystick")


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    result = fails_with(monkeypatch, KeyboardInterrupt())
    assert result.exit_code == 130
    assert "interrupted" in result.stderr
    assert "Traceback" not in result.stderr


def test_garbage_is_searched_for_seldom_while_a_command_works(monkeypatch: pytest.MonkeyPatch) -> None:
    before, inside = gc.get_threshold(), []
    monkeypatch.setattr(cli_output, "print_contracts", lambda *_: inside.append(gc.get_threshold()))
    assert run("contract", "check", "dags/contracts").exit_code == 0
    assert inside[0][0] > 100 * before[0]
    assert gc.get_threshold() == before


def test_a_closed_pipe_is_not_mistaken_for_broken_books(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fails_with(monkeypatch, BrokenPipeError()).exit_code == 141


def test_a_cut_that_reads_differently_is_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    result = fails_with(monkeypatch, RereadDiffers("billing/7: another digest"))
    assert (result.exit_code, result.stderr) == (3, "billing/7: another digest\n")


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Any:
    def show(run: StoredRun) -> str:
        cli_output.print_run(run)
        return capsys.readouterr().out

    return show


def test_a_run_is_shown_with_money_stories_and_census_and_no_colour_codes(shown: Any, broken_run: StoredRun) -> None:
    output = shown(replace(broken_run, ledger_guarantee="by horizon (xmin): strong"))
    assert "The ledger is read by horizon (xmin): strong." in output
    assert output.splitlines()[0] == "BROKEN  billing_payouts/7  2026-03-01 12:00:00 to 13:00:00 UTC"
    for expected in (
        "Missing in topic: never produced: 1 break, 400.00 EUR",
        "Check first:",
        "pay-4 committed its payout only.",
        "Held by an open producer transaction",
        "billing.payouts[0]",
    ):
        assert expected in output
    assert "\x1b" not in output


def test_a_notice_is_shown_and_said_to_change_no_verdict(shown: Any, matched_run: StoredRun) -> None:
    found = NoticeFound(notice=Notice.UNFILTERED_READER, sentence="The consumer reads uncommitted.")
    result = replace(matched_run.result, notices=(found,))
    output = shown(replace(matched_run, result=result))
    assert "Unfiltered reader (changes no verdict)" in output
    assert "The consumer reads uncommitted." in output
    assert run_document(replace(matched_run, result=result))["notices"] == [
        {
            "notice": "unfiltered_reader",
            "sentence": "The consumer reads uncommitted.",
            "count": 1,
            "pages": False,
            "details": {},
        }
    ]


def test_compacted_offsets_are_shown_where_there_are_any(shown: Any, matched_run: StoredRun) -> None:
    one, two = matched_run.result.figures.census
    assert "compacted" not in shown(matched_run)
    figures = replace(matched_run.result.figures, census=(replace(one, compacted=1_234), two))
    output = shown(replace(matched_run, result=replace(matched_run.result, figures=figures)))
    assert "compacted" in output
    assert "1,234" in output


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


@pytest.fixture
def diff(contract: Contract, capsys: pytest.CaptureFixture[str]) -> Any:
    """The contract's diff as it is shown, against a stored cut 7 of version 3."""

    def show(*, judged: bool = True, **changes: Any) -> str:
        after = Contract.model_validate(contract.model_dump(mode="json") | changes)
        stored = NewestContract(contract=contract, cut_n=7, judged=judged)
        cli_output.print_contract_changes(after, stored, contract_changes(contract, after), open_items=12)
        return capsys.readouterr().out

    return show


def test_a_diff_says_what_stands_in_the_store_and_what_each_field_does(diff: Any) -> None:
    output = diff(version=4, partner_grace_seconds=90, owner="others")
    first = output.splitlines()[0]
    assert first.startswith("billing_payouts: cut 7 was made with version 3 (")
    assert first.endswith("; 12 items open.")
    for expected in ("partner_grace_seconds", "re-evaluated", "owner", "kept", '"others"', "run --reread"):
        assert expected in output
    assert "No cut would be made" not in output
    assert "still" not in output.splitlines()[-1]


def test_a_diff_asks_for_a_new_version_where_the_meaning_changes_and_only_there(diff: Any) -> None:
    assert "The version is still 3: raise it" in diff(partner_grace_seconds=90)
    assert "The version is still 3" not in diff(owner="others")


def test_a_diff_tells_of_a_cut_that_waits_for_its_verdict(diff: Any) -> None:
    assert "Cut 7 has no verdict yet" in diff(owner="others", judged=False)
    assert "no verdict yet" not in diff(owner="others")


def test_a_refused_diff_says_what_to_do_and_the_same_file_that_nothing_differs(diff: Any) -> None:
    assert "No cut would be made with this file" in diff(legs={"payout": "billing.payouts"})
    assert diff().splitlines()[1:] == ["Nothing differs."]


def test_a_match_key_cannot_drive_the_terminal(shown: Any, broken_run: StoredRun) -> None:
    first = broken_run.result.breaks[0]
    hostile = type(first)(**{**vars(first), "match_key": "\x1b]0;owned\x07[red]x", "story": "a\rb"})
    result = type(broken_run.result)(**{**vars(broken_run.result), "breaks": (hostile,)})
    output = shown(type(broken_run)(**{**vars(broken_run), "result": result}))
    assert "\x1b" not in output
    assert "\r" not in output
    assert "\\u001b]0;owned\\u0007[red]x" in output


def test_many_breaks_are_cut_on_a_screen_and_say_so(shown: Any, many_breaks_run: StoredRun) -> None:
    output = shown(many_breaks_run)
    assert "more; --json and the report have them" in output
    assert len(output.splitlines()) < 500
