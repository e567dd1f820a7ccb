"""The DAG of one contract that allows repairs: plan, approve, second_approval, act, verify.

Apart from the reconciliation, so that a parked approval does not hold up the next windows. Started by it, without
waiting, for a cut whose breaks may be repaired; or by hand, with the number of a cut. Nothing is published before a
person agrees.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param

from tallystick_airflow.contract_files import ContractFile
from tallystick_airflow.dags.settings import DagSettings
from tallystick_airflow.dags.window_tasks import PATIENCE
from tallystick_airflow.internals.dag_parts import ASKED_RUN_TYPES
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


def compensate_dag(file: ContractFile, settings: DagSettings) -> DAG:
    """Wire the tasks of one contract that has compensation rules."""
    contract, rules = file.contract, file.contract.compensation
    assert rules is not None
    patience = PATIENCE | {"retries": 3, "execution_timeout": None}  # people take as long as the contract lets them
    with DAG(
        dag_id=f"{settings.dag_id_prefix}compensate_{contract.name}",
        description="Repair, after approval, what the reconciliation found",
        doc_md=RUNBOOK.format(timeout_hours=rules.approval_timeout_seconds / 3600),
        schedule=None,
        start_date=contract.start_date,
        catchup=False,
        allowed_run_types=ASKED_RUN_TYPES,
        params={"cut_n": Param(type="integer", minimum=0, description="Repair what was found up to this cut")},
        default_args={"owner": contract.owner, **patience, **settings.for_all_tasks()},
        tags=["tallystick", "compensation", *settings.tags],
        on_failure_callback=settings.on_failure_callback,
        on_success_callback=settings.on_success_callback,
        access_control=settings.access_control,
    ) as dag:
        stored = {"contract_file": str(file.path), "store_conn_id": settings.store_conn_id}
        of_cut = {"cut_n": "{{ params.cut_n }}", "execution_timeout": timedelta(hours=1)}
        asked = {"response_timeout": timedelta(seconds=rules.approval_timeout_seconds), "execution_timeout": None}

        def of(task_id: str, arguments: dict[str, Any]) -> dict[str, Any]:
            return {"task_id": task_id, **stored, **arguments, **settings.for_task(task_id)}

        plan = PlanOperator(**of("plan", of_cut))
        approve = ApprovePlanOperator(**of("approve", asked))
        second = SecondApprovalOperator(**of("second_approval", asked))
        act = ActOperator(max_active_tis_per_dag=1, **of("act", of_cut))
        verify = VerifyOperator(**of("verify", of_cut))
        plan >> approve >> second >> act >> verify
    return dag
