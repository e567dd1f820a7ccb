"""One DAG per contract that allows repairs: plan, approve, second_approval, act, verify.

Apart from the reconciliation, so that a parked approval does not hold up the next windows. Started by it, without
waiting, for a cut whose breaks may be repaired; or by hand, with the number of a cut. Nothing is published before a
person agrees.
"""

from datetime import timedelta

from airflow.sdk import DAG, Param

from tallystick_airflow.contract_files import ContractFile, contracts_folder, read_contract_files
from tallystick_airflow.operators.act_operator import ActOperator
from tallystick_airflow.operators.approve_operator import ApprovePlanOperator, SecondApprovalOperator
from tallystick_airflow.operators.plan_operator import PlanOperator
from tallystick_airflow.operators.verify_operator import VerifyOperator

RUNBOOK = """
**What it does.** `plan` names each repair and each break it leaves alone, with the reason. `approve` shows that plan
and waits {timeout_hours:.1f} h; silence means no. `second_approval` asks another person where one is not
enough, and else passes by itself. `act` does each repair once, over all plans, whatever crashes.
`verify` reads again what was touched: is each break cleared, not cleared, or changed? Of what was handed to a DAG of
yours it says whether the run stands and has not failed; the next run of the reconciliation says the rest.

**To stop it** at any step: `tallystick compensation stop --by NAME --reason TEXT`.

**Who.** Above the contract's four_eyes_above_minor two people: who started the run and who approves, or, where the
reconciliation started it, two who approve. With compensation.approvers only whom it names. Under Browse, Required
Actions; or on the task.

**A refusal** of `act` says why: the plan is stale, its approval too old, over the caps, or already done. Start a new
run for a new plan. Clearing `act` does what is left of the breaks that are still outstanding, while the approval
holds. Clearing `verify` only looks again. Clearing an approval is refused: Airflow would show the old plan.
"""


def compensate_dag(file: ContractFile) -> DAG:
    """Wire the tasks of one contract that has compensation rules."""
    contract, rules = file.contract, file.contract.compensation
    assert rules is not None
    with DAG(
        dag_id=f"compensate_{contract.name}",
        description="Repair, after approval, what the reconciliation found",
        doc_md=RUNBOOK.format(timeout_hours=rules.approval_timeout_seconds / 3600),
        schedule=None,
        start_date=contract.start_date,
        catchup=False,
        allowed_run_types=["manual", "operator_triggered"],
        params={"cut_n": Param(type="integer", minimum=0, description="Repair what was found up to this cut")},
        default_args={
            "owner": contract.owner,
            "retries": 3,
            "retry_delay": timedelta(seconds=15),
            "retry_exponential_backoff": True,
            "max_retry_delay": timedelta(minutes=10),
        },
        tags=["tallystick", "compensation"],
    ) as dag:
        common = {
            "contract_file": str(file.path),
            "cut_n": "{{ params.cut_n }}",
            "execution_timeout": timedelta(hours=1),
        }
        plan = PlanOperator(task_id="plan", **common)
        approve = ApprovePlanOperator(
            task_id="approve",
            contract_file=str(file.path),
            response_timeout=timedelta(seconds=rules.approval_timeout_seconds),
        )
        second = SecondApprovalOperator(
            task_id="second_approval",
            contract_file=str(file.path),
            response_timeout=timedelta(seconds=rules.approval_timeout_seconds),
        )
        act = ActOperator(task_id="act", max_active_tis_per_dag=1, **common)
        verify = VerifyOperator(task_id="verify", **common)
        plan >> approve >> second >> act >> verify
    return dag


for file in read_contract_files(contracts_folder(__file__)).accepted:
    if file.contract.compensation:
        globals()[f"compensate_{file.contract.name}"] = compensate_dag(file)
