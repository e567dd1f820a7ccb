"""Runs of DAGs as the scheduler and the api-server know them, in whose processes this is asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


class RunNotStarted(RuntimeError):
    """Airflow does not start a run. The message has its words."""


@dataclass(frozen=True)
class KnownDag:
    """A DAG that Airflow has parsed once. is_stale: no file has it any more."""

    is_stale: bool
    is_paused: bool


def window_end_of(session: "Session", *, dag_id: str, run_id: str) -> datetime | None:
    """Return the end of a run's data interval; None where it has none."""
    from airflow.models.dagrun import DagRun
    from sqlalchemy import select

    end: datetime | None = session.scalar(
        select(DagRun.data_interval_end).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
    )
    return end


def find_dag(dag_id: str) -> KnownDag | None:
    """Return what Airflow knows of a DAG."""
    from airflow.models.dag import DagModel

    dag = DagModel.get_current(dag_id)
    return None if dag is None else KnownDag(is_stale=bool(dag.is_stale), is_paused=bool(dag.is_paused))


def start_run(dag_id: str, *, run_id: str, by: str, conf: Mapping[str, Any]) -> None:
    """Start a run under the name of a user who asked for it on a page. Raises RunNotStarted."""
    from airflow.api.common.trigger_dag import trigger_dag
    from airflow.exceptions import ParamValidationError
    from airflow.sdk.exceptions import AirflowException
    from airflow.utils.types import DagRunTriggeredByType

    try:
        trigger_dag(
            dag_id,
            triggered_by=DagRunTriggeredByType.UI,
            triggering_user_name=by,
            run_id=run_id,
            conf=dict(conf),
        )
    except (AirflowException, ParamValidationError, ValueError) as error:
        raise RunNotStarted(str(error)) from None
