"""A key that the contract hides stands in no log, no error and no question that a task leaves in Airflow."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock
from uuid import UUID

import pytest
import yaml
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException

from tallystick.compensation.repair_effect import RepairEffect
from tallystick.executor import execute_plan as compensation
from tallystick.executor import prove_repairs, verify_plan
from tallystick.executor.effects.action_log import ActionResult, ItemCheck, ItemOutcome
from tallystick.executor.execute_plan import Execution
from tallystick.executor.verify_plan import VerifyResult
from tallystick.model.verdict import Verdict
from tallystick.store.plans import approval_store, plan_store
from tallystick.store.plans.approval_store import ApprovalStep
from tallystick_airflow.operators import act_operator, approve_operator, verify_operator
from tallystick_airflow.operators.act_operator import ActOperator
from tallystick_airflow.operators.approve_operator import ApprovePlanOperator
from tallystick_airflow.operators.verify_operator import VerifyOperator
from tests.stored_books import CONTRACTS, payouts, waiting_plan

KEY = "pay-1"
PLAN = waiting_plan(payouts())


@pytest.fixture(autouse=True)
def around(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a store nor a broker: what a task says is asked, not what it does."""

    @contextmanager
    def no_store(_: str) -> Iterator[None]:
        yield None

    for module in (approve_operator, act_operator, verify_operator):
        monkeypatch.setattr(module, "open_verdict_store", no_store)
    for acting in (act_operator, verify_operator):
        monkeypatch.setattr(acting, "approved_plan", lambda engine, contract_name, context: (PLAN, "Grace"))
        monkeypatch.setattr(acting, "read_acting_connections", lambda contract: None)
    monkeypatch.setattr(prove_repairs, "contract_of_fingerprint", lambda *_: None)


def contract_file(folder: Path, *shown: str) -> str:
    document = yaml.safe_load((CONTRACTS / "billing_payouts.yaml").read_text()) | {"shown_keys": list(shown)}
    path = folder / "billing_payouts.yaml"
    path.write_text(yaml.safe_dump(document))
    return str(path)


SHOWN = pytest.mark.parametrize("shown", [(), ("match_key", "transaction_key")], ids=["hidden", "shown"])


@SHOWN
def test_the_question_to_the_approver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: tuple[str, ...]) -> None:
    asked = ApprovalStep(
        plan_id=PLAN.plan_id, plan_hash=PLAN.plan_hash, event="planned", actor="Ada", recorded_at=datetime.now(UTC)
    )
    monkeypatch.setattr(approval_store, "plan_asked_in", lambda *_, **__: asked)
    monkeypatch.setattr(plan_store, "read_plan", lambda engine, plan_id: PLAN)
    monkeypatch.setattr(plan_store, "append_audit", lambda *_, **__: None)
    monkeypatch.setattr(ApprovalOperator, "execute", lambda self, context: None)
    operator = ApprovePlanOperator(task_id="approve", contract_file=contract_file(tmp_path, *shown))
    operator.execute({"ti": SimpleNamespace(try_number=1), "run_id": "r"})  # type: ignore[typeddict-item]
    assert (KEY in operator.body) == bool(shown)


@SHOWN
def test_the_error_of_a_repair_without_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: tuple[str, ...]
) -> None:
    checks = (ItemCheck(match_key=KEY, effect=RepairEffect.CHANGED, places=()),)
    result = VerifyResult(verdict=Verdict.BROKEN, checks=checks)
    monkeypatch.setattr(verify_plan, "verify_and_keep", lambda *_, **__: result)
    operator = VerifyOperator(task_id="verify", contract_file=contract_file(tmp_path, *shown), cut_n="27")
    with pytest.raises(AirflowFailException) as failed:
        operator.execute({})
    assert (KEY in str(failed.value)) == bool(shown)


def test_the_log_of_what_was_done_names_actions_and_never_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = ItemOutcome(action_id=UUID(int=7), match_key=KEY, fate=ActionResult.PUBLISHED)
    done = Execution(plan_id=UUID(int=1), plan_hash="h", dry_run=False, outcomes=(outcome,))
    monkeypatch.setattr(compensation, "execute_plan", lambda *_, **__: done)
    log = Mock()
    monkeypatch.setattr(ActOperator, "log", log)
    ActOperator(task_id="act", contract_file=contract_file(tmp_path), cut_n="27").execute({"run_id": "r"})
    logged = [call.args[0] % call.args[1:] for call in log.info.call_args_list]
    assert logged == [f"action {UUID(int=7)}: published "]
