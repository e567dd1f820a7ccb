"""`tallystick compensation reopen` asks nobody to sign what would be refused once it is signed; `execute` says why."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import pytest
import yaml

from tallystick.cli.commands.compensation import _print_outcomes
from tallystick.compensation.repair_effect import RepairEffect
from tallystick.executor.effects.action_log import ActionResult, ItemCheck, ItemOutcome
from tallystick.executor.execute_plan import Execution
from tallystick.report.masking import Mask
from tallystick.store import clock, engine
from tallystick.store.plans import plan_store
from tallystick.store.plans.plan_store import ActionState, StoredAction
from tests.unit.builders import NOON
from tests.unit.cli.command_line import run
from tests.unit.compensation.plans import contract

ACTION = UUID(int=7)


def reopen(monkeypatch: pytest.MonkeyPatch, folder: Path, state: ActionState, break_id: UUID | None) -> Any:
    """The command on a store that has this one action."""
    stored = StoredAction(
        action_id=ACTION, break_id=break_id, plan_id=UUID(int=5), state=state, outcome={}, recorded_at=NOON
    )
    monkeypatch.setenv("TALLYSTICK_STORE_DSN", "postgresql://tally@127.0.0.1:1/verdicts")
    monkeypatch.setattr(engine, "open_store", Mock())
    monkeypatch.setattr(clock, "store_now", lambda _: NOON)
    monkeypatch.setattr(plan_store, "open_actions", lambda *_: {ACTION: stored})
    file = folder / "payouts.yaml"
    file.write_text(yaml.safe_dump(contract().model_dump(mode="json", by_alias=True, exclude_defaults=True)))
    return run("compensation", "reopen", str(file), str(ACTION), "--by", "ada", "--reason", "looked")


@pytest.mark.parametrize(
    ("state", "break_id", "said"),
    [
        (ActionState.EXECUTING, UUID(int=1), "was begun and has not ended; expected one that is done or waits"),
        (ActionState.DONE, None, "ends a hanging transaction; its marker cannot be taken back"),
    ],
)
def test_what_cannot_be_reopened_is_refused_before_a_sheet_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: ActionState, break_id: UUID | None, said: str
) -> None:
    result = reopen(monkeypatch, tmp_path, state, break_id)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"payouts: action {ACTION} {said}")


@pytest.mark.parametrize("state", [ActionState.DONE, ActionState.WAITING])
def test_a_sheet_of_what_is_done_or_waits_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: ActionState
) -> None:
    result = reopen(monkeypatch, tmp_path, state, UUID(int=1))
    assert (result.exit_code, json.loads(result.stdout)["state"]) == (0, state)


@pytest.mark.parametrize(
    ("refused", "unseen", "told"),
    [
        ("", "the other one may have it", "already done, hidden. the other one may have it"),
        ("a person has to look", "the other one may have it", "already done, hidden. a person has to look"),
        ("", "", "already done, hidden."),
    ],
)
def test_why_the_effect_of_what_was_not_refused_cannot_be_seen_is_printed(
    capsys: pytest.CaptureFixture[str], refused: str, unseen: str, told: str
) -> None:
    outcome = ItemOutcome(action_id=ACTION, match_key="e-1", fate=ActionResult.ALREADY_DONE, reason=refused)
    execution = Execution(plan_id=UUID(int=5), plan_hash="5a1d", dry_run=False, outcomes=(outcome,))
    check = ItemCheck(match_key="e-1", effect=RepairEffect.HIDDEN, places=(), reason=unseen)
    _print_outcomes(execution, [check], mask=Mask(contract()))
    assert capsys.readouterr().out.rstrip().endswith(f": {told}")
