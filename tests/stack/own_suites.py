"""A contract with suites of its own, the module that has them, and judged cuts with figures of both sides."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tallystick.contract.contract import Contract
from tallystick.model.run_result import WindowSummary
from tallystick.model.stored_run import ExpectationsOutcome, StoredRun
from tallystick.store.runs.run_store import read_run, read_run_head
from tallystick_expectations.own_suites import evaluate_own_suites
from tests.expectation_outcomes import window_summary

HEAD = """
import great_expectations as gx
import great_expectations.expectations as gxe
"""
ENOUGH = (
    HEAD
    + """
def suites():
    enough = gxe.ExpectColumnValuesToBeBetween(
        column="topic_rows", min_value=100, severity="warning", description="A window has a hundred events."
    )
    return {"window": gx.ExpectationSuite(name="mine", expectations=[enough])}
"""
)
MORE_THAN_ONE = ENOUGH.replace("100", "1")
PLAIN = window_summary()


@pytest.fixture
def own(new_contract: Callable[..., Contract]) -> Contract:
    """A contract with suites in `own_suites_here`, and the real receiver as its sink."""
    sinks = [{"kind": "webhook", "connection": "pager"}]
    return new_contract(expectations="own_suites_here", alert={"sinks": sinks}, legs={"payout": "billing.payouts"})


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Path]]:
    """Write the module, as the owner's package would be installed."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # written twice in a second, it would be read as it was

    def written(source: str, name: str = "own_suites_here") -> Path:
        (folder / f"{name}.py").write_text(source)
        sys.modules.pop(name, None)
        invalidate_caches()
        return folder

    yield written
    for name in ("own_suites_here", "payout_suites"):
        sys.modules.pop(name, None)


@pytest.fixture
def stored(store: Engine, books: Any, own: Contract) -> Callable[..., StoredRun]:
    """Commit cuts of this contract, with figures of both sides, and read the last one back."""
    of_own = replace(books, contract=own)

    def commit(n: int = 1, *, summary: WindowSummary | None = PLAIN, **result: Any) -> StoredRun:
        for number in range(n + 1):
            if read_run_head(store, own.name, number) is None:
                of_own.commit(store, replace(of_own.result(number, **result), summary=summary if number else None))
        run = read_run(store, own.name, n)
        assert run is not None
        return run

    return commit


def evaluated(run: StoredRun, folder: Path, module: str = "own_suites_here") -> ExpectationsOutcome:
    return evaluate_own_suites(run, module, folder / "artifacts")
