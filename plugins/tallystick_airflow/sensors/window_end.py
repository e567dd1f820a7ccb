"""The time from which a run's deadline is counted, for Airflow's scheduler."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from tallystick_airflow.internals.dag_parts import BaseDeadlineReference
from tallystick_airflow.internals.installed import airflow_minor
from tallystick_airflow.internals.runs import window_end_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


class WindowEnd(BaseDeadlineReference):
    """The end of the run's data interval; a run without one has no deadline.

    Not DAGRUN_LOGICAL_DATE, which is the window's start, and windows differ in length; nor DAGRUN_QUEUED_AT, since
    Airflow 3.3 fails to clear a run whose deadline is counted from there (it takes the stored interval for a number).
    Known to the scheduler by the plugin that names it.

    Airflow 3.3 gives the ids that `required_kwargs` names. From 3.4 on it gives the run itself, by the names of the
    parameters, and warns of `required_kwargs`.
    """

    if airflow_minor() < (3, 4):
        required_kwargs = frozenset({"dag_id", "run_id"})

    def _evaluate_with(
        self, *, session: "Session", dagrun: Any = None, dag_id: str = "", run_id: str = ""
    ) -> datetime | None:
        if dagrun is not None:
            end: datetime | None = dagrun.data_interval_end
            return end
        if not (dag_id and run_id):  # no deadline would be nobody's alarm
            raise ValueError("Airflow gave neither the run nor its ids; expected one, to know the window's end")
        return window_end_of(session, dag_id=dag_id, run_id=run_id)
