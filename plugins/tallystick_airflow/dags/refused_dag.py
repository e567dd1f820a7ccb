"""A red DAG that shows refused contracts, where no file of their own does, and DAGs that could not be built."""

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from tallystick_airflow.dags.settings import DagSettings


class ShowRefusedOperator(BaseOperator):
    """Fail with the file and the fault of each contract that is refused, and of each DAG that could not be built."""

    def __init__(self, *, faults: tuple[str, ...], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.faults = faults

    def execute(self, context: Context) -> None:
        raise AirflowFailException("\n".join(self.faults))


def refused_dag(faults: tuple[str, ...], settings: DagSettings) -> DAG:
    """Fails each hour, so that people and callbacks learn of it, and is gone when the contracts are good again."""
    with DAG(
        dag_id=f"{settings.dag_id_prefix}refused_contracts",
        description=f"Contract files that are refused, and DAGs that could not be built: {len(faults)}",
        doc_md="\n".join(f"    {line}" for fault in faults for line in fault.splitlines()),  # a block of code
        schedule="@hourly",
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        default_args=settings.for_all_tasks(),
        tags=["tallystick", *settings.tags],
        on_failure_callback=settings.on_failure_callback,
        access_control=settings.access_control,
    ) as dag:
        ShowRefusedOperator(task_id="show", faults=faults)
    return dag
