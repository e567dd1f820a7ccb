"""`tallystick runs` and `watch` tell a name without books from one whose runs are still to come."""

import json
from typing import Any
from unittest.mock import Mock

import pytest

from tallystick.cli import watch
from tallystick.store import engine
from tallystick.store.runs import run_store
from tallystick.store.views import overview_store
from tests.unit.cli.command_line import run


@pytest.fixture(autouse=True)
def store_without_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Books of two contracts, and a watch that ends at once."""
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", "postgresql://tally@127.0.0.1:1/verdicts")
    monkeypatch.setattr(engine, "open_store", Mock())
    monkeypatch.setattr(engine, "open_store_to_read", Mock())
    monkeypatch.setattr(run_store, "list_runs", lambda *_, **__: ())
    monkeypatch.setattr(overview_store, "list_contracts", lambda _: ("payouts", "refunds"))

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "watch", stop)


def test_a_name_without_books_is_refused_with_the_names_that_have_some() -> None:
    result = run("runs", "--contract", "payout")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "payout: the store has no books of it; expected one of: payouts, refunds\n"
    for_machines = run("runs", "--contract", "payout", "--json")
    assert (for_machines.exit_code, json.loads(for_machines.stdout)) == (0, [])


def test_a_contract_without_a_run_yet_is_no_error() -> None:
    result = run("runs", "--contract", "payouts")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no run of payouts is stored yet\n")
    assert json.loads(run("runs", "--contract", "payouts", "--json").stdout) == []
    assert run("runs").stderr == "no run is stored yet\n"


def test_a_name_without_books_is_watched_and_told() -> None:
    result = run("watch", "--contract", "payout")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        "payout: the store has no books of it; expected one of: payouts, refunds; waiting for its first run\n"
    )


@pytest.mark.parametrize("options", [(), ("--contract", "payouts")])
def test_a_watch_of_a_contract_with_books_tells_nothing_of_names(options: tuple[str, ...]) -> None:
    assert run("watch", *options).stderr == ""
