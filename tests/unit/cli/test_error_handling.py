"""A bug, an interrupt, a closed pipe and books that do not answer each end with a code of their own."""

from typing import Any

import pytest
from typer.testing import Result

from tallystick.cli import output as cli_output
from tallystick.executor.effects.airflow_api import AirflowUnreachable
from tallystick.model.errors import TallystickError
from tallystick.pipeline.local_run import RereadDiffers
from tallystick.store.plans.plan_store import EndingHeld
from tests.unit.cli.command_line import run


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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("trace", "\udcff"), "argument 2: got bytes that are not UTF-8"),
        (("runs", "--contract", "\udcff"), "what follows --contract: got bytes that are not UTF-8"),
        (("alert", "ack", "--by=\udcff", "billing", "x"), "--by: got bytes that are not UTF-8"),
        (("alert", "ack", "--\udcff=x", "billing"), "argument 3: got bytes that are not UTF-8"),
        (("store", "migrate", "--grant-to", "tally\0"), "what follows --grant-to: got a NUL character"),
        (("compensation", "sheet", "x.yaml", "\udcff"), "argument 4: got bytes that are not UTF-8"),
    ],
)
def test_an_argument_that_no_store_takes_is_refused_by_its_place(arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stderr) == (2, f"{said}; expected text in UTF-8, without NUL\n")


@pytest.mark.parametrize("name", ["TALLYSTICK_STORE_DSN", "TALLYSTICK_ARTIFACTS_DIR", "TALLYSTICK_CONN_KAFKA"])
def test_a_variable_that_is_no_utf_8_is_refused_by_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "postgresql://tally:hunter2@127.0.0.1:1/\udcff")
    result = run("runs")
    assert result.exit_code == 2
    assert result.stderr == f"{name}: got bytes that are not UTF-8; expected text in UTF-8, without NUL\n"


def test_text_in_utf_8_and_variables_of_others_are_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PS1", "\udcff")
    monkeypatch.setenv("TALLYSTICK_ARTIFACTS_DIR", "build/Bücher")
    assert run("runs", "--contract", "Zürich").stderr.startswith("the verdict store is not named")


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


def test_a_library_of_an_extra_that_is_missing_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    result = fails_with(monkeypatch, ModuleNotFoundError("No module named", name="prometheus_client"))
    assert result.exit_code == 2
    assert result.stderr == (
        "prometheus_client: not installed, or too old; expected it from `pip install 'tallystick[otel]'`\n"
    )


def test_a_module_of_our_own_that_is_missing_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    result = fails_with(monkeypatch, ModuleNotFoundError("No module named", name="tallystick.gone"))
    assert result.exit_code == 70


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    result = fails_with(monkeypatch, KeyboardInterrupt())
    assert result.exit_code == 130
    assert "interrupted" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_closed_pipe_is_not_mistaken_for_broken_books(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fails_with(monkeypatch, BrokenPipeError()).exit_code == 141


def test_a_cut_that_reads_differently_is_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    result = fails_with(monkeypatch, RereadDiffers("billing/7: another digest"))
    assert (result.exit_code, result.stderr) == (3, "billing/7: another digest\n")


@pytest.mark.parametrize("kind", [TallystickError, AirflowUnreachable, EndingHeld], ids=str)
def test_every_error_of_ours_is_its_sentence_and_no_traceback(
    kind: type[TallystickError], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = fails_with(monkeypatch, kind("Airflow: no answer; expected one"))
    assert (result.exit_code, result.stderr) == (2, "Airflow: no answer; expected one\n")
