"""Airflow's OpenLineage provider, where it is installed, learns what our tasks read and wrote; else nothing lacks."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.openlineage.extractors.manager import ExtractorManager
from airflow.utils.state import TaskInstanceState

from tallystick.contract.contract import load_contract
from tallystick.model.finding_names import BreakClass
from tallystick_airflow.connections import read_connections, read_spark_environment
from tallystick_airflow.operators.act_operator import ActOperator
from tallystick_airflow.operators.finish_operator import FinishOperator
from tallystick_airflow.operators.reconcile_operator import ReconcileOperator
from tests.run_results import run_result

DAGS = Path(__file__).parents[2] / "dags"
PAYOUTS = str(DAGS / "contracts" / "billing_payouts.yaml")
CONTRACT = load_contract(Path(PAYOUTS))
TOPIC = ("kafka://broker:9093", "billing.payouts")
LEDGER = ("postgres://db:5432", "ledger.billing.payout")
STORE = [("postgres://db:5433", f"ts.tallystick.{table}") for table in ("verdict", "item_break")]


def lineage(task: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Inputs and outputs as the provider itself extracts them at the end of a task."""
    found = ExtractorManager().extract_metadata(
        SimpleNamespace(run_id="r"), task, TaskInstanceState.SUCCESS, task_instance=None
    )
    return [(one.namespace, one.name) for one in found.inputs], [(one.namespace, one.name) for one in found.outputs]


@pytest.mark.parametrize("operator", [ReconcileOperator, FinishOperator])
def test_a_reconciliation_reads_both_sides_and_writes_the_store(operator: Any) -> None:
    task = operator(task_id="task", contract_file=PAYOUTS, name="tallystick")
    assert lineage(task) == ([], [])  # its verdict was stored already
    task.given = read_spark_environment(CONTRACT)  # as it gives Spark
    assert lineage(task) == ([TOPIC, LEDGER], STORE)


def test_what_was_found_stands_at_both_sides_as_assertions() -> None:
    task = ReconcileOperator(task_id="task", contract_file=PAYOUTS, name="tallystick")
    task.given = read_spark_environment(CONTRACT)
    task.judged = SimpleNamespace(result=run_result("billing_payouts", 1))  # type: ignore[assignment]
    found = ExtractorManager().extract_metadata(
        SimpleNamespace(run_id="r"), task, TaskInstanceState.SUCCESS, task_instance=None
    )
    for side in found.inputs:
        assertions = side.inputFacets["dataQualityAssertions"].assertions
        assert (assertions[0].name, assertions[0].success, assertions[0].actual) == (
            "tallystick.verdict",
            True,
            "MATCHED",
        )
        assert len(assertions) == 1 + len(BreakClass)


def test_a_repair_writes_the_side_that_is_written_second() -> None:
    task = ActOperator(task_id="act", contract_file=PAYOUTS)
    assert lineage(task) == ([], [])  # it was refused before it reached anything
    task.reached = read_connections(CONTRACT)
    assert lineage(task) == ([LEDGER], [TOPIC])


def test_without_the_provider_the_dags_load_all_the_same() -> None:
    script = f"""
import sys, importlib.machinery, importlib.util
sys.modules["airflow.providers.openlineage.extractors"] = sys.modules["openlineage"] = None
loader = importlib.machinery.SourceFileLoader("reconcile_dag", {str(DAGS / "reconcile_dag.py")!r})
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("reconcile_dag", loader))
loader.exec_module(module)
print(*sorted(one for one in vars(module) if one.endswith(("payments", "payouts"))))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    made = "compensate_billing_payouts reconcile_billing_payments reconcile_billing_payouts"
    assert done.stdout.splitlines()[-1] == made
