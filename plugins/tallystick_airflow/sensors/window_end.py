"""The time from which a run's deadline is counted, for Airflow's scheduler."""

from datetime import datetime
from typing import TYPE_CHECKING

from airflow.sdk.definitions.deadline import BaseDeadlineReference

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


class WindowEnd(BaseDeadlineReference):
    """The end of the run's data interval; a run without one has no deadline.

    Not DAGRUN_LOGICAL_DATE, which is the window's start, and windows differ in length; nor DAGRUN_QUEUED_AT, since
    Airflow 3.3 fails to clear a run whose deadline is counted from there (it takes the stored interval for a number).
    Known to the scheduler by the plugin that names it.
    """

    required_kwargs = frozenset({"dag_id", "run_id"})

    def _evaluate_with(self, *, session: "Session", dag_id: str, run_id: str) -> datetime | None:
        from airflow.models.dagrun import DagRun  # noqa: TID251 - asked in the scheduler, whose own model this is
        from sqlalchemy import select

        end: datetime | None = session.scalar(
            select(DagRun.data_interval_end).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
        )
        return end
