"""The DAG of one contract: its windows one after the other, none left out."""

from airflow.sdk import (  # type: ignore[attr-defined] # two of them are not in Airflow's stub of its own API
    DAG,
    AsyncCallback,
    CronDataIntervalTimetable,
    DeadlineAlert,
)

from tallystick.contract.contract import Contract
from tallystick_airflow.connections import STORE_CONNECTION
from tallystick_airflow.contract_files import ContractFile
from tallystick_airflow.dags.settings import DagSettings
from tallystick_airflow.dags.window_tasks import PATIENCE, add_window_tasks
from tallystick_airflow.internals.dag_parts import mark_result, named_deadline
from tallystick_airflow.overdue_verdict import page_if_overdue
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


def reconcile_dag(file: ContractFile, settings: DagSettings) -> DAG:
    """Wire the tasks of one contract."""
    contract = file.contract
    with DAG(
        dag_id=f"{settings.dag_id_prefix}reconcile_{contract.name}",
        description=f"{contract.direction}: {', '.join(contract.topics)} and {contract.ledger.place}",
        doc_md=RUNBOOK.format(
            description=contract.description,
            settle_timeout_seconds=contract.settle_timeout_seconds,
            verdict_timeout=contract.verdict_timeout,
        ),
        schedule=CronDataIntervalTimetable(contract.schedule, timezone="UTC"),
        start_date=contract.start_date,
        catchup=True,  # a window that was missed is a window that nobody has checked
        deadline=verdict_deadline(contract, store_conn_id=settings.store_conn_id),
        max_active_runs=1,  # the cut's lock lives in the verdict store: a backfill does not count here
        default_args={"owner": contract.owner, **PATIENCE, **settings.for_all_tasks()},
        tags=["tallystick", contract.direction, *settings.tags],
        on_failure_callback=settings.on_failure_callback,
        on_success_callback=settings.on_success_callback,
        access_control=settings.access_control,
    ) as dag:
        mark_result(dag, add_window_tasks(file, settings).reconcile.output)
    return dag


def verdict_deadline(contract: Contract, *, store_conn_id: str = STORE_CONNECTION) -> DeadlineAlert:
    """Return the deadline that tells on-call when a window has no verdict in the time that its contract allows."""
    return named_deadline(
        "verdict",
        reference=WindowEnd(),
        interval=contract.verdict_timeout,
        callback=AsyncCallback(
            page_if_overdue, kwargs={"contract_json": contract.model_dump_json(), "store_conn_id": store_conn_id}
        ),
    )
