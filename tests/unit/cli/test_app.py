"""The command line: help that teaches, one sentence per expected error, and exit codes that mean one thing each."""

import gc
import re

import pytest

from tallystick import __main__
from tallystick.cli import output as cli_output
from tests.unit.cli.command_line import COMMANDS, run


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
        "check-config",
        "census",
        "metrics",
    ):
        assert f" {name} " in output
    for code in (
        "0 matched",
        "1 broken",
        "2 refused",
        "3 inconclusive",
        "70 a bug",
        "130 interrupted",
        "141 the reader",
    ):
        assert code in output


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
        ("compensation", "execute", "none.yaml", "hash"),
        ("compensation", "stop"),
        ("compensation", "stop", "--by", "Ada"),
        ("compensation", "stop", "--by", " ", "--reason", "it hangs"),
        ("compensation", "allow", "--by", "Ada", "--reason", ""),
        ("alert", "ack", "billing", "missing_in_ledger"),
        ("alert", "test"),
        ("alert", "test", "none.yaml"),
        ("check-config",),
        ("check-config", "none.yaml"),
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
    ("arguments", "got", "expected"),
    [
        (("grants", "x.yaml", "--for", "mysql"), "mysql", "'kafka', 'postgres'"),
        (("runs", "--limit", "0"), "0", "1"),
        (("runs", "--limit", "10001"), "10001", "10,?000"),
        (("run", "x.yaml", "--reread", "x"), "x", "(whole number|integer)"),
        (("run", "x.yaml", "--reread", "2147483648"), "2147483648", "2,?147,?483,?647"),
        (("compensation", "plan", "x.yaml", "--cut", "2147483648"), "2147483648", "2,?147,?483,?647"),
    ],
    ids=["one of", "too few", "too many", "no number", "no cut's number", "no cut's number to plan for"],
)
def test_a_refused_value_is_named_with_what_was_expected(arguments: tuple[str, ...], got: str, expected: str) -> None:
    result = run(*arguments)
    said = re.sub(r"[\s│]+", " ", result.stderr)
    assert (result.exit_code, "Value error" in said, "Input should" in said) == (2, False, False)
    assert re.search(rf"Invalid value for '{arguments[-2]}': .*\b{got}\b.*{expected}", said)


def test_a_value_that_a_command_refuses_itself_is_said_in_the_commands_words() -> None:
    said = re.sub(r"[\s│]+", " ", run("show", "billing/x").stderr)
    assert "got 'billing/x'; expected CONTRACT/N, such as billing_payments/7" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs",),
        ("show", "billing/1"),
        ("report", "billing/1"),
        ("explain", "12345678"),
        ("write-off", "billing", "12345678", "--by", "Ada", "--reason", "refunded"),
        ("compensation", "stop", "--by", "Ada", "--reason", "it hangs"),
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


def test_garbage_is_searched_for_seldom_while_a_command_works(monkeypatch: pytest.MonkeyPatch) -> None:
    before, inside = gc.get_threshold(), []
    monkeypatch.setattr(cli_output, "print_contracts", lambda *_: inside.append(gc.get_threshold()))
    monkeypatch.setattr("sys.argv", ["tallystick", "contract", "check", "dags/contracts"])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == 0
    assert inside[0][0] > 100 * before[0]
    assert gc.get_threshold() == before
