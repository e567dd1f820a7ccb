"""One DAG per contract: finish, settle, cut, reconcile; then report, alert and the offer to compensate; then judge.

A contract file that is refused has no DAG here and takes no other down: `refused_contracts_dag.py` shows it as an
import error with file and fault. Its missed windows are caught up when the file is good again.
"""

from datetime import timedelta

from airflow.sdk import DAG, AsyncCallback, CronDataIntervalTimetable, DeadlineAlert, TriggerRule

from tallystick_airflow.contract_files import ContractFile, contracts_folder, read_contract_files
from tallystick_airflow.operators.alert_operator import AlertOperator
from tallystick_airflow.operators.cut_operator import CutOperator
from tallystick_airflow.operators.finish_operator import FinishOperator
from tallystick_airflow.operators.judge_operator import JudgeOperator
from tallystick_airflow.operators.offer_compensation_operator import OfferCompensationOperator
from tallystick_airflow.operators.reconcile_operator import ReconcileOperator
from tallystick_airflow.operators.report_operator import ReportOperator
from tallystick_airflow.overdue_verdict import page_if_overdue
from tallystick_airflow.sensors.settle_sensor import SettleSensor
from tallystick_airflow.sensors.window_end import WindowEnd

RUNBOOK = """
{description}

**Red run.** Open the log of `judge`: it says BROKEN, or that no verdict was stored, which proves nothing either.
The report of the cut names each event, the cause, the money and the evidence.

**Clearing is safe.** A cut is saved before it is read: a cleared run reads the same slices, and where the verdict is
stored already, Spark is not started. **INCONCLUSIVE** is a green run with a warning: the doubt says who holds what.

Windows are judged in order: `finish` judges what an earlier run left unjudged.
`settle` waits up to {settle_timeout_seconds} s for open transactions, then goes on.

**Verdict overdue.** The window ended more than {verdict_timeout} ago, and no verdict is stored: a task hangs, waits for
a pool or a worker, or is tried again and again. The page ends with the verdict of the newest window that is due.
"""


def reconcile_dag(file: ContractFile) -> DAG:
    """Wire the tasks of one contract."""
    contract = file.contract
    with DAG(
        dag_id=f"reconcile_{contract.name}",
        description=f"{contract.direction}: {', '.join(contract.topics)} and {contract.ledger.place}",
        doc_md=RUNBOOK.format(
            description=contract.description,
            settle_timeout_seconds=contract.settle_timeout_seconds,
            verdict_timeout=contract.verdict_timeout,
        ),
        schedule=CronDataIntervalTimetable(contract.schedule, timezone="UTC"),
        start_date=contract.start_date,
        catchup=True,  # a window that was missed is a window that nobody has checked
        deadline=DeadlineAlert(
            reference=WindowEnd(),
            interval=contract.verdict_timeout,
            callback=AsyncCallback(page_if_overdue, kwargs={"contract_json": contract.model_dump_json()}),
            name="verdict",
        ),
        max_active_runs=1,  # the cut's lock lives in the verdict store: a backfill does not count here
        default_args={
            "owner": contract.owner,
            "contract_file": str(file.path),
            "retries": 2,
            "retry_delay": timedelta(seconds=15),
            "retry_exponential_backoff": True,
            "max_retry_delay": timedelta(minutes=10),
            "execution_timeout": timedelta(hours=2),
        },
        tags=["tallystick", contract.direction],
    ) as dag:
        finish = FinishOperator(task_id="finish", name=f"tallystick {contract.name}")
        settle = SettleSensor(task_id="settle")
        cut = CutOperator(task_id="cut")
        reconcile = ReconcileOperator(task_id="reconcile", name=f"tallystick {contract.name}")
        report = ReportOperator(task_id="report", retries=1)
        # The page must come also when there is no verdict to tell of.
        alert = AlertOperator(task_id="alert", trigger_rule=TriggerRule.ALL_DONE, retries=5)
        # After the report, since it is the last word; it judges by the stored row, whatever became of the report.
        judge = JudgeOperator(task_id="judge", trigger_rule=TriggerRule.ALL_DONE)
        finish >> settle >> cut >> reconcile >> [report, alert]
        report >> judge
        if contract.compensation:
            reconcile >> OfferCompensationOperator(task_id="offer_compensation")
        dag.add_result(reconcile.output)
    return dag


for file in read_contract_files(contracts_folder(__file__)).accepted:
    globals()[f"reconcile_{file.contract.name}"] = reconcile_dag(file)
